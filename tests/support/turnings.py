"""What the tests of agent libraries share: places at which the process is gone, a flow with one agent turn, people and a provider who answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from approvals.models import Request
from flows import COMPLETE, FAILED, AgentTurn, Budget, DidNotHappen, End, Happened, Retry, seconds
from flows.models import JournalEntry
from tests import factories
from tests.factories import status
from tests.support.approving import World

#: What model and tools were asked, in order, and never forgot.
asked: list[str] = []
#: Places in that list at which the process is gone, before or after: {"before tool pay_back": BaseException()}.
fatal: dict[str, BaseException] = {}


class Killed(BaseException):
    """The process is gone: nothing of it is committed any more."""


def at(moment: str) -> None:
    """The process may be gone here."""
    if moment in fatal:
        raise fatal.pop(moment)


def happened(what: str) -> None:
    asked.append(what)


MONEY = "pay_back"
#: Every place at which the process may be gone while a cashier works.
PLACES = [
    f"{when} {what}"
    for what in ("model 0", "tool lookup", "model 1", "tool pay_back", "tool tell", "model 2")
    for when in ("before", "after")
]
AGAIN = Retry(max_attempts=3, initial=seconds(0), jitter=0, max_lost=40)


@pytest.fixture
def quiet() -> Iterator[None]:
    asked.clear()
    fatal.clear()
    yield
    assert not fatal, f"these places were not reached: {sorted(fatal)}"


def entries(run: Any) -> list[tuple[str, str, str]]:
    rows = JournalEntry.objects.filter(workflow_id=run.id).order_by("activity_seq", "number")
    return [(one.kind, one.name, one.status) for one in rows]


def flow_of(declare: Any, code: Any, budget: Budget | None = None, **more: Any) -> Any:
    turn = AgentTurn(code, choices={"answered": "done", "nothing": "stopped"}, retry=AGAIN, **more)
    done = End(COMPLETE, result=lambda state: state.results["think"]["value"])
    return declare("t-agent", meta={"budget": budget} if budget else {}, think=turn, done=done, stopped=End(FAILED))


def ask_provider(operation: Any) -> Any:
    """Asked about a call of which nobody knows whether it happened."""
    paid = [one for one in asked if one.startswith(f"tool {MONEY}")]
    return Happened("paid back 1.00") if paid else DidNotHappen()


def tell_again(operation: Any) -> Any:
    return Happened("told") if "tool tell ann" in asked else DidNotHappen()


def go_on(world: World, run: Any) -> None:
    """Answer what is asked, reconcile what is in doubt, and let another worker take over where one is lost."""
    for _ in range(12):
        try:
            world.worker.run()
        except Killed:
            factories.lose(world.worker)
            world.worker = factories.another_worker()
        for request in Request.objects.filter(workflow_id=run.id, status="pending"):
            world.decide(request)
        if status(run)[0] in ("complete", "failed"):
            return
        world.clock.move(minutes=5)
        world.worker.tick()
    raise AssertionError(f"the run does not end: {status(run)}, {entries(run)}")
