"""Events of a type that comes in an order: each is passed on when its turn is, held until then, or set aside.

    IN_ORDER   its predecessor is on record ──► passed on, and whatever is held right behind it
               a position is missing before it ──► held, at most for the type's gap; then it is passed on, and what was missing is late
               a later one was passed on ──► aside, out of order
    NEWEST     newer than all that were passed on ──► passed on, and older ones that nobody took are set aside
               else ──► aside, out of order
Passed on: it goes to the waits of its channel, as any event does. Guard: the lock of the channel; the stream's position only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flows import registry
from flows.conf import conf
from flows.core.events import EventType, Order, whole
from flows.core.inbox import Place
from flows.models import EventStatus
from flows.services.apart import apart
from flows.services.filling import Item
from flows.store import locks, places
from flows.store import streams as store
from flows.store.events import about_of
from flows.store.sql import committing, dumps, loads

#: Gives an event to whoever waits for it, or places it. `keep`: the place that it keeps.
Deliver = Callable[[Item, Place | None], object]


def declared(event_type: str) -> EventType | None:
    """What is declared of a type whose positions mean something."""
    found = registry.declared(EventType).get(event_type)
    return found if found is not None and found.ordered else None


def position(kind: EventType | None, given: int | None, payload: Mapping[str, Any]) -> int | None:
    """The position of an event: as it was given, or as its payload has it.

    Raises:
        PayloadError: it has none, and the type is declared to come in order; or it is none.
    """
    whole(given, "position=")
    return given if given is not None or kind is None else kind.position(payload)


def arrive(kind: EventType, item: Item, at: int, using: str) -> Place | None:
    """Whether an event that has just been recorded is passed on (None), or where it stands instead."""
    last = store.position(item.type, item.key, using)
    if kind.policy is Order.IN_ORDER:
        following = kind.first if last is None else last + 1
        if at > following:
            store.hold(item.id, kind.gap, using)
            return Place.GAP
        late = at < following
    else:
        late = last is not None and at <= last
    if late:
        places.put(item.id, EventStatus.ASIDE, Place.OUT_OF_ORDER, using)
        return Place.OUT_OF_ORDER
    store.pass_on(item.type, item.key, at, using)
    if kind.policy is Order.NEWEST:
        store.overtake(item.type, item.key, at, using)
    return None


def follow(event_type: str, key: str, deliver: Deliver, using: str) -> int:
    """Pass on what is held right behind the position that was passed on last, or has waited long enough; how many. The channel is locked."""
    passed = 0
    while (held := store.first_held(event_type, key, using)) is not None:
        last = store.position(event_type, key, using)
        if not held.over and (last is None or held.position > last + 1):
            break
        late = last is not None and held.position <= last
        if late:  # two events of one position
            places.put(held.id, EventStatus.ASIDE, Place.OUT_OF_ORDER, using)
            continue
        store.pass_on(event_type, key, held.position, using)
        in_turn = last is not None and held.position == last + 1
        deliver(as_item(held, event_type, key), None if in_turn else Place.GAP)
        passed += 1
    return passed


def as_item(held: store.Held | places.Unjudged, event_type: str, key: str) -> Item:
    """An event of the inbox as it is given to waits."""
    about = about_of(held.about_workflow, held.about_epoch, held.about_intent, held.about_wait)
    return Item(held.id, held.event_id, event_type, key, dumps(loads(held.payload)), about, free=held.redelivered > 0)


def close_gaps(deliver: Deliver, using: str) -> int:
    """Go on in streams whose gap is over; how many events were passed on. A transaction for each stream."""
    passed = 0
    for event_type, key in store.over(conf.SWEEP_BATCH, using):
        with apart(f"the gap of {event_type}", using), committing("close gap", using):
            locks.channel(event_type, key, using)
            passed += follow(event_type, key, deliver, using)
    return passed
