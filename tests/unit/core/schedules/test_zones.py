"""Bar 3 of part 5: around every transition of a zone, under every policy, the moments are those of an oracle that reads the wall clock.

Here a sample in which every kind of transition is; `OUTLAST_ZONES=all` is every distinct zone of the tz database, five years back and ahead.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product, takewhile
from zoneinfo import available_timezones

import pytest

from flows.core.schedules import zones
from flows.core.schedules.kinds import Spec, read
from flows.core.schedules.words import Missing, Repeated
from tests.support.walls import UTC_YEARS, Walk, distinct, transitions

pytestmark = [pytest.mark.req("M1"), pytest.mark.failure("clock jumps")]

#: An hour, half an hour, two hours; at midnight; set back in winter by name; in the month of fasting; once and for ever; from half an hour off.
SAMPLE = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/Nuuk",
    "America/St_Johns",
    "Antarctica/Troll",
    "Antarctica/Vostok",
    "Asia/Almaty",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/Vienna",
    "Pacific/Chatham",
]
ALL = os.environ.get("OUTLAST_ZONES") == "all"
ZONES = distinct(available_timezones()) if ALL else SAMPLE
AROUND = timedelta(hours=3)


def quarters(wall: datetime) -> bool:
    return wall.minute % 15 == 0


def at_half_past(wall: datetime) -> bool:
    return wall.minute in (0, 30) and wall.hour in (0, 1, 2, 3, 23)


#: The expression, and what fits it, said apart.
EXPRESSIONS: list[tuple[str, Callable[[datetime], bool]]] = [
    ("*/15 * * * *", quarters),
    ("0,30 0-3,23 * * *", at_half_past),
    ("30 2 * * *", lambda wall: (wall.hour, wall.minute) == (2, 30)),
    ("0 * * * *", lambda wall: wall.minute == 0),
    ("5-59/25 1,2,3 * * *", lambda wall: wall.minute in (5, 30, 55) and wall.hour in (1, 2, 3)),
]
POLICIES = list(product(Repeated, Missing))


@pytest.mark.parametrize("name", ZONES)
def test_around_every_transition_the_moments_are_those_on_the_wall(name: str) -> None:
    where = zones.zone(name)
    for turn, at in enumerate(transitions(where, *UTC_YEARS)):
        walk = Walk(where, at - AROUND, at + AROUND)
        for place, (text, fits) in enumerate(EXPRESSIONS):
            for number, (repeated, missing) in enumerate(POLICIES):
                if not ALL and (turn + place + number) % 3:  # in turn: each with each somewhere
                    continue
                plan = read(Spec("cron", text, name, repeated=repeated, missing=missing))
                begin = walk.begin + timedelta(minutes=37 * (turn + number) % 360)  # from anywhere, also between the two
                found = [one.at for one in takewhile(lambda one: one.at <= walk.end, plan.after(begin))]
                wanted = [one for one in walk.moments(fits, repeated, missing) if one > begin]
                assert found == wanted, (at, begin, text, repeated, missing)


@pytest.mark.parametrize(("name", "day"), [("Pacific/Apia", (2011, 12, 30)), ("Pacific/Kwajalein", (1993, 8, 21))])
def test_a_day_that_was_left_out_has_its_moments_at_the_jump_once(name: str, day: tuple[int, int, int]) -> None:
    where = zones.zone(name)
    missing = datetime(*day, tzinfo=UTC)
    begin, end = (missing + timedelta(hours=hours) for hours in (-30, 54))
    walk = Walk(where, begin, end, timedelta(hours=30))
    assert len(walk.never) == 24 * 60
    for policy in Missing:
        plan = read(Spec("cron", "0 9,17 * * *", name, missing=policy))
        found = [one.at for one in takewhile(lambda one: one.at <= walk.end, plan.after(walk.begin))]
        assert found == walk.moments(lambda wall: wall.minute == 0 and wall.hour in (9, 17), "first", policy)


def test_asked_from_any_moment_the_next_ones_are_the_same() -> None:
    """A plan has no memory: what comes after a moment does not depend on where one began to look."""
    begin = datetime(2026, 10, 24, 20, tzinfo=UTC)
    for repeated in Repeated:
        plan = read(Spec("cron", "*/10 * * * *", "Europe/Vienna", repeated=repeated))
        whole = [one.at for one in plan.next(begin, 80)]
        for minute in range(0, 480, 7):
            moment = begin + timedelta(minutes=minute)
            assert [one.at for one in plan.next(moment, 20)] == [one for one in whole if one > moment][:20]


def test_a_moment_says_which_policy_made_it() -> None:
    def policies(text: str, day: int, month: int, **given: str) -> list[str]:
        plan = read(Spec("cron", text, "Europe/Vienna", **given))
        return [one.by for one in plan.next(datetime(2026, month, day, 12, tzinfo=UTC), 2)]

    assert policies("30 2 * * *", 28, 3) == ["shift", ""]
    assert policies("30 2 * * *", 24, 10) == ["first", ""]
    assert policies("30 2 * * *", 24, 10, repeated="last") == ["last", ""]
    assert policies("30 2 * * *", 24, 10, repeated="both") == ["first", "last"]


def test_a_zone_is_that_of_the_package() -> None:
    assert str(zones.zone("Europe/Vienna")) == "Europe/Vienna"
    assert zones.zone("Europe/Vienna") is zones.zone("Europe/Vienna")
