"""One turn over several steps: what arrives meanwhile, what the next worker finds, and what time it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, End, Sleep, hours
from flows.models import Activity as ActivityRow
from flows.models import Attempt, Timer
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Cross, Line, Nap, Pipe, calls, does, row, status


def pausing(attempt: Any) -> Any:
    """Somebody asks for a pause while this code runs."""
    flows.pause(attempt.workflow_id)
    return {"by": attempt.node, "step": attempt.step}


@pytest.mark.req("A3")
def test_a_pause_during_a_later_step_of_a_turn_keeps_that_steps_result(worker: LocalWorker) -> None:
    run = Line.start({})
    does["two"] = pausing
    worker.run()
    assert status(run) == ("paused", "WAITING", "three")
    assert list(ActivityRow.objects.filter(workflow_id=run.id).order_by("seq").values_list("node", "status", "attempt")) == [
        ("one", "done", 1),
        ("two", "done", 1),
        ("three", "scheduled", 0),
    ]
    flows.resume(run)
    worker.run()
    assert row(run).result["two"] == {"by": "two", "step": ""}
    assert calls == [("one", 1, 1), ("two", 1, 1), ("three", 1, 1)]


def test_a_pause_during_the_step_after_a_retried_one(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = factories.failing(1)
    does["two"] = pausing
    worker.run()
    clock.move(minutes=1)
    worker.tick()
    worker.run()
    assert status(run) == ("paused", "WAITING", "three")
    assert calls == [("one", 1, 1), ("one", 1, 2), ("two", 1, 1)]
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_a_pause_during_the_step_after_a_wait(worker: LocalWorker, clock: Clock) -> None:
    run = Nap.start({})
    does["after"] = pausing
    worker.run()
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert status(run) == ("paused", "WAITING", "last")
    assert Attempt.objects.filter(workflow_id=run.id, node="after").values_list("outcome", flat=True).get() == "succeeded"
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    assert calls == [("before", 1, 1), ("after", 1, 1), ("last", 1, 1)]


def test_a_pause_during_a_later_step_of_a_pipeline(worker: LocalWorker) -> None:
    run = Pipe.start({})
    does["line.b"] = pausing
    worker.run()
    flows.resume(run)
    worker.run()
    assert row(run).result == {
        "a": {"by": "line.a", "visit": 1, "number": 1},
        "b": {"by": "line", "step": "b"},
        "c": {"by": "line.c", "visit": 1, "number": 1},
    }
    assert [call[0] for call in calls] == ["line.a", "line.b", "line.c"]


def test_a_sleep_begins_when_its_step_is_over(worker: LocalWorker, clock: Clock) -> None:
    run = Nap.start({})

    def long(attempt: Any) -> None:
        clock.move(hours=5)

    does["before"] = long
    worker.run()
    assert status(run)[0] == "waiting"
    timer = Timer.objects.get(workflow_id=run.id)
    assert timer.due_at - row(run).updated_at > timedelta(minutes=59)


def test_until_sees_the_time_of_the_decision(worker: LocalWorker, clock: Clock, declare: Callable[..., type[flows.Flow]]) -> None:
    flow = declare(
        "t-until",
        before=Activity(factories.work, then="nap"),
        nap=Sleep(until=lambda state: state.now + hours(1), then="done"),
        done=End(COMPLETE),
    )
    does["before"] = lambda attempt: clock.move(hours=5)
    run = flow.start({})
    worker.run()
    assert Timer.objects.get(workflow_id=run.id).due_at - row(run).updated_at > timedelta(minutes=59)


def test_a_step_with_a_placement_is_taken_up_again_only_where_it_is_offered(worker: LocalWorker) -> None:
    worker.placements = ["gpu"]
    run = Cross.start({})
    worker.run(["agents"])
    owned = factories.take_one(worker, "cleanup")
    factories.enter(owned)
    factories.complete(owned)
    assert row(run).node == "placed"
    worker.stop()
    plain, gpu = factories.another_worker(), factories.another_worker(placements=["gpu"])
    plain.tick()
    assert status(run) == ("runnable", "", "placed")
    assert plain.run() == 0
    assert gpu.run(["cleanup"]) == 1
    assert status(run) == ("runnable", "", "back")
    assert plain.run() == 1
    assert status(run)[0] == "complete"
