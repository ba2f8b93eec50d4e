"""Whatever a flow's own functions say to the nodes of the outside world: the run goes on, or stops for a person with a code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Admission,
    Child,
    ContinueAsNew,
    Deadline,
    End,
    Flow,
    Job,
    Limit,
    Map,
    On,
    Parallel,
    Wait,
)
from flows.core import declared as declarations
from flows.errors import OutlastError
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row

pytestmark = pytest.mark.req("G4", "E1")

Declare = Callable[..., type[Flow]]
DAY = Deadline(days=1, then=ESCALATE)


def cyclic() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> Any:
    found: Any = 1
    for _ in range(5000):
        found = [found]
    return found


def raising() -> Any:
    raise ValueError("a mistake of the flow")


JUNK: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "nul": lambda: "a\x00b",
    "surrogate": lambda: "\ud800",
    "nan": lambda: math.nan,
    "huge number": lambda: 10**400,
    "huge text": lambda: "x" * 3_000_000,
    "cycle": cyclic,
    "deep": deep,
    "object": object,
    "bytes": lambda: b"x",
    "list of junk": lambda: [object(), math.inf, "\x00"],
    "dict of junk": lambda: {1: object(), "a": cyclic()},
    "nan in list": lambda: [math.nan],
    "nul in dict": lambda: {"a": "\x00"},
    "raises": raising,
}
CHILD = "t-junk-child"


def nodes(said: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """Node → the flow in which a function of it says so."""
    done = {"done": End(COMPLETE), "gave_up": End(FAILED)}
    work = Activity(factories.work)
    return {
        "map over": {"one": Map(said, do=factories.work, deadline=DAY, then="done", failed="gave_up"), **done},
        "child input": {"one": Child(CHILD, input=said, deadline=DAY, completed="done", failed="gave_up"), **done},
        "child key": {"one": Child(CHILD, key=said, deadline=DAY, completed="done", failed="gave_up"), **done},
        "parallel input": {
            "one": Parallel({"a": work, "b": CHILD}, input=said, deadline=DAY, then="done", failed="gave_up"),
            **done,
        },
        "continue input": {"one": Activity(factories.work, then="next"), "next": ContinueAsNew(input=said)},
        "job start": {"one": Job(said, event="t.junk", key="never", deadline=DAY, then="done"), **done},
        "job key": {"one": Job(factories.work, event="t.junk", key=said, deadline=DAY, then="done"), **done},
        "job poll": {"one": Job(factories.work, poll=said, deadline=DAY, then="done"), **done},
        "job read": {
            "one": Job(factories.work, poll=lambda attempt: {"a": 1}, read=said, choices={"x": "done"}, deadline=DAY),
            **done,
        },
        "wait keys": {"one": Wait(all=[On("t.junk", key=said)], deadline=DAY, then="done"), **done},
        "wait key": {"one": Wait("t.junk", key=said, deadline=DAY, then="done"), **done},
        "limit key": {"one": Activity(factories.work, limits=Limit("t-junk", concurrency=1, key=said), then="done"), **done},
    }


@pytest.mark.parametrize("where", sorted(nodes(lambda *_: None)))
def test_what_a_function_of_a_node_says(worker: LocalWorker, declare: Declare, clock: Clock, where: str) -> None:
    before = list(declarations.DECLARED)
    declare(CHILD, one=Activity(factories.work, then="done"), done=End(COMPLETE))
    runs = {}
    for number, (name, say) in enumerate(JUNK.items()):
        flow = declare(f"t-junk-{where.replace(' ', '-')}-{number}", **nodes(lambda *_, say=say: say())[where])
        runs[name] = flow.start({})
    for _ in range(8):
        worker.run()
        worker.tick()
        clock.move(minutes=2)
    declarations.DECLARED[:] = before
    found = {name: (row(run).status, row(run).outcome, row(run).error_code) for name, run in runs.items()}
    wild = {
        name: one
        for name, one in found.items()
        if one[0] in ("running", "runnable") or (one[1] == "HUMAN_REQUIRED" and not one[2])
    }
    assert not wild, found
    for run in runs.values():  # whatever it was, a person can end it
        flows.cancel(run)
    for _ in range(3):
        worker.run()
        worker.tick()
    left = {name for name, run in runs.items() if row(run).status not in ("cancelled", "complete", "failed")}
    if where == "job start":  # it was begun, and nobody knows which: a person says what became of it
        left -= {name for name, one in found.items() if one[2]}
    assert not left


@pytest.mark.parametrize("where", ["key", "newest"])
def test_what_a_function_of_an_admission_says(worker: LocalWorker, declare: Declare, where: str) -> None:
    raised = []
    for number, (name, say) in enumerate(JUNK.items()):
        said = {where: lambda given, say=say: say()}
        admission = Admission(per=1, **said) if where == "key" else Admission(**said)
        flow = declare(
            f"t-admit-{where}-{number}",
            meta={"admission": admission},
            one=Activity(factories.work, then="done"),
            done=End(COMPLETE),
        )
        try:
            flow.start({})
        except OutlastError:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            raised.append(f"{name}: {type(error).__name__}: {error}"[:150])
    assert raised == ["raises: ValueError: a mistake of the flow"], "what the function raises is the caller's to see"
