"""What is looked at to say where an event stands that no wait took, and the mark of it. Under the lock of its channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flows.core.events import About
from flows.core.inbox import Named, Place, Run
from flows.store.sql import run

LAST = """
WITH last AS (
    SELECT x.workflow_id, x.intent_version FROM (
        (SELECT o.workflow_id, o.id, o.intent_version FROM outlast_wait o
         WHERE o.event_type = %(type)s AND o.key = %(key)s AND o.event_type <> '' AND o.closed_at IS NOT NULL ORDER BY o.id DESC LIMIT 1)
        UNION ALL
        (SELECT p.workflow_id, o.id, o.intent_version FROM outlast_wait_part p JOIN outlast_wait o ON o.id = p.wait_id
         WHERE p.event_type = %(type)s AND p.key = %(key)s AND NOT p.open ORDER BY p.wait_id DESC LIMIT 1)
    ) x ORDER BY x.id DESC LIMIT 1
)
SELECT w.status, w.outcome, coalesce(i.version > l.intent_version, false)
FROM last l JOIN outlast_workflow w ON w.id = l.workflow_id LEFT JOIN outlast_intent i ON i.id = w.intent_id
"""

#: Whether a run has had a wait of the channel, open or closed.
WAITED = """EXISTS (SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.event_type = %(type)s AND o.key = %(key)s)
    OR EXISTS (SELECT FROM outlast_wait o JOIN outlast_wait_part p ON p.wait_id = o.id
               WHERE o.workflow_id = w.id AND o.need > 0 AND p.event_type = %(type)s AND p.key = %(key)s)"""

NAMED = f"""
SELECT w.status, w.outcome, coalesce(i.version > w.intent_version, false), w.epoch, w.intent_version, {WAITED},
    n.id IS NOT NULL AND n.closed_at IS NULL,
    n.id IS NOT NULL AND (n.event_type = %(type)s AND n.key = %(key)s OR EXISTS (
        SELECT FROM outlast_wait_part p WHERE p.wait_id = n.id AND p.event_type = %(type)s AND p.key = %(key)s)),
    w.flow_name, w.flow_version, coalesce(w.chain, w.id)
FROM outlast_workflow w LEFT JOIN outlast_intent i ON i.id = w.intent_id
LEFT JOIN outlast_wait n ON n.id = %(about_wait)s::bigint AND n.workflow_id = w.id
WHERE w.id = coalesce(%(about_workflow)s::uuid, (SELECT workflow_id FROM outlast_wait WHERE id = %(about_wait)s::bigint))
"""


def last_run(event_type: str, key: str, using: str) -> Run | None:
    """The run of the newest closed wait of the channel; None: nobody has waited there."""
    rows = run("last of channel", LAST, {"type": event_type, "key": key}, using)
    return Run(*rows[0]) if rows else None


def named_run(about: About, event_type: str, key: str, using: str) -> tuple[Named, str, int, UUID] | None:
    """What an event says it is about, with flow, version and chain of the run; None: there is no such run."""
    params: dict[str, Any] = {
        "type": event_type,
        "key": key,
        "about_workflow": about.workflow,
        "about_wait": about.wait,
    }
    rows = run("named run", NAMED, params, using)
    if not rows:
        return None
    row = rows[0]
    named = Named(
        Run(row[0], row[1], row[2]),
        row[3],
        row[4],
        waited=row[5],
        wait_open=row[6] if about.wait is not None else None,
        wait_known=row[7],
    )
    return named, row[8], row[9], row[10]


PUT = """
UPDATE outlast_event SET status = %(status)s, place = %(place)s WHERE id = %(id)s::bigint AND status NOT IN ('consumed', 'conflict')
"""


def put(event: int, status: str, place: Place, using: str) -> None:
    """Mark where an event stands."""
    run("place event", PUT, {"id": event, "status": status, "place": place.value}, using)


UNCLAIMED = """EXISTS (SELECT FROM outlast_event WHERE status = 'pending' AND place IN ('early', 'between', 'unknown', 'gap')
    AND observed_at <= flows_now() - {seconds} * interval '1 second')"""

MARK = """
UPDATE outlast_event SET place = 'unclaimed' WHERE id = ANY (ARRAY(
    SELECT id FROM outlast_event WHERE status = 'pending' AND place IN ('early', 'between', 'unknown', 'gap')
      AND observed_at <= flows_now() - %(seconds)s::float8 * interval '1 second' ORDER BY observed_at LIMIT %(limit)s::int
    FOR NO KEY UPDATE SKIP LOCKED)) AND status = 'pending'
RETURNING event_id
"""


def mark_unclaimed(seconds: float, limit: int, using: str) -> list[str]:
    """Mark what nobody has taken for so long; the event ids."""
    return [row[0] for row in run("mark unclaimed", MARK, {"seconds": seconds, "limit": limit}, using)]


#: What may begin a run, for all that whoever received it knows.
UNKNOWN = "EXISTS (SELECT FROM outlast_event WHERE place = 'unknown' AND status = 'pending')"

UNKNOWNS = """
SELECT id, event_id, type, key, payload, about_workflow, about_epoch, about_intent, about_wait, redelivered FROM outlast_event
WHERE place = 'unknown' AND status = 'pending' AND type = ANY (%(types)s::text[]) ORDER BY id LIMIT %(limit)s::int
"""


class Unjudged(NamedTuple):
    """An event of the inbox that no process has judged which knows its type; not locked."""

    id: int
    event_id: str
    type: str
    key: str
    payload: Any
    about_workflow: UUID | None
    about_epoch: int | None
    about_intent: int | None
    about_wait: int | None
    redelivered: int


def unknown(types: Sequence[str], limit: int, using: str) -> list[Unjudged]:
    """Those of these types, the oldest first."""
    if not types:
        return []
    return [Unjudged(*row) for row in run("unknown events", UNKNOWNS, {"types": list(types), "limit": limit}, using)]


AS_SEEN = """
SELECT id FROM outlast_event
WHERE id = %(id)s::bigint AND place = 'unknown' AND status = 'pending' AND redelivered = %(redelivered)s::int
"""


def is_as_seen(event: int, redelivered: int, using: str) -> bool:
    """Whether it still waits to be judged, under the lock of its channel."""
    return bool(run("unknown event", AS_SEEN, {"id": event, "redelivered": redelivered}, using))
