"""Signals from outside: kept, matched under the channel's lock, never acted on. An event is evidence; the turn decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core import canonical
from flows.core import payload as encoding
from flows.core.errors import PayloadError
from flows.core.events import About, whole
from flows.models import EventStatus
from flows.services import identify
from flows.services.hinting import hint_ready
from flows.store import events as store
from flows.store import locks
from flows.store.sql import committing, dumps


class Reception(StrEnum):
    """accepted: it woke somebody. kept: nobody waits yet. already: the id is known. conflict: the id is known with another payload."""

    ACCEPTED = "accepted"
    KEPT = "kept"
    ALREADY = "already"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a signal. `woken` names the workflows that got it as evidence."""

    answer: Reception
    event_id: str
    woken: tuple[UUID, ...] = ()

    def __bool__(self) -> bool:
        return self.answer in (Reception.ACCEPTED, Reception.KEPT)


def signal(
    event_id: str,
    type: str,
    *,
    key: str,
    payload: Mapping[str, Any] | None = None,
    about: About | None = None,
    position: int | None = None,
    using: str | None = None,
) -> Received:
    """Deliver an event; atomic with the caller's transaction. The same id and payload again changes nothing.

    Args:
        event_id: the sender's stable id; it is consumed once. type, key: the channel, matched with waits exactly.
        payload: a JSON object; data, never instructions.
        about: what the sender says that it answers. position: its place in the stream of its channel, a whole number from 0.
    Raises:
        PayloadError: id, type, key, payload, about or position cannot be stored; nothing was kept.
    """
    alias = identify.alias(using)
    for name, value in (("event id", event_id), ("event type", type), ("event key", key)):
        encoding.check_name(value, name)
    if about is not None and not isinstance(about, About):
        raise PayloadError("about=", f"must be a flows.About, got {about!r:.80}")
    whole(position, "position=")
    text, hashed = _encode(event_id, payload)
    arrival = store.Arrival(event_id, type, key, text, hashed, about or store.NOTHING, position)
    with committing("signal", alias):
        locks.channel(type, key, alias)
        event = store.record(arrival, alias)
        if (event.payload_hash, event.type, event.key) != (hashed, type, key):
            store.record_conflict(arrival, alias)
            return Received(Reception.CONFLICT, event_id)
        if not event.created and event.status != EventStatus.PENDING:
            return Received(Reception.ALREADY, event_id)
        woken = _wake(event, event_id, text, alias)
    if woken:
        return Received(Reception.ACCEPTED, event_id, tuple(woken))
    return Received(Reception.KEPT if event.created else Reception.ALREADY, event_id)


def _wake(event: store.Recorded, event_id: str, text: str, using: str) -> list[UUID]:
    if not event.waits:
        return []
    reached = store.wake(
        [row[1] for row in event.waits],
        f'{{"id":{dumps(event_id)},"payload":{text}}}',
        event=event.id,
        trigger="event",
        ref=event_id,
        priority_seconds=conf.PRIORITY_SECONDS,
        using=using,
    )
    hint_ready([row[:4] for row in reached if row[4] == "waiting"], using)
    return [row[0] for row in reached]


def _encode(event_id: str, value: Mapping[str, Any] | None) -> tuple[str, str]:
    producer = f"the payload of event {event_id}"
    if value is not None and not isinstance(value, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {value.__class__.__name__}")
    data = dict(value or {})
    return encoding.encode(data, producer, conf.MAX_PAYLOAD_BYTES), canonical.digest(data, producer)
