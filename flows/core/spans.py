"""Durations, as authors write them: `seconds(3)`, `minutes(10)`, `hours(2)` and `days(1)`, each within what a calendar has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flows.core import typed
from flows.core.errors import DefinitionError

#: A hundred years. A moment much later than that no calendar has, neither Python's nor PostgreSQL's.
LONGEST = timedelta(days=36_525)


def span(what: str, **parts: float) -> timedelta:
    """A checked span of days, hours, minutes and seconds; `what` is how it was written.

    Raises:
        DefinitionError: a part is no number, or all of it is longer than `LONGEST`.
    """
    try:
        return bounded(what, timedelta(**parts))
    except (TypeError, ValueError, OverflowError):
        given = ", ".join(f"{name}={_shown(value)}" for name, value in parts.items() if value != 0)
        raise DefinitionError(
            f"{what} takes numbers that make up a span; got {given}. Write Deadline(hours=2, …) or hours(2)."
        ) from None


def bounded(what: str, given: timedelta) -> timedelta:
    """The span, if it is short enough to be added to a moment.

    Raises:
        DefinitionError: it is not.
    """
    if abs(given) > LONGEST:
        raise DefinitionError(f"{what} is {given.days:,} days; a span is at most {LONGEST.days:,}, a hundred years.")
    return given


def in_utc(moment: object) -> datetime | None:
    """A moment from outside in UTC; None: it is none, or has no time zone.

    In its own zone PostgreSQL may not take it: there an offset is less than sixteen hours, in Python less than a day.
    """
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # at either end of the calendar
        return None


def seconds(amount: float) -> timedelta:
    """A duration of `amount` seconds."""
    typed.must("seconds(…)", amount, typed.NUMBERS, "seconds(3)")
    return span("seconds(…)", seconds=amount)


def minutes(amount: float) -> timedelta:
    """A duration of `amount` minutes."""
    typed.must("minutes(…)", amount, typed.NUMBERS, "minutes(3)")
    return span("minutes(…)", minutes=amount)


def hours(amount: float) -> timedelta:
    """A duration of `amount` hours."""
    typed.must("hours(…)", amount, typed.NUMBERS, "hours(3)")
    return span("hours(…)", hours=amount)


def days(amount: float) -> timedelta:
    """A duration of `amount` days of 24 hours."""
    typed.must("days(…)", amount, typed.NUMBERS, "days(3)")
    return span("days(…)", days=amount)


def _shown(value: object) -> str:
    """Python refuses to print the longest integers."""
    huge = isinstance(value, int) and value.bit_length() > 200
    return "an integer of very many digits" if huge else f"{value!r:.40}"
