"""Children when things race: the last end joins, a supersede finds what was fed, and a stop meets an end."""

from __future__ import annotations

import os
from typing import Any

import pytest

import flows
from flows.models import Branch, Transition, Workflow
from flows.services.children import counting, stopping
from flows.services.owned import Owned
from flows.testing import LocalWorker
from tests import factories
from tests.factories import LET_GO, status, take_up_to
from tests.support.branching import agree, children, counters, fan, keys, mapping, over_slow, settle
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("G4")

USING = "default"
ROUNDS = int(os.environ.get("RACE_ROUNDS", "60"))


def end(owned: Owned) -> None:
    """A child's last step is committed, and its turn counts."""
    factories.complete(owned, keeping=LET_GO)
    counting.ended_under([owned.row.parent_id], USING)


def joins(run: Any) -> int:
    return Transition.objects.filter(workflow_id=run.id, trigger="children").count()


def test_the_last_ends_join_once_and_none_is_lost(worker: LocalWorker, declare: Any) -> None:
    """Two children end at once: each counts, or the other one looks again. Nobody's clock is needed."""
    flow = mapping(declare)
    with racers(2) as (one, two):
        for number in range(ROUNDS):
            run = flow.start({"items": ["a", "b"]}, key=f"r{number}")
            factories.enter(take_up_to(worker, 1)[0])
            owned = take_up_to(worker, 2)
            for each in owned:
                factories.enter(each)
            together((one, lambda each=owned[0]: end(each)), (two, lambda each=owned[1]: end(each)))
            assert (joins(run), counters(run), status(run)[0]) == (1, {"succeeded": 2}, "runnable")
            worker.run()
            assert status(run)[0] == "complete"
    assert agree() == []


@pytest.fixture
def waiting(worker: LocalWorker, declare: Any) -> Any:
    """A run with one child that waits, and one that is planned."""
    run = over_slow(declare, concurrency=1, tolerate=1).start(keys("a", "b"))
    worker.run()
    return run


def end_of(run: Any) -> Any:
    """Its first child ends, and nobody counts."""
    return lambda: flows.cancel(children(run)[0])


def test_a_supersede_leaves_nothing_that_is_fed_after_it(worker: LocalWorker, waiting: Any) -> None:
    end_of(waiting)()
    one = fan(waiting).pk
    met = overtaken(lambda: flows.supersede(waiting, goal="another"), lambda: counting.settle(one, USING))
    assert met.blocked, "who feeds shares the intent"
    assert status(waiting)[0] == "superseded"
    settle(worker)
    assert Workflow.objects.filter(parent_id=waiting.id).count() == 1


def test_a_supersede_finds_what_was_fed_before_it(worker: LocalWorker, waiting: Any) -> None:
    end_of(waiting)()
    one = fan(waiting).pk
    met = overtaken(lambda: counting.settle(one, USING), lambda: flows.supersede(waiting, goal="another"))
    assert met.blocked
    assert not Workflow.objects.filter(parent_id=waiting.id, status__in=["waiting", "runnable", "running"]).exists()
    settle(worker)
    assert agree() == []


def test_a_count_passes_over_a_parent_that_is_being_cancelled(worker: LocalWorker, waiting: Any) -> None:
    end_of(waiting)()
    one = fan(waiting).pk
    met = overtaken(lambda: flows.cancel(waiting), lambda: counting.settle(one, USING))
    assert (met.blocked, met.second) == (False, False)
    settle(worker)
    assert (status(waiting)[0], counters(waiting)) == ("cancelled", {"cancelled": 1, "skipped": 1})


def test_a_cancel_waits_for_a_count_and_finds_what_it_fed(worker: LocalWorker, waiting: Any) -> None:
    end_of(waiting)()
    one = fan(waiting).pk
    met = overtaken(lambda: counting.settle(one, USING), lambda: flows.cancel(waiting))
    assert met.blocked
    settle(worker)
    assert [kid.status for kid in children(waiting)] == ["cancelled", "cancelled"]
    assert counters(waiting) == {"cancelled": 2}


def test_a_stop_that_meets_an_end_is_too_late(worker: LocalWorker, waiting: Any) -> None:
    flows.signal("ea", "t.slow", key="a")
    (owned,) = take_up_to(worker, 1)
    met = overtaken(lambda: factories.enter(owned), lambda: flows.cancel(waiting))
    assert met.blocked, "the stop waits for the branch that ends"
    stopping.carry_out(USING)
    settle(worker)
    assert (children(waiting)[0].status, counters(waiting)) == ("complete", {"succeeded": 1, "skipped": 1})
    assert Branch.objects.get(number=1).stop_at is None


def test_two_counts_count_once(worker: LocalWorker, waiting: Any) -> None:
    end_of(waiting)()
    one = fan(waiting).pk
    with racers(2) as (first, second):
        together((first, lambda: counting.settle(one, USING)), (second, lambda: counting.settle(one, USING)))
    counting.settle(one, USING)
    assert agree() == []
    assert counters(waiting) == {"cancelled": 1, "running": 1}
