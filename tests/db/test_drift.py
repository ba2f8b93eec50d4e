"""A definition that changed under its runs without a new version: what had come stays there, and the old shape goes on with it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Sleep, Wait, hours, registry
from flows.core import definition as declared
from flows.models import Wait as WaitRow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status

Declare = Callable[..., type[flows.Flow]]
REQUIRED = "WORKFLOW_MIGRATION_REQUIRED"


def replace(declare: Declare, name: str, **nodes: Any) -> type[flows.Flow]:
    """A deployment: the same name and version with other nodes."""
    declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls.definition.name != name]
    registry._lookup.cache_clear()
    return declare(name, **{key: copy.copy(node) for key, node in nodes.items()})


@pytest.mark.req("G2")
def test_an_event_that_came_meanwhile_is_not_lost(worker: LocalWorker, declare: Declare) -> None:
    old = {
        "ask": Wait("t.drifted", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="done"),
        "done": End(COMPLETE, result=lambda state: state.results["ask"]["payload"]),
    }
    run = declare("t-drifted", **old).start({})
    worker.run()
    replace(declare, "t-drifted", **{**old, "ask": Wait("t.drifted", key="k", deadline=Deadline(hours=1, then="more"), then="more"),
                                     "more": Activity(factories.work, then="done")})  # fmt: skip
    flows.signal("e1", "t.drifted", key="k", payload={"n": 1})
    worker.run()
    assert (*status(run), row(run).error_code) == ("waiting", REQUIRED, "ask", REQUIRED)
    assert WaitRow.objects.get().evidence == {"id": "e1", "payload": {"n": 1}}
    flows.resume(run)
    worker.run()
    assert status(run)[:2] == ("waiting", REQUIRED)
    replace(declare, "t-drifted", **old)
    flows.resume(run)
    worker.run()
    assert (status(run)[0], row(run).result) == ("complete", {"n": 1})


@pytest.mark.req("G2")
def test_a_sleep_that_was_over_meanwhile_is_over(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    old = {"nap": Sleep(hours(1), then="done"), "done": End(COMPLETE)}
    run = declare("t-dozed", **old).start({})
    worker.run()
    replace(declare, "t-dozed", nap=Sleep(hours(1), then="more"), more=Activity(factories.work, then="done"), done=End(COMPLETE))
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert status(run) == ("waiting", REQUIRED, "nap")
    replace(declare, "t-dozed", **old)
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
