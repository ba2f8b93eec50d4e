"""A lapse of durable time: from timer to timer, each time until the workers have acted; what does not come is said, with where the run is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import flows
from flows import checks, testing
from flows.models import Transition
from flows.testing import Clock, LocalWorker, NotThere, TimeLapse, timelapse
from tests import factories
from tests.factories import Ask, Line, Nap, called, does, failing, row, status

pytestmark = pytest.mark.req("C3", "T1")


@pytest.fixture
def lapse(worker: LocalWorker, clock: Clock) -> Iterator[TimeLapse]:
    with timelapse(clock, act=lambda: (worker.tick(), worker.run()), patience=10) as made:
        yield made


def test_it_goes_from_timer_to_timer(lapse: TimeLapse) -> None:
    run = Nap.start({})
    lapse.until(run, node="nap")
    assert status(run) == ("waiting", "WAITING", "nap")
    assert 3590 < lapse.to_next_timer(run).total_seconds() <= 3600
    assert status(run)[0] == "complete"


def test_each_wait_has_its_own_time_however_long_the_lapse(lapse: TimeLapse) -> None:
    """An hour's sleep, then a failure, ten seconds, another one, twenty seconds: all of it in its order, and no more."""
    does["after"] = failing(2)
    run = Nap.start({})
    lapse.by(minutes=59)
    assert called("after") == 0
    lapse.by(minutes=2)
    assert (status(run)[0], called("after")) == ("complete", 3)
    log = list(Transition.objects.filter(workflow_id=run.id, trigger="timer").order_by("seq").values_list("at", flat=True))
    assert [round((later - earlier).total_seconds()) for earlier, later in itertools.pairwise(log)] == [10, 20]


def test_until_stops_where_it_is_wanted(lapse: TimeLapse) -> None:
    run = Ask.start({"key": "x"})
    lapse.until(run, status="waiting", node="ask")
    flows.signal("e1", "t.asked", key="x")
    lapse.until(run, node="again")
    lapse.until(run, outcome="HUMAN_REQUIRED")
    assert row(run).error_code == "WAIT_EXPIRED"


def test_what_does_not_come_is_said(lapse: TimeLapse, clock: Clock) -> None:
    run = Line.start({})
    with pytest.raises(NotThere, match=r"does not come to node nowhere: t-line .* is complete COMPLETE at done"):
        lapse.until(run, node="nowhere")
    with pytest.raises(NotThere, match="nothing is due, ever"):
        lapse.to_next_timer(run)
    with pytest.raises(NotThere, match="no workflow has a timer"):
        lapse.to_next_timer()


def test_workers_that_are_not_there_are_missed(worker: LocalWorker, clock: Clock) -> None:
    worker.stop()
    run = Line.start({})
    with (
        timelapse(clock, patience=0.1) as lapse,
        pytest.raises(
            NotThere, match=r"still under way: .*a worker: no live one offers .*\. No worker acted, and no act= was given: with a"
        ),
    ):
        lapse.settle(run)


@pytest.mark.parametrize("half", ["tick", "run"])
def test_an_act_that_gets_it_nowhere_is_said(worker: LocalWorker, clock: Clock, half: str) -> None:
    run = Nap.start({})
    with (
        timelapse(clock, patience=0.1, act=getattr(worker, half)) as lapse,
        pytest.raises(NotThere, match=r"No worker acted: act= must tick and run one"),
    ):
        lapse.until(run, status="complete")


def test_only_the_clock_of_a_test_database_is_moved(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing.clock, "TEST_PREFIX", "nothing_begins_so")
    with (
        pytest.raises(testing.NotATestDatabase, match=r"'test_.*' \(alias 'default'\) is not moved: .* pass any_database=True"),
        timelapse(),
    ):
        pass
    with pytest.raises(testing.NotATestDatabase), testing.movable_clock():
        pass
    assert checks.check_clock(databases=["default"]) == []
    with timelapse(any_database=True, act=lambda: (worker.tick(), worker.run())) as lapse:
        run = Nap.start({})
        lapse.until(run, status="complete")


def test_the_clock_is_movable_for_the_length_of_the_block(worker: LocalWorker) -> None:
    run = Nap.start({})
    with timelapse(act=lambda: (worker.tick(), worker.run())) as lapse:
        lapse.until(run, status="complete")
    assert factories.called("last") == 1
