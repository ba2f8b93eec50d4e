"""Local times and moments: every local time of a zone, also one that exists twice and one that does not exist, by a policy that is declared.

    exists once    its moment
    exists twice   FIRST, LAST or BOTH of its two moments
    not at all     SHIFT: the first moment after the gap; SKIP: none

What steps through local times (a cron expression, a rule) knows no zone; this module knows nothing else. Local times come in order and so do
their moments; two local times that are shifted to one moment are one. The zones are those of the `tzdata` package where it is installed, so that
two machines agree.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flows.core.errors import DefinitionError
from flows.core.schedules.words import Missing, Repeated

#: Local times from this one on, in order.
Steps = Callable[[datetime], Iterator[datetime]]

#: No zone sets its clocks back by more than the date line has hours.
_FURTHEST = 27
_LAST_YEAR = 9990
_SECOND, _HOUR = timedelta(seconds=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment (`at`, in UTC), and the policy that made it of its local time: "", "first", "last", or "shift"."""

    at: datetime
    by: str = ""


@lru_cache(maxsize=700)
def zone(name: str) -> ZoneInfo:
    """The zone of that name in the tz database.

    Raises:
        DefinitionError: there is none.
    """
    given: Any = name
    try:
        if not isinstance(given, str) or not name or "\\" in name:
            raise ZoneInfoNotFoundError(name)
        found = ZoneInfo(name)
        return _of_package(name) or found
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DefinitionError(
            f"There is no time zone {name!r:.60} in the tz database. Write a name such as Europe/Vienna or UTC."
        ) from None


def _of_package(name: str) -> ZoneInfo | None:
    """The same from the `tzdata` package; None where that is not installed. A zone that only this machine has (localtime) is none."""
    try:
        folder = resources.files("tzdata")
    except ModuleNotFoundError:
        return None
    file = folder.joinpath("zoneinfo", *name.split("/"))
    if not file.is_file():
        raise ZoneInfoNotFoundError(name)
    with file.open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def wall(at: datetime, where: ZoneInfo) -> datetime:
    """What the clock on the wall shows, without zone."""
    return at.astimezone(where).replace(tzinfo=None, fold=0)


def shown(at: datetime, where: ZoneInfo) -> str:
    """Wall time and offset, for people."""
    return at.astimezone(where).isoformat(sep=" ")


def moments(steps: Steps, where: ZoneInfo, repeated: Repeated, missing: Missing, after: datetime) -> Iterator[Moment]:
    """The moments after `after` of the local times of `steps`, each once and in order."""
    ahead: list[Moment] = []
    last = after
    for local in steps(_earliest(after, where)):
        if local.year > _LAST_YEAR:
            break
        first, found = _of(local, where, repeated, missing)
        while ahead and ahead[0].at < first:  # nothing of a later local time comes before the first moment of this one
            one = heapq.heappop(ahead)
            if one.at > last:
                last = one.at
                yield one
        for one in found:
            heapq.heappush(ahead, one)
    while ahead:
        one = heapq.heappop(ahead)
        if one.at > last:
            last = one.at
            yield one


def moment(local: datetime, where: ZoneInfo, repeated: Repeated) -> datetime:
    """The moment of one local time; of one that does not exist, the first moment after the gap."""
    return _of(local, where, repeated, Missing.SHIFT)[1][0].at


def _earliest(after: datetime, where: ZoneInfo) -> datetime:
    """The earliest local time that may still have a moment after this one, or one before: clocks may be about to be set back.

    Where the offset has shrunk between two looks an hour apart, they were set back to a time at most an hour before the second look.
    """
    found = before = wall(after, where)
    for hours in range(1, _FURTHEST):
        shows = wall(after + timedelta(hours=hours), where)
        if shows < before + _HOUR:
            found = min(found, shows - _HOUR)
        before = shows
    return found


def _of(local: datetime, where: ZoneInfo, repeated: Repeated, missing: Missing) -> tuple[datetime, list[Moment]]:
    """The first moment that a local time has or would have, and those that the policies give it."""
    early = local.replace(tzinfo=where, fold=0).astimezone(UTC)
    late = local.replace(tzinfo=where, fold=1).astimezone(UTC)
    if early == late:
        return early, [Moment(early)]
    if early < late:
        both = [Moment(early, Repeated.FIRST), Moment(late, Repeated.LAST)]
        return early, both if repeated is Repeated.BOTH else [both[repeated is Repeated.LAST]]
    end = _end_of_gap(late, early, where)
    return end, [Moment(end, Missing.SHIFT)] if missing is Missing.SHIFT else []


def _end_of_gap(before: datetime, after: datetime, where: ZoneInfo) -> datetime:
    """The moment between these two at which the clock jumps."""
    offset = before.astimezone(where).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle -= timedelta(microseconds=middle.microsecond)
        if middle <= before:
            break
        if middle.astimezone(where).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after
