"""Streams of ordered events: what was passed on last, what is held until its predecessor comes, what a newer one has overtaken.

All of it under the lock of the channel.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from flows.store.sql import run

POSITION = "SELECT position FROM outlast_stream WHERE type = %(type)s AND key = %(key)s"


def position(event_type: str, key: str, using: str) -> int | None:
    """The newest position that was passed on; None: none was."""
    rows = run("stream", POSITION, {"type": event_type, "key": key}, using)
    return rows[0][0] if rows else None


ADVANCE = """
INSERT INTO outlast_stream (type, key, position) VALUES (%(type)s, %(key)s, %(position)s::bigint)
ON CONFLICT (type, key) DO UPDATE SET position = greatest(outlast_stream.position, excluded.position)
"""


def pass_on(event_type: str, key: str, position: int, using: str) -> None:
    """This position is passed on: nothing before it will be any more."""
    run("pass on", ADVANCE, {"type": event_type, "key": key, "position": position}, using)


HOLD = """
UPDATE outlast_event SET status = 'held', place = 'gap', held_until = flows_now() + %(gap)s::interval WHERE id = %(id)s::bigint
"""


def hold(event: int, gap: timedelta, using: str) -> None:
    """Have an event wait for those before it, so long."""
    run("hold event", HOLD, {"id": event, "gap": gap}, using)


HELD = """
SELECT id, event_id, payload, position, redelivered, about_workflow, about_epoch, about_intent, about_wait,
    held_until <= flows_now() AS over
FROM outlast_event WHERE type = %(type)s AND key = %(key)s AND status = 'held' ORDER BY position, id LIMIT 1
"""


class Held(NamedTuple):
    """The first of a stream that is held. `over`: it has waited long enough."""

    id: int
    event_id: str
    payload: Any
    position: int
    redelivered: int
    about_workflow: Any
    about_epoch: int | None
    about_intent: int | None
    about_wait: int | None
    over: bool


def first_held(event_type: str, key: str, using: str) -> Held | None:
    """The event with the lowest position that is held in this stream."""
    rows = run("held event", HELD, {"type": event_type, "key": key}, using)
    return Held(*rows[0]) if rows else None


OVERTAKE = """
UPDATE outlast_event SET status = 'aside', place = 'out_of_order'
WHERE type = %(type)s AND key = %(key)s AND status = 'pending' AND position < %(position)s::bigint
"""


def overtake(event_type: str, key: str, position: int, using: str) -> None:
    """Set aside what is older than this position and was not taken."""
    run("overtake", OVERTAKE, {"type": event_type, "key": key, "position": position}, using)


#: The watch of streams whose gap is over.
GAPS = "EXISTS (SELECT FROM outlast_event WHERE status = 'held' AND held_until <= flows_now())"

OVER = """
SELECT DISTINCT type, key FROM (
    SELECT type, key FROM outlast_event WHERE status = 'held' AND held_until <= flows_now() ORDER BY held_until LIMIT %(limit)s::int) x
"""


def over(limit: int, using: str) -> list[tuple[str, str]]:
    """Streams in which something has waited long enough for what is before it."""
    return [(row[0], row[1]) for row in run("gaps", OVER, {"limit": limit}, using)]
