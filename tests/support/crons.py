"""Cron expressions with what they mean, made together, so that an oracle need not read any; and an oracle that goes a day at a time."""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True)
class Expression:
    """The text, and what fits it."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    fits_day: Callable[[date], bool]

    def after(self, start: datetime, days: int) -> Iterator[datetime]:
        """Every local time after `start`, for so many days, by looking at each day and each hour, minute and second of one that fits."""
        for number in range(days):
            day = start.date() + timedelta(days=number)
            if day.month not in self.months or not self.fits_day(day):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    for second in sorted(self.seconds):
                        found = datetime.combine(day, time(hour, minute, second))
                        if found > start:
                            yield found


def made(dice: random.Random) -> Expression:
    """Any expression of the six fields."""
    six = dice.random() < 0.3
    second, seconds = _numbers(dice, 0, 59) if six else ("", frozenset({0}))
    minute, minutes = _numbers(dice, 0, 59)
    hour, hours = _numbers(dice, 0, 23)
    month, months = _numbers(dice, 1, 12, MONTHS)
    day, fits_number = _days(dice)
    weekday, fits_weekday = _weekdays(dice)
    both = day.startswith("*") or weekday.startswith("*")

    def fits(one: date) -> bool:
        return fits_number(one) and fits_weekday(one) if both else fits_number(one) or fits_weekday(one)

    fields = [second, minute, hour, day, month, weekday] if six else [minute, hour, day, month, weekday]
    return Expression(" ".join(fields), seconds, minutes, hours, months, fits)


def _numbers(dice: random.Random, least: int, most: int, names: tuple[str, ...] = ()) -> tuple[str, frozenset[int]]:
    parts, found = [], set[int]()
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        first, last = sorted((dice.randint(least, most), dice.randint(least, most)))
        step = dice.randint(1, max(2, (most - least) // 2))
        named = str(first) if not names or dice.random() < 0.5 else names[first - least]
        match dice.randrange(6):
            case 0 if not parts:
                return "*", frozenset(range(least, most + 1))
            case 1 if not parts:
                return f"*/{step}", frozenset(range(least, most + 1, step))
            case 2:
                parts.append(f"{named}-{last}")
                found |= set(range(first, last + 1))
            case 3:
                parts.append(f"{first}-{last}/{step}")
                found |= set(range(first, last + 1, step)) if first != last else set(range(first, most + 1, step))
            case 4:
                parts.append(f"{first}/{step}")
                found |= set(range(first, most + 1, step))
            case _:
                parts.append(named)
                found.add(first)
    return ",".join(parts), frozenset(found)


def _days(dice: random.Random) -> tuple[str, Callable[[date], bool]]:
    match dice.randrange(6):
        case 0:
            return "L", lambda one: (one + timedelta(days=1)).day == 1
        case 1:
            return "LW", _is_last_workday
        case 2 | 3:
            return "*", lambda _: True
    text, numbers = _numbers(dice, 1, 31)
    while min(numbers) > 28:  # it might fit no day of its months, and is refused then
        text, numbers = _numbers(dice, 1, 31)
    return text, lambda one: one.day in numbers


def _is_last_workday(one: date) -> bool:
    rest = [one + timedelta(days=ahead) for ahead in range(1, 8)]
    return one.isoweekday() <= 5 and not any(other.month == one.month and other.isoweekday() <= 5 for other in rest)


def _weekdays(dice: random.Random) -> tuple[str, Callable[[date], bool]]:
    number = dice.randint(0, 7)
    named = str(number) if dice.random() < 0.5 else WEEKDAYS[number % 7]
    match dice.randrange(6):
        case 0:
            nth = dice.randint(1, 5)
            return f"{named}#{nth}", lambda one: one.isoweekday() % 7 == number % 7 and _nth(one) == nth
        case 1:
            return f"{number}L", lambda one: one.isoweekday() % 7 == number % 7 and (one + timedelta(days=7)).month != one.month
        case 2:
            return named, lambda one: one.isoweekday() % 7 == number % 7
        case 3:
            return "MON-FRI", lambda one: one.isoweekday() <= 5
    return "*", lambda _: True


def _nth(one: date) -> int:
    """Counted on the page of the month, not reckoned."""
    weeks = calendar.monthcalendar(one.year, one.month)
    return [week[one.weekday()] for week in weeks if week[one.weekday()]].index(one.day) + 1
