"""Rolling up under contention and crashes: an hour is measured by one, as a whole, whoever dies over it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from flows.models import Measure, RollUp
from flows.services import measures
from flows.store import measures as store
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests.factories import Line, Nap
from tests.support import measuring
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("Q2")

USING = "default"
LONG_AGO = "2026-01-01T00:00Z"


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def hours(worker: LocalWorker, clock: Clock) -> None:
    """Some runs, and four hours that nobody has measured."""
    Nap.start_many([(None, {}) for _ in range(5)])
    Line.start({})
    worker.run()
    clock.move(hours=4)
    due()


def due() -> None:
    """The last hours are to be measured, and nobody has set about it within a minute."""
    hour = store.state(USING)[3]
    first = measuring.lives(USING)[0].log[0].at
    RollUp.objects.update(looked_at=LONG_AGO, until=measuring.hour_of(first), final=measuring.hour_of(first))
    assert measuring.hour_of(first) < hour


def measured_right() -> None:
    row = RollUp.objects.get()
    start = measuring.hour_of(min(life.log[0].at for life in measuring.lives(USING)))
    by_hand = measuring.spent(start, row.until, USING), measuring.took(start, row.until, USING)
    assert measuring.apart(measuring.stored(USING), by_hand) == []
    assert by_hand[0]


def test_of_two_clocks_one_measures(hours: None) -> None:
    with racers(2) as (one, two):
        for _ in range(5):
            due()
            outcomes = together((one, lambda: measures.roll_up(USING)), (two, lambda: measures.roll_up(USING)))
            assert sorted(map(str, outcomes)) == ["False", "True"]
            measured_right()


def test_who_comes_while_it_is_measured_passes_over_it(hours: None) -> None:
    """The look of the other one is older than a minute: it took long. Its rows are locked, and nobody waits for it."""

    def late() -> Any:
        assert store.look(USING)
        RollUp.objects.update(looked_at=LONG_AGO)
        return store.lock(USING) is not None

    def other() -> Any:
        return store.lock(USING)

    met = overtaken(late, other)
    assert (met.first, met.second, met.blocked) == (True, None, False)


@pytest.mark.serial
def test_a_crash_at_any_point_leaves_the_hours_as_they_were_or_measured(hours: None) -> None:
    number, names = 0, set[str]()
    while True:
        due()
        Measure.objects.all().delete()
        passed: list[str] = []

        def seam(when: str, name: str, passed: list[str] = passed, last: int = number) -> None:
            passed.append(f"{when} {name}")
            if len(passed) - 1 == last:
                raise Crash

        sql.seam = seam
        try:
            measures.roll_up(USING)
            over = True
        except Crash:
            connections[USING].close()
            over = False
        finally:
            sql.seam = None
        names |= set(passed)
        if over:
            break
        whole = bool(Measure.objects.exists())
        assert whole == (passed[-1] == "after roll up"), passed[-1]
        RollUp.objects.update(looked_at=LONG_AGO)
        if not whole:
            assert measures.roll_up(USING)
        measured_right()
        number += 1
    assert {
        "before look roll-up",
        "after look roll-up",
        "within forget measures",
        "within roll up latencies",
        "after roll up",
    } <= names
