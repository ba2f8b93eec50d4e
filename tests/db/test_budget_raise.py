"""More of what is used up: who may, what is recorded, and that exactly the pending step goes on. Limits of intents. New goals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import (
    COMPLETE,
    Activity,
    Approval,
    Budget,
    Deadline,
    Decision,
    End,
    Visits,
    budgets,
)
from flows.core.misuse import ReasonMissing, UnknownIntent, UnknownWorkflow, UsageError
from flows.models import Activity as ActivityRow
from flows.models import Budget as Ledger
from flows.models import BudgetEntry, Transition
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support.budgeting import amounts, entries, intent_of, ledger, think

pytestmark = pytest.mark.req("N1")


@pytest.fixture
def ann(transactional_db: None) -> Any:
    """Ann may raise budgets."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    return user


@pytest.fixture
def bob(transactional_db: None) -> Any:
    """Bob may not."""
    return get_user_model().objects.create_user("bob")


def loop(declare: Any, name: str = "t-loop", **budget: Any) -> type[flows.Flow]:
    """Thinks until its budget of calls is used up."""
    flow: type[flows.Flow] = declare(
        name,
        meta={"budget": Budget(**{"model_calls": 2, **budget})},
        before=Activity(factories.work, then="think"),
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(30, then="done")),
        done=End(COMPLETE),
    )
    return flow


def test_a_raise_lets_exactly_the_pending_step_go_on(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare).start({})
    worker.run()
    pending = ActivityRow.objects.get(workflow_id=run.id, status="scheduled")
    found = budgets.raise_(run, "model_calls", by_amount=3, by=ann, reason="It is worth it")
    assert (found.code, found.allowance, found.resumed, found.lacking) == ("raised", 5, (run.id,), {})
    assert row(run).status == "runnable"
    made = ledger(run)
    assert (made.allowance, made.soft, made.warned_at) == (5, 4, None), "the soft limit goes up with it, and warns again"
    entry = BudgetEntry.objects.get(entry="raised")
    assert (entry.amount, entry.reason, entry.by_id, entry.by_label, entry.workflow_id) == (
        3,
        "It is worth it",
        ann.pk,
        "ann",
        run.id,
    )
    last = Transition.objects.filter(workflow_id=run.id).latest("seq")
    assert (last.trigger, last.trigger_ref, last.note) == ("resume", "ann", {"reason": "It is worth it"})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "think")
    assert (factories.called("before"), factories.called("think"), amounts(run)) == (1, 5, (5, 0))
    pending.refresh_from_db()
    assert pending.status == "done", "the same visit of the same node"
    assert pending.failures == 0


def test_a_raise_to_a_limit(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare).start({})
    worker.run()
    assert budgets.raise_(run, "model_calls", to=4, by=ann, reason="x").allowance == 4
    with pytest.raises(budgets.BadAmount, match=r"The limit of model_calls is 4 already; raise it to more than that\."):
        budgets.raise_(run, "model_calls", to=4, by=ann, reason="x")
    with pytest.raises(budgets.BadAmount, match="already"):
        budgets.raise_(run, "model_calls", by_amount=0, by=ann, reason="x")
    assert [entry for entry, _ in entries(run)].count("raised") == 1


def test_who_may_and_why(declare: Any, worker: LocalWorker, ann: Any, bob: Any) -> None:
    run = loop(declare).start({})
    worker.run()
    refused = budgets.raise_(run, "model_calls", to=9, by=bob, reason="x")
    assert (bool(refused), refused.code, refused.sentence) == (
        False, "not_permitted", "You may not raise a budget: that needs the permission outlast_flows.raise_budget.",
    )  # fmt: skip
    with pytest.raises(ReasonMissing, match="Say why more is allowed"):
        budgets.raise_(run, "model_calls", to=9, by=ann, reason="  ")
    ann.is_active = False
    ann.save()
    assert budgets.raise_(run, "model_calls", to=9, by=ann, reason="x").code == "not_permitted"
    with pytest.raises(budgets.NobodyRaises):
        budgets.raise_(run, "model_calls", to=9, by=None, reason="x")
    assert (ledger(run).allowance, status(run)[0]) == (2, "waiting")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kind": "model_calls"}, budgets.BadAmount, "by_amount= or to="),
        ({"kind": "model_calls", "to": 3, "by_amount": 1}, budgets.BadAmount, "by_amount= or to="),
        ({"kind": "model_callz", "to": 3}, budgets.BadAmount, "there is no budget of 'model_callz'"),
        ({"kind": "model_calls", "to": "many"}, budgets.BadAmount, "which is no number"),
        ({"kind": "cost", "to": "5"}, budgets.NotLimited, "has no limit of cost that could be raised. Limited are model_calls."),
        (
            {"kind": "cost", "to": "5", "intent": True},
            budgets.NotLimited,
            "has no limit of cost that could be raised. It has no budget.",
        ),
    ],
)
def test_what_makes_no_sense_says_so(
    declare: Any, worker: LocalWorker, ann: Any, given: dict[str, Any], error: type[UsageError], message: str
) -> None:
    run = loop(declare).start({})
    worker.run()
    owner = {"intent": run.intent_id} if given.pop("intent", False) else {"workflow": run}
    with pytest.raises(error) as caught:
        budgets.raise_(**owner, **given, by=ann, reason="x")
    assert message in str(caught.value)


def test_unknown_ones(ann: Any) -> None:
    with pytest.raises(UnknownWorkflow):
        budgets.raise_("0" * 32, "cost", to=1, by=ann, reason="x")
    with pytest.raises(UnknownIntent):
        budgets.raise_(intent="0" * 32, kind="cost", to=1, by=ann, reason="x")
    with pytest.raises(UnknownIntent):
        budgets.limit("0" * 32, cost=1)
    with pytest.raises(budgets.BadAmount, match="a run or of an intent"):
        budgets.raise_(kind="cost", to=1, by=ann, reason="x")


def test_a_raise_before_anything_was_used(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare).start({})
    assert budgets.raise_(run, "model_calls", by_amount=1, by=ann, reason="x").resumed == ()
    worker.run()
    assert (factories.called("think"), amounts(run)) == (3, (3, 0))


def test_a_raise_of_what_was_not_missing_resumes_nothing_and_says_what_is(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare, cost="1.00").start({})
    worker.run()
    found = budgets.raise_(run, "cost", to="2.50", by=ann, reason="x")
    assert (found.allowance, found.resumed) == (Decimal("2.5"), ())
    assert found.lacking == {
        run.id: "the workflow's budget of model_calls is used up: 2 spent and 0 reserved of 2; one attempt needs 1"
    }
    assert status(run)[0] == "waiting"


def test_a_run_that_waits_for_something_else_is_left_alone(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare).start({})
    worker.run()
    flows.pause(run)
    assert budgets.raise_(run, "model_calls", to=5, by=ann, reason="x").resumed == ()
    assert row(run).status == "paused", "who paused it resumes it"
    flows.resume(run)
    worker.run()
    assert factories.called("think") == 5


def test_a_run_that_has_ended_is_not_raised(declare: Any, worker: LocalWorker, ann: Any) -> None:
    run = loop(declare).start({})
    worker.run()
    flows.cancel(run)
    assert budgets.raise_(run, "model_calls", to=5, by=ann, reason="x").code == "too_late"


def test_a_raise_lets_the_pending_approval_be_asked(declare: Any, worker: LocalWorker, ann: Any, clock: Clock) -> None:
    flow = declare(
        "t-ask-twice",
        meta={"budget": Budget(human_reviews=1)},
        think=Decision(think, choices={"go": "ask"}),
        ask=Approval(candidate="think", role="r", expires=Deadline(hours=1, then="more"), approved="done", denied="done"),
        more=Activity(factories.work, visits=Visits(5, then="done"), then="ask"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (status(run), row(run).error_code) == (("waiting", "HUMAN_REQUIRED", "ask"), "BUDGET_EXHAUSTED")
    assert budgets.raise_(run, "human_reviews", by_amount=1, by=ann, reason="x").resumed == (run.id,)
    worker.run()
    assert (status(run)[:2], amounts(run, "human_reviews")) == (("waiting", "WAITING"), (2, 0))
    assert factories.called("more") == 1


# ---------------------------------------------------------------- intents


def test_all_runs_of_an_intent_draw_on_both_ledgers(declare: Any, worker: LocalWorker, ann: Any) -> None:
    flow = loop(declare, model_calls=10)
    first = flow.start({}, goal="one goal")
    (made,) = budgets.limit(first.intent_id, model_calls=4, by=ann, reason="So much for all of it")
    assert (made.kind, made.allowance, made.soft, made.spent) == ("model_calls", 4, Decimal("3.2"), 0)
    second = flow.start({}, intent=first.intent_id)
    worker.run()
    assert {status(first)[0], status(second)[0]} == {"waiting"}
    of_both = sum(one.spent for one in Ledger.objects.filter(workflow_id__in=[first.id, second.id]))
    assert (amounts(intent_of(first)), of_both) == ((4, 0), 4)
    found = budgets.raise_(intent=first.intent_id, kind="model_calls", by_amount=2, by=ann, reason="A little more")
    assert set(found.resumed) == {first.id, second.id}
    worker.run()
    assert amounts(intent_of(first)) == (6, 0)
    (whole,) = [entry for entry in BudgetEntry.objects.filter(entry="raised") if entry.amount == 2]
    assert (whole.reason, whole.workflow_id) == ("A little more", None)


def test_a_limit_counts_what_was_spent_and_what_is_set_aside_already(declare: Any, worker: LocalWorker) -> None:
    flow = loop(declare, model_calls=10)
    run = flow.start({})

    def limiting(attempt: Any) -> None:
        if attempt.visit == 3:
            budgets.limit(run, model_calls=4)
            assert amounts(intent_of(run)) == (2, 1)

    does["think"] = limiting
    worker.run()
    assert sorted(entries(intent_of(run))[:3]) == [("carried", 2), ("raised", 4), ("reserved", 1)]
    assert entries(intent_of(run))[3:] == [("settled", 1), ("reserved", 1), ("settled", 1)]
    assert (amounts(run), amounts(intent_of(run)), factories.called("think")) == ((4, 0), (4, 0), 4)


def test_a_limit_below_what_is_used_is_set_and_said(declare: Any, worker: LocalWorker, caplog: pytest.LogCaptureFixture) -> None:
    run = loop(declare).start({})
    worker.run()
    (row,) = budgets.limit(run, model_calls=2)
    assert (row.spent, caplog.messages) == (2, [])
    budgets.limit(run, model_calls=1)
    (said,) = caplog.messages
    assert said.startswith(f"the limit of model_calls of intent {run.intent_id} is 1 now, and 2 are used already: no run of it")


def test_a_limit_that_is_set_again_is_the_limit(declare: Any, worker: LocalWorker) -> None:
    run = loop(declare, model_calls=10).start({})
    budgets.limit(run, model_calls=1)
    worker.run()
    assert status(run)[0] == "waiting"
    (found,) = budgets.limit(run, model_calls=3, kept={"model_calls": 1}, soft=0.5)
    assert (found.allowance, found.kept, found.soft) == (3, 1, Decimal("1.5"))
    assert row(run).status == "runnable", "there is room again"
    worker.run()
    assert amounts(intent_of(run)) == (2, 0), "one is kept"
    budgets.limit(run, model_calls=1)
    flows.resume(run)
    worker.run()
    assert amounts(intent_of(run)) == (2, 0), "a limit below what was spent stops, and takes nothing back"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "at least one kind"),
        ({"calls": 1}, "there is no budget of 'calls'"),
        ({"cost": 1, "kept": {"cost": 2}}, "keeps more cost"),
    ],
)
def test_a_limit_that_is_none(declare: Any, given: dict[str, Any], message: str) -> None:
    run = loop(declare).start({})
    with pytest.raises(budgets.BadAmount, match=message):
        budgets.limit(run, **given)


def test_how_it_stands(declare: Any, worker: LocalWorker) -> None:
    run = loop(declare).start({})
    budgets.limit(run, model_calls=9, cost="1")
    worker.run()
    assert [(one.workflow_id, one.kind, one.spent) for one in budgets.of(run)] == [
        (run.id, "model_calls", 2), (None, "model_calls", 2), (None, "cost", 0),
    ]  # fmt: skip
    assert len(budgets.of(intent=run)) == 2


@pytest.mark.req("N2")
def test_retry_resume_and_recovery_reset_nothing(declare: Any, worker: LocalWorker) -> None:
    run = loop(declare).start({})
    worker.run()
    flows.resume(run)
    worker.run()
    flows.pause(run)
    flows.resume(run)
    worker.run()
    assert (amounts(run), factories.called("think")) == ((2, 0), 2)
    intent = intent_of(run)
    budgets.limit(intent, model_calls=5)
    flows.supersede(run, goal="another")
    assert ledger(intent).spent == 2, "the intent's own ledger outlives its versions"
