"""The failures that the source document injects, each by its name; those that are about processes are in tests/chaos."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import flows
from approvals.api import decide
from flows import COMPLETE, Activity, Commits, Decision, End, Fresh, Gate, Sleep, Verdict, Visits, hours
from flows.models import Commitment, Event, Operation, Transition
from flows.models import Verdict as Answer
from flows.services import sweeps
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support import waking
from tests.support.approving import World, world
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("T1")

__all__ = ["world"]  # the fixture


@pytest.mark.failure("approval arrives after supersession")
def test_an_approval_of_a_goal_that_is_gone_is_rejected(world: World) -> None:
    request = world.ask()
    flows.supersede(request.workflow_id, goal="Publish something else")
    assert not decide(request, verdict="approve", digest=request.digest, by=world.rita)
    world.worker.run()
    assert world.workflow(request).status == "superseded"
    assert world.status(request) == "cancelled"


@pytest.mark.failure("timer fires twice")
def test_a_timer_that_two_sweeps_fire_wakes_once(worker: LocalWorker, clock: Clock) -> None:
    run = factories.Nap.start({})
    worker.run()
    clock.move(hours=2)
    with racers(2) as (one, two):
        together((one, lambda: sweeps.fire_timers("default")), (two, lambda: sweeps.fire_timers("default")))
    sweeps.fire_timers("default")
    worker.run()
    assert factories.status(run)[0] == "complete"
    assert Transition.objects.filter(workflow_id=run.id, trigger="timer").count() == 1
    assert factories.called("after") == 1


@pytest.mark.failure("commitment is active at completion")
def test_an_end_waits_for_what_is_owed(worker: LocalWorker, declare: Any) -> None:
    """The run is not complete while the window is held; it is given back first."""
    seen: list[str] = []

    def release(operation: Any) -> None:
        seen.append(factories.row(run).status)

    flow = declare(
        "t-holds-a-window",
        hold=Activity(factories.work, commits=Commits("window", release=release), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run(["agents"])
    assert factories.status(run)[:2] == ("reconciling", "RECONCILIATION_REQUIRED")
    worker.run()
    assert (factories.status(run)[:2], seen) == (("complete", "COMPLETE"), ["reconciling"])
    assert Commitment.objects.get().status == "released"


@pytest.mark.failure("duplicate event")
def test_the_same_event_twice_is_consumed_once(worker: LocalWorker) -> None:
    run = factories.Ask.start({}, key="dup")
    worker.run()
    for _ in range(2):
        flows.signal("e1", "t.asked", key="dup", payload={"n": 1})
        worker.run()
    assert factories.status(run)[2] == "again"
    assert (Event.objects.get().deliveries, factories.called("after")) == (2, 1)
    flows.signal("e2", "t.again", key="dup", payload={})
    worker.run()
    assert factories.status(run)[0] == "complete"


@pytest.mark.req("H2", "B8")
@pytest.mark.failure("sleep past the freshness budget")
def test_what_slept_too_long_is_looked_at_again_before_the_next_step(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    """Nothing has changed outside; it is only too long ago that it was looked at. What checks is done again, and then the step."""
    flow = declare(
        "t-budget",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Activity(factories.work, verifies="propose", visits=Visits(3, then="done"), then="nap"),
        nap=Sleep(hours(5), visits=Visits(1, then="act"), then="act"),
        act=Activity(
            factories.work,
            gate=Gate(fresh={"main": Fresh(lambda attempt: "v1", within=timedelta(hours=4))}, verified_by="check"),
            on={Verdict.REVALIDATION_REQUIRED: "check"},
            then="done",
        ),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    clock.move(hours=6)
    worker.tick()
    worker.run()
    assert factories.status(run)[0] == "complete"
    assert (factories.called("propose"), factories.called("check"), factories.called("act")) == (0, 2, 1)
    refused = Answer.objects.get(workflow_id=run.id, verdict="REVALIDATION_REQUIRED")
    assert (refused.node, refused.cause) == ("act", "timer")
    assert "older than it may be" in refused.reason


@pytest.mark.failure("write races with cancellation")
def test_what_was_decided_before_a_cancel_is_refused_after_it(worker: LocalWorker) -> None:
    """The owner writes its result while the cancel has not committed: it waits, and then its result moves nothing."""
    run = factories.Line.start({})
    owned = factories.take_one(worker)
    met = overtaken(lambda: flows.cancel(run), lambda: factories.try_complete(owned))
    assert met.blocked, "two sessions, at one row"
    assert met.first
    assert met.second is not factories.Progress.RUN
    assert not isinstance(met.second, Exception)
    refused(run)


def refused(run: Any) -> None:
    """It is cancelled, and what the owner had moved nothing."""
    assert factories.status(run)[:2] == ("cancelled", "CANCELLED")
    assert not Operation.objects.exists()
    assert not Transition.objects.filter(workflow_id=run.id, trigger="completed").exists()


@pytest.mark.failure("write races with cancellation")
def test_a_write_and_a_cancel_at_the_same_moment(worker: LocalWorker) -> None:
    """Either the step is recorded and then the run is cancelled, or the run is cancelled and the step is refused; nothing in between."""
    with racers(2) as (owner, person):
        for _ in range(20):
            run = factories.Line.start({})
            owned = factories.take_one(worker)
            progress, cancelled = together(
                (owner, lambda owned=owned: factories.try_complete(owned)), (person, lambda run=run: flows.cancel(run))
            )
            assert cancelled
            log = list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))
            written = ["completed"] if progress is factories.Progress.RUN else []
            assert log == ["start", "claim", *written, "cancel", "settled"]
            assert factories.status(run)[:2] == ("cancelled", "CANCELLED")
