"""What was set aside is given back or spent by what is on record: whatever a deploy has taken away, and whatever was said before it was set aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import CANCEL, COMPLETE, Activity, Budget, Deadline, End, Spend, minutes
from flows.services import attempt as attempts
from flows.services import invariants
from flows.services.proceed import proceed
from flows.services.start import Started
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, status
from tests.support.budgeting import amounts, entries
from tests.support.versions import unload

pytestmark = pytest.mark.req("N1")

#: One name and version under two definitions: the record cannot be replayed under the first.
STRAYS = {"test_a_deploy_that_takes_spends_away", "test_a_deadline_that_cancels_after_such_a_deploy"}

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


def died_in_the_code(declare: Declare, worker: LocalWorker, **meta: Any) -> tuple[Started, LocalWorker]:
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
    metered(declare, None, **meta)
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
