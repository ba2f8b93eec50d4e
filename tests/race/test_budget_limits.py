"""A limit of an intent counts what its runs have spent, also what those spend that no goal wants any more or that have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Budget, Commits, Deadline, Decision, End, Wait, budgets
from flows.services import ledger as service
from flows.services.start import Started
from flows.testing import LocalWorker
from tests import factories
from tests.factories import status
from tests.support.budgeting import amounts, intent_of, think
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("N1", "N2")

ROUNDS = 25

ENDS: dict[str, Callable[[Any], Any]] = {
    "superseded": lambda run: flows.supersede(run, goal="another"),
    "cancelled": lambda run: flows.cancel(run),
    "complete": lambda run: flows.signal(f"said-{run.id}", "t.said", key=str(run.id)),
}


def holder(declare: Any, *, deferrable: bool) -> type[flows.Flow]:
    """Holds a room, which may (deferrable) be given back after the end; one call is spent on the way."""
    flow: type[flows.Flow] = declare(
        "t-holder",
        meta={"budget": Budget(model_calls=10)},
        hold=Activity(factories.work, commits=Commits("room", release=lambda operation: None, deferrable=deferrable), then="one"),
        one=Decision(think, choices={"go": "ask"}),
        ask=Wait("t.said", key=lambda state: state.workflow_id, deadline=Deadline(days=30, then=flows.ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    return flow


def ended(worker: LocalWorker, flow: type[flows.Flow], how: str) -> Started:
    """A run that is on the way to its end, or complete without its room given back."""
    run = flow.start({})
    worker.run()
    ENDS[how](run)
    if how == "complete":
        worker.run(["agents"])
    assert status(run)[0] == ("complete" if how == "complete" else "cancelling")
    return run


def servicing(run: Started) -> str:
    """What giving back the room says that it has used."""
    return service.spend_servicing(str(run.id), "hold", {"model_calls": 3}, "default")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("first", ["spend", "limit"])
def test_a_limit_against_the_servicing_of_a_run_that_has_ended(worker: LocalWorker, declare: Any, how: str, first: str) -> None:
    run = ended(worker, holder(declare, deferrable=how == "complete"), how)
    acts = (lambda: servicing(run), lambda: budgets.limit(run, model_calls=20))
    met = overtaken(*(acts if first == "spend" else reversed(acts)))
    assert met.blocked
    assert not isinstance(met.second, Exception), met.second
    assert amounts(intent_of(run)) == amounts(run) == (4, 0), "whichever came first, the three count in both"


def test_they_meet_in_every_order(worker: LocalWorker, declare: Any) -> None:
    flow = holder(declare, deferrable=False)
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            run = ended(worker, flow, "superseded")
            outcomes = together((one, lambda: servicing(run)), (two, lambda: budgets.limit(run, model_calls=20)))
            assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
            assert amounts(intent_of(run)) == amounts(run) == (4, 0)
