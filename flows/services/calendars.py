"""Publish a calendar, and read those that flows count by.

    publish ──► the same body again: nothing    ──► another: the next version; no wait that is open moves
Whoever parks by a calendar reads its newest version then; the arrow's note says which (`calendar`), and replay judges by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from flows.conf import conf
from flows.core import calendars, canonical, payload
from flows.core.calendars import Calendar
from flows.core.definition import Definition
from flows.core.errors import DefinitionError, PayloadError
from flows.core.misuse import UsageError
from flows.core.policies import Deadline
from flows.services import identify, warrant
from flows.services.clock import now
from flows.store import calendars as store
from flows.store.sql import committing, dumps, loads

PERMISSION = "outlast_flows.publish_calendar"

_NONE: Mapping[str, Calendar] = MappingProxyType({})


class CalendarMoved(UsageError):
    """The calendar has changed since it was looked at."""

    code = "CALENDAR_MOVED"

    def __init__(self, name: str, seen: int, newest: int) -> None:
        super().__init__(f"The newest version of calendar {name!r} is {newest} by now, not {seen}. Read that first.")


@dataclass(frozen=True, slots=True)
class PublishedCalendar:
    """A version of a calendar. `created`: this call made it; else the newest says the same."""

    name: str
    version: int
    digest: str
    created: bool


def publish(
    name: str,
    body: Mapping[str, Any],
    *,
    reason: str = "",
    by: Any = None,
    after: int | None = None,
    using: str | None = None,
) -> PublishedCalendar:
    """Publish the next version of a calendar. The same body again changes nothing.

    Args:
        name: what flows and schedules say. body: zone, week, holidays, closed and extra days (`flows.core.calendars`).
        by: the user, whose right is looked up anew; None: code of the project. reason: why; a user says it.
        after: only as the next one after this version; None: after whatever is the newest. using: the database alias of the record.
    Raises:
        DefinitionError: the body cannot be read. PayloadError: it or the name cannot be stored.
        CalendarMoved: there is a newer one than `after`.
        ReasonMissing: `by` is named, and there is no reason. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    said = warrant.reason(reason, "why the calendar changes") if by is not None else identify.reason(reason)
    payload.check_name(name, "the name of a calendar")
    producer = f"the calendar {name!r:.80}"
    if not calendars.is_name(name):
        raise PayloadError(producer, "a calendar's name has no @ in it: that separates name and version")
    calendars.parse(body, name)
    text, digest = payload.text(dict(body), producer, conf.MAX_INPUT_BYTES), canonical.digest(dict(body), producer)
    with committing("publish calendar", alias):
        store.lock(name, alias)
        found = next(iter(store.newest([name], alias)), None)
        if found is not None and found.digest == digest:
            return PublishedCalendar(name, found.version, digest, created=False)
        newest = found.version if found is not None else 0
        if after is not None and after != newest:
            raise CalendarMoved(name, after, newest)
        made = {"name": name, "version": newest + 1, "body": text, "digest": digest, "reason": said}
        store.publish({**made, "by": identify.user_key(by), "by_label": identify.label(by)}, alias)
    return PublishedCalendar(name, newest + 1, digest, created=True)


def newest(names: Iterable[str], using: str) -> Mapping[str, Calendar]:
    """The newest version of each of these that is published and can be read, by name."""
    wanted = sorted(set(names))
    found = store.newest(wanted, using) if wanted else []
    return MappingProxyType({one.name: read for one in found if (read := _read(one)) is not None}) if found else _NONE


def versions(using: str) -> Mapping[str, Calendar]:
    """Every version of every calendar that can be read, by NAME@VERSION; for replay."""
    return {str(read): read for one in store.versions(using) if (read := _read(one)) is not None}


def measure(definition: Definition, using: str) -> Callable[[Deadline], timedelta]:
    """How long each of a flow's own deadlines takes that begins now.

    Raises (the function that comes back):
        DefinitionError: the calendar is not published, or is not open for so long.
    """
    return lasting(definition.deadlines.values(), using)


def lasting(deadlines: Iterable[Deadline], using: str) -> Callable[[Deadline], timedelta]:
    """The same of these deadlines."""
    named = {one.calendar for one in deadlines if one.business is not None}
    if not named:
        return lambda one: one.after
    known, moment = newest(named, using), now(using)

    def lasts(one: Deadline) -> timedelta:
        end = calendars.until(one, moment, known)
        return one.after if end is None else end - moment

    return lasts


def _read(one: store.Version) -> Calendar | None:
    return _parsed(one.name, one.version, dumps(one.body))


@lru_cache(maxsize=256)
def _parsed(name: str, version: int, text: str) -> Calendar | None:
    """A version never changes, so it is read once. One that cannot be read (the zone is gone from this machine's tzdata) is not there."""
    try:
        return calendars.parse(payload.decode(loads(text)), name, version)
    except DefinitionError:
        return None
