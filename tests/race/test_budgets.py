"""Budgets when things race: the last piece goes to one, a raise is never lost, and whatever ends an attempt settles it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, INHERIT, Activity, Approval, Budget, Deadline, Decision, End, Spend, Visits, budgets
from flows.core.protocol import Status
from flows.core.state import Woken
from flows.models import Budget as Ledger
from flows.models import BudgetEntry, Intent
from flows.services import attempting as attempts
from flows.services import sweeps
from flows.services.arrows import REFUSED
from flows.services.owned import Owned
from flows.services.proceed import Progress, proceed
from flows.services.start import Started
from flows.testing import LocalWorker
from tests import factories
from tests.factories import does, row
from tests.support.budgeting import amounts, ledger, think
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("N1")

USING = "default"
ROUNDS = 25


@pytest.fixture
def ann(transactional_db: None) -> Any:
    """Ann may raise budgets."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    return get_user_model().objects.get(pk=user.pk)


@pytest.fixture
def caller(declare: Any) -> type[flows.Flow]:
    """Calls a model again and again; its own limit is 1."""
    flow: type[flows.Flow] = declare(
        "t-racing",
        meta={"budget": Budget(model_calls=1)},
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(90, then="done")),
        done=End(COMPLETE),
    )
    return flow


@pytest.fixture
def spender(declare: Any) -> type[flows.Flow]:
    """One step that spends; nothing of its own is limited."""
    flow: type[flows.Flow] = declare(
        "t-spending",
        step=Activity(factories.work, spends=Spend(tool_calls=2), then="more"),
        more=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    return flow


@pytest.mark.req("N2")
@pytest.mark.parametrize("ledgers", ["made", "never made"])
def test_two_starts_under_a_new_goal_inherit_once(worker: LocalWorker, declare: Any, ledgers: str) -> None:
    flow = declare(
        "t-inheriting",
        meta={"budget": Budget(model_calls=10, on_new_intent=INHERIT)},
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(3, then="done")),
        done=End(COMPLETE),
    )
    with racers(2) as (one, two):
        for number in range(ROUNDS):
            first = flow.start({}, key=f"old {number}")
            if ledgers == "made":
                worker.run()
            left = 10 - (amounts(first)[0] if ledgers == "made" else 0)
            flows.supersede(first, goal="another")
            keys = [f"{number} {name}" for name in ("one", "two" if number % 2 else "one")]
            begin = [lambda key=key, first=first: flow.start({}, key=key, intent=first.intent_id) for key in keys]
            outcomes = together((one, begin[0]), (two, begin[1]))
            assert all(isinstance(outcome, Started) for outcome in outcomes), outcomes
            shares = [ledger(run).allowance for run in {outcome.id: outcome for outcome in outcomes}.values()]
            assert sorted(shares) == ([0, left] if number % 2 else [left])
            assert ledger(first).allowance == amounts(first)[0]
            for outcome in outcomes:
                flows.cancel(outcome)


def taken(worker: LocalWorker, count: int) -> list[Owned]:
    """So many claimed workflows whose first activity is about to run."""
    batch = factories.take_up_to(worker, count)
    assert len(batch) == count
    for owned in batch:
        assert factories.enter(owned) is Progress.RUN
    return batch


def run_to_end(owned: Owned, worker: LocalWorker) -> Any:
    """One attempt, and the arrow that ends it; what came of it."""
    trigger, ending = attempts.run(owned, worker, taken_over=False)
    return ending.outcome, proceed(owned, trigger, factories.LET_GO, ending)


def settled(run: Any) -> None:
    """Nothing of a run is set aside."""
    assert {one.reserved for one in Ledger.objects.filter(workflow_id=run.id)} <= {0}


# ---------------------------------------------------------------- the last piece


def test_of_two_runs_that_want_the_last_piece_one_gets_it_every_time(worker: LocalWorker, spender: type[flows.Flow]) -> None:
    seen: Counter[str] = Counter()
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            first = spender.start({}, goal="one goal")
            spender.start({}, intent=first.intent_id)
            budgets.limit(first.intent_id, tool_calls=3)
            a, b = taken(worker, 2)
            outcomes = together((one, lambda: run_to_end(a, worker)), (two, lambda: run_to_end(b, worker)))
            assert sorted(outcome[0] for outcome in outcomes) == ["refused", "succeeded"], outcomes
            assert amounts(Intent.objects.get(pk=first.intent_id), "tool_calls") == (2, 0)
            loser = b if outcomes[0][0] == "succeeded" else a
            seen[loser.row.node] += 1
            assert row(loser.row).error_code == "BUDGET_EXHAUSTED"
            flows.cancel_intent(first)
    assert sum(seen.values()) == ROUNDS


def test_many_runs_of_one_intent_never_pass_its_limit(worker: LocalWorker, spender: type[flows.Flow]) -> None:
    first = spender.start({}, goal="one goal")
    budgets.limit(first.intent_id, tool_calls=7)
    for _ in range(7):
        spender.start({}, intent=first.intent_id)
    batch = taken(worker, 8)
    with racers(8) as threads:
        outcomes = together(
            *((thread, lambda owned=owned: run_to_end(owned, worker)) for thread, owned in zip(threads, batch, strict=True))
        )
    assert Counter(outcome[0] for outcome in outcomes) == {"succeeded": 3, "refused": 5}
    assert amounts(Intent.objects.get(pk=first.intent_id), "tool_calls") == (6, 0)


# ---------------------------------------------------------------- a raise


def refused(worker: LocalWorker, owned: Owned) -> Callable[[], Any]:
    """The attempt of this owner is refused; the arrow that suspends it is still to come."""
    trigger, ending = attempts.run(owned, worker, taken_over=False)
    assert (trigger, ending) == (Woken(), REFUSED)
    return lambda: proceed(owned, trigger, factories.LET_GO, ending)


def used_up(worker: LocalWorker, flow: type[flows.Flow], **options: Any) -> tuple[Started, Owned]:
    """A run with nothing left, which is about to run its next step."""
    run = flow.start({}, **options)
    (owned,) = taken(worker, 1)
    assert run_to_end(owned, worker)[0] == "succeeded"
    (owned,) = taken(worker, 1)
    return run, owned


@pytest.mark.parametrize("of", ["workflow", "intent"])
def test_a_raise_before_the_suspension_is_seen_by_it(worker: LocalWorker, caller: type[flows.Flow], ann: Any, of: str) -> None:
    if of == "intent":
        run, owned = used_up(worker, caller)
        budgets.raise_(run, "model_calls", to=9, by=ann, reason="x")
        budgets.limit(run, model_calls=1)
    else:
        run, owned = used_up(worker, caller)
    suspend = refused(worker, owned)
    owner = {"workflow": run} if of == "workflow" else {"intent": run.intent_id}
    met = overtaken(lambda: budgets.raise_(**owner, kind="model_calls", to=5, by=ann, reason="x"), suspend)
    assert (met.first.resumed, met.second, met.blocked) == ((), Progress.RUN, True), "the room that was made meanwhile is found"
    assert run_to_end(owned, worker)[0] == "succeeded"
    assert amounts(run) == (2, 0)


@pytest.mark.parametrize("of", ["workflow", "intent"])
def test_a_raise_behind_the_suspension_ends_it(worker: LocalWorker, caller: type[flows.Flow], ann: Any, of: str) -> None:
    run, owned = used_up(worker, caller)
    if of == "intent":
        budgets.raise_(run, "model_calls", to=9, by=ann, reason="x")
        budgets.limit(run, model_calls=1)
    suspend = refused(worker, owned)
    owner = {"workflow": run} if of == "workflow" else {"intent": run.intent_id}
    met = overtaken(suspend, lambda: budgets.raise_(**owner, kind="model_calls", to=5, by=ann, reason="x"))
    assert (met.first, met.second.resumed, met.blocked) == (Progress.LEFT, (run.id,), True)
    assert row(run).status == "runnable"


@pytest.mark.parametrize("of", ["workflow", "intent"])
def test_no_run_stays_suspended_when_there_is_room(worker: LocalWorker, caller: type[flows.Flow], ann: Any, of: str) -> None:
    seen: Counter[Any] = Counter()
    with racers(2) as (owner_of, person):
        for _ in range(ROUNDS):
            run, owned = used_up(worker, caller)
            if of == "intent":
                budgets.raise_(run, "model_calls", to=9, by=ann, reason="x")
                budgets.limit(run, model_calls=1)
            who = {"workflow": run} if of == "workflow" else {"intent": run.intent_id}

            def go(owned: Owned = owned) -> Any:
                trigger, ending = attempts.run(owned, worker, taken_over=False)
                return proceed(owned, trigger, factories.LET_GO, ending)

            outcomes = together(
                (owner_of, go), (person, lambda: budgets.raise_(**who, kind="model_calls", to=5, by=ann, reason="x"))
            )
            assert not [one for one in outcomes if isinstance(one, Exception)], outcomes
            assert outcomes[1].code == "raised"
            found = row(run)
            assert not (found.status == "waiting" and found.error_code == "BUDGET_EXHAUSTED"), outcomes
            seen[found.status, bool(outcomes[1].resumed)] += 1
            flows.cancel(run)
            settled(run)


def test_two_who_raise_at_once_raise_once(worker: LocalWorker, caller: type[flows.Flow], ann: Any) -> None:
    run, owned = used_up(worker, caller)
    refused(worker, owned)()
    with racers(2) as (one, two):
        outcomes = together(
            *((racer, lambda: budgets.raise_(run, "model_calls", to=5, by=ann, reason="x")) for racer in (one, two))
        )
    assert sorted(type(one).__name__ for one in outcomes) == ["BadAmount", "Raised"]
    assert (ledger(run).allowance, row(run).status, BudgetEntry.objects.filter(entry="raised").count()) == (5, "runnable", 1)


def test_settling_against_a_raise_and_a_limit(worker: LocalWorker, caller: type[flows.Flow], ann: Any) -> None:
    with racers(3) as (owner_of, person, application):
        for _ in range(ROUNDS):
            run = caller.start({})
            (owned,) = taken(worker, 1)
            trigger, ending = attempts.run(owned, worker, taken_over=False)
            outcomes = together(
                (owner_of, lambda: proceed(owned, trigger, factories.LET_GO, ending)),
                (person, lambda: budgets.raise_(run, "model_calls", by_amount=1, by=ann, reason="x")),
                (application, lambda: budgets.limit(run, model_calls=50)),
            )
            assert not [one for one in outcomes if isinstance(one, Exception)], outcomes
            assert (amounts(run), ledger(run).allowance) == ((1, 0), 2)
            assert amounts(Intent.objects.get(pk=run.intent_id)) == (1, 0), "counted once, whichever came first"
            flows.cancel(run)


# ---------------------------------------------------------------- the end of an attempt

OTHERS: dict[str, Callable[[Any], Any]] = {
    "cancel": lambda run: flows.cancel(run),
    "supersede": lambda run: flows.supersede(run, goal="another"),
    "put back": lambda run: sweeps.put_back([run.id], USING),
}


@pytest.mark.parametrize("name", OTHERS)
def test_reserving_against_whoever_ends_it(spender: type[flows.Flow], worker: LocalWorker, name: str) -> None:
    worker.stop()
    seen: Counter[str] = Counter()
    with racers(2) as (owner_of, other):
        for _ in range(ROUNDS):
            holder = factories.another_worker()
            run = spender.start({})
            budgets.limit(run, tool_calls=2)
            (owned,) = taken(holder, 1)
            if name == "put back":
                factories.run(
                    "dead", "UPDATE outlast_worker SET status = 'dead' WHERE id = %(id)s::uuid", {"id": holder.incarnation}, USING
                )
            outcomes = together((owner_of, lambda: run_to_end(owned, holder)), (other, lambda: OTHERS[name](run)))
            assert not isinstance(outcomes[1], Exception), outcomes
            drawn = BudgetEntry.objects.filter(workflow_id=run.id, budget__workflow_id=run.id)
            counts = Counter(drawn.values_list("entry", flat=True))
            assert counts["reserved"] == counts["settled"] <= 1, (outcomes, counts)
            settled(run)
            spent = 2 * counts["reserved"]
            assert amounts(Intent.objects.get(pk=run.intent_id), "tool_calls") == (spent, 0)
            seen["reserved" if spent else "not reserved"] += 1
            if row(run).status not in (Status.CANCELLED, Status.SUPERSEDED):
                flows.cancel(run)
            holder.stop()


def test_spending_against_losing_the_worker(spender: type[flows.Flow], worker: LocalWorker) -> None:
    worker.stop()
    with racers(2) as (owner_of, other):
        for _ in range(ROUNDS):
            holder = factories.another_worker()
            run = spender.start({})
            (owned,) = taken(holder, 1)
            does["step"] = lambda attempt: together(
                (owner_of, lambda: attempt.spend(tool_calls=5)), (other, lambda: factories.lose(holder))
            )
            trigger, ending = attempts.run(owned, holder, taken_over=False)
            assert proceed(owned, trigger, factories.LET_GO, ending) in (
                Progress.LOST,
                Progress.LEFT,
            )  # the sweep waits for nobody
            spent, reserved = amounts(run, "tool_calls")
            assert (spent in (5, 2), reserved) == (True, 0), "what was said, or all that was set aside"
            flows.cancel(run)
    factories.forget()


@pytest.mark.req("N1")
def test_of_two_runs_that_want_the_last_review_one_asks(worker: LocalWorker, declare: Any) -> None:
    due = Deadline(hours=1, then=flows.ESCALATE)
    flow = declare(
        "t-reviewed",
        meta={"budget": Budget(human_reviews=5)},
        think=Decision(think, spends=Spend(model_calls=1), choices={"go": "ask"}),
        ask=Approval(candidate="think", role="r", expires=due, approved="done", denied="done"),
        done=End(COMPLETE),
    )
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            first = flow.start({}, goal="one goal")
            second = flow.start({}, intent=first.intent_id)
            budgets.limit(first.intent_id, human_reviews=1, model_calls=9)
            a, b = taken(worker, 2)
            outcomes = together((one, lambda: run_to_end(a, worker)), (two, lambda: run_to_end(b, worker)))
            assert [outcome[0] for outcome in outcomes] == ["succeeded"] * 2
            assert sorted(row(run).error_code or "" for run in (first, second)) == ["", "BUDGET_EXHAUSTED"]
            intent = Intent.objects.get(pk=first.intent_id)
            assert (amounts(intent, "human_reviews"), amounts(intent)) == ((1, 0), (2, 0))
            flows.cancel_intent(first)
