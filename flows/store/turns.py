"""The next turn of an activity whose tools asked people: the wait beside it is closed by what ends it, and the activity is run again."""

from __future__ import annotations

from uuid import UUID

from flows.core.protocol import TOOL_APPROVAL
from flows.store.sql import literals, run

NEXT_TURN = f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.id = %(wait)s::bigint AND o.kind = {literals([TOOL_APPROVAL])} AND o.closed_at IS NULL AND o.epoch = w.epoch
      AND w.status IN ('waiting', 'paused', 'runnable', 'running')
), moved AS (
    UPDATE outlast_workflow w
    SET wake_seq = w.wake_seq + 1, status = CASE WHEN old.status = 'waiting' THEN 'runnable' ELSE w.status END,
        outcome = CASE WHEN old.status = 'waiting' THEN '' ELSE w.outcome END,
        version = w.version + CASE WHEN old.status = 'waiting' THEN 1 ELSE 0 END,
        rank = CASE WHEN old.status = 'waiting' THEN flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second'
                    ELSE w.rank END,
        due_at = CASE WHEN old.status = 'waiting' THEN NULL ELSE w.due_at END, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was, old.wait_id
), closed AS (
    UPDATE outlast_wait o SET evidence = %(evidence)s::jsonb, status = 'satisfied', closed_at = flows_now()
    FROM moved m WHERE o.id = m.wait_id AND o.closed_at IS NULL
    RETURNING o.id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.wait_id = m.wait_id AND t.fired_at IS NULL
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at)
    SELECT m.id, m.version, 'waiting', 'runnable', m.node, m.node, '', m.epoch, 'approval', %(ref)s, m.intent_version,
        m.policy_version, m.active_seq, flows_now()
    FROM moved m WHERE m.was = 'waiting'
)
SELECT m.id, m.queue, m.flow_name, m.node, m.was FROM moved m LEFT JOIN closed c ON c.id = m.wait_id
WHERE c.id IS NOT NULL OR outlast_half_move('wait')
"""


def next_turn(
    wait_id: int, evidence: str, *, ref: str, priority_seconds: int, using: str
) -> tuple[UUID, str, str, str, str] | None:
    """Close the wait beside an activity and make its workflow ready: (id, queue, flow, node, status before).

    The workflow must be locked. None (= lost): the wait is closed, or of an older epoch.
    """
    params = {"wait": wait_id, "evidence": evidence, "ref": ref, "priority_seconds": priority_seconds}
    rows = run("next turn", NEXT_TURN, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4]) if rows else None
