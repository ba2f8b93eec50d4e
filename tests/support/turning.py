"""A flow with one agent turn whose code a test says, and what its journal keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows import COMPLETE, AgentTurn, Budget, Candidate, End, Flow, Paid, Retry, Spend, Stop, hours, seconds
from flows.models import JournalEntry
from flows.testing import LocalWorker
from tests import factories

#: What models and tools were asked, in order, and never forgot.
asked: list[str] = []


class Killed(BaseException):
    """The process is gone: nothing of it is committed any more."""


def says(answer: Any, **usage: Any) -> Callable[[], Paid]:
    """A model that answers so."""

    def call() -> Paid:
        asked.append(f"model {answer}")
        return Paid(answer, usage={"input_tokens": 10, "output_tokens": 5, **usage})

    return call


def does(answer: Any) -> Callable[[], Any]:
    """A tool that answers so; an error is raised."""

    def call() -> Any:
        asked.append(f"tool {answer}")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return call


def dies(then: Callable[[], Any] | None = None) -> Callable[[], Any]:
    """A call during which the process is gone; `then` was done before."""

    def call() -> Any:
        if then is not None:
            then()
        raise Killed

    return call


RETRY = Retry(max_attempts=2, initial=seconds(0), jitter=0, max_lost=5)


class Turn(Flow):
    """One agent turn, under a budget."""

    class Meta:
        name = "t-turn"
        budget = Budget(model_tokens=1000, model_calls=20, tool_calls=20)

    think = AgentTurn(
        factories.work,
        choices={"go": "done"},
        stop=Stop(calls=6, tools=6, tokens=500, span=hours(1), same=2),
        each=Spend(model_tokens=100),
        retry=RETRY,
    )
    done = End(COMPLETE, result=lambda state: state.results["think"]["value"])


def go(value: Any = None) -> Candidate:
    """The candidate with which a turn ends."""
    return Candidate("go", value)


def entries(run: Any) -> list[tuple[int, str, str, str, int]]:
    """(number, kind, name, status, attempt) of a run's journal, in order."""
    rows = JournalEntry.objects.filter(workflow_id=run.id).order_by("activity_seq", "number")
    return [(one.number, one.kind, one.name, one.status, one.attempt) for one in rows]


def die(worker: LocalWorker) -> LocalWorker:
    """Work until the process is gone; the worker that takes over."""
    with pytest.raises(Killed):
        worker.run()
    factories.lose(worker)
    return factories.another_worker()
