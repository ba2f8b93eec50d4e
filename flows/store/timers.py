"""The timer sweep: lock what is due, skipping what others hold, then fire it in a new statement. Firing twice is harmless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from flows.store.sql import run

DUE = """
SELECT t.id FROM outlast_timer t JOIN outlast_workflow w ON w.id = t.workflow_id
WHERE t.status = 'pending' AND t.due_at <= flows_now()
ORDER BY t.due_at LIMIT %(limit)s::int FOR UPDATE OF w, t SKIP LOCKED
"""


def lock_due(limit: int, using: str) -> list[int]:
    """Lock timers that are due, oldest first, with their workflows; rows that others hold are left for the next sweep."""
    return [row[0] for row in run("lock due timers", DUE, {"limit": limit}, using)]


#: What waits for a person's word on an effect is told and not woken, as while probes go on: only the answer leads past the doubt.
FIRE = """
WITH old AS (
    SELECT t.id, t.kind, t.wait_id, t.workflow_id, t.commitment_id,
        CASE WHEN w.status = 'waiting' AND EXISTS (
            SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.closed_at IS NULL AND o.kind = 'reconciliation')
        THEN 'reconciling' ELSE w.status END AS status,
        (t.commitment_id IS NULL AND t.epoch = w.epoch AND w.status IN ('waiting', 'paused', 'runnable', 'running', 'reconciling')) AS live
    FROM outlast_timer t JOIN outlast_workflow w ON w.id = t.workflow_id
    WHERE t.id = ANY (%(ids)s::bigint[]) AND t.fired_at IS NULL
), due AS (
    SELECT DISTINCT ON (workflow_id) workflow_id, status, kind, id FROM old WHERE live ORDER BY workflow_id, id
), moved AS (
    UPDATE outlast_workflow w
    SET wake_seq = w.wake_seq + 1, status = CASE WHEN due.status = 'waiting' THEN 'runnable' ELSE w.status END,
        outcome = CASE WHEN due.status = 'waiting' THEN '' ELSE w.outcome END,
        version = w.version + CASE WHEN due.status = 'waiting' THEN 1 ELSE 0 END,
        rank = CASE WHEN due.status = 'waiting' THEN flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second'
                    ELSE w.rank END,
        due_at = CASE WHEN due.status = 'waiting' THEN NULL ELSE w.due_at END, updated_at = flows_now()
    FROM due WHERE w.id = due.workflow_id
    RETURNING w.*, due.status AS was, due.kind AS timer_kind, due.id AS timer_id
), waits AS (
    UPDATE outlast_wait o
    SET due_since = flows_now(), status = CASE WHEN o.kind = 'retry_window' THEN 'satisfied' ELSE o.status END,
        closed_at = CASE WHEN o.kind = 'retry_window' THEN flows_now() END
    FROM old WHERE old.live AND o.id = old.wait_id AND o.closed_at IS NULL
), breached AS (
    UPDATE outlast_commitment c SET status = 'breached', breached_at = flows_now()
    FROM old WHERE c.id = old.commitment_id AND c.status = 'active'
    RETURNING c.id, c.workflow_id
), told AS (
    INSERT INTO outlast_notice (workflow_id, user_id, outcome, code, created_at, tries)
    SELECT w.id, w.user_id, 'COMMITMENT_BREACHED', 'COMMITMENT_BREACHED', flows_now(), 0
    FROM breached b JOIN outlast_workflow w ON w.id = b.workflow_id WHERE w.user_id IS NOT NULL
), fired AS (
    UPDATE outlast_timer t
    SET status = CASE WHEN old.live OR b.id IS NOT NULL THEN 'fired' ELSE 'stale' END, fired_at = flows_now()
    FROM old LEFT JOIN breached b ON b.id = old.commitment_id WHERE t.id = old.id
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at)
    SELECT m.id, m.version, 'waiting', 'runnable', m.node, m.node, '', m.epoch, 'timer', m.timer_kind || ':' || m.timer_id,
        m.intent_version, m.policy_version, m.active_seq, flows_now()
    FROM moved m WHERE m.was = 'waiting'
)
SELECT id, queue, flow_name, node, was, NULL::bigint FROM moved
UNION ALL SELECT workflow_id, '', '', '', '', id FROM breached
"""


@dataclass(frozen=True, slots=True)
class Fired:
    """What firing did: (id, queue, flow, node, status before) of each workflow that was told, and the commitments that are breached."""

    told: list[tuple[UUID, str, str, str, str]]
    breached: list[int]


def fire(ids: Sequence[int], priority_seconds: int, using: str) -> Fired:
    """Fire locked timers.

    A timer of an older epoch or of a finished workflow becomes stale: it is counted and wakes nobody. A commitment outlives its
    workflow's generations: its deadline is a breach as long as it is owed.
    """
    rows = run("fire timers", FIRE, {"ids": list(ids), "priority_seconds": priority_seconds}, using)
    told = [(row[0], row[1], row[2], row[3], row[4]) for row in rows if row[5] is None]
    return Fired(told, [row[5] for row in rows if row[5] is not None])
