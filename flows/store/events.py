"""The inbox, and how evidence meets a wait: lock the channel, then act in new statements (1,476 lost wake-ups without it, none with)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from flows.core.events import About
from flows.store.sql import run
from flows.store.waking import LOGGED, MOVED

#: What most events say they are about.
NOTHING = About()

#: The runs that wait on a channel, locked in id order: by a wait of their own, or by a part of one.
WAITING = """
    SELECT w.id AS workflow, x.wait, x.part, w.epoch, w.intent_version, coalesce(w.chain, w.id) AS chain
    FROM (
        SELECT o.workflow_id, o.id AS wait, false AS part FROM outlast_wait o
        WHERE o.event_type = %(type)s AND o.key = %(key)s AND o.closed_at IS NULL AND o.event_type <> ''
        UNION ALL
        SELECT p.workflow_id, p.wait_id, true FROM outlast_wait_part p WHERE p.event_type = %(type)s AND p.key = %(key)s AND p.open
    ) x JOIN outlast_workflow w ON w.id = x.workflow_id
    ORDER BY w.id FOR NO KEY UPDATE OF w
"""

RECORD = f"""
WITH event AS (
    INSERT INTO outlast_event (
        event_id, type, key, payload, payload_hash, status, deliveries, about_workflow, about_epoch, about_intent, about_wait, position,
        observed_at)
    VALUES (%(event_id)s, %(type)s, %(key)s, %(payload)s::jsonb, %(hash)s, 'pending', 1, %(about_workflow)s::uuid, %(about_epoch)s::int,
        %(about_intent)s::int, %(about_wait)s::bigint, %(position)s::bigint, flows_now())
    ON CONFLICT (event_id) WHERE status <> 'conflict' DO UPDATE SET deliveries = outlast_event.deliveries + 1
    RETURNING id, payload_hash, type, key, status, (xmax = 0) AS created, redelivered
), waiting AS ({WAITING})
SELECT e.id, e.payload_hash, e.type, e.key, e.status, e.created, e.redelivered,
    x.workflow, x.wait, x.part, x.epoch, x.intent_version, x.chain
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


def about_of(workflow: UUID | None, epoch: int | None, intent: int | None, wait: int | None) -> About:
    """What a row of the inbox says that it is about."""
    return About(workflow, epoch, intent, wait) if workflow is not None or wait is not None else NOTHING


class Waiting(NamedTuple):
    """An open wait of a channel, or one of which a part is: its run, which is locked. `chain`: the first run of those that continued as new."""

    workflow: UUID
    wait: int
    part: bool
    epoch: int
    intent_version: int
    chain: UUID


@dataclass(frozen=True, slots=True)
class Recorded:
    """The inbox row after a delivery, and the open waits of its channel."""

    id: int
    payload_hash: str
    type: str
    key: str
    status: str
    created: bool
    redelivered: int
    waits: list[Waiting]


def record(arrival: Arrival, using: str) -> Recorded:
    """Keep a delivery (the same event id again only counts) and lock the workflows that wait on its channel, which must be locked."""
    rows = run("record event", RECORD, arrival.params, using)
    first = rows[0]
    waits = [Waiting(*row[7:]) for row in rows if row[7] is not None]
    return Recorded(first[0], first[1], first[2], first[3], first[4], first[5], first[6], waits)


def waiting(event_type: str, key: str, using: str) -> list[Waiting]:
    """The open waits of a channel, which must be locked; their workflows are locked."""
    return [Waiting(*row) for row in run("waits of channel", WAITING, {"type": event_type, "key": key}, using)]


CONFLICT = """
INSERT INTO outlast_event (
    event_id, type, key, payload, payload_hash, status, place, deliveries, about_workflow, about_epoch, about_intent, about_wait, position,
    observed_at)
VALUES (%(event_id)s, %(type)s, %(key)s, %(payload)s::jsonb, %(hash)s, 'conflict', 'conflict', 1, %(about_workflow)s::uuid,
    %(about_epoch)s::int, %(about_intent)s::int, %(about_wait)s::bigint, %(position)s::bigint, flows_now())
ON CONFLICT (event_id, payload_hash) WHERE status = 'conflict' DO NOTHING
"""


def record_conflict(arrival: Arrival, using: str) -> None:
    """Keep what came under a known event id with other content; it is shown and never consumed."""
    run("record conflict", CONFLICT, arrival.params, using)


#: What came for a run before it waited: what is pending, and what was set aside for its channel alone although this run had begun before. What
#: says that it is about something else is not for it, unless a person has had it delivered again.
EARLY = """
SELECT e.id, e.event_id, e.type, e.key, e.payload
FROM outlast_workflow w
CROSS JOIN unnest(%(types)s::text[], %(keys)s::text[], %(counts)s::int[]) AS c(type, key, count)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT p.* FROM outlast_event p WHERE p.type = c.type AND p.key = c.key AND p.status = 'pending'
        UNION ALL
        SELECT a.* FROM outlast_event a
        WHERE a.type = c.type AND a.key = c.key AND a.status = 'aside' AND a.place IN ('ended', 'superseded')
          AND a.about_workflow IS NULL AND a.about_wait IS NULL AND a.observed_at > w.created_at
    ) x
    WHERE x.redelivered > 0 OR x.about_wait IS NULL AND (x.about_workflow IS NULL
        OR x.about_workflow = w.id AND coalesce(x.about_epoch, w.epoch) = w.epoch
            AND coalesce(x.about_intent, w.intent_version) = w.intent_version
        OR EXISTS (SELECT FROM outlast_workflow m WHERE m.id = x.about_workflow AND m.outcome = 'CONTINUED'
                   AND coalesce(m.chain, m.id) = w.chain))
    ORDER BY x.position NULLS FIRST, x.id LIMIT c.count
) AS e
WHERE w.id = %(workflow)s::uuid
ORDER BY e.position NULLS FIRST, e.id
"""


class Early(NamedTuple):
    """An event that came before anybody waited for it; `payload` as the database gives it."""

    id: int
    event_id: str
    type: str
    key: str
    payload: Any


def early(channels: Sequence[tuple[str, str]], workflow: UUID, using: str) -> list[Early]:
    """What came for this run by these channels, the oldest first; of a channel at most as many as it stands here. They must be locked."""
    counts: dict[tuple[str, str], int] = {}
    for channel in channels:
        counts[channel] = counts.get(channel, 0) + 1
    params = {
        "types": [event_type for event_type, _ in counts],
        "keys": [key for _, key in counts],
        "counts": list(counts.values()),
        "workflow": workflow,
    }
    return [Early(*row) for row in run("early event", EARLY, params, using)]


CONSUME = """
WITH consumed AS (
    UPDATE outlast_event SET status = 'consumed', place = CASE WHEN redelivered > 0 THEN 'redelivered' ELSE 'taken' END,
        wait_id = %(wait)s::bigint, workflow_id = %(workflow)s::uuid
    WHERE id = %(id)s::bigint AND status NOT IN ('consumed', 'conflict') RETURNING id
), taken AS (
    UPDATE outlast_wait o SET event_id = c.id FROM consumed c WHERE o.id = %(wait)s::bigint
)
SELECT id FROM consumed
"""


def consume(event: int, wait_id: int | None, workflow_id: UUID, using: str) -> bool:
    """Mark an event as taken by a wait; it is taken once."""
    return bool(run("consume event", CONSUME, {"id": event, "wait": wait_id, "workflow": workflow_id}, using))


BEGUN = """
UPDATE outlast_event SET status = 'consumed', place = 'started', workflow_id = %(workflow)s::uuid
WHERE id = %(id)s::bigint AND status NOT IN ('consumed', 'conflict') RETURNING id
"""


def begun(event: int, workflow_id: UUID, using: str) -> bool:
    """Mark an event as one that has begun a run."""
    return bool(run("event began", BEGUN, {"id": event, "workflow": workflow_id}, using))


def _wake(evidence: str, event: str) -> str:
    """The statement, where `evidence` and `event` say what each wait gets and from which row of the inbox."""
    return f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.id = ANY (%(waits)s::bigint[]) AND o.closed_at IS NULL AND o.evidence IS NULL AND o.epoch = w.epoch
      AND w.status IN ('waiting', 'paused', 'runnable', 'running')
), {MOVED}, evidence AS (
    UPDATE outlast_wait o SET evidence = {evidence}, event_id = {event} FROM moved m WHERE o.id = m.wait_id
    RETURNING o.id
), consumed AS (
    UPDATE outlast_event e SET status = 'consumed', place = CASE WHEN e.redelivered > 0 THEN 'redelivered' ELSE 'taken' END,
        wait_id = m.wait_id, workflow_id = m.id
    FROM (SELECT wait_id, id FROM moved ORDER BY id LIMIT 1) m
    WHERE e.id = %(event)s::bigint AND e.status NOT IN ('consumed', 'conflict')
), {LOGGED}
SELECT m.id, m.queue, m.flow_name, m.node, m.was FROM moved m LEFT JOIN evidence e ON e.id = m.wait_id
WHERE e.id IS NOT NULL OR outlast_half_move('wait')
"""


WAKE = _wake("%(evidence)s::jsonb", "%(event)s::bigint")

#: The waits are for several events, and their parts have been filled.
WAKE_FILLED = _wake(
    """(SELECT jsonb_build_object('id', %(ref)s::text, 'events', jsonb_agg(p.evidence ORDER BY p.event_id))
        FROM outlast_wait_part p WHERE p.wait_id = o.id AND p.event_id IS NOT NULL)""",
    "%(event)s::bigint",
)

Woken = tuple[UUID, str, str, str, str]


def wake(
    waits: Sequence[int], evidence: str, *, event: int | None, trigger: str, ref: str, priority_seconds: int, using: str
) -> list[Woken]:
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


def wake_filled(waits: Sequence[int], *, event: int, ref: str, priority_seconds: int, using: str) -> list[Woken]:
    """The same for waits whose parts are filled: each gets the events of its parts, in the order in which they came."""
    params = {"waits": list(waits), "event": event, "trigger": "event", "ref": ref, "priority_seconds": priority_seconds}
    return [(row[0], row[1], row[2], row[3], row[4]) for row in run("wake filled", WAKE_FILLED, params, using)]


AGAIN = """
UPDATE outlast_event SET status = 'pending', place = '', held_until = NULL, redelivered = redelivered + 1
WHERE id = %(id)s::bigint AND status = %(status)s AND redelivered = %(redelivered)s::int AND status IN ('pending', 'held', 'aside')
RETURNING id, event_id, type, key, payload
"""

COPY = """
WITH seen AS (
    UPDATE outlast_event SET redelivered = redelivered + 1
    WHERE id = %(id)s::bigint AND status = 'conflict' AND redelivered = %(redelivered)s::int RETURNING *
)
INSERT INTO outlast_event (
    event_id, type, key, payload, payload_hash, status, deliveries, about_workflow, about_epoch, about_intent, about_wait, position, redelivered,
    copy_of, observed_at)
SELECT s.event_id || '~' || left(regexp_replace(s.payload_hash, '^.*:', ''), 8), s.type, s.key, s.payload, s.payload_hash, 'pending', 1,
    s.about_workflow, s.about_epoch, s.about_intent, s.about_wait, s.position, 1, s.id, flows_now()
FROM seen s
ON CONFLICT (event_id) WHERE status <> 'conflict' DO NOTHING
RETURNING id, event_id, type, key, payload
"""


def again(event: int, status: str, redelivered: int, using: str) -> tuple[int, str, str, str, Any] | None:
    """Make an event pending again that is as it was seen, or a copy of a conflict: (row, id, type, key, payload); None: it has moved.

    Its channel must be locked.
    """
    params = {"id": event, "status": status, "redelivered": redelivered}
    rows = run("copy event", COPY, params, using) if status == "conflict" else run("event again", AGAIN, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4]) if rows else None
