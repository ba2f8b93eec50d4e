"""The inbox, and how evidence meets a wait: lock the channel, then act in new statements (1,476 lost wake-ups without it, none with)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.events import About
from flows.store.sql import run
from flows.store.waking import LOGGED, MOVED

#: What most events say they are about.
NOTHING = About()

RECORD = """
WITH event AS (
    INSERT INTO outlast_event (
        event_id, type, key, payload, payload_hash, status, deliveries, about_workflow, about_epoch, about_intent, about_wait, position,
        observed_at)
    VALUES (%(event_id)s, %(type)s, %(key)s, %(payload)s::jsonb, %(hash)s, 'pending', 1, %(about_workflow)s::uuid, %(about_epoch)s::int,
        %(about_intent)s::int, %(about_wait)s::bigint, %(position)s::bigint, flows_now())
    ON CONFLICT (event_id) WHERE status <> 'conflict' DO UPDATE SET deliveries = outlast_event.deliveries + 1
    RETURNING id, payload_hash, type, key, status, (xmax = 0) AS created, workflow_id
), waiting AS (
    SELECT w.id AS workflow, o.id AS wait FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.event_type = %(type)s AND o.key = %(key)s AND o.closed_at IS NULL AND o.event_type <> ''
    ORDER BY w.id FOR UPDATE OF w
)
SELECT e.id, e.payload_hash, e.type, e.key, e.status, e.created, e.workflow_id, x.workflow, x.wait
FROM event e LEFT JOIN waiting x ON true
"""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event as it came: its id, channel, content (and the digest of it), what it is about, and its position in its stream."""

    event_id: str
    type: str
    key: str
    payload: str
    digest: str
    about: About = NOTHING
    position: int | None = None

    @property
    def params(self) -> dict[str, Any]:
        """The same as parameters of a statement."""
        return {
            "event_id": self.event_id,
            "type": self.type,
            "key": self.key,
            "payload": self.payload,
            "hash": self.digest,
            "about_workflow": self.about.workflow,
            "about_epoch": self.about.epoch,
            "about_intent": self.about.intent,
            "about_wait": self.about.wait,
            "position": self.position,
        }


@dataclass(frozen=True, slots=True)
class Recorded:
    """The inbox row after a delivery, and the open waits of its channel as (workflow, wait)."""

    id: int
    payload_hash: str
    type: str
    key: str
    status: str
    created: bool
    workflow_id: UUID | None
    waits: list[tuple[UUID, int]]


def record(arrival: Arrival, using: str) -> Recorded:
    """Keep a delivery (the same event id again only counts) and lock the workflows that wait on its channel, which must be locked."""
    rows = run("record event", RECORD, arrival.params, using)
    first = rows[0]
    waits = [(row[7], row[8]) for row in rows if row[7] is not None]
    return Recorded(first[0], first[1], first[2], first[3], first[4], first[5], first[6], waits)


CONFLICT = """
INSERT INTO outlast_event (
    event_id, type, key, payload, payload_hash, status, deliveries, about_workflow, about_epoch, about_intent, about_wait, position, observed_at)
VALUES (%(event_id)s, %(type)s, %(key)s, %(payload)s::jsonb, %(hash)s, 'conflict', 1, %(about_workflow)s::uuid, %(about_epoch)s::int,
    %(about_intent)s::int, %(about_wait)s::bigint, %(position)s::bigint, flows_now())
ON CONFLICT (event_id, payload_hash) WHERE status = 'conflict' DO NOTHING
"""


def record_conflict(arrival: Arrival, using: str) -> None:
    """Keep what came under a known event id with other content; it is shown and never consumed."""
    run("record conflict", CONFLICT, arrival.params, using)


EARLY = """
SELECT id, event_id, payload FROM outlast_event
WHERE type = %(type)s AND key = %(key)s AND status = 'pending' ORDER BY id LIMIT 1 FOR UPDATE
"""


def early(event_type: str, key: str, using: str) -> tuple[int, str, Any] | None:
    """The oldest event that came before anybody waited for it. The channel must be locked."""
    rows = run("early event", EARLY, {"type": event_type, "key": key}, using)
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


CONSUME = """
UPDATE outlast_event SET status = 'consumed', wait_id = %(wait)s::bigint, workflow_id = %(workflow)s::uuid
WHERE id = %(id)s::bigint AND status NOT IN ('consumed', 'conflict') RETURNING id
"""


def consume(event: int, wait_id: int | None, workflow_id: UUID, using: str) -> bool:
    """Mark an event as taken by a wait; it is taken once."""
    return bool(run("consume event", CONSUME, {"id": event, "wait": wait_id, "workflow": workflow_id}, using))


WAKE = f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.id = ANY (%(waits)s::bigint[]) AND o.closed_at IS NULL AND o.evidence IS NULL AND o.epoch = w.epoch
      AND w.status IN ('waiting', 'paused', 'runnable', 'running')
), {MOVED}, evidence AS (
    UPDATE outlast_wait o SET evidence = %(evidence)s::jsonb FROM moved m WHERE o.id = m.wait_id
    RETURNING o.id
), consumed AS (
    UPDATE outlast_event e SET status = 'consumed', wait_id = m.wait_id, workflow_id = m.id
    FROM (SELECT wait_id, id FROM moved ORDER BY id LIMIT 1) m
    WHERE e.id = %(event)s::bigint AND e.status NOT IN ('consumed', 'conflict')
), {LOGGED}
SELECT m.id, m.queue, m.flow_name, m.node, m.was FROM moved m LEFT JOIN evidence e ON e.id = m.wait_id
WHERE e.id IS NOT NULL OR outlast_half_move('wait')
"""


def wake(
    waits: Sequence[int], evidence: str, *, event: int | None, trigger: str, ref: str, priority_seconds: int, using: str
) -> list[tuple[UUID, str, str, str, str]]:
    """Give open waits their evidence and make their workflows ready; (id, queue, flow, node, status before) of each that it reached.

    The workflows must be locked. A wait takes one piece of evidence; one of an older epoch takes none.
    """
    params = {
        "waits": list(waits),
        "evidence": evidence,
        "event": event,
        "trigger": trigger,
        "ref": ref,
        "priority_seconds": priority_seconds,
    }
    return [(row[0], row[1], row[2], row[3], row[4]) for row in run("wake", WAKE, params, using)]
