"""A new goal: where the budget of what is started for it comes from (N2). Nothing else resets a budget."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, INHERIT, NEW, RESERVE, Activity, Budget, Decision, End, Kept, Spend, Visits
from flows.models import Budget as Ledger
from flows.models import Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support.budgeting import amounts, entries, ledger, think

pytestmark = pytest.mark.req("N2")


def again(declare: Any, policy: Any, **more: Any) -> type[flows.Flow]:
    flow: type[flows.Flow] = declare(
        f"t-goal-{policy}",
        meta={"budget": Budget(model_calls=10, kept=Kept(model_calls=2), on_new_intent=policy)},
        think=Decision(
            think, spends=Spend(model_calls=3), choices={"go": "think", "stop": "done"}, visits=Visits(9, then="done")
        ),
        done=End(COMPLETE),
    )
    return flow


@pytest.mark.parametrize(
    ("policy", "new", "old"),
    [(NEW, (None, 0), (10, 6)), (INHERIT, (4, 2), (6, 6)), (RESERVE, (2, 2), (8, 6))],
)
def test_a_new_goal_resets_as_declared(
    declare: Any, worker: LocalWorker, policy: Any, new: tuple[int | None, int], old: tuple[int, int]
) -> None:
    flow = again(declare, policy)
    first = flow.start({}, key="a")
    worker.run()
    assert (status(first)[0], amounts(first)) == ("waiting", (6, 0)), "of ten, two are kept, and one attempt needs three"
    second = flows.supersede(first, goal="another", flow=flow, input={}, key="b").started
    assert second is not None
    found = Ledger.objects.filter(workflow_id=second.id).first()
    assert (found.allowance if found else None, found.kept if found else 0) == new
    left_over = ledger(first)
    assert (left_over.allowance, left_over.spent) == old
    if found is not None:
        assert entries(second) == [("carried", new[0])]
        assert entries(first)[-1] == ("carried", -new[0])
    repeated = flows.supersede(first, goal="another", flow=flow, input={}, key="b")
    assert repeated.answer == "already"
    assert Ledger.objects.filter(workflow_id=second.id).count() == (0 if policy is NEW else 1)
    flows.cancel(second)


def test_what_a_fenced_attempt_had_set_aside_is_not_inherited(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, INHERIT)
    first = flow.start({}, key="a")
    started: list[Any] = []
    does["think"] = lambda attempt: (
        started or started.append(flows.supersede(first, goal="x", flow=flow, input={}, key="b").started)
    )
    worker.run(["cleanup"])
    worker.run()
    assert entries(first) == [("reserved", 3), ("settled", 3), ("carried", -7)]
    assert entries(started[0])[0] == ("carried", 7)


def test_a_run_that_has_used_nothing_leaves_all_of_it(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, RESERVE)
    first = flow.start({}, key="a")
    second = flows.supersede(first, goal="x", flow=flow, input={}, key="b").started
    assert second is not None
    assert (ledger(second).allowance, ledger(first).allowance) == (8, 2), "also where its ledger was never made"
    assert (entries(first), entries(second)) == ([("carried", -8)], [("carried", 8)])


def goal(run: Any, text: str) -> None:
    """A new goal without a run for it."""
    assert flows.supersede(run, goal=text).started is None


@pytest.mark.parametrize(("policy", "new"), [(NEW, None), (INHERIT, 4), (RESERVE, 2)])
def test_a_start_under_a_new_goal_resets_as_declared(declare: Any, worker: LocalWorker, policy: Any, new: int | None) -> None:
    flow = again(declare, policy)
    first = flow.start({}, key="a")
    worker.run()
    goal(first, "another")
    second = flow.start({}, key="b", intent=first.intent_id)
    found = Ledger.objects.filter(workflow_id=second.id).first()
    assert (found.allowance if found else None) == new
    assert not flow.start({}, key="b", intent=first.intent_id).created
    assert flow.start({}, key="a", intent=first.intent_id).id == first.id
    third = flow.start({}, key="c", intent=first.intent_id)
    assert [one.allowance for one in Ledger.objects.filter(workflow_id=third.id)] == ([] if policy is NEW else [0])
    if policy is not NEW:
        worker.run()
        assert (status(third)[:2], row(third).error_code) == (("waiting", "HUMAN_REQUIRED"), "BUDGET_EXHAUSTED")


def test_runs_that_start_together_share_what_is_left(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, INHERIT)
    first = flow.start({}, key="a")
    goal(first, "another")
    runs = flow.start_many([("a", {}), ("b", {}), ("c", {}), ("d", {})], intent=first.intent_id)
    assert [one.created for one in runs] == [False, True, True, True]
    assert [ledger(one).allowance for one in runs] == [0, 4, 3, 3]


def test_goals_for_which_nothing_started_do_not_renew_a_budget(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, INHERIT)
    free = declare("t-free", step=Activity(factories.work, then="done"), done=End(COMPLETE))
    first = flow.start({}, key="a")
    worker.run()
    goal(first, "another")
    goal(first, "one more")
    between = free.start({}, key="x", intent=first.intent_id)
    goal(first, "the last")
    second = flow.start({}, key="b", intent=first.intent_id)
    assert (row(between).intent_version, row(second).intent_version, ledger(second).allowance) == (3, 4, 4)
    flows.cancel(second)
    goal(first, "after all")
    assert ledger(flow.start({}, key="c", intent=first.intent_id)).allowance == 4, "of the run that somebody cancelled"


def test_an_old_version_that_is_not_loaded_leaves_what_its_successor_declares(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, INHERIT)
    first = flow.start({}, key="a")
    Workflow.objects.filter(pk=first.id).update(flow_version=99)
    second = flows.supersede(first, goal="x", flow=flow, input={}, key="b").started
    assert second is not None
    assert (ledger(second).allowance, ledger(first).allowance) == (10, 0)


def test_where_no_run_is_alive_the_newest_is_inherited(declare: Any, worker: LocalWorker) -> None:
    flow = again(declare, INHERIT)
    first = flow.start({}, key="a")
    worker.run()
    flows.cancel(first)
    second = flows.supersede(first, goal="x", flow=flow, input={}, key="b").started
    assert second is not None
    assert ledger(second).allowance == 4
