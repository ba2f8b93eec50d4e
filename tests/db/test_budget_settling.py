"""What was set aside is settled by what is on record, whatever a deploy has taken away and whenever something was said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import CANCEL, COMPLETE, Activity, Budget, Deadline, Decision, End, Gate, Spend, budgets, minutes
from flows.models import Budget as Ledger
from flows.services import attempting as attempts
from flows.services import invariants
from flows.services.proceed import proceed
from flows.services.start import Started
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, status
from tests.support.budgeting import amounts, entries, intent_of, think
from tests.support.versions import unload

pytestmark = pytest.mark.req("N1")

#: One name and version under two definitions: the record cannot be replayed under the first.
STRAYS = {
    "test_a_deploy_that_takes_spends_away",
    "test_a_deadline_that_cancels_after_such_a_deploy",
    "test_a_deploy_that_takes_more_than_that_away",
}

Declare = Callable[..., type[flows.Flow]]


class Died(BaseException):
    """The process is gone in the middle of the code."""


def metered(declare: Declare, spends: Spend | None, **meta: Any) -> type[flows.Flow]:
    """One step that sets something aside, if it is given; its run lives on after it."""
    return declare(
        "t-metered",
        meta={"budget": Budget(model_tokens=1000), **meta},
        step=Activity(factories.work, spends=spends, retry=factories.SLOWLY, timeout=minutes(1), then="after"),
        after=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )


def died_in_the_code(declare: Declare, worker: LocalWorker, deployed: Any = metered, **meta: Any) -> tuple[Started, LocalWorker]:
    """A run whose attempt has set 400 aside when its process dies; and that process's worker. The deploy that follows declares no `spends=`."""

    def die(attempt: Any) -> None:
        raise Died

    flow = metered(declare, Spend(model_tokens=400), **meta)
    run = flow.start({})
    holder = factories.another_worker()
    factories.offer(holder)
    owned = factories.take_one(holder)
    factories.enter(owned)
    does["step"] = die
    with pytest.raises(Died):
        attempts.run(owned, holder, taken_over=False)
    does.clear()
    assert amounts(run, "model_tokens") == (0, 400)
    unload(flow)
    deployed(declare, None, **meta)
    factories.offer(worker)
    return run, holder


# ---------------------------------------------------------------- a deploy


@pytest.mark.parametrize("how", ["lost", "timed out"])
def test_a_deploy_that_takes_spends_away(declare: Declare, worker: LocalWorker, clock: Clock, how: str) -> None:
    run, holder = died_in_the_code(declare, worker)
    if how == "lost":
        factories.lose(holder)
    else:
        clock.move(minutes=10)
        worker.tick()
    assert entries(run, "model_tokens") == [("reserved", 400), ("settled", 400)], "the record says that it was set aside"
    clock.move(minutes=10)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    assert amounts(run, "model_tokens") == (400, 0)
    assert invariants.scan() == []


def without_node(declare: Declare, spends: None) -> None:
    """The node is gone, and the budget with it."""
    declare("t-metered", after=Activity(factories.work, then="done"), done=End(COMPLETE))


def without_flow(declare: Declare, spends: None) -> None:
    """Nobody knows the flow any more."""


@pytest.mark.parametrize("deployed", [without_node, without_flow])
@pytest.mark.parametrize("how", ["lost", "timed out"])
def test_a_deploy_that_takes_more_than_that_away(
    declare: Declare, worker: LocalWorker, clock: Clock, how: str, deployed: Any
) -> None:
    run, holder = died_in_the_code(declare, worker, deployed)
    clock.move(minutes=10)
    worker.tick()
    if how == "lost" or deployed is without_flow:  # a timeout is for a process that knows the flow to decide
        factories.lose(holder)
    worker.tick()
    assert amounts(run, "model_tokens") == (400, 0)
    assert invariants.scan() == []


def test_a_deadline_that_cancels_after_such_a_deploy(declare: Declare, worker: LocalWorker, clock: Clock) -> None:
    run, _ = died_in_the_code(declare, worker, deadline=Deadline(minutes=1, then=CANCEL))
    clock.move(minutes=10)
    worker.tick()
    assert (status(run)[0], amounts(run, "model_tokens")) == ("cancelled", (400, 0))


def test_an_attempt_that_may_have_set_nothing_aside_asks_no_ledger(
    declare: Declare, worker: LocalWorker, django_assert_max_num_queries: Any
) -> None:
    flow = declare(
        "t-free", step=Activity(factories.work, then="after"), after=Activity(factories.work, then="done"), done=End(COMPLETE)
    )
    flow.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    trigger, ending = attempts.run(owned, worker, taken_over=False)
    with django_assert_max_num_queries(1):
        proceed(owned, trigger, factories.STAY, ending)


# ---------------------------------------------------------------- said before it was set aside


@pytest.mark.parametrize(
    ("said", "spent"), [(None, 500), (0, 100), (350, 450), (600, 700)], ids=["nothing", "none", "less", "more"]
)
def test_what_a_probe_spends_was_never_part_of_the_reservation(
    declare: Declare, worker: LocalWorker, said: int | None, spent: int
) -> None:
    seen: list[Any] = []

    def probe(attempt: Any) -> str:
        if attempt.node == "merge":
            attempt.spend(model_tokens=100)
        return "v1"

    def merge(attempt: Any) -> None:
        seen.append((amounts(run, "model_tokens"), attempt.budget["model_tokens"]))
        if said is not None:
            attempt.spend(model_tokens=said)
        assert invariants.scan() == []

    flow = declare(
        "t-probing",
        meta={"budget": Budget(model_tokens=1000)},
        propose=Decision(think, choices={"go": "merge"}),
        merge=Activity(merge, gate=Gate(fresh={"main": probe}), spends=Spend(model_tokens=400), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert seen == [((100, 400), 900)], "what it has set aside is still its to use, all of it"
    assert amounts(run, "model_tokens") == (spent, 0)


def test_a_probe_that_spends_in_an_attempt_that_is_lost(declare: Declare, worker: LocalWorker) -> None:
    def probe(attempt: Any) -> str:
        if attempt.node == "merge":
            attempt.spend(model_tokens=100)
        return "v1"

    def merge(attempt: Any) -> None:
        if attempt.number == 1:
            attempt.spend(model_tokens=30)
            factories.lose(worker)

    flow = declare(
        "t-probing-lost",
        meta={"budget": Budget(model_tokens=1000)},
        propose=Decision(think, choices={"go": "merge"}),
        merge=Activity(merge, gate=Gate(fresh={"main": probe}), spends=Spend(model_tokens=400), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert amounts(run, "model_tokens") == (500, 0), "the probe's, and all that was set aside"


# ---------------------------------------------------------------- a limit in the middle of an attempt


@pytest.mark.parametrize("said", [100, 0])
def test_a_limit_that_comes_after_the_attempt_has_said_something_counts_the_same(
    declare: Declare, worker: LocalWorker, said: int
) -> None:
    def step(attempt: Any) -> None:
        attempt.spend(model_tokens=said)
        budgets.limit(run, model_tokens=5000)
        assert amounts(intent_of(run), "model_tokens") == (said, 400 - said)

    does["step"] = step
    run = metered(declare, Spend(model_tokens=400)).start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert amounts(run, "model_tokens") == (said, 0)
    assert amounts(intent_of(run), "model_tokens") == (said, 0), "the attempt has said what it used; the rest is free in both"


def test_a_limit_that_comes_between_two_amounts(declare: Declare, worker: LocalWorker) -> None:
    def step(attempt: Any) -> None:
        attempt.spend(model_tokens=100)
        budgets.limit(run, model_tokens=5000)
        attempt.spend(model_tokens=50)
        assert [(one.spent, one.reserved) for one in Ledger.objects.filter(kind="model_tokens")] == [(150, 250)] * 2

    does["step"] = step
    run = metered(declare, Spend(model_tokens=400)).start({})
    worker.run()
    assert amounts(run, "model_tokens") == amounts(intent_of(run), "model_tokens") == (150, 0)
