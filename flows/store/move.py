"""The general arrow out of running: whatever the engine decided, in one guarded statement.

Every part besides the workflow row is selected FROM its RETURNING, so a lost guard writes nothing at all:

    moved   the workflow row, guarded by version, status, epoch, intent version and owner (and `wake_seq`, unless it is NULL)
    ended   the open activity: done, failed, fenced, or scheduled again
    tried   the attempt's history row
    closed  the wait that was open, and its pending timers
    opened  the next activity, scheduled or already running
    waits   the next wait, and its timers
    notice  what is owed to the accountable user
    logged  the transition
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flows.core.protocol import CAPACITY
from flows.store.sql import literals, run

MOVE = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET status = %(status)s, node = %(node)s, outcome = %(outcome)s, error_code = %(error_code)s, version = w.version + 1,
        epoch = w.epoch + %(epoch_step)s::int,
        worker_id = CASE WHEN %(status)s = 'running' THEN w.worker_id END,
        worker_pid = CASE WHEN %(status)s = 'running' THEN w.worker_pid END,
        activity_seq = w.activity_seq + CASE WHEN %(open)s::bool THEN 1 ELSE 0 END,
        active_seq = CASE WHEN %(open)s::bool THEN w.activity_seq + 1 WHEN %(end_status)s = 'scheduled' THEN w.active_seq END,
        attempts = w.attempts + CASE WHEN %(open)s::bool AND %(status)s = 'running' THEN 1 ELSE 0 END,
        queue = coalesce(%(queue)s, w.queue), placement = coalesce(%(placement)s, w.placement),
        rank = CASE WHEN %(status)s = 'runnable' THEN flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second'
                    ELSE w.rank END,
        due_at = CASE WHEN %(status)s IN ('waiting', 'paused')
                      THEN coalesce(%(wakes_at)s::timestamptz, flows_now() + %(wakes_in)s::interval,
                                    %(deadline_at)s::timestamptz, flows_now() + %(deadline)s::interval) END,
        result = coalesce(%(workflow_result)s::jsonb, w.result),
        pause_requested_at = CASE WHEN %(status)s IN ('running', 'reconciling') AND %(target)s = '' THEN w.pause_requested_at END,
        target = %(target)s,
        updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
      AND (%(wake_seq)s::int IS NULL OR w.wake_seq = %(wake_seq)s::int)
      AND (w.owed = 0 OR %(status)s NOT IN ('complete', 'failed', 'cancelled', 'superseded'))
    RETURNING w.*
), ended AS (
    UPDATE outlast_activity a
    SET status = %(end_status)s, result = coalesce(%(result)s::jsonb, a.result), last_error = %(attempt_error)s,
        failures = a.failures + CASE WHEN %(attempt_outcome)s IN ('failed', 'timed_out') THEN 1 ELSE 0 END,
        lost = CASE %(attempt_outcome)s WHEN 'lost' THEN a.lost + 1 WHEN 'refused' THEN 0 ELSE a.lost END,
        worker_id = CASE WHEN %(end_status)s <> 'scheduled' THEN a.worker_id END,
        worker_pid = CASE WHEN %(end_status)s <> 'scheduled' THEN a.worker_pid END,
        timeout_at = CASE WHEN %(end_status)s <> 'scheduled' THEN a.timeout_at END,
        ended_at = CASE WHEN %(end_status)s <> 'scheduled' THEN flows_now() END
    FROM moved m
    WHERE %(end_status)s <> '' AND a.workflow_id = %(id)s::uuid AND a.seq = %(seq)s::int AND a.fence = %(fence)s::int
    RETURNING a.workflow_id, a.seq, a.attempt, a.node, a.started_at
), tried AS (
    INSERT INTO outlast_attempt (
        workflow_id, activity_seq, number, node, worker_id, worker_pid, started_at, ended_at, outcome, error_code, error_class)
    SELECT e.workflow_id, e.seq, e.attempt, e.node, %(worker)s::uuid, %(pid)s::int, e.started_at, flows_now(), %(attempt_outcome)s,
        %(attempt_error)s, %(error_class)s
    FROM ended e WHERE %(attempt_outcome)s <> ''
), closed AS (
    UPDATE outlast_wait o
    SET status = %(wait_status)s, result = %(wait_result)s::jsonb, closed_at = flows_now()
    FROM moved m WHERE o.id = %(close_wait)s::bigint AND o.workflow_id = m.id AND o.closed_at IS NULL
    RETURNING o.id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m
    WHERE t.workflow_id = m.id AND t.fired_at IS NULL AND (t.wait_id = %(close_wait)s::bigint OR %(end)s::bool)
), opened AS (
    INSERT INTO outlast_activity (
        workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, worker_id, worker_pid, timeout_s, started_at, timeout_at,
        opened_at)
    SELECT m.id, m.active_seq, m.node, %(step)s, %(visit)s::int, CASE WHEN m.status = 'running' THEN 'running' ELSE 'scheduled' END,
        CASE WHEN m.status = 'running' THEN 1 ELSE 0 END, CASE WHEN m.status = 'running' THEN 1 ELSE 0 END, 0, 0,
        m.worker_id, m.worker_pid, %(timeout)s::float8, CASE WHEN m.status = 'running' THEN flows_now() END,
        CASE WHEN m.status = 'running' THEN flows_now() + %(timeout)s::float8 * interval '1 second' END, flows_now()
    FROM moved m WHERE %(open)s::bool
), waits AS (
    INSERT INTO outlast_wait (
        workflow_id, node, visit, kind, reason, event_type, key, deadline_at, on_expiry, epoch, intent_version, policy_version,
        state_versions, status, evidence, need, priority, opened_at)
    SELECT m.id, m.node, %(visit)s::int, %(wait_kind)s, %(reason)s, %(event_type)s, %(wait_key)s,
        coalesce(%(deadline_at)s::timestamptz, flows_now() + %(deadline)s::interval), %(on_expiry)s, m.epoch, m.intent_version, m.policy_version,
        CASE WHEN %(baselines)s::text[] IS NOT NULL THEN (SELECT jsonb_object_agg(x.name, x.version) FROM (
            SELECT DISTINCT ON (s.name) s.name, s.version FROM outlast_observation s
            JOIN outlast_activity b ON b.workflow_id = s.workflow_id AND b.seq = s.activity_seq
                AND (b.status = 'done' OR b.seq = %(seq)s::int AND %(end_status)s = 'done')
            WHERE s.workflow_id = %(id)s::uuid AND s.baseline AND s.node = ANY(%(baselines)s::text[]) ORDER BY s.name, s.id DESC) x) END,
        'open', %(evidence)s::jsonb, %(need)s::int,
        CASE WHEN %(wait_kind)s IN (__CAPACITY__) THEN m.priority ELSE 0 END, flows_now()
    FROM moved m CROSS JOIN (SELECT count(*) FROM closed) AS first WHERE %(wait_kind)s <> ''
    RETURNING id, workflow_id, deadline_at
), timers AS (
    INSERT INTO outlast_timer (workflow_id, wait_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
    SELECT m.id, o.id, k.kind, k.on_expiry, k.due_at, m.epoch, m.intent_version, m.policy_version, 'pending'
    FROM moved m JOIN waits o ON o.workflow_id = m.id
    CROSS JOIN LATERAL (VALUES
        (%(timer_kind)s, '', coalesce(%(wakes_at)s::timestamptz, flows_now() + %(wakes_in)s::interval)),
        ('wait_deadline', %(on_expiry)s, o.deadline_at)) AS k(kind, on_expiry, due_at)
    WHERE k.due_at IS NOT NULL
), notice AS (
    INSERT INTO outlast_notice (workflow_id, user_id, outcome, code, created_at, tries)
    SELECT m.id, m.user_id, m.outcome, coalesce(m.error_code, ''), flows_now(), 0
    FROM moved m WHERE %(notice)s::bool AND m.user_id IS NOT NULL
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, attempt, error_code, note, at)
    SELECT m.id, m.version, 'running', m.status, %(from_node)s, m.node, m.outcome, m.epoch, %(trigger)s, %(trigger_ref)s,
        m.intent_version, m.policy_version, e.seq, e.attempt, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m LEFT JOIN ended e ON true
)
SELECT m.version, m.active_seq, o.id, o.deadline_at, m.queue, m.wake_seq
FROM moved m LEFT JOIN ended e ON true LEFT JOIN waits o ON true LEFT JOIN closed c ON true
WHERE (%(end_status)s = '' OR e.seq IS NOT NULL OR outlast_half_move('activity'))
  AND (%(close_wait)s::bigint IS NULL OR c.id IS NOT NULL OR outlast_half_move('wait'))
""".replace("__CAPACITY__", literals(sorted(CAPACITY)))


@dataclass(slots=True)
class Move:
    """One move as the statement's parameters. The first block is the guard; `wake_seq` None does not look at arrivals."""

    id: UUID
    version: int
    epoch: int
    intent_version: int
    worker: UUID
    pid: int
    wake_seq: int | None
    from_node: str

    status: str
    node: str
    outcome: str = ""
    error_code: str | None = None
    epoch_step: int = 0
    target: str = ""
    queue: str | None = None
    placement: str | None = None
    priority_seconds: int = 60
    workflow_result: str | None = None

    end_status: str = ""
    seq: int | None = None
    fence: int | None = None
    result: str | None = None
    attempt_outcome: str = ""
    attempt_error: str | None = None
    error_class: str | None = None

    close_wait: int | None = None
    wait_status: str = "satisfied"
    wait_result: str | None = None

    open: bool = False
    step: str = ""
    visit: int = 0
    timeout: float = 0.0

    wait_kind: str = ""
    reason: str = ""
    event_type: str = ""
    wait_key: str = ""
    deadline: timedelta | None = None
    deadline_at: datetime | None = None
    need: int = 0
    on_expiry: str = ""
    evidence: str | None = None
    baselines: Sequence[str] | None = None
    timer_kind: str = ""
    wakes_at: datetime | None = None
    wakes_in: timedelta | None = None

    end: bool = False
    notice: bool = False
    trigger: str = ""
    trigger_ref: str = ""
    note: str | None = None


_FIELDS = tuple(field.name for field in fields(Move))


@dataclass(frozen=True, slots=True)
class Moved:
    """What the move made: the new version, and the activity or wait that it opened."""

    version: int
    active_seq: int | None
    wait_id: int | None
    deadline_at: datetime | None
    queue: str
    wake_seq: int


def move(m: Move, using: str) -> Moved | None:
    """Make the move true, or None (= lost): somebody else moved the workflow, or something arrived that must be looked at."""
    params: dict[str, Any] = {name: getattr(m, name) for name in _FIELDS}
    rows = run("move", MOVE, params, using)
    return Moved(*rows[0]) if rows else None


REST = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET status = CASE WHEN w.pause_requested_at IS NULL THEN 'waiting' ELSE 'paused' END, outcome = 'WAITING',
        due_at = (SELECT min(t.due_at) FROM outlast_timer t
                  WHERE t.workflow_id = w.id AND t.wait_id IS NOT NULL AND t.fired_at IS NULL),
        attempts = w.attempts - CASE WHEN w.active_seq IS NULL THEN 0 ELSE 1 END,
        version = w.version + 1, worker_id = NULL, worker_pid = NULL, pause_requested_at = NULL, updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid AND w.wake_seq = %(wake_seq)s::int
    RETURNING w.*
), activity AS (
    UPDATE outlast_activity a
    SET status = 'scheduled', attempt = a.attempt - 1, worker_id = NULL, worker_pid = NULL, started_at = NULL, timeout_at = NULL
    FROM moved m WHERE a.workflow_id = %(id)s::uuid AND a.seq = m.active_seq
    RETURNING a.seq
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at)
    SELECT m.id, m.version, 'running', m.status, m.node, m.node, m.outcome, m.epoch, 'rest', '', m.intent_version,
        m.policy_version, m.active_seq, flows_now()
    FROM moved m
)
SELECT m.version FROM moved m WHERE m.active_seq IS NULL OR EXISTS (SELECT FROM activity) OR outlast_half_move('activity')
"""


def rest(workflow_id: UUID, version: int, epoch: int, worker: UUID, wake_seq: int, using: str) -> bool:
    """Go back to the wait that is still open; False if something arrived meanwhile. An attempt that has not begun does not count."""
    params = {"id": workflow_id, "version": version, "epoch": epoch, "worker": worker, "wake_seq": wake_seq}
    return bool(run("rest", REST, params, using))
