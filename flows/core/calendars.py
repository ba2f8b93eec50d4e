"""Named calendars: when something is open, and what a span of open time means (C7). Pure: (calendar, moment, span) → moment.

    body    {"zone": "Europe/Vienna", "week": {"mon": ["09:00-12:00", "13:00-17:00"], …}, "holidays": ["12-25", "2027-03-29"],
             "closed": ["2026-12-24/2027-01-06"], "extra": {"2026-12-19": ["10:00-14:00"]}}
    a day   its `extra` windows, else none if it is a holiday or closed, else those of its day of the week
A window is local time: a begin that does not exist is when the clocks jump; where times exist twice, from the first to the last.
A published version never changes; whoever counts by one says which (`NAME@VERSION`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.policies import Deadline
from flows.core.schedules import zones
from flows.core.schedules.words import Repeated

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXAMPLE = '{"zone": "Europe/Vienna", "week": {"mon": ["09:00-17:00"]}}'
#: No window in this time: there is none to wait for.
HORIZON = timedelta(days=2 * 366)
MAX_WINDOWS, MAX_DAYS = 24, 2000

_MIDNIGHT = 24 * 60
_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)", re.ASCII)
_YEARLY = re.compile(r"(\d\d)-(\d\d)", re.ASCII)

#: Minutes of a day at which a window opens and closes.
Windows = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Calendar:
    """One version of a calendar, read."""

    name: str
    version: int
    where: ZoneInfo
    week: tuple[Windows, ...]
    yearly: frozenset[tuple[int, int]] = frozenset()
    closed: tuple[tuple[date, date], ...] = ()
    extra: Mapping[date, Windows] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def windows(self, day: date) -> Windows:
        """The windows of a day, in order."""
        if day in self.extra:
            return self.extra[day]
        if (day.month, day.day) in self.yearly or any(first <= day <= last for first, last in self.closed):
            return ()
        return self.week[day.weekday()]

    def spans(self, begin: datetime) -> Iterator[tuple[datetime, datetime]]:
        """(opens, closes) of the windows that close after `begin`, for two years; windows that touch are one."""
        open_at: datetime | None = None
        until = begin
        day = zones.wall(begin, self.where).date() - timedelta(days=1)
        for one in (day + timedelta(days=number) for number in range(HORIZON.days)):
            for opens, closes in self._moments(one):
                if open_at is not None and opens > until:
                    yield open_at, until
                    open_at = None
                if closes > begin and closes > opens:
                    open_at, until = open_at or opens, closes
        if open_at is not None:
            yield open_at, until

    def _moments(self, day: date) -> Iterator[tuple[datetime, datetime]]:
        midnight = datetime.combine(day, time())
        for opens, closes in self.windows(day):
            yield (
                zones.moment(midnight + timedelta(minutes=opens), self.where, Repeated.FIRST),
                zones.moment(midnight + timedelta(minutes=closes), self.where, Repeated.LAST),
            )

    def is_open(self, moment: datetime) -> bool:
        """Whether a window is open at that moment; the moment at which it closes is outside."""
        return self.opens_at(moment) == moment

    def opens_at(self, moment: datetime) -> datetime | None:
        """The moment itself where a window is open, else when the next one opens; None: none does within two years."""
        first = next(self.spans(moment), None)
        return max(first[0], moment) if first is not None else None

    def after(self, moment: datetime, span: timedelta) -> datetime | None:
        """When so much open time has passed since that moment; None: not within two years."""
        left = span
        for opens, closes in self.spans(moment):
            begins = max(opens, moment)
            if closes - begins >= left:
                return begins + left
            left -= closes - begins
        return None


def parse(body: Any, name: str = "", version: int = 0) -> Calendar:
    """The calendar of a body.

    Raises:
        DefinitionError: it cannot be read; the text says what of it, and how it is written.
    """
    if not isinstance(body, Mapping) or not isinstance(body.get("week", {}), Mapping):
        raise _unreadable(name, f"it is {body!r:.60}")
    if unknown := sorted(str(one) for one in set(body) - {"zone", "week", "holidays", "closed", "extra"}):
        raise _unreadable(name, f"nobody knows {unknown[0]!r:.40}")
    week = body.get("week", {})
    if unknown := sorted(str(one) for one in set(week) - set(DAYS)):
        raise _unreadable(name, f"{unknown[0]!r:.40} is none of {', '.join(DAYS)}")
    yearly, closed = set[tuple[int, int]](), list[tuple[date, date]]()
    for one in _listed(body, "holidays", name):
        found = _YEARLY.fullmatch(one)
        if found:
            _day(f"2024-{one}", name)  # a leap year has every day
            yearly.add((int(found[1]), int(found[2])))
        else:
            closed.append((_day(one, name),) * 2)
    for one in _listed(body, "closed", name):
        first, _, last = one.partition("/")
        closed.append((_day(first, name), _day(last or first, name)))
    extra = body.get("extra", {})
    if not isinstance(extra, Mapping) or len(extra) > MAX_DAYS:
        raise _unreadable(name, "extra is no object of days and their windows")
    if any(first > last for first, last in closed):
        raise _unreadable(name, "a closed span ends before it begins")
    return Calendar(
        name,
        version,
        zones.zone(body.get("zone", "")),
        tuple(_windows(week.get(day, ()), name) for day in DAYS),
        frozenset(yearly),
        tuple(closed),
        {_day(day, name): _windows(given, name) for day, given in extra.items()},
    )


def until(deadline: Deadline, now: datetime, calendars: Mapping[str, Calendar]) -> datetime | None:
    """When a deadline in business time is over that begins now; None: it is one of elapsed time.

    Raises:
        DefinitionError: its calendar is not published, or is not open for so long within two years.
    """
    if deadline.business is None:
        return None
    return passed(deadline.calendar, now, deadline.business, calendars)


def passed(name: str, now: datetime, span: timedelta, calendars: Mapping[str, Calendar]) -> datetime:
    """When so much open time of a named calendar has passed.

    Raises:
        DefinitionError: as `until`.
    """
    end = known(name, calendars).after(now, span)
    if end is None:
        raise DefinitionError(f"Calendar {calendars[name]} is not open for {span} within two years.")
    return end


def opens(name: str, now: datetime, calendars: Mapping[str, Calendar]) -> datetime:
    """When a window of a named calendar is open.

    Raises:
        DefinitionError: it is not published, or has no window within two years.
    """
    found = known(name, calendars).opens_at(now)
    if found is None:
        raise DefinitionError(f"Calendar {calendars[name]} has no window within two years.")
    return found


def known(name: str, calendars: Mapping[str, Calendar]) -> Calendar:
    """The calendar of that name.

    Raises:
        DefinitionError: nobody has published it.
    """
    if name not in calendars:
        raise DefinitionError(f"There is no calendar {name!r:.60}: publish it (flows calendars publish, or the admin).")
    return calendars[name]


def _windows(given: Any, name: str) -> Windows:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MAX_WINDOWS:
        raise _unreadable(name, f"{given!r:.60} is no list of windows")
    found = []
    for one in given:
        parts = _WINDOW.fullmatch(one) if isinstance(one, str) else None
        if parts is None:
            raise _unreadable(name, f"{one!r:.40} is no window such as 09:00-17:00 (or 22:00-24:00)")
        closes = int(parts[3]) * 60 + int(parts[4]) if parts[3] else _MIDNIGHT
        found.append((int(parts[1]) * 60 + int(parts[2]), closes))
    found.sort()
    if any(opens >= closes for opens, closes in found) or any(one[1] > other[0] for one, other in pairwise(found)):
        raise _unreadable(name, f"{list(given)!r:.80} has a window that ends before it begins, or two that overlap")
    return tuple(found)


def _listed(body: Mapping[str, Any], option: str, name: str) -> Sequence[str]:
    given = body.get(option, ())
    if not isinstance(given, list | tuple) or len(given) > MAX_DAYS or not all(isinstance(one, str) for one in given):
        raise _unreadable(name, f"{option} is no list of days, as text")
    return given


def _day(text: Any, name: str) -> date:
    try:
        if not isinstance(text, str) or len(text) != 10:
            raise ValueError
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise _unreadable(name, f"{text!r:.40} is no day such as 2026-12-24") from None


def _unreadable(name: str, why: str) -> DefinitionError:
    return DefinitionError(f"The calendar {name!r:.60} cannot be read: {why}. Write {EXAMPLE}.")


def is_name(name: Any) -> bool:
    """Whether a calendar may have that name."""
    return payload.is_name(name) and "@" not in name
