"""Arrows of a workflow that waits for its operations and commitments, and the end of one that was on the way to it. All of locked rows.

reconciled   reconciling, or waiting for a person's answer → runnable (paused, if asked)   no effect of it is in doubt any more
retry later  reconciling → waiting, in a retry window                       the effect did not happen, or must be asked for again: after a pause
ask person   reconciling → waiting (paused, if asked), cancelling → cancelling: HUMAN_REQUIRED   nobody else can settle an operation
resumed      cancelling: HUMAN_REQUIRED → cancelling                        no operation of it waits for a person any more
aim          cancelling → cancelling, to a weightier end                    cancelled or superseded on the way to a lighter one
close        reconciling, cancelling → its target                          nothing is owed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a workflow is, and what stands between it and its end. `doubts`: effects that are in flight or uncertain.

    Of its open activity: `failures`, and whether an effect of it is `undone` (it did not happen, and may be asked for again).
    """

    status: str
    target: str
    owed: int
    doubts: int
    node: str
    flow_name: str
    flow_version: int
    failures: int
    undone: bool


STANDING = """
SELECT w.status, w.target, w.owed,
    (SELECT count(*)::int FROM outlast_operation o
     WHERE o.workflow_id = w.id AND o.kind = 'effect' AND (o.status = 'in_flight' OR o.status = 'uncertain' AND NOT o.again)), w.node,
    w.flow_name, w.flow_version,
    coalesce((SELECT a.failures FROM outlast_activity a WHERE a.workflow_id = w.id AND a.seq = w.active_seq), 0),
    EXISTS (SELECT FROM outlast_operation o
            WHERE o.workflow_id = w.id AND o.activity_seq = w.active_seq AND (o.status = 'planned' OR o.status = 'uncertain' AND o.again))
FROM outlast_workflow w WHERE w.id = %(id)s::uuid
"""


def standing(workflow: UUID, using: str) -> Standing:
    """Where a (locked) workflow is."""
    return Standing(*run("standing", STANDING, {"id": workflow}, using)[0])


#: Everything of an arrow that is the same for all three: the wait that it closes, and the log row.
_LOGGED = """
logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, error_code, note, at)
    SELECT m.id, m.version, m.was, m.status, m.node, m.node, m.outcome, m.epoch, %(trigger)s, %(ref)s, m.intent_version,
        m.policy_version, m.active_seq, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m
)
"""

RECONCILED = f"""
WITH old AS (
    SELECT w.id, w.status FROM outlast_workflow w
    WHERE w.id = %(id)s::uuid AND w.target = '' AND (w.status = 'reconciling' OR w.status = 'waiting' AND EXISTS (
        SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.closed_at IS NULL AND o.kind = 'reconciliation'))
), moved AS (
    UPDATE outlast_workflow w
    SET status = CASE WHEN w.pause_requested_at IS NULL THEN 'runnable' ELSE 'paused' END,
        outcome = CASE WHEN w.pause_requested_at IS NULL THEN '' ELSE 'WAITING' END, pause_requested_at = NULL,
        error_code = NULL, version = w.version + 1, due_at = NULL, wake_seq = w.wake_seq + 1,
        rank = flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second', updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), closed AS (
    UPDATE outlast_wait o SET status = 'satisfied', closed_at = flows_now()
    FROM moved m WHERE o.workflow_id = m.id AND o.closed_at IS NULL AND o.kind = 'reconciliation'
), {_LOGGED}
SELECT id, queue, flow_name, node FROM moved WHERE status = 'runnable'
"""


def reconciled(workflow: UUID, priority_seconds: int, ref: str, using: str) -> tuple[UUID, str, str, str] | None:
    """Nothing of it is in doubt any more: it is ready, or paused if that was asked. The row for a hint, if it is ready now."""
    params = {"id": workflow, "priority_seconds": priority_seconds, "trigger": "reconciled", "ref": ref, "note": None}
    rows = run("reconciled", RECONCILED, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None


RETRY_LATER = f"""
WITH old AS (
    SELECT id, status FROM outlast_workflow
    WHERE id = %(id)s::uuid AND target = '' AND status = 'reconciling' AND pause_requested_at IS NULL
), moved AS (
    UPDATE outlast_workflow w
    SET status = 'waiting', outcome = 'WAITING', version = w.version + 1, due_at = flows_now() + %(delay)s::interval,
        updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), closed AS (
    UPDATE outlast_wait o SET status = 'satisfied', closed_at = flows_now()
    FROM moved m WHERE o.workflow_id = m.id AND o.closed_at IS NULL AND o.kind = 'reconciliation' RETURNING o.id
), waits AS (
    INSERT INTO outlast_wait (
        workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status, opened_at)
    SELECT m.id, m.node, 0, 'retry_window', 'it did not happen; trying again', '', '', '', m.epoch, m.intent_version, m.policy_version, 'open',
        flows_now()
    FROM moved m CROSS JOIN (SELECT count(*) FROM closed) AS first
    RETURNING id, workflow_id
), timers AS (
    INSERT INTO outlast_timer (workflow_id, wait_id, kind, due_at, epoch, intent_version, policy_version, status)
    SELECT m.id, o.id, 'retry', flows_now() + %(delay)s::interval, m.epoch, m.intent_version, m.policy_version, 'pending'
    FROM moved m JOIN waits o ON o.workflow_id = m.id
), {_LOGGED}
SELECT id FROM moved
"""


def retry_later(workflow: UUID, delay: timedelta, using: str) -> bool:
    """Nothing of it is in doubt any more, and the effect is tried again after `delay`; False where that is not what it was waiting for."""
    params = {"id": workflow, "delay": delay, "trigger": "reconciled", "ref": "", "note": None}
    return bool(run("retry later", RETRY_LATER, params, using))


ASK_PERSON = f"""
WITH old AS (
    SELECT id, status FROM outlast_workflow
    WHERE id = %(id)s::uuid AND (status = 'reconciling' AND target = '' OR status = 'cancelling' AND outcome = '')
), moved AS (
    UPDATE outlast_workflow w
    SET status = CASE WHEN old.status <> 'reconciling' THEN old.status WHEN w.pause_requested_at IS NULL THEN 'waiting' ELSE 'paused' END,
        outcome = 'HUMAN_REQUIRED', pause_requested_at = NULL, error_code = %(code)s,
        version = w.version + 1, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), notice AS (
    INSERT INTO outlast_notice (workflow_id, user_id, outcome, code, created_at, tries)
    SELECT w.id, w.user_id, 'HUMAN_REQUIRED', %(code)s, flows_now(), 0 FROM outlast_workflow w
    WHERE w.id = %(id)s::uuid AND w.user_id IS NOT NULL AND %(tell)s::bool
      AND NOT (%(once)s::bool AND EXISTS (SELECT FROM outlast_notice n WHERE n.workflow_id = w.id AND n.code = %(code)s))
), {_LOGGED}
SELECT id FROM moved
"""


def ask_person(workflow: UUID, code: str, ref: str, using: str, *, tell: bool = True, once: bool = False) -> bool:
    """Nobody but a person can settle an operation of it: say so, and tell the accountable user (`once`: not again with that code).

    False where its status stays.
    """
    params = {"id": workflow, "code": code, "trigger": "unsettled", "ref": ref, "note": None, "tell": tell, "once": once}
    return bool(run("ask person", ASK_PERSON, params, using))


STUCK = """
SELECT o.id, coalesce(o.error_code, '') FROM outlast_operation o
WHERE o.workflow_id = %(id)s::uuid AND o.due_at IS NULL AND o.worker_id IS NULL
  AND (o.status = 'uncertain' AND NOT o.again OR o.status = 'failed' AND o.kind <> 'effect')
ORDER BY o.id LIMIT 1
"""


def stuck(workflow: UUID, using: str) -> tuple[str, str] | None:
    """An operation of it that only a person can settle, and why."""
    rows = run("stuck operation", STUCK, {"id": workflow}, using)
    return (rows[0][0], rows[0][1]) if rows else None


RESUMED = f"""
WITH old AS (
    SELECT w.id, w.status FROM outlast_workflow w
    WHERE w.id = %(id)s::uuid AND w.status = 'cancelling' AND w.outcome = 'HUMAN_REQUIRED' AND NOT EXISTS (
        SELECT FROM outlast_operation o
        WHERE o.workflow_id = w.id AND o.due_at IS NULL AND o.worker_id IS NULL
          AND (o.status = 'uncertain' AND NOT o.again OR o.status = 'failed' AND o.kind <> 'effect'))
), moved AS (
    UPDATE outlast_workflow w SET outcome = '', error_code = NULL, version = w.version + 1, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), {_LOGGED}
SELECT id FROM moved
"""


def resumed(workflow: UUID, using: str) -> bool:
    """The cleanup of a cancelling workflow goes on: no operation of it waits for a person any more."""
    params = {"id": workflow, "trigger": "resolved", "ref": "", "note": None}
    return bool(run("resumed", RESUMED, params, using))


CLOSE = f"""
WITH old AS (
    SELECT id, status FROM outlast_workflow
    WHERE id = %(id)s::uuid AND status IN ('reconciling', 'cancelling') AND target = %(target)s AND owed = 0
), moved AS (
    UPDATE outlast_workflow w
    SET status = %(target)s, outcome = %(outcome)s, pause_requested_at = NULL,
        error_code = coalesce(%(code)s, w.error_code), version = w.version + 1,
        updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was
), closed AS (
    UPDATE outlast_wait o SET status = 'satisfied', closed_at = flows_now() FROM moved m WHERE o.workflow_id = m.id AND o.closed_at IS NULL
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.fired_at IS NULL
), {_LOGGED}
SELECT id FROM moved
"""


def close(workflow: UUID, *, target: str, outcome: str, code: str | None, note: str | None, using: str) -> bool:
    """The end of a workflow that owes nothing any more."""
    params: dict[str, Any] = {
        "id": workflow,
        "target": target,
        "outcome": outcome,
        "code": code,
        "trigger": "settled",
        "ref": "",
        "note": note,
    }
    return bool(run("close", CLOSE, params, using))


OBLIGED = """
SELECT w.id FROM outlast_workflow w
WHERE w.id = ANY (%(ids)s::uuid[]) AND (
    w.owed > 0 OR EXISTS (SELECT FROM outlast_operation o
                          WHERE o.workflow_id = w.id AND (o.compensable AND o.status = 'succeeded' OR o.status = 'planned'))
    OR EXISTS (SELECT FROM outlast_commitment c
               WHERE c.workflow_id = w.id AND c.status IN ('planned', 'active', 'breached', 'releasing', 'deferred'))
    OR EXISTS (SELECT FROM outlast_fan f WHERE f.workflow_id = w.id AND f.on_cancel = 'wait' AND f.running > 0))
ORDER BY w.id
"""


def obliged(ids: Sequence[UUID], using: str) -> list[UUID]:
    """Those of these (locked) workflows that owe something, have left something to others, or done what may have to be undone."""
    return [row[0] for row in run("obliged", OBLIGED, {"ids": list(ids)}, using)]


AIM = """
UPDATE outlast_workflow SET target = %(target)s
WHERE id = %(id)s::uuid AND status = 'cancelling' AND target = ANY (%(lighter)s::text[]) RETURNING id
"""


def aim(workflow: UUID, target: str, lighter: Sequence[str], using: str) -> bool:
    """A cancelling workflow is on the way to another end; False where it is not on the way to one of `lighter`."""
    return bool(run("aim", AIM, {"id": workflow, "target": target, "lighter": list(lighter)}, using))
