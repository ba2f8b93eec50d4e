"""Work whose owner is gone or whose time is over: put back at once, never run by the sweep, and an old owner moves nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

import flows
from flows.core.ids import new_id
from flows.models import Activity, Attempt, Transition, Worker, Workflow
from flows.services import sweeps
from flows.services.proceed import Progress
from flows.services.turn import give_back
from flows.store import recover, workers
from flows.store.claim import begin, release
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Cross, Dated, Line, calls, does, failing, row, status
from tests.support.record import Counting
from tests.support.trace import dying_after

pytestmark = pytest.mark.req("A7")

USING = "default"


def attempts(run: Any) -> list[tuple[int, str, str | None]]:
    return list(
        Attempt.objects.filter(workflow_id=run.id)
        .order_by("activity_seq", "number")
        .values_list("number", "outcome", "error_code")
    )


def last_trigger(run: Any) -> str:
    return str(Transition.objects.get(workflow_id=run.id, seq=row(run).version).trigger)


# ---------------------------------------------------------------- claims


def test_a_claim_says_all_that_the_turn_needs(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({"a": 1}, key="k")
    does["one"] = failing(1)
    worker.run()
    clock.move(minutes=1)
    worker.tick()
    owned = factories.take_one(worker)
    activity = owned.state.activity
    assert activity is not None
    assert (activity.seq, activity.node, activity.visit, activity.number, activity.fence) == (1, "one", 1, 2, 2)
    assert (activity.failures, activity.lost, activity.last_error) == (1, 0, "TRANSIENT")
    assert (dict(owned.state.input), owned.state.key, owned.state.epoch) == ({"a": 1}, "k", 0)
    workflow = row(run)
    assert (workflow.worker_id, workflow.worker_pid, workflow.attempts) == (worker.incarnation, worker.pid, 2)


@pytest.mark.parametrize("state", ["stopped", "dead", "expired", "unknown"])
def test_a_worker_without_a_lease_claims_nothing(worker: LocalWorker, state: str) -> None:
    Line.start({})
    if state == "unknown":
        worker.incarnation = new_id()
    elif state == "expired":
        Worker.objects.update(lease_until="2020-01-01T00:00Z")
    else:
        Worker.objects.update(status=state)
    assert factories.take_up_to(worker, 10) == []
    assert Workflow.objects.get().status == "runnable"


def test_only_offered_definitions_queues_and_placements(worker: LocalWorker) -> None:
    Line.start({})
    worker.flows, worker.versions = ["t-line", "t-ask"], [2, 1]
    assert factories.take_up_to(worker, 10) == []
    factories.offer(worker)
    assert factories.take_up_to(worker, 10, "cleanup") == []
    Workflow.objects.update(placement="gpu")
    assert factories.take_up_to(worker, 10) == []
    worker.placements = ["eu", "gpu"]
    assert len(factories.take_up_to(worker, 10)) == 1


# ---------------------------------------------------------------- give back


def test_what_has_not_started_goes_back_and_does_not_count(worker: LocalWorker, hints: Counting) -> None:
    runs = [Line.start({}) for _ in range(4)]
    batch = factories.take_up_to(worker, 4)
    hints.clear()
    give_back([owned.row for owned in batch[1:]], worker.incarnation, USING)  # type: ignore[arg-type]
    assert [status(run)[0] for run in runs] == ["running", "runnable", "runnable", "runnable"]
    assert sum(len(hint.ids) for hint in hints.hints) == 3
    assert [attempts(run) for run in runs] == [[], [], [], []]
    assert (row(runs[1]).attempts, Activity.objects.get(workflow_id=runs[1].id).attempt, last_trigger(runs[1])) == (
        0,
        0,
        "release",
    )
    factories.another_worker().run()
    assert [call for call in calls if call[0] == "one"] == [("one", 1, 1)] * 3


def test_giving_back_twice_or_by_another_is_nothing(worker: LocalWorker) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    assert release([(run.id, owned.row.version, None)], uuid4(), USING) == []
    assert release([(run.id, owned.row.version + 1, None)], owned.worker, USING) == []
    assert len(release([(run.id, owned.row.version, None)], owned.worker, USING)) == 1
    assert release([(run.id, owned.row.version, None)], owned.worker, USING) == []
    assert factories.complete(owned) is Progress.LOST


def test_a_parent_gives_back_only_what_its_child_has_not_begun(worker: LocalWorker) -> None:
    runs = [Line.start({}) for _ in range(3)]
    batch = factories.take_up_to(worker, 3)
    hoarded = recover.unstarted_of_child(batch[0].worker, worker.pid, runs[0].id, USING)
    assert {entry[0] for entry in hoarded} == {runs[1].id, runs[2].id}
    assert begin(runs[1].id, batch[1].row.version, batch[1].worker, USING)
    assert [entry[0] for entry in release(hoarded, batch[0].worker, USING)] == [runs[2].id]
    assert not begin(runs[2].id, batch[2].row.version, batch[2].worker, USING)
    assert [status(run)[0] for run in runs] == ["running", "running", "runnable"]


def test_a_turn_hands_back_when_its_worker_stops(worker: LocalWorker) -> None:
    runs = [Line.start({}) for _ in range(3)]
    worker.batch_size = 3

    def stop(attempt: Any) -> None:
        worker.asked_to_stop = True

    does["one"] = stop
    worker.run()
    assert [status(run)[0] for run in runs] == ["runnable"] * 3
    assert (factories.called("one"), row(runs[0]).node) == (1, "two")


# ---------------------------------------------------------------- put back


@pytest.mark.parametrize("how", ["stopped", "dead", "gone"])
def test_work_of_a_worker_that_is_not_alive_is_put_back(worker: LocalWorker, hints: Counting, how: str) -> None:
    run = Line.start({})
    old = factories.take_one(worker)
    factories.enter(old)
    if how == "gone":
        Worker.objects.all().delete()
    else:
        Worker.objects.update(status=how)
    hints.clear()
    sweeps.run_tick(USING)
    assert (*status(run), last_trigger(run)) == ("runnable", "", "one", "lost")
    assert attempts(run) == [(1, "lost", "WORKER_LOST")]
    assert [hint.label for hint in hints.hints] == ["t-line.one"]
    assert row(run).epoch == 0
    assert factories.complete(old) is Progress.LOST
    other = factories.another_worker()
    other.run()
    assert status(run)[0] == "complete"
    assert calls[0] == ("one", 1, 2)


def test_an_expired_lease_is_buried_first(worker: LocalWorker) -> None:
    run = Line.start({})
    factories.take_one(worker)
    Worker.objects.update(lease_until="2020-01-01T00:00Z")
    sweeps.run_tick(USING)
    assert (Worker.objects.get().status, status(run)[0]) == ("dead", "runnable")
    assert workers.renew(worker.incarnation, 10.0, USING) is None  # type: ignore[arg-type]


def test_an_owner_that_is_alive_keeps_its_work(worker: LocalWorker) -> None:
    run = Line.start({})
    factories.take_one(worker)
    sweeps.run_tick(USING)
    assert sweeps.put_back([run.id], USING) == 0
    assert sweeps.put_back_children(worker.incarnation, [worker.pid + 1], USING) == 0  # type: ignore[arg-type]
    assert status(run)[0] == "running"


def test_only_the_work_of_the_child_that_is_gone(worker: LocalWorker) -> None:
    runs = [Line.start({}) for _ in range(2)]
    factories.take_up_to(worker, 1, pid=111)
    factories.take_up_to(worker, 1, pid=222)
    assert sweeps.put_back_children(worker.incarnation, [111], USING) == 1  # type: ignore[arg-type]
    assert [status(run)[0] for run in runs] == ["runnable", "running"]


def test_a_child_of_another_worker_with_the_same_number_keeps_its_work(worker: LocalWorker) -> None:
    """Process numbers repeat, in containers above all: the worker is part of the proof."""
    run = Line.start({})
    factories.take_up_to(worker, 1, pid=12)
    listed = recover.of_children(worker.incarnation, [12], USING)  # type: ignore[arg-type]
    factories.lose(worker)
    other = factories.another_worker()
    factories.take_up_to(other, 1, pid=12)
    assert sweeps.put_back(listed, USING, proven=(worker.incarnation, 12)) == 0  # type: ignore[arg-type]
    assert (row(run).status, row(run).worker_id) == ("running", other.incarnation)


def test_work_without_an_open_activity_is_put_back_too(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    factories.take_one(worker)
    factories.lose(worker)
    assert (status(run), attempts(run)) == (("runnable", "", "ask"), [])
    factories.another_worker().run()
    assert status(run) == ("waiting", "WAITING", "ask")


def test_work_that_died_between_event_and_next_step(worker: LocalWorker) -> None:
    """The event was early: the wait is open with its evidence, and the next owner decides on it."""
    flows.signal("e1", "t.asked", key="k")
    run = Ask.start({"key": "k"})
    owned = factories.take_one(worker)
    died = dying_after(owned, "park")
    assert died
    assert row(run).status == "running"
    factories.lose(worker)
    factories.another_worker().run()
    assert status(run) == ("waiting", "WAITING", "again")


def test_a_retry_elsewhere_keeps_the_operation(worker: LocalWorker) -> None:
    run = Cross.start({})
    worker.placements = ["gpu"]
    operations = []

    def act(attempt: Any) -> None:
        operations.append(attempt.operation_id)
        if len(operations) == 1:
            factories.lose(worker)

    does["placed"] = act
    worker.run()
    other = factories.another_worker(placements=["gpu"])
    other.run()
    assert status(run)[0] == "complete"
    assert operations == [f"{run.id}/placed/1"] * 2


# ---------------------------------------------------------------- time out


def test_an_attempt_over_its_timeout_is_ended_from_outside(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    clock.move(minutes=10)
    sweeps.run_tick(USING)
    assert status(run)[0] == "running"  # a grace: its own process interrupts it first
    clock.move(seconds=3)
    sweeps.run_tick(USING)
    assert status(run) == ("waiting", "WAITING", "one")
    assert attempts(run) == [(1, "timed_out", "ACTIVITY_TIMEOUT")]
    assert factories.complete(owned, {"late": True}) is Progress.LOST
    clock.move(minutes=1)
    sweeps.run_tick(USING)
    worker.run()
    assert status(run)[0] == "complete"


def test_a_timeout_has_a_route_too(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    flow = declare(
        "t-slow-route",
        one=flows.Activity(
            factories.work, retry=flows.Retry(max_attempts=1), on={flows.errors.ActivityTimeout: "ask"}, then="done"
        ),
        ask=flows.Wait("t.slow", key="k", deadline=flows.Deadline(hours=9, then=flows.ESCALATE), then="done"),
        done=flows.End(flows.COMPLETE),
    )
    early, late = flow.start({}), flow.start({})
    for _ in range(2):
        factories.enter(factories.take_one(worker))
    flows.signal("e1", "t.slow", key="k")
    clock.move(minutes=11)
    assert sweeps.time_out(USING) == 2
    assert sorted([status(early)[0], status(late)[0]]) == ["complete", "waiting"]


def test_the_last_timeout_asks_a_person(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    for _ in range(3):
        factories.enter(factories.take_one(worker))
        clock.move(minutes=11)
        worker.tick()
        clock.move(minutes=11)
        worker.tick()
    assert (*status(run), row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "one", "RETRIES_EXHAUSTED:ACTIVITY_TIMEOUT")


def test_a_pause_outlives_a_timeout(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    factories.enter(factories.take_one(worker))
    flows.pause(run)
    clock.move(minutes=11)
    worker.tick()
    assert status(run) == ("paused", "WAITING", "one")


def test_a_heartbeat_saves_an_attempt_from_the_sweep(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})

    def act(attempt: Any) -> None:
        for _ in range(4):
            clock.move(minutes=9)
            attempt.heartbeat()
            sweeps.run_tick(USING)

    does["one"] = act
    worker.run()
    assert status(run)[0] == "complete"


def test_a_locked_workflow_blocks_no_sweep(worker: LocalWorker, clock: Clock) -> None:
    runs = [Line.start({}) for _ in range(2)]
    for _ in runs:
        factories.enter(factories.take_one(worker))
    clock.move(minutes=11)
    holder = connection.copy()
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            cursor.execute("SELECT FROM outlast_workflow WHERE id = %s FOR UPDATE", [runs[0].id])
        assert sweeps.time_out(USING) == 1
        Worker.objects.update(status="dead")
        assert sweeps.put_back_lost(USING) == 0
        holder.rollback()
    finally:
        holder.close()
    assert sweeps.put_back_lost(USING) == 1


def test_a_dated_run_survives_it_all(worker: LocalWorker, clock: Clock) -> None:
    """Lost, timed out, retried, paused, and on."""
    run = Dated.start({"key": "k"})
    factories.take_one(worker)
    factories.lose(worker)
    other = factories.another_worker()
    factories.enter(factories.take_one(other))
    clock.move(minutes=11)
    other.tick()
    flows.pause(run)
    flows.resume(run)
    other.run()
    assert status(run) == ("waiting", "WAITING", "ask")
    flows.signal("e1", "t.dated", key="k")
    other.run()
    assert status(run)[0] == "complete"
    assert [entry[1] for entry in attempts(run)] == ["lost", "timed_out", "succeeded", "succeeded"]


@pytest.mark.req("A7", "S1")
@pytest.mark.parametrize("stands_on", ["the deadline of the flow", "a freshness budget"])
def test_a_claim_that_hangs_while_the_wait_of_a_person_is_open_has_timed_out(
    worker: LocalWorker, clock: Clock, declare: Any, stands_on: str
) -> None:
    """Suspended for a person, woken by a deadline, claimed by a process that hangs before its first decision: the log says what ended, and a
    replay follows it.
    """
    fresh = flows.Fresh(lambda attempt: "v1", within=flows.hours(10), then="propose")
    late = {"deadline": flows.Deadline(days=1, then=flows.ESCALATE)} if stands_on.startswith("the deadline") else {}
    again = flows.Visits(3, then="done")
    flow = declare(
        "t-hangs",
        meta=late,
        propose=flows.Decision(lambda attempt: flows.Candidate("go"), choices={"go": "check"}, visits=again),
        check=flows.Activity(
            factories.work, verifies="propose", visits=again, retry=flows.Retry(max_attempts=2, jitter=0), then="act"
        ),
        act=flows.Activity(factories.work, gate=flows.Gate(fresh={"main": fresh}), then="done"),
        done=flows.End(flows.COMPLETE),
    )
    factories.does["check"] = factories.failing(1, flows.errors.StateConflict)
    run = flow.start({})
    worker.run()
    assert factories.row(run).error_code == "STATE_CONFLICT"
    clock.move(days=2)
    worker.tick()
    other = factories.another_worker()
    other.flows, other.versions = worker.flows, worker.versions
    factories.take_one(other)
    clock.move(hours=1)
    worker.tick()
    assert Transition.objects.filter(workflow_id=run.id).latest("seq").trigger == "timed_out"
