"""A flow that goes on as new runs, and what its chain looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows import COMPLETE, Activity, ContinueAsNew, End, Flow, Wait
from flows.models import Workflow
from tests import factories
from tests.factories import key_of
from tests.support.branching import DAY, ONCE

Declare = Callable[..., type[Flow]]


def further(state: Any) -> Any:
    """The next number."""
    return {"key": state.input["key"], "number": state.input.get("number", 0) + 1}


def chaining(declare: Declare, name: str = "t-chain", *, meta: Any = None, input: Any = further, **options: Any) -> type[Flow]:
    """Waits for an event, has one step, and goes on as a new run; "stop" ends it."""
    return declare(
        name,
        meta=meta,
        ask=Wait("t.chain", key=key_of, deadline=DAY, read=lambda state: state.event["payload"].get("say", "on"),
                 choices={"on": "step", "stop": "done"}),
        step=Activity(factories.work, then="next", retry=ONCE, **options),
        next=ContinueAsNew(input=input),
        done=End(COMPLETE, result=lambda state: {"number": state.input.get("number", 0)}),
    )  # fmt: skip


def chain(run: Any) -> list[Workflow]:
    """The runs of its chain, the first one first."""
    found = [Workflow.objects.get(pk=run.id)]
    while found[-1].continued_to is not None:
        found.append(Workflow.objects.get(pk=found[-1].continued_to))
    return found
