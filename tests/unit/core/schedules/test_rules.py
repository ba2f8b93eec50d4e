"""Rules of a calendar, intervals and single moments: what they mean, and what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from flows.core.errors import DefinitionError
from flows.core.schedules.kinds import Plan, Spec, due_at, read, written
from flows.core.schedules.words import Missing, Repeated
from tests.support.effort import calls_of

pytestmark = pytest.mark.req("M1")

VIENNA = "Europe/Vienna"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def moments(plan: Plan, after: datetime, count: int) -> list[datetime]:
    return [one.at for one in plan.next(after, count)]


def rule(text: str, anchor: datetime | None = None) -> Plan:
    return read(Spec("rule", text, VIENNA, anchor or utc(2026, 1, 1)))


def test_a_rule_is_local_time_and_until_may_be_utc() -> None:
    plan = rule("RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0;UNTIL=20260331T070000Z")
    assert moments(plan, utc(2026, 3, 27, 12), 9) == [
        utc(2026, 3, 28, 8),
        utc(2026, 3, 29, 7),
        utc(2026, 3, 30, 7),
        utc(2026, 3, 31, 7),
    ]


def test_a_rule_has_its_own_beginning_exceptions_and_additions() -> None:
    text = "DTSTART:20260101T100000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=4\nEXDATE:20260331T100000\nRDATE:20260215T100000,20260601T100000"
    found = [utc(2026, 1, 31, 9), utc(2026, 2, 15, 9), utc(2026, 2, 28, 9), utc(2026, 4, 30, 8), utc(2026, 6, 1, 8)]
    assert moments(rule(text), utc(2025, 1, 1), 9) == found
    assert moments(rule(text), utc(2026, 2, 28, 9), 9) == found[3:]


def test_a_rule_without_a_beginning_counts_from_its_anchor() -> None:
    plan = rule("FREQ=WEEKLY;INTERVAL=2", utc(2026, 1, 5, 6, 30))
    assert moments(plan, utc(2026, 3, 1), 2) == [utc(2026, 3, 2, 6, 30), utc(2026, 3, 16, 6, 30)]


def test_years_of_minutes_are_not_stepped_through_one_by_one() -> None:
    plan = rule("DTSTART:19700101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=13")
    (found,), calls = calls_of(lambda: moments(plan, utc(2026, 6, 1), 1))
    assert calls < 2000
    wall = found + timedelta(hours=2)
    assert (wall - utc(1970, 1, 1)) % timedelta(minutes=13) == timedelta(0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RRULE:",
        "FREQ=NONSENSE",
        "FREQ=SECONDLY",
        "FREQ=DAILY;COUNT=99999999",
        "FREQ=DAILY;UNTIL=tomorrow",
        "FREQ=DAILY\nFREQ=WEEKLY",
        "RRULE:FREQ=DAILY\nSUMMARY:hello",
        "DTSTART:2026-01-01\nRRULE:FREQ=DAILY",
        "EXRULE:FREQ=DAILY",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "x" * 5000,
    ],
)
def test_a_rule_that_cannot_be_read_says_how_one_is_written(text: str) -> None:
    def read() -> None:
        with pytest.raises(DefinitionError, match=r"(?s)^rule=.*Write "):
            rule(text)

    _, calls = calls_of(read)
    assert calls < 200_000


def test_the_time_that_a_rule_names_is_on_the_clock_and_its_pace_is_not() -> None:
    named, paced = rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"), rule("FREQ=HOURLY;BYMINUTE=30;BYSECOND=0")
    assert (named.repeated, named.missing) == (Repeated.FIRST, Missing.SHIFT)
    assert (paced.repeated, paced.missing) == (Repeated.BOTH, Missing.SKIP)


def test_an_interval_is_elapsed_time() -> None:
    plan = read(Spec("interval", "21600", VIENNA, utc(2026, 3, 28, 12)))
    assert moments(plan, utc(2026, 3, 1), 3) == [utc(2026, 3, 28, 12), utc(2026, 3, 28, 18), utc(2026, 3, 29)]
    assert moments(plan, utc(2026, 3, 28, 18), 1) == [utc(2026, 3, 29)]


def test_one_moment_comes_once() -> None:
    for text, at in (("2026-03-29 02:30:00", utc(2026, 3, 29, 1)), ("2026-10-25 02:30:00", utc(2026, 10, 25, 0, 30))):
        plan = read(Spec("once", text, VIENNA))
        assert moments(plan, utc(2026, 1, 1), 3) == [at]
        assert moments(plan, at, 3) == []
    assert moments(read(Spec("once", "2026-05-01 09:00:00-04:00", VIENNA)), utc(2026, 1, 1), 3) == [utc(2026, 5, 1, 13)]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Spec("interval", "0"), "at least a second"),
        (Spec("interval", "nan"), "no span"),
        (Spec("interval", "1e99"), "no span"),
        (Spec("once", "soon"), "no moment"),
        (Spec("cron", "* * * * *", "Europe/Wien"), "no time zone 'Europe/Wien'"),
        (Spec("cron", "* * * * *", "../etc/passwd"), "no time zone"),
        (Spec("cron", "* * * * *", ""), "no time zone"),
        (Spec("cron", "* * * * *", "localtime"), "no time zone"),
        (Spec("sometimes", "x"), "none of cron, interval, once, rule"),
        (Spec("cron", "* * * * *", repeated="twice"), "none of first, last, both"),
        (Spec("cron", "* * * * *", missing="guess"), "none of shift, skip"),
    ],
)
def test_what_cannot_be_read_says_so(spec: Spec, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        read(spec)


def test_what_is_written_is_read_again() -> None:
    assert read(Spec("interval", written(timedelta(minutes=15)))).every == timedelta(minutes=15)
    assert moments(read(Spec("once", written(utc(2026, 1, 2)))), utc(2026, 1, 1), 2) == [utc(2026, 1, 2)]


def test_jitter_is_the_same_for_whoever_plans_and_spreads_over_its_span() -> None:
    at, span = utc(2026, 1, 1), timedelta(minutes=1)
    later = {due_at("nightly", at + timedelta(hours=hour), span) - at - timedelta(hours=hour) for hour in range(200)}
    assert due_at("nightly", at, span) == due_at("nightly", at, span)
    assert due_at("nightly", at, span) != due_at("weekly", at, span)
    assert len(later) == 200
    assert timedelta(0) <= min(later) < timedelta(seconds=3) and timedelta(seconds=57) < max(later) < span
    assert due_at("nightly", at, None) == at
