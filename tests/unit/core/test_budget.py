"""Budgets as they are declared: amounts are checked when they are made, and what an attempt sets aside follows from the graph."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from flows.core import gate, lint
from flows.core.budget import HARD, INHERIT, SOFT, WITHIN, Budget, Kept, Ledger, Spend, plain, shortage, standing, written
from flows.core.errors import DefinitionError
from flows.core.moves import Open, Park, Suspend
from flows.core.nodes import COMPLETE, Activity, Approval, Decision, End, Pipeline, Step
from flows.core.policies import ESCALATE, Deadline
from flows.core.protocol import BudgetKind, Outcome
from flows.core.requirements import Gate
from flows.core.state import Completed, Entered, Look, Woken
from flows.core.verdicts import Verdict
from tests.support.flow_values import activity, artifact, ask, declare, facts, state, work
from tests.unit.core.test_lint import BUDGETS

pytestmark = pytest.mark.req("N1")

CALLS, TOKENS, COST = BudgetKind.MODEL_CALLS, BudgetKind.MODEL_TOKENS, BudgetKind.COST


def test_amounts_are_decimals_in_the_order_of_the_kinds() -> None:
    budget = Budget(cost="5.00", model_calls=40, compute_seconds=1.5)
    assert list(budget.amounts.items()) == [
        (CALLS, Decimal(40)),
        (BudgetKind.COMPUTE_SECONDS, Decimal("1.5")),
        (COST, Decimal(5)),
    ]
    assert (budget.soft_of(CALLS), budget.soft_of(TOKENS)) == (32, None)
    assert Spend(cost="0.0000001").amounts == {COST: Decimal("0.000001")}, "what is too small to be written is not free"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(model_calls=-1), "Budget: model_calls is -1; an amount is at least 0 and below 10000000000000."),
        (
            lambda: Spend(model_calls="1.5"),
            "Spend: model_calls is '1.5'; model_calls are counted in whole pieces. Write model_calls=40.",
        ),
        (lambda: Spend(cost=0.1), 'Spend: cost is 0.1, a float, which is not exact. Write cost="5.00".'),
        (lambda: Spend(cost="much"), "Spend: cost is 'much', which is no number. Write cost=\"5.00\"."),
        (lambda: Spend(cost="NaN"), "Spend: cost is 'NaN'; an amount is at least 0"),
        (lambda: Spend(cost="1e13"), "Spend: cost is '1e13'; an amount is at least 0"),
        (lambda: Spend(model_tokens=10**5000), "Spend: model_tokens is an integer of 16610 bits; an amount is at least 0"),
        (lambda: Spend(model_calls=True), "Spend: model_calls is True, which is no amount."),
        (lambda: Budget(soft=0), "Budget(soft=…) is the share at which to warn, above 0 and at most 1; got 0."),
        (lambda: Budget(soft="x"), "Budget(soft=…) is the share"),
        (
            lambda: Budget(kept={"tokens": 1}),
            "Budget(kept=…): there is no budget of 'tokens'. Kinds are model_tokens, model_calls,",
        ),
        (lambda: Budget(kept=3), "Budget(kept=…) is Kept(model_tokens=20_000) or a mapping of kinds, got 3."),
        (lambda: Budget(kept=Kept(cost="1")), "Budget keeps cost, and does not limit them: add cost=…."),
        (
            lambda: Budget(model_calls=2, kept=Kept(model_calls=3)),
            "Budget keeps 3 model_calls of 2: at most all of it can be kept.",
        ),
        (lambda: Budget(on_new_intent="inherit"), "Budget(on_new_intent=…) is NEW, INHERIT or RESERVE; got 'inherit'."),
    ],
)
def test_what_is_no_budget_says_so_when_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_a_kind_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="model_callz"):
        Spend(model_callz=1)  # type: ignore[call-arg]


def test_what_is_kept_may_be_a_mapping() -> None:
    budget = Budget(model_calls=5, kept={"model_calls": 2}, on_new_intent=INHERIT)
    assert (budget.kept, budget.kept_of(CALLS), budget.kept_of(COST)) == (Kept(model_calls=2), 2, 0)


def test_amounts_for_people() -> None:
    assert [written("model_calls", Decimal("40.000000")), written("cost", Decimal("5.100000")), written("cost", None)] == [
        "40",
        "5.1",
        "–",
    ]
    assert written("cost", Decimal("500.000000")) == "500"
    assert (plain("model_calls", Decimal("3.000000")), plain("cost", Decimal("0.020"))) == (3, Decimal("0.02"))
    assert isinstance(plain("model_calls", Decimal(3)), int)


# ---------------------------------------------------------------- what an attempt sets aside


def test_what_each_node_sets_aside() -> None:
    flow = declare(
        {"budget": Budget(model_calls=9, model_tokens=900)},
        first=Decision(work, choices={"a": "more"}),
        more=Decision(work, spends=Spend(model_tokens=5), choices={"a": "quiet"}),
        quiet=Decision(work, spends=Spend(model_calls=0), choices={"a": "tools"}),
        tools=Activity(work, spends=Spend(tool_calls=2), then="line"),
        line=Pipeline(Step("a", work), Step("b", work), spends=Spend(cost="1"), then="done"),
        done=End(COMPLETE),
    )
    assert flow.reservations == {
        "first": {CALLS: 1},
        "more": {CALLS: 1, TOKENS: 5},
        "tools": {BudgetKind.TOOL_CALLS: 2},
        "line": {COST: 1},
    }
    assert [name for name in flow.nodes if flow.passes(name)] == ["first", "more", "tools", "line"]


def test_computing_is_measured_at_every_activity_where_it_is_limited() -> None:
    flow = declare(
        {"budget": Budget(compute_seconds=60)},
        first=Activity(work, then="b"),
        b=Decision(work, choices={"a": "done"}),
        done=End(COMPLETE),
    )
    assert flow.reservations == {"first": {BudgetKind.COMPUTE_SECONDS: 0}, "b": {BudgetKind.COMPUTE_SECONDS: 0}}


def test_a_flow_that_declares_nothing_draws_on_nothing() -> None:
    flow = declare(first=Decision(work, choices={"a": "done"}), done=End(COMPLETE))
    assert (flow.reservations, flow.limits_reviews, flow.passes("first")) == ({}, False, False)


# ---------------------------------------------------------------- whether there is room


def ledger(
    spent: int = 0, reserved: int = 0, *, allowance: int | None = 10, kept: int = 0, own: bool = True, kind: BudgetKind = CALLS
) -> Ledger:
    soft = None if allowance is None else Decimal(allowance) * Decimal("0.8")
    limit = None if allowance is None else Decimal(allowance)
    return Ledger(1, own, kind, limit, soft, Decimal(kept), Decimal(spent), Decimal(reserved))


@pytest.mark.parametrize(
    ("found", "amount", "privileged", "room"),
    [
        (ledger(9), 1, False, True),
        (ledger(9, 1), 1, False, False),
        (ledger(8), 3, False, False),
        (ledger(7, kept=2), 1, False, True),
        (ledger(8, kept=2), 1, False, False),
        (ledger(8, kept=2), 2, True, True),
        (ledger(99, allowance=None), 50, False, True),
        (ledger(9), 0, False, True),
        (ledger(10), 0, False, False),
        (ledger(11), 0, False, False),
        (ledger(0, allowance=0), 1, False, False),
    ],
)
def test_there_is_room_or_not(found: Ledger, amount: int, *, privileged: bool, room: bool) -> None:
    assert (found.lacks(Decimal(amount), privileged=privileged) == "") is room


def test_a_refusal_names_the_ledger_and_what_is_missing() -> None:
    wanted = {CALLS: Decimal(2)}
    assert shortage([ledger(), ledger(7, 2, kept=1, own=False)], wanted, privileged=False) == (
        "the intent's budget of model_calls is used up: 7 spent and 2 reserved of 10, 1 of them kept for verification; "
        "one attempt needs 2"
    )
    assert shortage([ledger(10, kind=TOKENS)], wanted, privileged=False) == "", "another kind is nobody's business"


def test_standing_is_the_worst_of_all() -> None:
    assert standing([ledger(7), ledger(99, allowance=None)], privileged=False) == WITHIN
    assert standing([ledger(7), ledger(8, own=False)], privileged=False) == SOFT
    assert standing([ledger(8, kept=2), ledger(1)], privileged=False) == HARD
    assert standing([ledger(8, kept=2), ledger(1)], privileged=True) == SOFT


# ---------------------------------------------------------------- the gate


def spending(**options: Any) -> Any:
    return declare(
        {"budget": Budget(model_calls=9, human_reviews=1)},
        first=Activity(work, spends=Spend(model_calls=1), then="ask", **options),
        ask=Approval(candidate="first", role="r", approved="other", denied="done", expires=Deadline(hours=1, then=ESCALATE)),
        other=Activity(work, gate=Gate(authority="app.do"), then="done"),
        done=End(COMPLETE),
    )


def test_a_used_up_budget_stops_the_open_activity_and_names_what_is_used_up() -> None:
    decided = ask(spending(), state("first", activity=activity()), Woken(), look=Look(budget="nothing left"))
    assert decided.move == Suspend("first", Outcome.HUMAN_REQUIRED, Verdict.BUDGET_EXHAUSTED, "nothing left")
    assert decided.refusal == gate.Refusal(Verdict.BUDGET_EXHAUSTED, "nothing left", "first")


def test_a_look_is_of_the_node_that_it_was_made_for() -> None:
    """The node that a refusal leads to, and the one after a look, are not judged by it: their own attempts look."""
    flow = spending(on={Verdict.BUDGET_EXHAUSTED: "other"})
    decided = ask(flow, state("first", activity=activity()), Woken(), look=Look(budget="nothing left"))
    assert decided.move == Open("other", via=())
    after = declare(
        first=Decision(work, choices={"patch": "act"}),
        act=Activity(work, gate=Gate(fresh={"x": work}), then="done"),
        done=End(COMPLETE),
    )
    assert ask(after, state("first", activity=activity()), Completed(artifact()), look=Look()).move == Open("act")


def test_nobody_is_asked_for_an_approval_when_reviews_are_used_up() -> None:
    flow = spending()
    done = state("first", activity=activity())
    assert isinstance(ask(flow, done, Completed(1)).move, Park)
    refused = ask(flow, done, Completed(1), reviews="asked too often")
    assert refused.move == Suspend("ask", Outcome.HUMAN_REQUIRED, Verdict.BUDGET_EXHAUSTED, "asked too often")
    again = state("ask", results={"first": 1})
    assert ask(flow, again, Entered("BUDGET_EXHAUSTED"), reviews="asked too often").refusal is not None
    assert isinstance(ask(flow, again, Entered("BUDGET_EXHAUSTED")).move, Park), "the exact pending step"
    assert gate.check(flow, flow.nodes["other"], state("other"), facts(flow, reviews="asked too often")) is None


# ---------------------------------------------------------------- lint


def fits(spends: Any, **options: Any) -> Any:
    budget = Budget(model_calls=4, kept={"model_calls": 1})
    return declare(
        {"budget": budget},
        first=Decision(work, choices={"a": "b"}),
        b=Activity(work, spends=spends, then="done", **options),
        done=End(COMPLETE),
    )


def test_an_attempt_that_could_never_begin_is_an_error() -> None:
    (found,) = lint.problems(fits(Spend(model_calls=4)))
    assert {found.id} == {lint.PREFIX + one for one in BUDGETS}
    assert found.message == "Node 'b': one attempt needs 4 model_calls, and the flow may use 3 (1 are kept)."
    assert found.hint == "Let spends= (of an agent turn: each=) ask for less, or raise Meta.budget."


@pytest.mark.parametrize(
    "flow",
    [
        lambda: fits(Spend(model_calls=3)),
        lambda: fits(Spend(model_calls=4), verifies="first"),
        lambda: fits(Spend(cost="1000")),
        lambda: fits(None),
    ],
)
def test_what_fits_is_no_error(flow: Callable[[], Any]) -> None:
    assert lint.problems(flow()) == []


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (
            lambda: declare({"budget": 5}, first=Activity(work, then="done"), done=End(COMPLETE)),
            "Meta.budget is 5, which is an int.",
        ),
        (lambda: fits({"model_calls": 1}), "Node 'b': spends is {'model_calls': 1}, which is a dict."),
    ],
)
def test_what_is_no_budget_is_an_error(flow: Callable[[], Any], message: str) -> None:
    assert [one.message for one in lint.problems(flow())] == [message]
