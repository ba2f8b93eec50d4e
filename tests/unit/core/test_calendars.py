"""Calendars: what is open, when it opens, and what a span of open time means, against an oracle that goes minute by minute."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows.core.calendars import Calendar, is_name, parse
from flows.core.errors import DefinitionError

pytestmark = pytest.mark.req("C7")

WEEK = {day: ["09:00-12:00", "13:00-17:00"] for day in ("mon", "tue", "wed", "thu", "fri")}
OFFICE = {
    "zone": "Europe/Vienna",
    "week": WEEK,
    "holidays": ["12-25", "2026-04-06"],
    "closed": ["2026-12-28/2027-01-05"],
    "extra": {"2026-12-19": ["10:00-14:00"], "2026-12-25": ["09:00-10:00"]},
}


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def office(**changes: Any) -> Calendar:
    return parse({**OFFICE, **changes}, "office", 3)


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        (utc(2026, 6, 1, 7), utc(2026, 6, 1, 7)),  # Monday, nine o'clock
        (utc(2026, 6, 1, 6, 59), utc(2026, 6, 1, 7)),
        (utc(2026, 6, 1, 10), utc(2026, 6, 1, 11)),  # noon: closed is closed
        (utc(2026, 6, 5, 15), utc(2026, 6, 8, 7)),  # the weekend
        (utc(2026, 4, 3, 16), utc(2026, 4, 7, 7)),  # Easter Monday
        (utc(2026, 12, 18, 20), utc(2026, 12, 19, 9)),  # an extra Saturday
        (utc(2026, 12, 24, 20), utc(2026, 12, 25, 8)),  # what is extra goes before a holiday
        (utc(2026, 12, 25, 9), utc(2027, 1, 6, 8)),  # closed days
    ],
)
def test_when_it_opens(moment: datetime, opens: datetime) -> None:
    assert office().opens_at(moment) == opens
    assert office().is_open(moment) is (opens == moment)


def test_a_span_is_open_time_only() -> None:
    friday = utc(2026, 6, 5, 14)
    assert office().after(friday, timedelta(minutes=30)) == utc(2026, 6, 5, 14, 30)
    assert office().after(friday, timedelta(hours=1)) == utc(2026, 6, 5, 15)  # the last minute of Friday, not the first of Monday
    assert office().after(friday, timedelta(hours=8)) == utc(2026, 6, 9, 7) - timedelta(hours=16)
    assert office().after(utc(2026, 6, 6), timedelta(hours=3)) == utc(2026, 6, 8, 10)


def test_windows_that_touch_at_midnight_are_one() -> None:
    night = parse({"zone": "UTC", "week": {"sat": ["22:00-24:00"], "sun": ["00:00-06:00"]}})
    assert next(night.spans(utc(2026, 6, 1))) == (utc(2026, 6, 6, 22), utc(2026, 6, 7, 6))
    assert night.after(utc(2026, 6, 1), timedelta(hours=8)) == utc(2026, 6, 7, 6)


def test_clocks_that_are_set_make_a_window_shorter_or_longer() -> None:
    always = parse({"zone": "Europe/Vienna", "week": {"sun": ["01:00-04:00"]}})
    assert always.after(utc(2026, 3, 28), timedelta(hours=2)) == utc(2026, 3, 29, 2)
    assert always.after(utc(2026, 10, 24), timedelta(hours=4)) == utc(2026, 10, 25, 3)
    gap = parse({"zone": "Europe/Vienna", "week": {"sun": ["02:15-02:45"]}})
    assert gap.opens_at(utc(2026, 3, 28)) == utc(2026, 4, 5, 0, 15)  # on that Sunday it does not exist


def test_against_an_oracle_that_goes_minute_by_minute() -> None:
    dice = random.Random(7)
    for _ in range(12):
        zone = dice.choice(("Europe/Vienna", "America/St_Johns", "Australia/Lord_Howe"))
        calendar = parse({**OFFICE, "zone": zone, "week": {**WEEK, "sun": ["00:30-03:30"]}})
        begin = dice.choice((utc(2026, 3, 27), utc(2026, 10, 23), utc(2026, 12, 23), utc(2026, 4, 4)))
        begin += timedelta(minutes=dice.randrange(1440))
        minutes = [begin + timedelta(minutes=number) for number in range(12 * 1440)]
        open_ones = [one for one in minutes if _shows_open(calendar, one)]
        span = dice.randint(1, 900)
        assert calendar.after(begin, timedelta(minutes=span)) == open_ones[span - 1] + timedelta(minutes=1)
        assert calendar.opens_at(begin) == open_ones[0]


def _shows_open(calendar: Calendar, moment: datetime) -> bool:
    """What somebody sees who looks at the clock on the wall and then at the page of the calendar."""
    wall = moment.astimezone(calendar.where)
    minute = wall.hour * 60 + wall.minute
    return any(opens <= minute < closes for opens, closes in calendar.windows(wall.date()))


def test_a_calendar_without_a_window_has_none() -> None:
    shut = parse({"zone": "UTC", "week": {}})
    assert shut.opens_at(utc(2026, 1, 1)) is None
    assert shut.after(utc(2026, 1, 1), timedelta(minutes=1)) is None
    assert office().after(utc(2026, 1, 1), timedelta(days=3000)) is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "it is \\[\\]"),
        ({"zone": "Europe/Wien", "week": {}}, "no time zone"),
        ({"week": WEEK}, "no time zone"),
        ({"zone": "UTC", "week": {"monday": []}}, "'monday' is none of mon, tue"),
        ({"zone": "UTC", "week": {"mon": "09:00-17:00"}}, "no list of windows"),
        ({"zone": "UTC", "week": {"mon": ["9-17"]}}, "no window such as"),
        ({"zone": "UTC", "week": {"mon": ["17:00-09:00"]}}, "ends before it begins"),
        ({"zone": "UTC", "week": {"mon": ["09:00-12:00", "11:00-13:00"]}}, "overlap"),
        ({"zone": "UTC", "week": {}, "holidays": ["02-30"]}, "no day such as"),
        ({"zone": "UTC", "week": {}, "holidays": "12-25"}, "no list of days"),
        ({"zone": "UTC", "week": {}, "closed": ["2026-12-24/2026-12-01"]}, "ends before it begins"),
        ({"zone": "UTC", "week": {}, "extra": ["2026-12-24"]}, "no object of days"),
        ({"zone": "UTC", "week": {}, "weekend": True}, "nobody knows 'weekend'"),
    ],
)
def test_what_cannot_be_read_says_what_of_it(body: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=f"calendar 'office'.*{said}|{said}"):
        parse(body, "office")


def test_names() -> None:
    assert str(office()) == "office@3"
    assert is_name("office") and not is_name("office@3") and not is_name("")
