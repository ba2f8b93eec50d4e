"""A person has a stopped run go on elsewhere, while somebody else moves it: one of the two does, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Decision, End, Gate
from flows.core.misuse import CannotResumeAt
from flows.models import Activity as Visit
from flows.testing import LocalWorker
from tests import factories
from tests.support import waking
from tests.support.races import overtaken

pytestmark = pytest.mark.req("H1", "A3", "D3")


@pytest.fixture
def stopped(worker: LocalWorker, declare: Any) -> Any:
    """A run that its gate has stopped: main has moved."""
    seen = iter(["v1", "v1", *["v2"] * 20])
    flow = declare(
        "t-stopped",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Activity(factories.work, verifies="propose", then="act"),
        act=Activity(factories.work, gate=Gate(verified_by="check", fresh={"main": lambda attempt: next(seen)}), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).outcome == "REVALIDATION_REQUIRED"
    return run


def at(run: Any, node: str = "check") -> Any:
    try:
        return flows.resume(run, at=node).answer.value
    except CannotResumeAt:
        return "cannot"


#: name → (the other action, its answer where it comes second, the answer of the resume where that comes second, the statuses at the end)
OTHERS: dict[str, tuple[Callable[[Any], Any], str, str, str]] = {
    "the same": (at, "cannot", "cannot", "complete"),
    "elsewhere": (partial(at, node="propose"), "cannot", "cannot", "complete"),
    "a resume": (lambda run: flows.resume(run).answer.value, "already", "cannot", ""),
    "a cancel": (lambda run: flows.cancel(run).answer.value, "accepted", "too_late", "cancelled"),
    "a supersede": (lambda run: flows.supersede(run, goal="x").answer.value, "accepted", "too_late", "superseded"),
}


@pytest.mark.parametrize("first", ["resume", "other"])
@pytest.mark.parametrize("name", OTHERS)
def test_one_of_two_moves_it(stopped: Any, worker: LocalWorker, name: str, first: str) -> None:
    other, second, lost, ends = OTHERS[name]
    mine = partial(at, stopped)
    if first == "resume":
        met = overtaken(mine, lambda: other(stopped))
        assert met.second == second
    else:
        met = overtaken(lambda: other(stopped), mine)
        assert met.second == lost
    assert met.blocked
    worker.run()
    status = factories.row(stopped).status
    expected = {ends} if ends else {"complete" if first == "resume" else "waiting"}
    assert status in expected
    assert Visit.objects.filter(workflow_id=stopped.id, status__in=["scheduled", "running"]).count() == (status == "waiting")
