"""Children draw on the budgets of those above them: what one leaves another can use, and a raise lets those go on that wait for it (N1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, Budget, Child, End, Flow, Map, Spend, budgets
from flows.models import Budget as Ledger
from flows.models import Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import status
from tests.support.branching import DAY, ONCE, children, counters, items_of, per_item, settle

pytestmark = pytest.mark.req("N1", "G4")

Declare = Callable[..., type[Flow]]


def flow_of(declare: Declare, name: str = "t-metered", **meta: Any) -> type[Flow]:
    """Three calls in all, one for each item."""
    return declare(
        name,
        meta={"budget": Budget(model_calls=3), **meta},
        map=Map(items_of, do=per_item, retry=ONCE, spends=Spend(model_calls=1), concurrency=1, deadline=DAY, then="done"),
        done=End(COMPLETE),
    )


@pytest.fixture
def ann(transactional_db: None) -> Any:
    user = factories.person("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    return type(user).objects.get(pk=user.pk)


def test_items_share_what_their_parent_may_use_and_a_raise_lets_them_go_on(
    worker: LocalWorker, declare: Declare, ann: Any
) -> None:
    run = flow_of(declare).start({"items": list("abcde")})
    settle(worker)
    assert counters(run) == {"succeeded": 3, "running": 1}
    waiting = children(run)[-1]
    assert (waiting.outcome, waiting.error_code) == ("HUMAN_REQUIRED", "BUDGET_EXHAUSTED")
    assert "a parent's budget of model_calls is used up" in flows.describe(waiting).waits[0].reason
    assert list(Ledger.objects.filter(workflow_id=run.id).values_list("spent", "reserved")) == [(3, 0)]
    raised = budgets.raise_(run, "model_calls", by_amount=2, by=ann, reason="It goes on")
    assert raised.resumed == (waiting.pk,)
    settle(worker)
    assert (status(run)[0], counters(run)) == ("complete", {"succeeded": 5})


def test_a_childs_own_budget_and_those_above_it_all_count(worker: LocalWorker, declare: Declare) -> None:
    inner = flow_of(declare, "t-inner", budget=Budget(model_calls=9))
    outer = declare(
        "t-outer",
        meta={"budget": Budget(model_calls=2)},
        kid=Child(inner, completed="done", failed="done", deadline=DAY), done=End(COMPLETE),
    )  # fmt: skip
    run = outer.start({"items": list("abc")})
    settle(worker)
    (kid,) = children(run)
    assert counters(kid) == {"succeeded": 2, "running": 1}
    item = Workflow.objects.filter(parent_id=kid.pk).order_by("created_at").first()
    assert item is not None
    assert item.ledgers == [run.id, kid.pk, item.pk]
    spent = dict(Ledger.objects.filter(workflow_id__in=[run.id, kid.pk]).values_list("workflow_id", "spent"))
    assert spent == {run.id: 2, kid.pk: 2}


def test_without_a_budget_above_a_child_draws_on_its_own_alone(worker: LocalWorker, declare: Declare) -> None:
    run = declare("t-free", map=Map(items_of, do=per_item, deadline=DAY, then="done"), done=End(COMPLETE)).start({"items": ["a"]})
    settle(worker)
    assert children(run)[0].ledgers is None
