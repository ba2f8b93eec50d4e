"""Tools that people must allow (F6): asked about the exact call, the turn ends, the next turn executes it, once."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.tools import requires_approval
from flows.models import Activity, Operation, Transition, Wait
from tests.support.approving import ROLE, World
from tests.support.tooling import asked, begin, drifts, made, now, outcomes, refund, statuses

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]


def refunds(attempt: Any) -> Any:
    return refund(7, "10.00")


def test_a_call_asks_people_and_ends_the_turn(world: World) -> None:
    run = begin(world, refunds)
    assert (run.status, run.outcome, run.error_code, made) == ("waiting", "WAITING", None, [])
    (request,) = asked(run)
    assert (request.status, request.tool, request.node, request.call) == ("pending", "refund", "act", 1)
    assert request.candidate["choice"] == "refund"
    assert request.candidate["value"] == {
        "arguments": {"order": 7, "amount": "10.00"},
        "target": "order 7",
        "tool_version": "1",
    }
    (wait,) = Wait.objects.filter(workflow_id=run.pk)
    assert (wait.kind, wait.status, wait.visit, wait.reason) == (
        "tool_approval",
        "open",
        0,
        "waiting for people to answer about refund",
    )
    activity = Activity.objects.get(workflow_id=run.pk)
    assert (activity.status, activity.failures, activity.last_error) == ("scheduled", 0, None)
    assert outcomes(run) == ["returned"]


def test_after_the_answer_a_new_turn_reissues_it_and_it_is_executed_once(world: World) -> None:
    run = begin(world, refunds)
    (request,) = asked(run)
    assert world.decide(request)
    assert now(run).status == "runnable", "an answer wakes, and executes nothing"
    assert made == []
    world.worker.run()
    assert made == [(7, "10.00")]
    assert now(run).status == "complete"
    assert now(run).result == {"refunded": 7, "count": 1}
    (request,) = asked(run)
    assert (request.status, request.used_by) == ("consumed", 1)
    assert outcomes(run) == ["returned", "succeeded"]
    operation = Operation.objects.get(workflow_id=run.pk)
    assert (operation.status, operation.attempt, operation.evidence) == ("succeeded", 2, {"refunded": 7, "count": 1})
    assert drifts(run) == []


def test_the_log_says_what_happened(world: World) -> None:
    run = begin(world, refunds)
    world.decide(asked(run)[0])
    world.worker.run()
    log = list(Transition.objects.filter(workflow_id=run.pk).order_by("seq").values_list("trigger", "from_status", "to_status"))
    assert log == [
        ("start", "", "runnable"),
        ("claim", "runnable", "running"),
        ("asked", "running", "waiting"),
        ("approval", "waiting", "runnable"),
        ("claim", "runnable", "running"),
        ("completed", "running", "complete"),
    ]


def test_changed_arguments_are_another_request(world: World) -> None:
    amounts = iter(["10.00", "11.00", "11.00"])
    run = begin(world, lambda attempt: refund(7, next(amounts)))
    (first,) = asked(run)
    world.decide(first)
    world.worker.run()
    assert made == []
    assert statuses(run) == ["approved", "pending"]
    second = asked(run)[1]
    assert second.digest != first.digest
    world.decide(second)
    world.worker.run()
    assert made == [(7, "11.00")]
    assert statuses(run) == ["approved", "consumed"]
    assert drifts(run) == []


def test_another_version_of_the_tool_is_another_call(world: World) -> None:
    tools = iter(requires_approval(role=ROLE, name="versioned", version=version)(_versioned) for version in ("1", "2"))
    run = begin(world, lambda attempt: next(tools)(1))
    world.decide(asked(run)[0])
    world.worker.run()
    assert statuses(run) == ["approved", "pending"]
    assert made == []


def _versioned(n: int) -> int:
    made.append(n)
    return n
