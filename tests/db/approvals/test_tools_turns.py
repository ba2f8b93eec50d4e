"""Turns of an activity whose tools ask people: several calls at once, and what else may come between a question and its answer."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections, transaction

import flows
from approvals.services.packet import packet
from approvals.tools import ApprovalPending, OutsideAttempt, ToolDenied, agather, current_call, gather, requires_approval
from flows import Activity, Decision, Effect, End, Pipeline, Spend, Step
from flows.core.effects import DidNotHappen
from flows.models import Activity as ActivityRow
from flows.models import BudgetEntry, Candidate, Notice, Operation, Wait
from flows.services import budgets
from flows.store.invariants import broken
from tests import factories
from tests.support.approving import ROLE, World
from tests.support.tooling import (
    Agent,
    Escalated,
    Hurried,
    Limited,
    asked,
    begin,
    code,
    drifts,
    faults,
    made,
    now,
    outcomes,
    refund,
    send,
    statuses,
)

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]


def both(attempt: Any) -> Any:
    return gather(lambda: refund(7), lambda: refund(8))


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


def declared(world: World, name: str, **nodes: Any) -> type[flows.Flow]:
    with factories.declaring(world.worker) as declare:
        return declare(name, **nodes)


@pytest.fixture
def declare(world: World) -> Any:
    with factories.declaring(world.worker) as declare:
        yield declare


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
    with pytest.raises(OutsideAttempt):
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


# ---------------------------------------------------------------- what comes between


def test_a_cancel_withdraws_the_questions(world: World) -> None:
    run = begin(world, both)
    world.decide(asked(run)[0])
    flows.cancel(run, reason="enough")
    world.worker.run()
    assert (now(run).status, statuses(run)) == ("cancelled", ["invalidated", "cancelled"])
    assert world.decide(asked(run)[1]).code == "WORKFLOW_ENDED"
    assert made == []


def test_another_goal_withdraws_them_and_nothing_is_executed(world: World) -> None:
    run = begin(world, both)
    for request in asked(run):
        world.decide(request)
    assert now(run).status == "runnable"
    flows.supersede(run.intent_id, goal="another")
    world.worker.run()
    assert (now(run).status, made) == ("superseded", [])
    assert statuses(run) == ["invalidated", "invalidated"]


def test_a_pause_holds_the_next_turn(world: World) -> None:
    run = begin(world, lambda attempt: refund(7))
    flows.pause(run)
    assert world.decide(asked(run)[0])
    world.worker.run()
    assert (now(run).status, made) == ("paused", [])
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, made) == ("complete", [(7, "1.00")])
    assert drifts(run) == []


def test_a_pause_that_is_asked_while_the_code_runs_comes_after_the_question(world: World) -> None:
    def pausing(attempt: Any) -> Any:
        if attempt.number == 1:
            flows.pause(attempt.workflow_id)
        return refund(7)

    run = begin(world, pausing)
    assert (now(run).status, statuses(run)) == ("paused", ["pending"])
    world.decide(asked(run)[0])
    assert now(run).status == "paused"
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, made) == ("complete", [(7, "1.00")])
    assert drifts(run) == []


def test_a_resume_before_the_answer_waits_on(world: World) -> None:
    run = begin(world, lambda attempt: refund(7))
    flows.pause(run)
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, statuses(run), outcomes(run)) == ("waiting", ["pending"], ["returned"])
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [(7, "1.00")]
    assert drifts(run) == []


def test_a_deadline_that_passes_meanwhile_withdraws_them(world: World) -> None:
    run = begin(world, lambda attempt: refund(7), Hurried)
    world.clock.move(hours=4)
    world.worker.tick()
    world.worker.run()
    assert (now(run).status, statuses(run)) == ("failed", ["cancelled"])
    assert drifts(run) == []


def test_a_deadline_that_asks_a_person_and_their_resume_asks_anew(world: World) -> None:
    run = begin(world, lambda attempt: refund(7), Escalated)
    world.clock.move(hours=4)
    world.worker.tick()
    world.worker.run()
    assert (now(run).outcome, statuses(run)) == ("HUMAN_REQUIRED", ["cancelled"])
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["cancelled", "pending"]
    assert drifts(run) == []


def test_a_deadline_that_passes_while_the_code_runs_goes_before_the_question(world: World) -> None:
    def slow(attempt: Any) -> Any:
        world.clock.move(hours=4)
        world.worker.tick()
        return refund(7)

    run = begin(world, slow, Hurried)
    assert (now(run).status, asked(run)) == ("failed", [])
    assert drifts(run) == []


def test_the_worker_is_lost_before_the_question_is_asked(world: World) -> None:
    def killed(attempt: Any) -> Any:
        if attempt.number == 1:
            factories.lose(world.worker)
        return refund(7)

    run = begin(world, killed)
    assert (asked(run), outcomes(run)) == ([], ["lost"])
    factories.another_worker().run()
    assert statuses(run) == ["pending"]


def test_the_worker_is_lost_before_the_call_and_nothing_is_used_up(world: World) -> None:
    turns: list[int] = []

    def killed(attempt: Any) -> Any:
        turns.append(attempt.number)
        if attempt.number == 2:
            factories.lose(world.worker)
        return refund(7)

    run = begin(world, killed)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (made, statuses(run)) == ([], ["approved"]), "who has lost the run uses nothing up"
    factories.another_worker().run()
    assert (made, statuses(run), turns) == ([(7, "1.00")], ["consumed"], [1, 2, 3])
    assert drifts(run) == []


def test_the_worker_is_lost_during_the_call(world: World) -> None:
    """Nobody knows whether it happened: the provider is asked before anything else, and it is not called again."""

    def dying(n: int) -> int:
        made.append(n)
        factories.lose(world.worker)
        return n

    tool = requires_approval(role=ROLE, name="dying", effect=Effect(reconcile=lambda op: flows.Happened(11)))(dying)
    run = begin(world, lambda attempt: tool(1))
    world.decide(asked(run)[0])
    world.worker.run()
    factories.another_worker().run()
    assert (now(run).status, now(run).result, made) == ("complete", 1, [1])
    assert drifts(run) == []


def test_a_migration_withdraws_the_questions_and_the_new_version_asks_anew(world: World, declare: Any) -> None:
    run = begin(world, both)
    world.decide(asked(run)[0])
    kept = {name: copy.copy(node) for name, node in Agent.definition.nodes.items()}
    declare("t-tools-agent", meta={"version": 2, "migrate_from": {1: {}}}, **kept)
    assert flows.migrate(run)
    assert statuses(run) == ["invalidated", "cancelled"]
    assert Wait.objects.get(workflow_id=run.pk).status == "withdrawn"
    assert not Notice.objects.filter(code="WORKFLOW_MIGRATED").exclude(user_id=world.robin.pk).exists()
    world.worker.run()
    assert statuses(run) == ["invalidated", "cancelled", "pending", "pending"]
    assert (now(run).flow_version, made) == (2, [])
    assert drifts(run) == []


def test_what_was_executed_stays_executed_after_a_migration(world: World, declare: Any) -> None:
    run = begin(world, lambda attempt: [refund(7), refund(8)])
    world.decide(asked(run)[0])
    world.worker.run()
    kept = {name: copy.copy(node) for name, node in Agent.definition.nodes.items()}
    declare("t-tools-agent", meta={"version": 2, "migrate_from": {1: {}}}, **kept)
    assert flows.migrate(run)
    world.worker.run()
    assert made == [(7, "1.00")]
    assert statuses(run) == ["consumed", "cancelled", "pending"]


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
    from approvals.services import guard

    monkeypatch.setattr(guard, "MAX_REQUESTS", 2)
    numbers = iter(range(100))
    run = begin(world, lambda attempt: refund(next(numbers)))
    for _ in range(2):
        world.decide(asked(run)[-1], "approve")
        world.worker.run()
    assert (now(run).outcome, now(run).error_code, len(asked(run))) == ("HUMAN_REQUIRED", "TOOL_ASKED_TOO_OFTEN", 2)
