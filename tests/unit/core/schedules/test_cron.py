"""The trial of the cron library, which stays: it agrees with an oracle, refuses what is malformed, knows no zone here, and is fast."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest

from flows.core.errors import DefinitionError
from flows.core.schedules import local
from flows.core.schedules.kinds import Spec, read
from tests.support.crons import made
from tests.support.effort import calls_of

pytestmark = pytest.mark.req("M1")

#: Of each expression so many steps; `OUTLAST_CRON_TRIAL=10000` is the whole trial.
EXPRESSIONS, STEPS, YEARS = int(os.environ.get("OUTLAST_CRON_TRIAL", "250")), 40, 400


def test_it_agrees_with_an_oracle_that_goes_day_by_day() -> None:
    dice = random.Random(20261130)
    for _ in range(EXPRESSIONS):
        expression = made(dice)
        start = datetime.fromisoformat("1970-01-01") + timedelta(seconds=dice.randrange(YEARS * 365 * 86_400))
        wanted = list(islice(expression.after(start, YEARS * 366), STEPS))
        if not wanted:
            with pytest.raises(DefinitionError, match=r"never fits|Bad day"):
                local.cron(expression.text)
            continue
        end = datetime.combine(start.date(), datetime.min.time()) + timedelta(days=YEARS * 366)
        steps = takewhile(lambda one, end=end: one < end, local.cron(expression.text)(start + timedelta(seconds=1)))
        found = list(islice(steps, STEPS))
        assert found == wanted, (expression.text, start)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "* * * *",
        "* * * * * * *",
        "@daily",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * MON#6",
        "* * * * MON#0",
        "* * * * XL",
        "5-1 * * * *",
        "*/0 * * * *",
        "1,,2 * * * *",
        "1- * * * *",
        "-1 * * * *",
        "a * * * *",
        "1/2/3 * * * *",
        "1.5 * * * *",
        "* * 15W * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "٥ * * * *",
        "* * * * *\x00",
        "* " * 3000,
    ],
)
def test_what_is_malformed_is_refused_with_the_way_to_write_it(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"^cron=.*Write "):
        local.cron(text)


def test_it_knows_no_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime.fromisoformat("2026-03-28 12:00")
    wanted = list(islice(local.cron("*/20 * * * *")(start), 200))
    assert all(other - one == timedelta(minutes=20) for one, other in pairwise(wanted))
    monkeypatch.setenv("TZ", "Europe/Vienna")
    try:
        time.tzset()
        assert list(islice(local.cron("*/20 * * * *")(start), 200)) == wanted
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["* * * * *", "0 9 * * MON-FRI", "30 3 1 1 *", "*/7 * * * * *"])
def test_a_step_goes_straight_to_the_next_moment(text: str) -> None:
    """Also where a year, or a weekend, lies between two of them: no step of minutes through it."""
    steps = local.cron(text)(datetime.fromisoformat("2026-01-01"))
    found, calls = calls_of(lambda: list(islice(steps, 10_000)))
    assert calls < 250 * 10_000
    assert all(one < other for one, other in pairwise(found))


def test_an_expression_ends_with_the_calendar() -> None:
    assert list(local.cron("0 0 29 2 *")(datetime.fromisoformat("9996-03-01"))) == []
    assert read(Spec("cron", "0 0 29 2 *")).next(datetime(9950, 1, 1, tzinfo=UTC), 100)[-1].at.year == 9988
