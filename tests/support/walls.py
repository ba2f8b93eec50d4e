"""A slow oracle for moments: it walks UTC minute by minute, reads the clock on the wall, and has no code in common with the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
#: No clock is set by more, but for the days that the date line took.
AROUND = timedelta(hours=5)


def transitions(where: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The minutes at which the offset of a zone is another than a minute before."""
    step = timedelta(hours=6)
    one = begin
    while one < end:
        if one.astimezone(where).utcoffset() != (one + step).astimezone(where).utcoffset():
            minute = one
            while minute <= one + step:
                if minute.astimezone(where).utcoffset() != (minute - MINUTE).astimezone(where).utcoffset():
                    yield minute
                minute += MINUTE
        one += step


class Walk:
    """Every minute around a transition, with what the wall shows."""

    def __init__(self, where: ZoneInfo, begin: datetime, end: datetime, around: timedelta = AROUND) -> None:
        self.begin, self.end = begin, end
        self.shown: dict[datetime, list[datetime]] = {}
        self.never: list[tuple[datetime, datetime]] = []
        at, before = begin - around, None
        while at <= end + around:
            wall = at.astimezone(where).replace(tzinfo=None, fold=0)
            self.shown.setdefault(wall, []).append(at)
            if before is not None:
                missing = before + MINUTE
                while missing < wall:
                    self.never.append((missing, at))
                    missing += MINUTE
            before, at = wall, at + MINUTE

    def moments(self, fits: Callable[[datetime], bool], repeated: str, missing: str) -> list[datetime]:
        """The moments between begin and end of the local times that fit, by these policies."""
        found: set[datetime] = set()
        for wall, times in self.shown.items():
            if fits(wall):
                found |= set(times if repeated == "both" else times[:1] if repeated == "first" else times[-1:])
        if missing == "shift":
            found |= {jump for wall, jump in self.never if fits(wall) and wall not in self.shown}
        return sorted(one for one in found if self.begin < one <= self.end)


def distinct(names: Iterator[str] | set[str]) -> list[str]:
    """One name of each zone of the tz database: links and copies are left away."""
    from importlib import resources

    first: dict[bytes, str] = {}
    for name in sorted(names):
        file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        if file.is_file():
            first.setdefault(file.read_bytes(), name)
    return sorted(first.values())


UTC_YEARS = (datetime(2021, 11, 30, tzinfo=UTC), datetime(2031, 11, 30, tzinfo=UTC))
