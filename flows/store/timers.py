"""The timer sweep: lock what is due, skipping what others hold, then fire it in a new statement. Firing twice is harmless.

What a fired timer does follows from two columns: `on_expiry` (some policies go on, and wake nobody; some of these are done with when they are
recorded) and `kind` (of a deadline an event is owed, of the end of a sleep or of a retry's pause none; a reminder and an escalation concern
people, and are the business of the wait's plane alone); the words are those of `flows.core.deadlines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from flows.core.deadlines import EXPIRED, GOES_ON, KINDS, RECORDED
from flows.core.protocol import FOR_PEOPLE
from flows.store.sql import literals, run
from flows.store.waking import woken

#: Those of which `flows.services.deadlines` tells. A breached commitment says so itself.
EVENTFUL = tuple(kind for kind, row in KINDS.items() if row.event == EXPIRED)

DUE = """
SELECT t.id FROM outlast_timer t JOIN outlast_workflow w ON w.id = t.workflow_id
WHERE t.status = 'pending' AND t.due_at <= flows_now()
ORDER BY t.due_at LIMIT %(limit)s::int FOR NO KEY UPDATE OF w, t SKIP LOCKED
"""


def lock_due(limit: int, using: str) -> list[int]:
    """Lock timers that are due, oldest first, with their workflows; rows that others hold are left for the next sweep."""
    return [row[0] for row in run("lock due timers", DUE, {"limit": limit}, using)]


#: `live`: it may move something. Of a commitment it may only where it releases and is still owed. `was`: the status that it wakes from;
#: a workflow that waits until somebody says what became of an effect is not woken: the decision that follows handles what has passed.
#: Whether a wait was answered is looked up of deadlines only: sleeps are many, and a join with the waits compares each of a batch with each.
FIRE = f"""
WITH old AS (
    SELECT t.id, t.kind, t.name, t.on_expiry, t.wait_id, t.workflow_id, t.commitment_id, w.status,
        w.status IN ('waiting', 'paused', 'runnable', 'running', 'reconciling') AND CASE WHEN t.commitment_id IS NULL THEN t.epoch = w.epoch
            ELSE t.on_expiry = 'release' AND EXISTS (
                SELECT FROM outlast_commitment c WHERE c.id = t.commitment_id AND c.status = 'active') END AS live,
        t.on_expiry IN ({literals(GOES_ON)}) AS goes_on, t.kind IN ({literals(FOR_PEOPLE)}) AS for_people,
        w.owed > 0 AND (EXISTS (
            SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND o.kind = 'effect'
              AND (o.status = 'in_flight' OR o.status = 'uncertain' AND NOT o.again))
            OR w.status = 'waiting' AND EXISTS (
            SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.closed_at IS NULL AND o.kind = 'reconciliation')) AS in_doubt
    FROM outlast_timer t JOIN outlast_workflow w ON w.id = t.workflow_id
    WHERE t.id = ANY (%(ids)s::bigint[]) AND t.fired_at IS NULL
), due AS (
    SELECT DISTINCT ON (workflow_id) workflow_id, CASE WHEN goes_on OR in_doubt THEN '' ELSE status END AS was, kind, id
    FROM old WHERE live AND NOT for_people ORDER BY workflow_id, goes_on, id
), moved AS (
    UPDATE outlast_workflow w
    SET {woken("due.was")}
    FROM due WHERE w.id = due.workflow_id
    RETURNING w.*, due.was, due.kind AS timer_kind, due.id AS timer_id
), waits AS (
    UPDATE outlast_wait o
    SET due_since = flows_now(), status = CASE WHEN o.kind = 'retry_window' THEN 'satisfied' ELSE o.status END,
        closed_at = CASE WHEN o.kind = 'retry_window' THEN flows_now() END
    FROM old WHERE old.live AND NOT old.for_people AND o.id = old.wait_id AND o.closed_at IS NULL
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
    SET status = CASE WHEN old.live AND (old.for_people OR old.on_expiry IN ({literals(RECORDED)})) THEN 'handled'
                      WHEN old.live OR b.id IS NOT NULL THEN 'fired' ELSE 'stale' END,
        fired_at = flows_now(),
        untold = CASE WHEN old.live AND old.kind IN ({literals(EVENTFUL)}) THEN old.wait_id IS NULL OR coalesce((
            SELECT o.evidence IS NULL FROM outlast_wait o WHERE o.id = old.wait_id AND o.closed_at IS NULL), false) ELSE false END
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
UNION ALL SELECT workflow_id, kind, name, '', 'release', NULL FROM old
    WHERE live AND on_expiry = 'release' AND status IN ('waiting', 'runnable')
UNION ALL SELECT workflow_id, kind, name, coalesce((SELECT o.kind FROM outlast_wait o WHERE o.id = old.wait_id), ''), 'people', wait_id
    FROM old WHERE live AND for_people
"""


@dataclass(frozen=True, slots=True)
class Fired:
    """What firing did: (id, queue, flow, node, status before) of each workflow that was told, and the commitments that are breached.

    `releasing`: (workflow, kind, name) of deadlines that release something of a workflow at which nothing is computing.
    `for_people`: (kind of wait, (wait, kind, name)) of moments that concern those who are asked.
    """

    told: list[tuple[UUID, str, str, str, str]]
    breached: list[int]
    releasing: list[tuple[UUID, str, str]] = field(default_factory=list)
    for_people: list[tuple[str, tuple[int, str, str]]] = field(default_factory=list)


def fire(ids: Sequence[int], priority_seconds: int, using: str) -> Fired:
    """Fire locked timers.

    A timer of an older epoch or of a finished workflow becomes stale: it is counted and wakes nobody. A commitment outlives its
    workflow's generations: its deadline is a breach as long as it is owed.
    """
    rows = run("fire timers", FIRE, {"ids": list(ids), "priority_seconds": priority_seconds}, using)
    told = [(row[0], row[1], row[2], row[3], row[4]) for row in rows if row[5] is None and row[4] != "release"]
    releasing = [(row[0], row[1], row[2]) for row in rows if row[4] == "release"]
    for_people = [(row[3], (row[5], row[1], row[2])) for row in rows if row[4] == "people"]
    return Fired(told, [row[5] for row in rows if row[5] is not None and row[4] != "people"], releasing, for_people)


SET_MOMENTS = """
INSERT INTO outlast_timer (workflow_id, wait_id, kind, name, due_at, epoch, intent_version, policy_version, status)
SELECT w.id, o.id, m.kind, m.name, flows_now() + m.after, w.epoch, w.intent_version, w.policy_version, 'pending'
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
CROSS JOIN unnest(%(kinds)s::text[], %(names)s::text[], %(spans)s::interval[]) AS m(kind, name, after)
WHERE o.id = %(wait)s::bigint AND o.closed_at IS NULL
RETURNING id
"""


def set_moments(wait: int, moments: Sequence[tuple[str, str, timedelta]], using: str) -> int:
    """Set (kind, name, span from now) for an open wait of a locked workflow: moments that concern people. They go when the wait is closed."""
    if not moments:
        return 0
    kinds, names, spans = (list(column) for column in zip(*moments, strict=True))
    return len(run("set moments", SET_MOMENTS, {"wait": wait, "kinds": kinds, "names": names, "spans": spans}, using))
