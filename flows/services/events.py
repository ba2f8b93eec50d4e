"""Signals from outside: kept, matched under the channel's lock, never acted on. An event is evidence; the turn decides.

    signal ──► new ──► in its turn (`ordering`) ──► waits of its channel take it (`filling`), or it is placed (`placing`)
          │       └──► not in its turn ──► held, or set aside
          └──► its id is known ──► the same content: counted; other content: kept apart as a conflict
    unknown ──► the clock of a process that knows what begins with its type judges it again, as if it came now
Guard: the start keys of what it may begin, channel, then the runs that wait there in id order. Races: the same id twice: one row, the second is
counted. Two clocks judge it: the channel; the second finds it placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import canonical
from flows.core import payload as encoding
from flows.core.errors import PayloadError
from flows.core.events import About
from flows.core.inbox import Place
from flows.models import EventStatus
from flows.services import identify, ordering, placing, started_by
from flows.services.apart import apart
from flows.services.filling import Item, give
from flows.store import events as store
from flows.store import locks, places, streams
from flows.store.sql import committing


class Reception(StrEnum):
    """accepted: it reached somebody, or began a run. kept: nobody takes it now; its place says why. already: the id is known.
    conflict: the id is known with another payload. too_late: of a redelivery to one wait: that is closed, or has been answered.
    """

    ACCEPTED = "accepted"
    KEPT = "kept"
    ALREADY = "already"
    CONFLICT = "conflict"
    TOO_LATE = "too_late"


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a signal.

    Attributes:
        woken: the workflows that got it as evidence, or that it has begun. place: where it stands in the inbox (docs/how-to/events.md); "" of
            what was known already.
    """

    answer: Reception
    event_id: str
    woken: tuple[UUID, ...] = ()
    place: str = ""

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
    text, hashed = _encode(event_id, payload)
    kind = ordering.declared(type)
    at = ordering.position(kind, position, payload or {})
    arrival = store.Arrival(event_id, type, key, text, hashed, about or store.NOTHING, at)
    with committing("signal", alias):
        if not about:
            started_by.lock_ahead([(event_id, type, key, text)], alias)
        locks.channel(type, key, alias)
        event = store.record(arrival, alias)
        if (event.payload_hash, event.type, event.key) != (hashed, type, key):
            store.record_conflict(arrival, alias)
            return Received(Reception.CONFLICT, event_id, place=Place.CONFLICT)
        if not event.created and event.status != EventStatus.PENDING:
            return Received(Reception.ALREADY, event_id)
        item = Item(event.id, event_id, type, key, text, arrival.about, free=event.redelivered > 0)
        if event.created and kind is not None and at is not None:
            elsewhere = ordering.arrive(kind, item, at, alias)
            if elsewhere is not None:
                return Received(Reception.KEPT, event_id, place=elsewhere)
        place, woken = deliver(item, event.waits, alias, settled=not event.created)
        if event.created and kind is not None:
            ordering.follow(type, key, lambda held, keep: deliver_held(held, keep, alias), alias)
    if woken:
        return Received(Reception.ACCEPTED, event_id, tuple(woken), place)
    return Received(Reception.KEPT, event_id, place=place) if event.created else Received(Reception.ALREADY, event_id)


def deliver(
    item: Item, waits: list[store.Waiting], using: str, *, keep: Place | None = None, settled: bool = False, ahead: bool = True
) -> tuple[Place, list[UUID]]:
    """Give an event to the waits of its channel, or place it; its place, and the runs that it reached or began.

    Args:
        waits: the open waits of the channel, which is locked, and so are their runs. keep: the place that it keeps where nobody takes it.
        settled: it has a place already, and keeps it where nobody takes it. ahead: the start keys of what it may begin are locked.
    """
    chain = placing.chain_of(item.about, item.type, item.key, waits, using)
    woken = give(item, waits, using, chain=chain) if waits else []
    if woken:
        return (Place.REDELIVERED if item.free else Place.TAKEN), woken
    if settled:
        return Place.EARLY, []
    if waits:  # who was seen waiting was answered before, or is gone: the one that held their run has committed by now
        waits = store.waiting(item.type, item.key, using)
    return placing.place(item, waits, using, keep=keep, ahead=ahead)


def deliver_held(item: Item, keep: Place | None, using: str) -> None:
    """Give an event that was held to whoever waits for it now. `keep`: as of `deliver`."""
    deliver(item, store.waiting(item.type, item.key, using), using, keep=keep, ahead=False)


def judge_again(using: str) -> int:
    """Judge what was received where its type was not known, and what could not begin a run when its turn came; how many were looked at."""
    found = places.unknown(started_by.types(), conf.SWEEP_BATCH, using)
    for seen in found:
        item = ordering.as_item(seen, seen.type, seen.key)
        with apart(f"the event {item.event_id}, which may begin a run,", using), committing("judge again", using):
            started_by.lock_ahead([(item.event_id, item.type, item.key, item.payload)], using)
            locks.channel(item.type, item.key, using)
            if places.is_as_seen(item.id, seen.redelivered, using):
                deliver(item, store.waiting(item.type, item.key, using), using)
    return len(found)


def close_gaps(using: str) -> int:
    """Go on in ordered streams where something has waited long enough for what is before it; how many events were passed on."""
    return ordering.close_gaps(lambda item, keep: deliver_held(item, keep, using), using)


def watches() -> tuple[registry.Watch, ...]:
    """What the clock looks for of events."""
    judging = registry.Watch(placing.JUDGE_AGAIN, places.UNKNOWN, judge_again)
    return (registry.Watch("event-gaps", streams.GAPS, close_gaps), placing.watch(), judging)


def _encode(event_id: str, value: Mapping[str, Any] | None) -> tuple[str, str]:
    producer = f"the payload of event {event_id}"
    if value is not None and not isinstance(value, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {value.__class__.__name__}")
    data = dict(value or {})
    return encoding.encode(data, producer, conf.MAX_PAYLOAD_BYTES), canonical.digest(data, producer)
