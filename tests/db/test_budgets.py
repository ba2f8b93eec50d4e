"""Each arrow of a budget: set aside with the pass, booked while the code runs, settled with whatever ends the attempt."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.db import transaction

import flows
from flows import (
    COMPLETE,
    Activity,
    Approval,
    Budget,
    Deadline,
    Decision,
    Effect,
    End,
    Retry,
    Servicing,
    Spend,
    Verdict,
    Wait,
    seconds,
)
from flows.core.errors import DefinitionError, LostOwnership
from flows.core.protocol import Status
from flows.models import Attempt, BudgetEntry, Notice
from flows.models import Budget as Ledger
from flows.models import Verdict as Record
from flows.services import attempting as attempts
from flows.services import invariants, notices
from flows.services.proceed import Progress
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import another_worker, does, lose, row, status
from tests.support.budgeting import Thinker, amounts, entries, ledger, think

pytestmark = pytest.mark.req("N1")


def one(declare: Callable[..., type[flows.Flow]], **options: Any) -> type[flows.Flow]:
    """A flow of one step that spends, under a budget."""
    meta = options.pop("budget", Budget(model_tokens=1000))
    spends = options.pop("spends", Spend(model_tokens=300))
    retry = Retry(max_attempts=2, initial=seconds(0), jitter=0, max_lost=2)
    step = Activity(factories.work, **{"spends": spends, "retry": retry, "then": "done", **options})
    return declare("t-one", meta={"budget": meta}, step=step, done=End(COMPLETE))


def test_nothing_is_made_before_the_first_pass_and_all_of_it_is_settled(worker: LocalWorker) -> None:
    run = Thinker.start({})
    assert not Ledger.objects.exists()
    worker.run()
    assert status(run) == ("complete", "COMPLETE", "done")
    assert entries(run) == [("reserved", 1), ("settled", 1), ("reserved", 1), ("settled", 1)]
    assert entries(run, "model_tokens") == [("reserved", 400), ("settled", 400)]
    assert amounts(run) == (2, 0)
    made = ledger(run)
    assert (made.allowance, made.soft, made.kept) == (3, Decimal("1.5"), 1)


def test_while_the_code_runs_it_is_set_aside(worker: LocalWorker) -> None:
    seen: list[Any] = []
    does["think"] = lambda attempt: seen.append((amounts(run), amounts(run, "model_tokens"), dict(attempt.budget)))
    run = Thinker.start({})
    worker.run()
    assert seen == [((0, 1), (0, 400), {"model_calls": 2, "model_tokens": 1000})], "its own reservation is still its to use"


@pytest.mark.parametrize(
    ("used", "entered", "spent"),
    [
        ([], [("reserved", 300), ("settled", 300)], 300),
        ([0], [("reserved", 300), ("spent", 0), ("settled", 0)], 0),
        ([100, 50], [("reserved", 300), ("spent", 100), ("spent", 50), ("settled", 0)], 150),
        ([250, 400], [("reserved", 300), ("spent", 250), ("spent", 400), ("settled", 0)], 650),
    ],
    ids=["says nothing", "says none", "says less", "says more"],
)
def test_what_was_said_counts_and_where_nothing_was_said_all_of_it(
    declare: Any, worker: LocalWorker, used: list[int], entered: list[Any], spent: int
) -> None:
    seen: list[Any] = []

    def work(attempt: Any) -> None:
        for amount in used:
            attempt.spend(model_tokens=amount)
            seen.append((amounts(run, "model_tokens"), attempt.budget["model_tokens"]))

    does["step"] = work
    run = one(declare).start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert entries(run, "model_tokens") == entered
    assert amounts(run, "model_tokens") == (spent, 0)
    if used == [250, 400]:
        assert seen == [((250, 50), 750), ((650, 0), 350)]


def test_spending_answers_where_it_stands(declare: Any, worker: LocalWorker) -> None:
    answers: list[str] = []
    does["step"] = lambda attempt: answers.extend(attempt.spend(model_tokens=each) for each in (100, 700, 199, 1, 10))
    run = one(declare).start({}, by=None)
    worker.run()
    assert answers == ["within", "soft", "soft", "hard", "hard"]
    assert amounts(run, "model_tokens") == (1010, 0), "the truth counts, limit or not"
    assert status(run)[0] == "complete"


def test_a_kind_that_was_not_set_aside_or_not_limited_is_booked_too(declare: Any, worker: LocalWorker) -> None:
    does["step"] = lambda attempt: [attempt.spend(tool_calls=3, cost="0.0200001"), attempt.budget]
    run = one(declare).start({})
    worker.run()
    assert (ledger(run, "tool_calls").allowance, amounts(run, "tool_calls")) == (None, (3, 0))
    assert amounts(run, "cost") == (Decimal("0.020001"), 0), "what has more places is rounded up"
    assert row(run).status == "complete"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model_tokns": 1}, "there is no budget of 'model_tokns'"),
        ({"model_tokens": -1}, "at least 0"),
        ({"model_tokens": 1.5}, "a float, which is not exact"),
        ({"compute_seconds": 4}, "compute_seconds are measured"),
    ],
)
def test_an_amount_that_is_none_is_refused(declare: Any, worker: LocalWorker, said: dict[str, Any], message: str) -> None:
    seen: list[str] = []

    def work(attempt: Any) -> None:
        with pytest.raises(DefinitionError) as caught:
            attempt.spend(**said)
        seen.append(str(caught.value))

    does["step"] = work
    one(declare).start({})
    worker.run()
    assert len(seen) == 1
    assert message in seen[0]
    assert seen[0].startswith("t-one.step, attempt.spend")


def test_what_would_be_rolled_back_is_not_booked(declare: Any, worker: LocalWorker) -> None:
    def work(attempt: Any) -> None:
        with transaction.atomic(), pytest.raises(DefinitionError, match="inside a transaction"):
            attempt.spend(model_tokens=1)

    does["step"] = work
    run = one(declare).start({})
    worker.run()
    assert amounts(run, "model_tokens") == (300, 0)


def test_an_attempt_that_fails_is_settled_and_the_next_sets_aside_anew(declare: Any, worker: LocalWorker) -> None:
    does["step"] = factories.failing(1)
    run = one(declare).start({})
    worker.run()
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    assert entries(run, "model_tokens") == [("reserved", 300), ("settled", 300)] * 2


def test_a_worker_that_is_lost_has_spent_all_that_it_set_aside(declare: Any, worker: LocalWorker) -> None:
    def work(attempt: Any) -> None:
        if attempt.number == 1:
            attempt.spend(model_tokens=120)
            lose(worker)
            with pytest.raises(LostOwnership, match="counts as spent"):
                attempt.spend(model_tokens=500)

    does["step"] = work
    run = one(declare).start({})
    worker.run()
    assert entries(run, "model_tokens") == [("reserved", 300), ("spent", 120), ("settled", 180)]
    settled = BudgetEntry.objects.get(entry="settled")
    assert settled.reason == "WORKER_LOST: nobody knows what was used, so all that was set aside counts"
    assert (settled.node, settled.activity_seq, settled.attempt) == ("step", 1, 1)
    another_worker().run()
    assert status(run)[0] == "complete"
    assert amounts(run, "model_tokens") == (600, 0)


def test_a_timeout_has_spent_all_that_it_set_aside(declare: Any, worker: LocalWorker, clock: Clock) -> None:
    run = one(declare).start({})

    def work(attempt: Any) -> None:
        attempt.spend(model_tokens=1)
        clock.move(hours=1)
        worker.tick()

    does["step"] = work
    worker.run()
    assert entries(run, "model_tokens")[:3] == [("reserved", 300), ("spent", 1), ("settled", 299)]
    assert Attempt.objects.filter(workflow_id=run.id).first().outcome == "timed_out"  # type: ignore[union-attr]
    factories.forget()


@pytest.mark.parametrize("how", ["cancel", "supersede", "cancel intent"])
def test_what_is_ended_from_outside_has_spent_all_that_it_set_aside(declare: Any, worker: LocalWorker, how: str) -> None:
    run = one(declare).start({})
    act = {
        "cancel": lambda: flows.cancel(run),
        "supersede": lambda: flows.supersede(run, goal="another"),
        "cancel intent": lambda: flows.cancel_intent(run),
    }[how]
    does["step"] = lambda attempt: [attempt.spend(model_tokens=7), act()][0]
    worker.run()
    assert row(run).status in (Status.CANCELLED, Status.SUPERSEDED)
    assert entries(run, "model_tokens") == [("reserved", 300), ("spent", 7), ("settled", 293)]
    assert amounts(run, "model_tokens") == (300, 0)


def test_a_deadline_that_cancels_settles_what_is_known(declare: Any, worker: LocalWorker, clock: Clock) -> None:
    budget = Budget(model_tokens=1000)
    flow = declare(
        "t-dated-budget",
        meta={"budget": budget, "deadline": Deadline(hours=1, then=flows.CANCEL)},
        step=Activity(factories.work, spends=Spend(model_tokens=300), timeout=flows.hours(5), then="after"),
        after=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )

    def work(attempt: Any) -> None:
        attempt.spend(model_tokens=10)
        clock.move(hours=2)
        worker.tick()

    does["step"] = work
    run = flow.start({})
    worker.run()
    worker.run()
    assert status(run)[0] == "cancelled"
    assert entries(run, "model_tokens") == [("reserved", 300), ("spent", 10), ("settled", 0)]


def test_a_decision_in_a_flow_with_a_budget_of_calls_is_a_call(declare: Any, worker: LocalWorker) -> None:
    flow = declare(
        "t-calls",
        meta={"budget": Budget(model_calls=10)},
        think=Decision(think, choices={"go": "done"}),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert amounts(run) == (1, 0)
    quiet = declare("t-uncounted", think=Decision(think, choices={"go": "done"}), done=End(COMPLETE))
    quiet.start({})
    worker.run()
    assert Ledger.objects.count() == 1, "a flow without budgets has no ledger"


def test_a_node_that_spends_is_counted_without_a_limit(declare: Any, worker: LocalWorker) -> None:
    flow = declare("t-counted", step=Activity(factories.work, spends=Spend(tool_calls=2), then="done"), done=End(COMPLETE))
    run = flow.start({})
    worker.run()
    assert (ledger(run, "tool_calls").allowance, amounts(run, "tool_calls")) == (None, (2, 0))


def test_computing_is_measured_where_it_is_limited(declare: Any, worker: LocalWorker, clock: Clock) -> None:
    flow = declare(
        "t-compute",
        meta={"budget": Budget(compute_seconds=100)},
        a=Activity(factories.work, timeout=flows.hours(1), then="b"),
        b=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    does["a"] = lambda attempt: clock.move(seconds=120)
    run = flow.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "b")
    spent, reserved = amounts(run, "compute_seconds")
    assert 120 <= spent < 150
    assert reserved == 0
    assert row(run).error_code == "BUDGET_EXHAUSTED"


# ---------------------------------------------------------------- used up


def factories_user() -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.create_user("ann")


def looping(declare: Any, **budget: Any) -> type[flows.Flow]:
    """Thinks again and again until the budget of three calls is used up."""
    flow: type[flows.Flow] = declare(
        "t-looping",
        meta={"budget": Budget(**{"model_calls": 3, **budget})},
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=flows.Visits(20, then="done")),
        done=End(COMPLETE),
    )
    return flow


def test_exhaustion_is_a_wait_that_says_what_is_used_up(declare: Any, worker: LocalWorker) -> None:
    run = looping(declare).start({}, by=factories_user())
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "think")
    assert row(run).error_code == "BUDGET_EXHAUSTED"
    assert factories.called("think") == 3
    record = Record.objects.filter(workflow_id=run.id).order_by("-pk").first()
    assert record is not None
    assert (record.verdict, record.reason) == (
        "BUDGET_EXHAUSTED",
        "the workflow's budget of model_calls is used up: 3 spent and 0 reserved of 3; one attempt needs 1",
    )
    assert amounts(run) == (3, 0)
    assert sorted(Notice.objects.values_list("code", flat=True)) == ["BUDGET_EXHAUSTED", "BUDGET_SOFT"]
    told = flows.describe(run)
    assert told.decision_needed == "a person allows more (flows budget raise), and it goes on; or cancels"
    assert told.waits[0].reason == record.reason
    flows.resume(run)
    worker.run()
    assert (status(run)[0], factories.called("think")) == ("waiting", 3), "resume looks again"


def test_exhaustion_takes_the_declared_route(declare: Any, worker: LocalWorker) -> None:
    flow = declare(
        "t-route",
        meta={"budget": Budget(model_calls=1)},
        think=Decision(
            think, choices={"go": "think", "stop": "done"}, visits=flows.Visits(20, then="done"),
            on={Verdict.BUDGET_EXHAUSTED: "cheap"},
        ),
        cheap=Activity(factories.work, gate=flows.Gate(commitments=()), then="done"),
        done=End(COMPLETE),
    )  # fmt: skip
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert factories.calls == [("think", 1, 1), ("cheap", 1, 1)]
    assert amounts(run) == (1, 0)


@pytest.mark.req("N2")
def test_what_is_kept_is_used_by_verification_only(declare: Any, worker: LocalWorker) -> None:
    flow = declare(
        "t-kept",
        meta={"budget": Budget(model_calls=3, kept={"model_calls": 1})},
        think=Decision(think, choices={"go": "check"}, visits=flows.Visits(20, then="done")),
        check=Activity(factories.work, verifies="think", spends=Spend(model_calls=1), then="again"),
        again=Decision(think, choices={"go": "done"}),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "again"), "one is left, and it is kept"
    assert amounts(run) == (2, 0)
    reason = Record.objects.filter(workflow_id=run.id).latest("pk").reason
    assert "2 spent and 0 reserved of 3, 1 of them kept for verification; one attempt needs 1" in reason
    other = declare(
        "t-kept-2",
        meta={"budget": Budget(model_calls=2, kept={"model_calls": 1})},
        think=Decision(think, choices={"go": "check"}),
        check=Activity(factories.work, verifies="think", spends=Spend(model_calls=1), then="done"),
        done=End(COMPLETE),
    ).start({})
    worker.run()
    assert status(other)[0] == "complete", "the verifier used it"


def test_the_soft_limit_is_told_once(declare: Any, worker: LocalWorker) -> None:
    does["step"] = lambda attempt: [attempt.spend(model_tokens=each) for each in (790, 20, 50)]
    run = one(declare, budget=Budget(model_tokens=1000, soft=0.8)).start({}, by=factories_user())
    worker.run()
    assert Notice.objects.filter(code="BUDGET_SOFT").count() == 1
    assert ledger(run, "model_tokens").warned_at is not None


def test_a_mail_for_each_kind_names_it(declare: Any, worker: LocalWorker) -> None:
    does["step"] = lambda attempt: [attempt.spend(model_tokens=900), attempt.spend(cost="4.50")]
    user = factories_user()
    user.email = "robin@example.com"
    user.save()
    flow = one(declare, budget=Budget(model_tokens=1000, cost="5.00", soft=0.8))
    run = flow.start({}, key="k", by=user, goal="Spend\nlittle")
    worker.run()
    mail.outbox.clear()
    assert notices.send_owed("default") == 2
    tokens, cost = mail.outbox
    name = row(run).flow_name
    assert (tokens.subject, cost.subject) == (f"{name} k: BUDGET_SOFT model_tokens", f"{name} k: BUDGET_SOFT cost")
    assert "budget of model_tokens of the workflow: 900 spent; the soft limit is 800, the limit 1000" in tokens.body
    assert "budget of cost" not in tokens.body
    assert f"flows budget raise {run.id} cost --by-amount N" in cost.body
    assert "Goal: Spend little\nDecision: " in cost.body


def test_the_progress_of_an_owner_who_lost_is_lost(declare: Any, worker: LocalWorker) -> None:
    one(declare).start({})
    owned = factories.take_one(worker)
    assert factories.enter(owned) is Progress.RUN
    lose(worker)
    with pytest.raises(LostOwnership):
        attempts.run(owned, worker, taken_over=False)
    assert not BudgetEntry.objects.exists()


def test_reviews_are_counted_where_they_are_limited(declare: Any, worker: LocalWorker) -> None:
    flow = declare(
        "t-reviews",
        meta={"budget": Budget(human_reviews=1)},
        think=Decision(think, choices={"go": "ask"}),
        ask=Approval(
            candidate="think", role="r", expires=Deadline(hours=1, then="ask"), approved="done", denied="done",
            visits=flows.Visits(5, then="done"),
        ),
        done=End(COMPLETE),
    )  # fmt: skip
    run = flow.start({})
    worker.run()
    assert (status(run)[:2], amounts(run, "human_reviews")) == (("waiting", "WAITING"), (1, 0))


def test_a_second_review_is_refused_when_none_is_left(declare: Any, worker: LocalWorker, clock: Clock) -> None:
    flow = declare(
        "t-reviews-2",
        meta={"budget": Budget(human_reviews=1)},
        think=Decision(think, choices={"go": "ask"}),
        ask=Approval(
            candidate="think", role="r", expires=Deadline(hours=1, then="again"), approved="done", denied="done",
        ),
        again=Activity(factories.work, visits=flows.Visits(5, then="done"), then="ask"),
        done=End(COMPLETE),
    )  # fmt: skip
    run = flow.start({})
    worker.run()
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "ask")
    assert row(run).error_code == "BUDGET_EXHAUSTED"
    assert amounts(run, "human_reviews") == (1, 0)


@pytest.mark.req("N2")
def test_servicing_uses_what_is_kept_and_is_never_refused(declare: Any, worker: LocalWorker) -> None:
    answers: list[str] = []

    def undo(operation: Any) -> None:
        answers.extend(operation.spend(model_calls=each) for each in (1, 5))
        with pytest.raises(DefinitionError, match=r"step, operation\.spend: compute_seconds are measured"):
            operation.spend(compute_seconds=1)
        with transaction.atomic(), pytest.raises(DefinitionError, match=r"step, operation\.spend: called inside a transaction"):
            operation.spend(model_calls=1)

    flow = declare(
        "t-serviced",
        meta={"budget": Budget(model_calls=5, kept={"model_calls": 4})},
        step=Activity(factories.work, effect=Effect(compensate=Servicing(undo, idempotent=True)), then="wait"),
        wait=Wait("t.never", key="k", deadline=Deadline(hours=1, then=flows.ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    flows.cancel(run)
    worker.run()
    assert status(run)[0] == "cancelled"
    assert answers == ["within", "hard"]
    assert (amounts(run), entries(run)) == ((6, 0), [("spent", 1), ("spent", 5)])


def test_verify_finds_a_ledger_that_its_entries_do_not_add_up_to(declare: Any, worker: LocalWorker) -> None:
    run = one(declare).start({})
    worker.run()
    assert invariants.scan() == []
    found = Ledger.objects.filter(pk=ledger(run, "model_tokens").pk)
    found.update(spent=301)
    (broken,) = invariants.scan()
    assert (broken.invariant, broken.workflow) == ("no ledger that its entries do not add up to", run.id)
    assert broken.what.startswith(
        "the ledger of model_tokens says 301.000000 spent and 0.000000 reserved, its entries 300.000000 and 0"
    )
    found.update(spent=300)
    entry = BudgetEntry(
        budget=found.get(),
        entry="reserved",
        amount=0,
        workflow_id=run.id,
        node="step",
        activity_seq=1,
        attempt=7,
        at=found.get().updated_at,
    )
    entry.save(force_insert=True)
    (broken,) = invariants.scan()
    assert broken.what == "attempt 7 of step has ended, and what it had set aside is not settled"
    entry.pk, entry.entry = None, "settled"
    entry.save(force_insert=True)
    assert invariants.scan() == []
