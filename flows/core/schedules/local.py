"""Local times, one after the other, out of what a person wrote: an expression in the manner of cron, or a rule of RFC 5545.

The libraries (cronsim, python-dateutil: the extra `outlast[schedules]`) read the text and step; no zone, no clock of this machine. Whatever
they are given ends: a rule is never followed further than `HORIZON` past the moment asked about, and an expression that never fits is refused.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from flows.core.errors import DefinitionError
from flows.core.schedules.zones import Steps, wall

MAX_EXPRESSION = 2000
#: A rule of which nothing comes in this time is over.
HORIZON = timedelta(days=366 * 12)
#: More repetitions than these are counted one by one at every look.
MAX_COUNT = 10_000

CRON_EXAMPLE = '"0 9 * * MON-FRI": minute, hour, day of the month, month, day of the week; six fields begin with the second'
RULE_EXAMPLE = '"RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0"'
INSTALL = 'Install what reads it: pip install "outlast[schedules]".'

_FORMAT = "%Y%m%dT%H%M%S"
_MOMENT = re.compile(r"\d{8}T\d{6}", re.ASCII)
_UNTIL = re.compile(r"UNTIL=([0-9TZ]+)", re.ASCII)
_COUNT = re.compile(r"COUNT=(\d{1,9})(?:;|$)", re.ASCII)


class NotInstalled(DefinitionError):
    """The extra that reads expressions is not installed."""


def cron(expression: str) -> Steps:
    """The local times of an expression of five or six fields, with names, lists, steps, `L`, `LW` and `#`.

    Where both the day of the month and the day of the week are given, either suffices, as cron has it.

    Raises:
        DefinitionError: it cannot be read, or never fits.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise NotInstalled(INSTALL) from None
    text = _checked(expression, "cron", CRON_EXAMPLE)

    def steps(start: datetime) -> Iterator[datetime]:
        whole = start.replace(microsecond=0)
        try:
            yield from CronSim(text, whole if start.microsecond else whole - timedelta(seconds=1))
        except (OverflowError, ValueError):  # the end of the calendar
            return

    try:
        never = next(steps(datetime(2024, 1, 1)), None) is None  # noqa: DTZ001 - local times have no zone
    except (CronSimError, AssertionError) as fault:
        raise DefinitionError(f"cron={expression!r:.80} cannot be read: {fault}. Write {CRON_EXAMPLE}.") from None
    if never:
        raise DefinitionError(f"cron={expression!r:.80} never fits a day. Write {CRON_EXAMPLE}.")
    return steps


def is_dense(expression: str) -> bool:
    """Whether the hour of a cron expression is `*` or a step: it means the pace, not the time on the clock."""
    fields = expression.split()
    hour = fields[len(fields) - 4] if len(fields) in (5, 6) else ""
    return "*" in hour or "/" in hour


def rule(text: str, where: ZoneInfo, anchor: datetime) -> Steps:
    """The local times of a recurrence: an `RRULE` line, and if wanted lines `DTSTART`, `EXDATE` and `RDATE`, in the schedule's zone.

    Args:
        anchor: where the rule begins (local) that has no DTSTART.
    Raises:
        DefinitionError: it cannot be read, is paced by the second, or counts too far.
    """
    try:
        from dateutil import rrule as library
    except ImportError:
        raise NotInstalled(INSTALL) from None
    lines = [line.strip() for line in _checked(text, "rule", RULE_EXAMPLE).splitlines() if line.strip()]
    start, given, without, also = anchor.replace(microsecond=0), "", set[datetime](), list[datetime]()
    for line in lines:
        name, _, value = line.partition(":")
        match name.upper():
            case "DTSTART":
                start = _moment(value, where, text)
            case "RRULE" if not given:
                given = value
            case "EXDATE":
                without |= {_moment(one, where, text) for one in value.split(",")}
            case "RDATE":
                also += [_moment(one, where, text) for one in value.split(",")]
            case _ if len(lines) == 1 and not value:
                given = line
            case _:
                raise _unreadable(text, f"{name!r:.40} is no line of a rule of ours")
    given = _UNTIL.sub(lambda found: f"UNTIL={_moment(found[1], where, text).strftime(_FORMAT)}", given.upper())
    count = _COUNT.search(given)
    if "SECONDLY" in given or (count and int(count[1]) > MAX_COUNT):
        raise _unreadable(text, f"it may not be paced by the second (use cron=) nor count beyond {MAX_COUNT:,}")
    try:
        made: Any = library.rrulestr(given, dtstart=start)
    except Exception as fault:  # noqa: BLE001 - the library raises whatever its parts raise
        raise _unreadable(text, str(fault)) from None
    if _never_fits(made, start):
        raise _unreadable(text, "it never fits a day")
    until = made._until  # noqa: SLF001 - it has no other way to say what it was given

    def steps(begin: datetime) -> Iterator[datetime]:
        first = max(begin, start)
        end = first + HORIZON
        own = made if count else _nearer(made, start, first).replace(until=min(end, until) if until else end)
        return _merged(own, [one for one in sorted(also) if one >= first], first, without)

    return steps


def is_dense_rule(text: str) -> bool:
    """Whether a rule means the pace: by the hour or the minute, and not at hours that it names."""
    upper = text.upper()
    return ("FREQ=HOURLY" in upper or "FREQ=MINUTELY" in upper) and "BYHOUR" not in upper


def _never_fits(made: Any, start: datetime) -> bool:
    """Whether no day fits, looked for a year at a time: by days and minutes the library would go on to the end of the calendar."""
    from dateutil import rrule as library

    if made._freq < library.WEEKLY:  # noqa: SLF001 - it goes a month at a time by itself
        return False
    yearly = made.replace(freq=library.YEARLY, interval=1, count=None, byhour=0, byminute=0, bysecond=0, bysetpos=None)
    return yearly.replace(until=start + HORIZON).after(start - timedelta(days=1)) is None


def _nearer(made: Any, start: datetime, begin: datetime) -> Any:
    """The same rule from a beginning not long before `begin`: it is followed step by step, and years of minutes are many.

    Its own beginning is moved by whole intervals; months and years differ in length, and are few.
    """
    from dateutil import rrule as library

    units = {
        library.WEEKLY: timedelta(weeks=1),
        library.DAILY: timedelta(days=1),
        library.HOURLY: timedelta(hours=1),
        library.MINUTELY: timedelta(minutes=1),
    }
    unit = units.get(made._freq)  # noqa: SLF001
    if unit is None:
        return made
    whole = unit * made._interval  # noqa: SLF001
    ahead = (begin - start) // whole - 1
    return made.replace(dtstart=start + ahead * whole) if ahead > 0 else made


def _merged(own: Any, also: list[datetime], begin: datetime, without: set[datetime]) -> Iterator[datetime]:
    last = None
    for one in heapq.merge(own.xafter(begin, inc=True), also):
        if one != last and one not in without:
            yield one
        last = one


def _moment(text: str, where: ZoneInfo, whole: str) -> datetime:
    """A moment of a rule as local time; one with a Z is converted."""
    bare = text.strip().removesuffix("Z")
    if bare and len(bare) == 8:
        bare += "T000000"
    if not _MOMENT.fullmatch(bare):
        raise _unreadable(whole, f"{text!r:.40} is no moment such as 20260329T023000")
    try:
        found = datetime.strptime(bare, _FORMAT)  # noqa: DTZ007 - local times have no zone
    except ValueError as fault:
        raise _unreadable(whole, str(fault)) from None
    return wall(found.replace(tzinfo=UTC), where) if text.strip().endswith("Z") else found


def _checked(text: str, option: str, example: str) -> str:
    given: Any = text
    if not isinstance(given, str) or not text.strip() or len(text) > MAX_EXPRESSION or not text.isascii():
        raise DefinitionError(f"{option}={text!r:.80} is no text that can be read. Write {option}={example}.")
    return text.strip()


def _unreadable(text: str, why: str) -> DefinitionError:
    return DefinitionError(f"rule={text!r:.80} cannot be read: {why}. Write rule={RULE_EXAMPLE}.")
