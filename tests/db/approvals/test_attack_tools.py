"""Tools that misbehave, and code that calls them in the wrong way: nothing is executed twice, nothing without its approval, nothing is lost."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flows
from approvals.models import Notice, Request
from approvals.tools import ApprovalPending, ToolDenied, agather, gather, requires_approval
from flows import Escalation, hours
from flows.core.misuse import OutcomeUnknown
from flows.models import Operation
from flows.store.invariants import broken
from tests.support.approving import ROLE, World
from tests.support.laddering import MANAGERS, somebody
from tests.support.tooling import asked, begin, drifts, made, now, refund, send, statuses

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]

#: What the tool `strange` gives back, or raises.
gives: list[Any] = []


@requires_approval(role=ROLE, name="attack.strange")
def strange(n: int = 0) -> Any:
    """It has happened; what it says of itself is what the test says."""
    made.append(n)
    found = gives[-1]
    if isinstance(found, BaseException):
        raise found
    return found


@requires_approval(role=ROLE, name="attack.slow")
async def slow(n: int = 0) -> Any:
    """It never comes back by itself."""
    made.append(n)
    await asyncio.Event().wait()


@requires_approval(
    role=ROLE,
    name="attack.patient",
    reminders=[hours(1), hours(2)],
    escalation=[Escalation(MANAGERS, hours=1), Escalation(pool="p", hours=2)],
)
def patient(n: int = 0) -> int:
    """People are reminded of it."""
    return n


def looped() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["self"] = found
    return found


UNFIT = [object(), {1, 2}, float("nan"), "\x00", "\ud800", b"bytes", "x" * 300_000, looped(), lambda: None, ValueError]


@pytest.mark.parametrize("given", UNFIT, ids=lambda one: type(one).__name__)
def test_a_result_that_cannot_be_kept_is_a_call_of_which_nobody_knows(world: World, given: Any) -> None:
    """It was made: whatever comes of it, it is not made again, and an attempt more does not hide that."""
    gives.append(given)
    run = begin(world, lambda attempt: strange(1))
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [1]
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "NOT_RECONCILABLE")
    assert [one.status for one in Operation.objects.filter(workflow_id=run.pk)] == ["uncertain"]
    with pytest.raises(OutcomeUnknown):
        flows.resume(run)
    assert (made, statuses(run)) == ([1], ["consumed"])
    assert broken("default") == []


@pytest.mark.parametrize("error", [GeneratorExit(), asyncio.CancelledError(), ApprovalPending("not really"), StopIteration()])
def test_whatever_it_raises_it_is_not_called_again(world: World, error: BaseException) -> None:
    gives.append(error)
    run = begin(world, lambda attempt: strange(1))
    world.decide(asked(run)[0])
    world.worker.run()
    for _ in range(3):
        world.clock.move(hours=2)
        world.worker.tick()
        world.worker.run()
    assert (made, statuses(run)) == ([1], ["consumed"])
    assert [one.status for one in Operation.objects.filter(workflow_id=run.pk)] == ["uncertain"]
    assert now(run).status != "complete"


def test_one_that_is_given_up_waiting_for_is_not_called_again(world: World) -> None:
    async def impatient(attempt: Any) -> Any:
        try:
            return await asyncio.wait_for(slow(1), 0.05)
        except TimeoutError:
            return "I go on"

    run = begin(world, impatient)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (made, statuses(run)) == ([1], ["consumed"])
    assert now(run).status != "complete", "nobody knows whether it happened"
    assert [one.status for one in Operation.objects.filter(workflow_id=run.pk)] == ["uncertain"]


def test_the_same_call_in_many_threads_of_one_turn_is_as_many_calls(world: World) -> None:
    def threads(attempt: Any) -> Any:
        with ThreadPoolExecutor(5) as pool:
            calls = [pool.submit(contextvars.copy_context().run, _kept, lambda: refund(7)) for _ in range(5)]
        outcomes = [call.result() for call in calls]
        if any(isinstance(one, ApprovalPending) for one in outcomes):
            raise ApprovalPending("some of them wait")
        return sorted(one["count"] for one in outcomes)

    run = begin(world, threads)
    assert sorted(request.call for request in asked(run)) == [1, 2, 3, 4, 5]
    for request in asked(run):
        assert world.decide(request)
    world.worker.run()
    assert (now(run).result, made) == ([1, 2, 3, 4, 5], [(7, "1.00")] * 5)
    assert set(statuses(run)) == {"consumed"}
    assert drifts(run) == []


def _kept(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ApprovalPending as pending:
        return pending


def test_a_thread_that_outlives_its_turn_executes_nothing(world: World) -> None:
    """It holds the attempt that has ended; the approval that came since is for the next turn."""
    go, left = threading.Event(), list[Any]()

    def leaves_a_thread(attempt: Any) -> Any:
        if attempt.number == 1:
            context = contextvars.copy_context()

            def later() -> None:
                go.wait(20)
                try:
                    left.append(context.run(refund, 7))
                except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
                    left.append(error)

            thread = threading.Thread(target=later)
            thread.start()
            left.append(thread)
        return refund(7)

    run = begin(world, leaves_a_thread)
    (request,) = asked(run)
    assert world.decide(request)
    go.set()
    left[0].join(20)
    assert made == []
    assert isinstance(left[1], BaseException)
    assert statuses(run) == ["approved"]
    world.worker.run()
    assert (made, statuses(run), now(run).status) == ([(7, "1.00")], ["consumed"], "complete")


def test_who_is_refused_and_asks_again_in_the_same_turn_asks_people_again(world: World) -> None:
    """Each is a request of its own, none executes, and there is an end to it."""

    def stubborn(attempt: Any) -> Any:
        for _ in range(3):
            try:
                return refund(7)
            except ToolDenied:
                continue
        return "enough"

    run = begin(world, stubborn)
    for number in range(3):
        assert [request.call for request in asked(run)] == list(range(1, number + 2))
        world.decide(asked(run)[-1], "deny", comment="No.")
        world.worker.run()
    assert (made, now(run).result, statuses(run)) == ([], "enough", ["denied"] * 3)


def test_what_it_is_called_with_may_be_changed_afterwards(world: World) -> None:
    """The arguments are those of the moment of the call: of asking, and of executing what was approved."""
    order = {"id": 7, "lines": ["a"]}

    @requires_approval(
        role=ROLE, name="attack.changes-its-arguments", target=lambda order: order["lines"].append("by the target") or "x"
    )
    def change(order: dict[str, Any]) -> Any:
        order["lines"].append("by the tool")
        return order

    def calls(attempt: Any) -> Any:
        order["lines"] = ["a"]
        return change(order)

    run = begin(world, calls)
    (request,) = asked(run)
    assert request.candidate["value"]["arguments"] == {"order": {"id": 7, "lines": ["a"]}}
    world.decide(request)
    world.worker.run()
    assert now(run).result == {"id": 7, "lines": ["a", "by the tool"]}
    assert Request.objects.get(pk=request.pk).candidate == request.candidate


@pytest.mark.parametrize("moment", ["pending", "one approved", "approved", "denied", "in the call"])
@pytest.mark.parametrize("ending", ["cancel", "supersede"])
def test_the_end_of_the_run_at_every_moment(world: World, moment: str, ending: str) -> None:
    """Nothing is executed that was not begun, and nothing stays open, nor any approval usable."""

    def end() -> None:
        if ending == "cancel":
            flows.cancel(run)
        else:
            flows.supersede(run, goal="Another goal")

    gives.append("done")

    @requires_approval(role=ROLE, name=f"attack.ends-{ending}-{moment.replace(' ', '-')}")
    def tool(n: int) -> Any:
        made.append(n)
        if moment == "in the call":
            end()
        return n

    run = begin(world, lambda attempt: gather(lambda: tool(1), lambda: tool(2)))
    first, second = asked(run)
    if moment != "pending":
        world.decide(first, "deny" if moment == "denied" else "approve", comment="x")
    if moment in ("approved", "denied", "in the call"):
        world.decide(second)
    if moment == "in the call":
        world.worker.run()
    else:
        end()
    world.worker.run()
    assert now(run).status in ("cancelled", "superseded", "waiting", "reconciling")
    assert len(made) <= (moment == "in the call")
    assert not {"pending", "approved"} & set(statuses(run)), statuses(run)
    assert broken("default") == []


def test_moments_that_come_together_remind_once_and_tell_of_every_escalation(world: World) -> None:
    """Nobody looked at the clock for a while."""
    somebody("mona", role=MANAGERS)
    run = begin(world, lambda attempt: gather(lambda: patient(1), lambda: patient(2)))
    world.clock.move(hours=3)
    world.worker.tick()
    for request in asked(run):
        kinds = list(Notice.objects.filter(request=request, channel="").order_by("kind", "number").values_list("kind", "number"))
        assert kinds == [("asked", 0), ("escalated", 1), ("escalated", 2), ("reminder", 2)]
        assert (request.escalated, len(request.audiences)) == (2, 3)


def test_a_task_that_is_cancelled_among_others_executes_no_other_twice(world: World) -> None:
    async def together(attempt: Any) -> Any:
        async def gives_up() -> Any:
            raise asyncio.CancelledError

        return await agather(send("ann"), gives_up())

    run = begin(world, together)
    world.decide(asked(run)[0])
    for _ in range(3):
        world.worker.run()
        world.clock.move(hours=2)
        world.worker.tick()
    assert made == [("ann", (), {})]
    assert statuses(run) == ["consumed"]
    assert now(run).status != "complete"


async def grouped(*calls: Any) -> list[Any]:
    """As newer code runs things side by side."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]


def test_calls_in_a_task_group_wait_as_others_do(world: World) -> None:
    """The group wraps what ends its tasks, also what is no error."""

    async def calls(attempt: Any) -> Any:
        return await grouped(send("ann"), send("bob"))

    run = begin(world, calls)
    for _ in range(3):
        for request in asked(run):
            if request.status == "pending":
                assert world.decide(request)
        world.worker.run()
    assert (now(run).status, now(run).result) == ("complete", ["sent to ann", "sent to bob"])
    assert sorted(made) == [("ann", (), {}), ("bob", (), {})]
    assert drifts(run) == []


def test_a_no_in_a_task_group_is_the_refusal_that_it_is(world: World) -> None:
    async def calls(attempt: Any) -> Any:
        return await grouped(send("ann"))

    run = begin(world, calls)
    world.decide(asked(run)[0], "deny", comment="No.")
    world.worker.run()
    assert (now(run).outcome, now(run).error_code) == ("HUMAN_REQUIRED", "TOOL_DENIED")
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["denied", "pending"]
    assert made == []
