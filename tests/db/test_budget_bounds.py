"""Ledgers at the largest amounts that there are: a limit ends there with a clear word, and what is spent beyond stops no attempt."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, Activity, Budget, Decision, End, Retry, Spend, budgets
from flows.services import invariants
from flows.testing import LocalWorker
from tests import factories
from tests.factories import does, status
from tests.support.budgeting import amounts, entries, intent_of, ledger, think

pytestmark = pytest.mark.req("N1")

Declare = Callable[..., type[flows.Flow]]

#: The largest amount that can be said at once, and the largest that a ledger holds.
MUCH = 9_999_999_999_999
FULL = Decimal("99999999999999.999999")


@pytest.fixture
def ann(transactional_db: None) -> Any:
    """Ann may raise budgets."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    return user


@pytest.mark.parametrize("of", ["workflow", "intent"])
def test_raises_end_at_the_largest_limit(declare: Declare, ann: Any, of: str) -> None:
    flow = declare(
        "t-raised", meta={"budget": Budget(model_calls=1)}, think=Decision(think, choices={"go": "done"}), done=End(COMPLETE)
    )
    run = flow.start({})
    budgets.limit(run, model_calls=1)
    owner = {"workflow": run} if of == "workflow" else {"intent": run.intent_id}
    assert budgets.raise_(**owner, kind="model_calls", by_amount=MUCH - 1, by=ann, reason="x").allowance == MUCH
    for more in (1, MUCH):
        with pytest.raises(budgets.BadAmount) as caught:
            budgets.raise_(**owner, kind="model_calls", by_amount=more, by=ann, reason="x")
        assert str(caught.value) == (
            f"The limit of model_calls would be {MUCH + more}; a limit is below 10000000000000. It is {MUCH} now."
        )
    assert ledger(run if of == "workflow" else intent_of(run)).allowance == MUCH


def burner(declare: Declare, **options: Any) -> type[flows.Flow]:
    """One step that may spend as much as there is."""
    step = Activity(
        factories.work, **{"spends": Spend(model_tokens=1), "retry": Retry(max_attempts=1), "then": "done", **options}
    )
    return declare("t-burning", step=step, done=End(COMPLETE))


def test_what_no_ledger_can_hold_stops_no_attempt(declare: Declare, worker: LocalWorker) -> None:
    does["step"] = lambda attempt: [attempt.spend(model_tokens=MUCH) for _ in range(12)]
    run = burner(declare).start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert amounts(run, "model_tokens") == (FULL, 0)
    assert [entry for entry in entries(run, "model_tokens") if entry == ("spent", MUCH)] == [("spent", MUCH)] * 12, (
        "all of it is on record"
    )
    assert invariants.scan() == []


def test_nor_does_its_end(declare: Declare, worker: LocalWorker) -> None:
    def step(attempt: Any) -> None:
        for _ in range(12):
            attempt.spend(model_tokens=MUCH)
        factories.lose(worker)

    does["step"] = step
    run = burner(declare, spends=Spend(model_tokens=MUCH, tool_calls=MUCH), retry=factories.SLOWLY).start({})
    worker.run()
    assert (amounts(run, "model_tokens"), amounts(run, "tool_calls")) == ((FULL, 0), (MUCH, 0))
    does["step"] = lambda attempt: attempt.spend(tool_calls=MUCH)
    factories.another_worker().run()
    assert amounts(run, "model_tokens") == (FULL, 0), "the next attempt said nothing of it: all that it had set aside counts"
    assert invariants.scan() == []


def test_a_limit_counts_what_can_be_counted(declare: Declare, worker: LocalWorker) -> None:
    does["step"] = lambda attempt: [attempt.spend(model_tokens=MUCH) for _ in range(6)]
    flow = burner(declare)
    first = flow.start({})
    flow.start({}, intent=first.intent_id)
    worker.run()
    budgets.limit(first, model_tokens=5)
    assert amounts(intent_of(first), "model_tokens") == (FULL, 0)
    assert invariants.scan() == []
