"""A person has an event delivered again: to whoever waits on its channel, or to one wait that is named.

    pending, held, aside ──► pending, then it is given as any event is: `filling`, else `placing`
    conflict ──► a copy of it, with an id of its own, is given so; the conflict itself never is
    to one wait ──► that one alone takes it, whatever its key
Guard: the right and a reason; the event is as it was seen (status, how often it was delivered again); the channels of event and wait, then the
run. What a redelivered event says that it is about counts no more: a person has decided that.
Race: twice is once, by that count and by the id of the copy; the usual event, or the end of the wait, was first: too late, nothing is changed.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flows.core import payload
from flows.core.misuse import CannotRedeliver, UnknownEvent
from flows.models import Event, EventStatus, Redelivery, Wait
from flows.services import identify, ordering, started_by, warrant
from flows.services.clock import now
from flows.services.events import Received, Reception, deliver, deliver_held
from flows.services.filling import Item, give
from flows.store import events as store
from flows.store import locks, parts, streams
from flows.store.sql import committing, dumps, loads

PERMISSION = "outlast_flows.redeliver_event"


class _TooLate(Exception):
    """Roll back: the wait that was named takes nothing any more."""


def redeliver(
    event: Any, *, by: Any, reason: str, to: Any = None, seen: tuple[str, int] | None = None, using: str | None = None
) -> Received:
    """Have an event delivered again. accepted, kept: as of a signal. already: it was taken, or has moved since it was seen.

    Args:
        event: the row of the inbox, its number, or the event's own id (text). by: who decides: a user with `redeliver_event`, or None for code.
        reason: why, in words; it is kept. to: the one open wait that gets it, or its number; too_late: that takes nothing any more.
        seen: the status, and how often it was delivered again, as whoever decides saw it; default: as it is now.
    Raises:
        UnknownEvent: there is none. CannotRedeliver: the wait is of another type, or there is none. ReasonMissing, NotPermitted, NotAUser.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why the event is delivered again")
    row = get(event, using=alias)
    status, count = seen or (row.status, row.redelivered)
    wait = _wait(to, row.type, alias) if to is not None else None
    if status == EventStatus.CONSUMED or (status == EventStatus.CONFLICT and count):
        return Received(Reception.ALREADY, row.event_id)
    try:
        with committing("redeliver", alias):
            if wait is None:
                started_by.lock_ahead([(row.event_id, row.type, row.key, dumps(row.payload))], alias)
            locks.channels([(row.type, row.key), *(_channels(wait, row.type, alias) if wait is not None else ())], alias)
            found = store.again(row.pk, status, count, alias)
            if found is None:
                return Received(Reception.ALREADY, row.event_id)
            item = Item(found[0], found[1], found[2], found[3], dumps(loads(found[4])), free=True)
            place, woken = _deliver(item, row, status, alias) if wait is None else ("redelivered", _to_one(item, wait, alias))
            Redelivery.objects.using(alias).create(
                event_id=row.pk,
                copy_id=item.id if item.id != row.pk else None,
                status=status,
                place=row.place,
                wait_id=wait.pk if wait is not None else None,
                woken=len(woken),
                reason=reason,
                by_id=identify.user_key(by),
                by_label=identify.label(by),
                at=now(alias),
            )
    except _TooLate:
        return Received(Reception.TOO_LATE, row.event_id)
    return Received(Reception.ACCEPTED if woken else Reception.KEPT, item.event_id, tuple(woken), place)


def get(event: Any, *, using: str | None = None) -> Event:
    """The row of the inbox: of a number, or of the event's own id.

    Raises:
        UnknownEvent: there is none.
    """
    rows = Event.objects.using(identify.alias(using))
    if isinstance(event, Event):
        return event
    if isinstance(event, int) and not isinstance(event, bool):
        row = rows.filter(pk=event).first() if abs(event) < 2**63 else None
    else:
        known = payload.is_name(str(event))
        row = rows.filter(event_id=str(event)).exclude(status=EventStatus.CONFLICT).first() if known else None
    if row is None:
        raise UnknownEvent(event)
    return row


def _deliver(item: Item, row: Event, status: str, using: str) -> tuple[str, list[UUID]]:
    """To whoever waits; a held one takes its stream with it, and what is held right behind it follows."""
    moves_on = status == EventStatus.HELD and row.position is not None
    if moves_on:
        streams.pass_on(item.type, item.key, row.position or 0, using)
    place, woken = deliver(item, store.waiting(item.type, item.key, using), using)
    if moves_on:
        ordering.follow(item.type, item.key, lambda held, keep: deliver_held(held, keep, using), using)
    return place, woken


def _to_one(item: Item, wait: Wait, using: str) -> list[UUID]:
    """To that wait alone.

    Raises:
        _TooLate: it is closed, or has its evidence.
    """
    locks.workflows([wait.workflow_id], using)
    meant = store.Waiting(wait.workflow_id, wait.pk, not wait.event_type, wait.epoch, wait.intent_version, wait.workflow_id)
    woken = give(item, [meant], using, any_key=True)
    if not woken:
        raise _TooLate
    return woken


def _wait(given: Any, event_type: str, using: str) -> Wait:
    number = getattr(given, "pk", given)
    known = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
    wait = Wait.objects.using(using).filter(pk=number).first() if known else None
    if wait is None:
        raise CannotRedeliver(number, "does not exist")
    if not _channels(wait, event_type, using):
        raise CannotRedeliver(number, f"is for no event of the type {event_type}")
    return wait


def _channels(wait: Wait, event_type: str, using: str) -> list[tuple[str, str]]:
    """The channels of a wait, of that type."""
    if wait.event_type:
        return [(wait.event_type, wait.key)] if wait.event_type == event_type else []
    return [(part.event_type, part.key) for part, _ in parts.of_wait(wait.pk, using) if part.event_type == event_type]
