"""A newer version of a flow takes the wait for a job over, and starts no second one."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, Deadline, End, Job, Pending
from flows.models import Wait
from flows.testing import Clock, LocalWorker
from tests.factories import row, status

pytestmark = pytest.mark.req("C1", "G4")

started: list[str] = []


def start(attempt: Any) -> str:
    started.append(attempt.operation_id)
    return "j-1"


def nodes() -> dict[str, Any]:
    job = Job(start, event="t.job", key=lambda state: state.results["build"]["start"]["answer"], poll=lambda attempt: Pending(),
              deadline=Deadline(hours=9, then="done"), then="done")  # fmt: skip
    return {"build": job, "done": End(COMPLETE)}


def test_it_waits_on_in_the_newer_version(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    started.clear()
    run = declare("t-moved", meta={"version": 1}, **nodes()).start({})
    worker.run()
    declare("t-moved", meta={"version": 2, "migrate_from": {1: {}}}, **nodes())
    flows.migrate(run, to=2)
    assert (row(run).flow_version, Wait.objects.get().status) == (2, "open")
    clock.move(minutes=2)
    worker.tick()
    worker.run()
    flows.signal("e", "t.job", key="j-1")
    worker.run()
    assert (status(run)[0], len(started)) == ("complete", 1)
