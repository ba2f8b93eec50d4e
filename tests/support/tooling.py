"""An activity whose code is what the test says, and tools that people must allow; `made` is what the tools have done, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from approvals.models import Request
from approvals.tools import gather, requires_approval
from flows import COMPLETE, ESCALATE, FAILED, Activity, Budget, Deadline, Effect, End, Flow, Retry, Unknown, hours
from flows.models import Attempt, Workflow
from flows.services.replay import replay
from tests import factories
from tests.support.approving import ROLE, World

Code = Callable[[Any], Any]

#: What the tools have done in this process.
made: list[Any] = []
#: The code of the activity, by the key of the run; "" is that of every other.
codes: dict[str, Code] = {}
#: What the next call of `refund` raises instead; and what is told of it afterwards.
faults: list[BaseException] = []
known: list[Any] = []


def ask_provider(operation: Any) -> Any:
    return known[-1] if known else Unknown("nothing is known")


@requires_approval(role=ROLE, target=lambda order, amount="1.00": f"order {order}", effect=Effect(reconcile=ask_provider))
def refund(order: int, amount: str = "1.00") -> dict[str, Any]:
    """Give money back."""
    if faults:
        raise faults.pop()
    made.append((order, amount))
    return {"refunded": order, "count": len(made)}


@requires_approval(role=ROLE, expires=hours(2), name="mail.send")
async def send(to: str, *lines: str, **headers: str) -> str:
    """An async one, with every kind of argument."""
    made.append((to, lines, headers))
    return f"sent to {to}"


def code(attempt: Any) -> Any:
    return codes.get(attempt.key or "", codes.get("", lambda _attempt: None))(attempt)


class Agent(Flow):
    """One activity that calls tools."""

    class Meta:
        name = "t-tools-agent"

    act = Activity(code, retry=Retry(2, initial=hours(1), maximum=hours(1), jitter=0), then="done")
    done = End(COMPLETE, result=lambda state: state.results["act"])


class Limited(Flow):
    """The same, for two reviews at most."""

    class Meta:
        name = "t-tools-limited"
        budget = Budget(human_reviews=2)

    act = Activity(code, then="done")
    done = End(COMPLETE)


class Hurried(Flow):
    """The same within three hours."""

    class Meta:
        name = "t-tools-hurried"
        deadline = Deadline(hours=3, then="late")

    act = Activity(code, then="done")
    done = End(COMPLETE)
    late = End(FAILED)


class Escalated(Flow):
    """The same, where a person looks after three hours."""

    class Meta:
        name = "t-tools-escalated"
        deadline = Deadline(hours=3, then=ESCALATE)

    act = Activity(code, then="done")
    done = End(COMPLETE)


@pytest.fixture
def tools() -> Iterator[None]:
    """Nothing is done yet."""
    for kept in (made, codes, faults, known):
        kept.clear()
    yield
    for kept in (made, codes, faults, known):
        kept.clear()


@pytest.fixture
def declare(world: World) -> Iterator[Callable[..., type[Flow]]]:
    """Declare a flow that the world's worker offers; it is gone after the test."""
    with factories.declaring(world.worker) as declare:
        yield declare


def begin(world: World, of: Code, flow: type[Flow] = Agent, **more: Any) -> Workflow:
    """Start a run with this code and carry it to where its first turn ends."""
    codes[more.get("key", "")] = of
    run = flow.start({}, by=more.pop("by", world.robin), **more)
    world.worker.run()
    return Workflow.objects.get(pk=run.id)


def both(attempt: Any) -> Any:
    """Two calls side by side."""
    return gather(lambda: refund(7), lambda: refund(8))


def asked(run: Workflow) -> list[Request]:
    """The requests of a run, oldest first."""
    return list(Request.objects.select_related("workflow").filter(workflow_id=run.pk).order_by("id"))


def statuses(run: Workflow) -> list[str]:
    return [request.status for request in asked(run)]


def outcomes(run: Workflow) -> list[str]:
    """How its attempts ended."""
    return list(Attempt.objects.filter(workflow_id=run.pk).order_by("activity_seq", "number").values_list("outcome", flat=True))


def now(run: Workflow) -> Workflow:
    return Workflow.objects.get(pk=run.pk)


def drifts(run: Workflow) -> list[str]:
    """Where the run's record and its replay part."""
    return [str(found.drift) for found in replay([run]) if found.drift is not None]
