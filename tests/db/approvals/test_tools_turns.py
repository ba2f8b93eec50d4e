"""Turns of an activity whose tools ask people: several calls at once, budgets, and what people see of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import flows
from approvals.services.packet import packet
from approvals.tools import ApprovalPending, ToolDenied, agather, gather
from flows import Activity, End, Spend
from flows.models import Activity as ActivityRow
from flows.models import BudgetEntry
from flows.services import budgets
from flows.store.invariants import broken
from tests.support.approving import World
from tests.support.tooling import (
    Limited,
    asked,
    begin,
    both,
    code,
    declare,
    drifts,
    made,
    now,
    outcomes,
    refund,
    send,
    statuses,
)

__all__ = ["declare"]

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]


def sent(attempt: Any) -> Any:
    """One that people may answer for a day, and one for two hours."""

    async def side_by_side() -> Any:
        return await agather(send("ann"), _async_refund(7))

    return asyncio.run(side_by_side())


async def _async_refund(order: int) -> Any:
    return refund(order)


# ---------------------------------------------------------------- several calls


def test_calls_of_one_turn_are_several_requests_behind_one_wait(world: World) -> None:
    run = begin(world, both)
    first, second = asked(run)
    assert (first.status, second.status, first.wait_id) == ("pending", "pending", second.wait_id)
    assert world.decide(second)
    world.worker.run()
    assert (now(run).status, made) == ("waiting", []), "somebody has still to answer"
    assert world.decide(first)
    world.worker.run()
    assert made == [(7, "1.00"), (8, "1.00")]
    assert statuses(run) == ["consumed", "consumed"]
    assert outcomes(run) == ["returned", "succeeded"]
    assert drifts(run) == []


def test_one_of_them_is_denied_and_the_other_is_executed(world: World) -> None:
    def careful(attempt: Any) -> Any:
        found = []
        for order in (7, 8):
            try:
                found.append(refund(order))
            except ToolDenied as denied:
                found.append(denied.comment)
            except ApprovalPending:
                found.append("later")  # the turn ends all the same
        return found

    run = begin(world, careful)
    first, second = asked(run)
    world.decide(first, "deny", comment="Not seven.")
    world.decide(second)
    world.worker.run()
    assert made == [(8, "1.00")]
    assert now(run).result == ["Not seven.", {"refunded": 8, "count": 1}]
    assert statuses(run) == ["denied", "consumed"]


def test_gather_makes_all_calls_before_it_raises_the_refusal(world: World) -> None:
    run = begin(world, both)
    first, second = asked(run)
    world.decide(first, "deny", comment="Not seven.")
    world.decide(second)
    world.worker.run()
    assert made == [(8, "1.00")]
    assert now(run).error_code == "TOOL_DENIED"


def test_each_has_a_time_of_its_own(world: World) -> None:
    run = begin(world, sent)
    mail, money = asked(run)
    assert mail.expires_at < money.expires_at
    world.clock.move(hours=3)
    world.worker.tick()
    world.worker.run()
    assert (statuses(run), now(run).status) == (["expired", "pending"], "waiting")
    assert broken("default") == []
    world.decide(money)
    world.worker.run()
    assert made == [(7, "1.00")]
    assert now(run).error_code == "TOOL_APPROVAL_EXPIRED"
    assert drifts(run) == []


def test_the_last_that_expires_wakes(world: World) -> None:
    run = begin(world, sent)
    _mail, money = asked(run)
    world.decide(money)
    world.worker.run()
    assert now(run).status == "waiting"
    world.clock.move(hours=3)
    world.worker.tick()
    world.worker.run()
    assert statuses(run) == ["expired", "consumed"]
    assert drifts(run) == []


def test_an_answer_after_the_time_of_another_does_not_wait_for_the_clock(world: World) -> None:
    run = begin(world, sent)
    _mail, money = asked(run)
    world.clock.move(hours=3)  # and no tick
    world.decide(money)
    world.worker.run()
    assert statuses(run) == ["expired", "consumed"]


def test_one_executed_and_another_waits(world: World) -> None:
    run = begin(world, lambda attempt: [refund(7), refund(8)])
    world.decide(asked(run)[0])
    world.worker.run()
    assert (made, statuses(run)) == ([(7, "1.00")], ["consumed", "pending"])
    world.decide(asked(run)[1])
    world.worker.run()
    assert made == [(7, "1.00"), (8, "1.00")]
    assert now(run).result == [{"refunded": 7, "count": 1}, {"refunded": 8, "count": 2}]
    assert outcomes(run) == ["returned", "returned", "succeeded"]
    assert ActivityRow.objects.get(workflow_id=run.pk).failures == 0
    assert drifts(run) == []


# ---------------------------------------------------------------- budgets


def test_each_request_draws_on_the_budget_of_reviews(world: World) -> None:
    run = begin(world, both, Limited)
    booked = BudgetEntry.objects.filter(workflow_id=run.pk, budget__kind="human_reviews")
    assert [(entry.entry, int(entry.amount)) for entry in booked] == [("spent", 1), ("spent", 1)]


def test_where_the_budget_has_no_room_nobody_is_asked(world: World) -> None:
    run = begin(world, lambda attempt: gather(*(lambda order=order: refund(order) for order in (1, 2, 3))), Limited)
    assert (run.status, run.outcome, run.error_code) == ("waiting", "HUMAN_REQUIRED", "BUDGET_EXHAUSTED")
    assert asked(run) == []
    assert not BudgetEntry.objects.filter(workflow_id=run.pk, budget__kind="human_reviews", entry="spent").exists()
    assert broken("default") == []
    budgets.raise_(run, "human_reviews", by_amount=2, by=world.sue, reason="more to look at")
    world.worker.run()
    assert statuses(run) == ["pending"] * 3
    assert drifts(run) == []


def test_what_the_attempt_had_set_aside_is_settled_with_its_turn(world: World, declare: Any) -> None:
    def spends(attempt: Any) -> Any:
        attempt.spend(model_calls=1)
        return refund(7)

    flow = declare(
        "t-tools-spends",
        meta={"budget": flows.Budget(model_calls=10)},
        act=Activity(code, spends=Spend(model_calls=3), then="done"),
        done=End(flows.COMPLETE),
    )
    run = begin(world, spends, flow)
    assert broken("default") == []
    world.decide(asked(run)[0])
    world.worker.run()
    assert now(run).status == "complete"
    assert broken("default") == []
    assert drifts(run) == []


# ---------------------------------------------------------------- what people see


def test_the_packet_says_what_will_happen_and_where_it_leads(world: World) -> None:
    run = begin(world, both)
    first, _second = asked(run)
    shown = packet(first, world.rita, "default")
    assert (shown.choice, shown.sound, shown.since) == ("refund", True, None)
    assert shown.routes == {"approve": "act", "changes": "act", "deny": "act"}
    assert sorted((row.path, row.text) for row in shown.value) == [
        ("arguments.amount", '"1.00"'),
        ("arguments.order", "7"),
        ("target", "order 7"),
        ("tool_version", '"1"'),
    ]
    assert str(first) == f"refund at act (request {first.pk})"


def test_the_packet_shows_what_is_different_from_the_call_of_an_earlier_turn(world: World) -> None:
    orders = iter([7, 8])
    run = begin(world, lambda attempt: refund(next(orders)))
    world.decide(asked(run)[0], "approve")
    world.worker.run()
    since = packet(asked(run)[1], world.rita, "default").since
    assert since is not None
    assert since.seen


def test_what_the_run_needs_is_said(world: World) -> None:
    run = begin(world, both)
    told = flows.describe(run)
    assert told.decision_needed == "answers to the approval requests of tools at act"
    assert [wait.kind for wait in told.waits] == ["tool_approval"]


def test_so_many_times_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from approvals.services import standing

    monkeypatch.setattr(standing, "MAX_REQUESTS", 2)
    numbers = iter(range(100))
    run = begin(world, lambda attempt: refund(next(numbers)))
    for _ in range(2):
        world.decide(asked(run)[-1], "approve")
        world.worker.run()
    assert (now(run).outcome, now(run).error_code, len(asked(run))) == ("HUMAN_REQUIRED", "TOOL_ASKED_TOO_OFTEN", 2)
