"""The next turn of an activity whose tools asked people: the wait beside it is closed by what ends it, and the activity is run again."""

from __future__ import annotations

from uuid import UUID

from flows.core.protocol import TOOL_APPROVAL
from flows.store.sql import literals, run
from flows.store.waking import LOGGED, MOVED

NEXT_TURN = f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.id = %(wait)s::bigint AND o.kind = {literals([TOOL_APPROVAL])} AND o.closed_at IS NULL AND o.epoch = w.epoch
      AND w.status IN ('waiting', 'paused', 'runnable', 'running')
), {MOVED}, closed AS (
    UPDATE outlast_wait o SET evidence = %(evidence)s::jsonb, status = 'satisfied', closed_at = flows_now()
    FROM moved m WHERE o.id = m.wait_id AND o.closed_at IS NULL
    RETURNING o.id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.wait_id = m.wait_id AND t.fired_at IS NULL
), {LOGGED}
SELECT m.id, m.queue, m.flow_name, m.node, m.was FROM moved m LEFT JOIN closed c ON c.id = m.wait_id
WHERE c.id IS NOT NULL OR outlast_half_move('wait')
"""


def next_turn(
    wait_id: int, evidence: str, *, ref: str, priority_seconds: int, using: str
) -> tuple[UUID, str, str, str, str] | None:
    """Close the wait beside an activity and make its workflow ready: (id, queue, flow, node, status before).

    The workflow must be locked. None (= lost): the wait is closed, or of an older epoch.
    """
    params = {"wait": wait_id, "evidence": evidence, "trigger": "approval", "ref": ref, "priority_seconds": priority_seconds}
    rows = run("next turn", NEXT_TURN, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4]) if rows else None
