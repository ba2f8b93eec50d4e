"""A raise that lets nobody go on says why: what was used up is there again, and meanwhile something else has stopped the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import BREACH, COMPLETE, ESCALATE, Activity, Budget, Deadline, Decision, End, budgets
from flows.services.start import Started
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status
from tests.support.budgeting import think
from tests.support.commanding import cli

pytestmark = pytest.mark.req("N1", "M1")

__all__ = ["cli"]

LOOKS = "a person looks at DEADLINE_EXPIRED, then resumes or cancels"


@pytest.fixture
def ann(transactional_db: None) -> Any:
    """Ann may raise budgets."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    return user


def used_up(declare: Callable[..., type[flows.Flow]], worker: LocalWorker, then: Any = None) -> Started:
    """A run with nothing left for its second thought, and a deadline of a day."""
    flow = declare(
        "t-late",
        meta={"budget": Budget(model_calls=1), **({"deadline": Deadline(days=1, then=then)} if then is not None else {})},
        one=Decision(think, choices={"go": "two"}),
        two=Decision(think, choices={"go": "done"}),
        done=End(COMPLETE),
    )
    run = flow.start({}, key="a")
    worker.run()
    assert row(run).error_code == "BUDGET_EXHAUSTED"
    return run


def a_day_later(worker: LocalWorker, clock: Clock) -> None:
    clock.move(days=2)
    worker.tick()
    worker.run()


@pytest.mark.parametrize("of", ["workflow", "intent"])
def test_a_deadline_that_passed_meanwhile(
    declare: Callable[..., type[flows.Flow]], worker: LocalWorker, clock: Clock, ann: Any, of: str
) -> None:
    run = used_up(declare, worker, ESCALATE)
    budgets.limit(run, model_calls=1)
    a_day_later(worker, clock)
    owner = {"workflow": run} if of == "workflow" else {"intent": run.intent_id}
    found = budgets.raise_(**owner, kind="model_calls", by_amount=5, by=ann, reason="x")
    assert (found.code, found.resumed, found.lacking) == ("raised", (), {run.id: LOOKS})
    other = {"intent": run.intent_id} if of == "workflow" else {"workflow": run}
    budgets.raise_(**other, kind="model_calls", by_amount=5, by=ann, reason="x")
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete", "that is the way on"


def test_one_that_only_says_so_stops_nothing(
    declare: Callable[..., type[flows.Flow]], worker: LocalWorker, clock: Clock, ann: Any
) -> None:
    run = used_up(declare, worker, BREACH)
    a_day_later(worker, clock)
    found = budgets.raise_(run, "model_calls", by_amount=5, by=ann, reason="x")
    assert (found.resumed, found.lacking) == ((run.id,), {})


def test_a_pause_meanwhile(declare: Callable[..., type[flows.Flow]], worker: LocalWorker, ann: Any) -> None:
    run = used_up(declare, worker)
    flows.pause(run)
    found = budgets.raise_(run, "model_calls", by_amount=5, by=ann, reason="x")
    assert (found.resumed, found.lacking) == ((), {run.id: "a person resumes it (flows.resume) or cancels it"})


def test_a_run_that_nothing_has_stopped_is_not_named(
    declare: Callable[..., type[flows.Flow]], worker: LocalWorker, ann: Any
) -> None:
    run = used_up(declare, worker)
    other = declare("t-other", step=Activity(factories.work, then="done"), done=End(COMPLETE)).start({}, intent=run.intent_id)
    budgets.limit(run, model_calls=1)
    found = budgets.raise_(intent=run.intent_id, kind="model_calls", by_amount=5, by=ann, reason="x")
    assert (found.resumed, set(found.lacking or {})) == ((), {run.id}), "its own budget is used up still"
    flows.cancel(other)


def test_the_command_says_it(
    declare: Callable[..., type[flows.Flow]], worker: LocalWorker, clock: Clock, ann: Any, cli: Any
) -> None:
    run = used_up(declare, worker, ESCALATE)
    a_day_later(worker, clock)
    ran = cli("budget", "raise", "t-late:a", "model_calls", "--by-amount", "5", "--reason", "x", "--by", "ann")
    assert ran.code == 0
    assert f"{run.id} still lacks: {LOOKS}" in ran.out + ran.err
