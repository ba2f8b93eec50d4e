"""Arrows made from outside the turn on rows that are locked first: pause, resume, cancel, supersede."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flows.core.protocol import RESUMED
from flows.store.sql import literals, run

LEAVE = """
WITH old AS (
    SELECT id, status, node, active_seq, worker_id, worker_pid FROM outlast_workflow
    WHERE id = ANY (%(ids)s::uuid[]) AND status = ANY (%(from)s::text[])
), moved AS (
    UPDATE outlast_workflow w
    SET status = %(to)s, outcome = %(outcome)s, error_code = coalesce(%(code)s, w.error_code), version = w.version + 1,
        epoch = w.epoch + %(epoch_step)s::int, worker_id = NULL, worker_pid = NULL, active_seq = NULL, due_at = NULL,
        target = %(target)s, result = NULL, pause_requested_at = NULL, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was, old.active_seq AS was_active, old.worker_id AS was_worker, old.worker_pid AS was_pid
), ended AS (
    UPDATE outlast_activity a SET status = 'fenced', fence = a.fence + 1, ended_at = flows_now()
    FROM moved m WHERE a.workflow_id = m.id AND a.seq = m.was_active
    RETURNING a.workflow_id, a.seq, a.attempt, a.node, a.started_at
), tried AS (
    INSERT INTO outlast_attempt (
        workflow_id, activity_seq, number, node, worker_id, worker_pid, started_at, ended_at, outcome, error_code)
    SELECT e.workflow_id, e.seq, e.attempt, e.node, m.was_worker, m.was_pid, e.started_at, flows_now(), 'fenced', %(code)s
    FROM ended e JOIN moved m ON m.id = e.workflow_id WHERE m.was = 'running'
), withdrawn AS (
    UPDATE outlast_wait o SET status = 'withdrawn', closed_at = flows_now()
    FROM moved m WHERE o.workflow_id = m.id AND o.closed_at IS NULL
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.fired_at IS NULL AND t.commitment_id IS NULL
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, attempt, error_code, note, at)
    SELECT m.id, m.version, m.was, m.status, m.node, m.node, m.outcome, m.epoch, %(trigger)s, %(ref)s, m.intent_version,
        m.policy_version, e.seq, e.attempt, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m LEFT JOIN ended e ON e.workflow_id = m.id
)
SELECT id FROM moved
"""


def leave(
    ids: Sequence[UUID],
    *,
    sources: Sequence[str],
    to: str,
    outcome: str,
    code: str | None,
    epoch_step: int,
    trigger: str,
    ref: str,
    note: str | None,
    target: str = "",
    using: str,
) -> list[UUID]:
    """Take locked workflows out of whatever they are doing: activities fenced, waits withdrawn, timers dropped; the ids of those that moved.

    `target`: the end that a cancelling workflow is on the way to.
    """
    params: dict[str, Any] = {
        "ids": list(ids),
        "from": list(sources),
        "to": to,
        "outcome": outcome,
        "code": code,
        "epoch_step": epoch_step,
        "trigger": trigger,
        "ref": ref,
        "note": note,
        "target": target,
    }
    return [row[0] for row in run("leave", LEAVE, params, using)]


PAUSE = """
WITH old AS (
    SELECT id, status, node, outcome FROM outlast_workflow WHERE id = %(id)s::uuid AND status IN ('runnable', 'waiting')
), moved AS (
    UPDATE outlast_workflow w
    SET status = 'paused', outcome = CASE WHEN old.outcome = '' THEN %(outcome)s ELSE old.outcome END, version = w.version + 1,
        pause_requested_at = NULL, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, note, at)
    SELECT m.id, m.version, m.was, m.status, m.node, m.node, m.outcome, m.epoch, 'pause', %(ref)s, m.intent_version,
        m.policy_version, m.active_seq, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT id FROM moved
"""

ASK_PAUSE = """
UPDATE outlast_workflow SET pause_requested_at = flows_now(), wake_seq = wake_seq + 1, updated_at = flows_now()
WHERE id = %(id)s::uuid AND status IN ('running', 'reconciling') AND pause_requested_at IS NULL AND target = ''
RETURNING id
"""


def pause(workflow_id: UUID, ref: str, note: str | None, using: str, *, outcome: str = "WAITING") -> bool:
    """Pause a workflow that is not computing; `outcome`: that of one that has none."""
    return bool(run("pause", PAUSE, {"id": workflow_id, "ref": ref, "note": note, "outcome": outcome}, using))


def ask_pause(workflow_id: UUID, using: str) -> bool:
    """Ask a running workflow to pause at its next arrow; its running result is kept."""
    return bool(run("ask pause", ASK_PAUSE, {"id": workflow_id}, using))


RESUME = f"""
WITH old AS (
    SELECT id, status, node, outcome, active_seq FROM outlast_workflow
    WHERE id = %(id)s::uuid AND (status = 'paused' OR status = 'waiting' AND (outcome <> 'WAITING' OR EXISTS (
        SELECT FROM outlast_wait o WHERE o.workflow_id = %(id)s::uuid AND o.closed_at IS NULL AND o.kind = 'retry_window')))
      AND NOT EXISTS (SELECT FROM outlast_operation o
                      WHERE o.workflow_id = %(id)s::uuid AND o.kind = 'effect'
                        AND (o.status = 'in_flight' OR o.status = 'uncertain' AND (%(at)s::text IS NOT NULL OR NOT o.again)))
), moved AS (
    UPDATE outlast_workflow w
    SET status = 'runnable', outcome = '', version = w.version + 1, due_at = NULL, pause_requested_at = NULL,
        node = coalesce(%(at)s::text, w.node), active_seq = CASE WHEN %(at)s::text IS NULL THEN w.active_seq END,
        error_code = CASE WHEN %(at)s::text IS NULL THEN w.error_code END,
        rank = flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second', updated_at = flows_now()
    FROM old WHERE w.id = %(id)s::uuid
    RETURNING w.*, old.status AS was, old.node AS stood, old.active_seq AS was_active
), left_behind AS (
    UPDATE outlast_activity a SET status = 'fenced', fence = a.fence + 1, ended_at = flows_now()
    FROM moved m WHERE a.workflow_id = m.id AND a.seq = m.was_active AND m.active_seq IS NULL
), closed AS (
    UPDATE outlast_wait o SET status = 'satisfied', closed_at = flows_now()
    FROM moved m WHERE o.workflow_id = m.id AND o.closed_at IS NULL AND o.kind IN ({literals(RESUMED)})
    RETURNING o.id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.fired_at IS NULL AND t.kind = 'retry'
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, note, at)
    SELECT m.id, m.version, m.was, m.status, m.stood, m.node, '', m.epoch, 'resume', %(ref)s, m.intent_version,
        m.policy_version, coalesce(m.active_seq, m.was_active), %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT id, queue, flow_name, node FROM moved
"""

UNASK_PAUSE = """
UPDATE outlast_workflow SET pause_requested_at = NULL, wake_seq = wake_seq + 1, updated_at = flows_now()
WHERE id = %(id)s::uuid AND status IN ('running', 'reconciling') AND pause_requested_at IS NOT NULL
RETURNING id
"""


def resume(
    workflow_id: UUID, at: str | None, ref: str, note: str | None, priority_seconds: int, using: str
) -> tuple[UUID, str, str, str] | None:
    """Make a paused or suspended workflow ready, where it stands or `at` another node; the gate decides before anything runs."""
    params = {"id": workflow_id, "at": at, "ref": ref, "note": note, "priority_seconds": priority_seconds}
    rows = run("resume", RESUME, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None


def withdraw_pause(workflow_id: UUID, using: str) -> bool:
    """Take back a pause that a running workflow has not followed yet."""
    return bool(run("withdraw pause", UNASK_PAUSE, {"id": workflow_id}, using))


SUPERSEDE_INTENT = """
WITH old AS (
    SELECT id, version, goal FROM outlast_intent WHERE id = %(id)s::uuid AND status = 'active'
), kept AS (
    INSERT INTO outlast_intent_revision (intent_id, version, goal, ended_as, reason, by_id, by_label, at)
    SELECT id, version, goal, %(ended_as)s, %(reason)s, %(by)s, %(by_label)s, flows_now() FROM old
)
UPDATE outlast_intent i
SET version = i.version + 1, goal = coalesce(%(goal)s, i.goal), status = %(status)s, updated_at = flows_now()
FROM old WHERE i.id = old.id
RETURNING i.version
"""


def next_intent_version(
    intent_id: UUID, *, goal: str | None, status: str, ended_as: str, reason: str, by: Any, by_label: str, using: str
) -> int | None:
    """End the current version of a locked intent and begin the next; None if it is not active."""
    params = {
        "id": intent_id,
        "goal": goal,
        "status": status,
        "ended_as": ended_as,
        "reason": reason,
        "by": by,
        "by_label": by_label,
    }
    rows = run("next intent version", SUPERSEDE_INTENT, params, using)
    return rows[0][0] if rows else None


LIVE_OF_INTENT = """
SELECT id FROM outlast_workflow
WHERE intent_id = %(id)s::uuid AND status NOT IN ('complete', 'failed', 'cancelled', 'superseded') AND target <> 'superseded'
ORDER BY id FOR NO KEY UPDATE
"""


def lock_live_of_intent(intent_id: UUID, using: str) -> list[UUID]:
    """Lock every live workflow of an intent that is not already on the way to superseded, in id order."""
    return [row[0] for row in run("lock workflows of intent", LIVE_OF_INTENT, {"id": intent_id}, using)]


DRAWING_ON = """
SELECT id FROM outlast_workflow
WHERE id = %(id)s::uuid
   OR (ledgers @> ARRAY[%(id)s::uuid] AND status NOT IN ('complete', 'failed', 'cancelled', 'superseded'))
ORDER BY id FOR NO KEY UPDATE
"""


def lock_drawing_on(workflow: UUID, using: str) -> list[UUID]:
    """Lock a workflow, and the live ones below it that draw on its ledgers, in id order."""
    return [row[0] for row in run("lock workflows of ledger", DRAWING_ON, {"id": workflow}, using)]
