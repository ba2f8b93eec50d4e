"""What code makes of a call that waits, and where a guarded tool may be called."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections, transaction

import flows
from approvals.tools import ApprovalPending, OutsideAttempt, current_call, requires_approval
from flows import Activity, Decision, Effect, End, Pipeline, Step
from flows.core.effects import DidNotHappen
from flows.models import Candidate, Operation
from tests.support.approving import ROLE, World
from tests.support.tooling import (
    asked,
    begin,
    code,
    declare,
    drifts,
    faults,
    made,
    now,
    outcomes,
    refund,
    statuses,
)

__all__ = ["declare"]

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]


# ---------------------------------------------------------------- what code makes of it


def swallows_exceptions(attempt: Any) -> Any:
    try:
        return refund(7)
    except Exception:  # noqa: BLE001 - as careless agents do
        return "swallowed"


def swallows_all(attempt: Any) -> Any:
    try:
        return refund(7)
    except BaseException:  # noqa: BLE001 - as reckless ones do
        return "swallowed"


def turns_it_into_another_error(attempt: Any) -> Any:
    try:
        return refund(7)
    except BaseException as error:
        raise ValueError("no idea") from error


@pytest.mark.parametrize("careless", [swallows_exceptions, swallows_all, turns_it_into_another_error])
def test_whatever_the_code_makes_of_a_pending_call_the_turn_ends(world: World, careless: Callable[[Any], Any]) -> None:
    run = begin(world, careless)
    assert (now(run).status, statuses(run), outcomes(run)) == ("waiting", ["pending"], ["returned"])
    world.decide(asked(run)[0])
    world.worker.run()
    assert now(run).result == {"refunded": 7, "count": 1}


def test_pending_is_no_exception() -> None:
    assert not issubclass(ApprovalPending, Exception)


def test_raised_by_hand_it_asks_nobody(world: World) -> None:
    def by_hand(attempt: Any) -> Any:
        raise ApprovalPending

    run = begin(world, by_hand)
    assert (run.outcome, run.error_code) == ("HUMAN_REQUIRED", "DEFINITION_ERROR")


def test_a_method_and_a_classmethod_are_asked_about_without_their_object(world: World) -> None:
    shop = Shop()
    run = begin(world, lambda attempt: [shop.restock("tea", 3), Shop.close("Monday")])
    assert asked(run)[0].candidate["value"]["arguments"] == {"what": "tea", "count": 3}
    world.decide(asked(run)[0])
    world.worker.run()
    world.decide(asked(run)[1])
    world.worker.run()
    assert now(run).result == [["tea", 3], "Monday"]
    assert shop.stock == ["tea"]


class Shop:
    def __init__(self) -> None:
        self.stock: list[str] = []

    @requires_approval(role=ROLE)
    def restock(self, what: str, count: int) -> Any:
        self.stock.append(what)
        return what, count

    @classmethod
    @requires_approval(role=ROLE, name="shop.close")
    def close(cls, day: str) -> str:
        return day


def test_the_function_gets_what_is_recorded(world: World) -> None:
    """Not the object that the code holds: what was approved is what runs."""
    held = {"amount": "1.00"}

    class Sly(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: str) -> Any:
            return "999.00"

    run = begin(world, lambda attempt: pay(Sly(held)))
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [asked(run)[0].candidate["value"]["arguments"]["what"]["amount"]]


@requires_approval(role=ROLE)
def pay(what: dict[str, Any]) -> None:
    made.append(what["amount"])


def test_an_argument_that_is_not_json_is_named(world: World) -> None:
    run = begin(world, lambda attempt: refund(object()))
    assert (run.outcome, run.error_code) == ("HUMAN_REQUIRED", "PAYLOAD_INVALID")


def test_a_call_outside_of_an_attempt_says_the_way_out() -> None:
    with pytest.raises(OutsideAttempt, match=r"Call it in the function of an Activity.*refund\.__wrapped__"):
        refund(7)
    assert refund.__wrapped__(7) == {"refunded": 7, "count": 1}  # type: ignore[attr-defined]


def test_a_thread_of_ones_own_needs_the_context(world: World) -> None:
    found: list[Any] = []

    def in_threads(attempt: Any) -> Any:
        def call(order: int) -> None:
            try:
                found.append(refund(order))
            except BaseException as error:  # noqa: BLE001 - a thread's own end
                found.append(type(error).__name__)

        context = contextvars.copy_context()
        threads = [
            threading.Thread(target=call, args=(6,)),
            threading.Thread(target=context.run, args=(call, 7)),
            threading.Thread(target=contextvars.copy_context().run, args=(call, 8)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(map(str, found))

    run = begin(world, in_threads)
    assert sorted(found) == ["ApprovalPending", "ApprovalPending", "OutsideAttempt"]
    assert sorted(request.candidate["value"]["arguments"]["order"] for request in asked(run)) == [7, 8]
    for request in asked(run):
        world.decide(request)
    found.clear()
    world.worker.run()
    assert sorted(made) == [(7, "1.00"), (8, "1.00")]
    assert now(run).status == "complete"


def test_asyncio_to_thread_has_the_context(world: World) -> None:
    async def elsewhere(attempt: Any) -> Any:
        return await asyncio.to_thread(refund, 7)

    run = begin(world, elsewhere)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (made, now(run).status) == ([(7, "1.00")], "complete")


def test_no_connection_is_left_behind_in_another_thread(world: World) -> None:
    left: list[Any] = []

    def in_a_thread(attempt: Any) -> Any:
        def call() -> None:
            try:
                refund(7)
            except BaseException:  # noqa: BLE001 - looked at is the connection
                left.append(connections["default"].connection)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(call,))
        thread.start()
        thread.join()

    begin(world, in_a_thread)
    assert left == [None]


# ---------------------------------------------------------------- where it may be called


def test_not_in_a_node_that_is_itself_one_effect(world: World, declare: Any) -> None:
    flow = declare(
        "t-tools-effect",
        act=Activity(code, effect=Effect(reconcile=lambda op: DidNotHappen()), then="done"),
        done=End(flows.COMPLETE),
    )
    run = begin(world, lambda attempt: refund(7), flow)
    assert asked(run) == []
    assert made == []
    operation = Operation.objects.get(workflow_id=run.pk)
    assert operation.name == ""
    assert operation.status in ("uncertain", "planned"), "its own effect is in doubt, as after any error"


def test_inside_the_block_of_an_effect_it_leaves_that_in_doubt(world: World, declare: Any) -> None:
    def inside(attempt: Any) -> Any:
        with attempt.effect("other"):
            return refund(7)

    flow = declare("t-tools-block", act=Activity(code, effects={"other": Effect()}, then="done"), done=End(flows.COMPLETE))
    run = begin(world, inside, flow)
    assert asked(run) == []
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "NOT_RECONCILABLE")


def test_not_inside_a_transaction_of_the_code(world: World) -> None:
    def inside(attempt: Any) -> Any:
        with transaction.atomic():
            return refund(7)

    run = begin(world, inside)
    assert asked(run) == []
    assert (run.outcome, run.error_code) == ("HUMAN_REQUIRED", "DEFINITION_ERROR")


def test_not_by_another_guarded_tool(world: World) -> None:
    outer = requires_approval(role=ROLE, name="outer")(lambda order: refund(order))
    run = begin(world, lambda attempt: outer(7))
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == []
    assert (len(asked(run)), now(run).error_code) == (1, "NOT_RECONCILABLE")


def test_a_tool_knows_its_call(world: World) -> None:
    """The key for the provider is the same over all attempts at the call."""
    faults.append(flows.errors.Transient("once"))

    def keyed(n: int) -> str:
        made.append(current_call().id)
        assert current_call().headers["Idempotency-Key"] == made[-1]
        if faults:
            raise faults.pop()
        return "done"

    tool = requires_approval(role=ROLE, name="keyed")(keyed)
    run = begin(world, lambda attempt: tool(1))
    world.decide(asked(run)[0])
    world.worker.run()
    world.clock.move(hours=2)
    world.worker.tick()
    world.worker.run()
    assert now(run).result == "done"
    assert made == [made[0]] * 2 == [Operation.objects.get(workflow_id=run.pk).pk] * 2
    with pytest.raises(flows.errors.DefinitionError, match="outside of a guarded tool"):
        current_call()


def test_beside_the_declared_effects_of_its_node(world: World, declare: Any) -> None:
    def beside(attempt: Any) -> Any:
        with attempt.effect("other") as op:
            op.call(made.append, "other")
        return refund(7)

    flow = declare("t-tools-beside", act=Activity(code, effects={"other": Effect()}, then="done"), done=End(flows.COMPLETE))
    run = begin(world, beside, flow)
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == ["other", (7, "1.00")]
    assert now(run).status == "complete"
    assert drifts(run) == []


def test_equal_calls_of_two_steps_are_two_calls(world: World, declare: Any) -> None:
    flow = declare("t-tools-steps", act=Pipeline(Step("a", code), Step("b", code), then="done"), done=End(flows.COMPLETE))
    run = begin(world, lambda attempt: refund(7), flow)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (len(made), statuses(run)) == (1, ["consumed", "pending"])
    world.decide(asked(run)[1])
    world.worker.run()
    assert (len(made), now(run).status) == (2, "complete")
    assert drifts(run) == []


def test_a_decision_tells_what_its_model_was_asked_in_the_turn_that_waited(world: World, declare: Any) -> None:
    def thinks(attempt: Any) -> Any:
        attempt.record_model("m-1", prompt="p", output="o", usage={"input_tokens": 3})
        return flows.Candidate("go", refund(7))

    flow = declare("t-tools-decides", act=Decision(code, choices={"go": "done"}), done=End(flows.COMPLETE))
    run = begin(world, thinks, flow)
    world.decide(asked(run)[0])
    world.worker.run()
    rows = Candidate.objects.filter(workflow_id=run.pk).order_by("pk")
    assert [(row.attempt, row.refused, row.choice, row.model) for row in rows] == [
        (1, "APPROVAL_PENDING", "", "m-1"),
        (2, "", "go", "m-1"),
    ]
    assert drifts(run) == []
