"""Durable timers: firing wakes and authorises nothing; twice is harmless; one of another epoch or of an ended run is counted as stale."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

import flows
from flows.models import Timer, Transition, Wait
from flows.services import clock as durable
from flows.services import sweeps
from flows.store import timers as store
from flows.store.sql import run
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Dated, Line, Nap, row, status
from tests.support.record import Counting

pytestmark = pytest.mark.req("C3")

USING = "default"


@pytest.fixture
def asleep(worker: LocalWorker, clock: Clock) -> flows.services.start.Started:  # type: ignore[name-defined]
    started = Nap.start({})
    worker.run()
    assert status(started) == ("waiting", "WAITING", "nap")
    return started


def test_a_sleep_ends_when_its_time_has_come(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    timer = Timer.objects.get()
    assert (timer.kind, timer.status, timer.wait_id) == ("sleep", "pending", Wait.objects.get().pk)
    assert row(asleep).due_at == timer.due_at
    clock.move(minutes=59)
    worker.tick()
    assert worker.run() == 0
    clock.move(minutes=2)
    worker.tick()
    assert status(asleep) == ("runnable", "", "nap")
    assert row(asleep).due_at is None
    log = Transition.objects.get(workflow_id=row(asleep).pk, seq=row(asleep).version)
    assert (log.trigger, log.trigger_ref) == ("timer", f"sleep:{timer.pk}")
    worker.run()
    assert status(asleep)[0] == "complete"
    assert [call[0] for call in factories.calls] == ["before", "after", "last"]


def test_two_beats_and_five_ticks_are_one(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    clock.move(hours=2)
    for _ in range(5):
        worker.tick()
        sweeps.fire_timers(USING)
    assert row(asleep).wake_seq == 1
    worker.run()
    assert factories.called("after") == 1


def test_firing_a_fired_timer_does_nothing(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    clock.move(hours=2)
    due = store.lock_due(10, USING)
    assert [told[0] for told in store.fire(due, 60, USING).told] == [row(asleep).pk]
    before = row(asleep).version
    assert store.fire(due, 60, USING) == store.Fired([], [])
    assert row(asleep).version == before


def test_an_hour_without_beat_loses_nothing(worker: LocalWorker, clock: Clock, hints: Counting) -> None:
    runs = [Nap.start({}) for _ in range(7)]
    worker.run()
    clock.move(hours=3)
    hints.clear()
    worker.tick()
    assert sum(len(hint.ids) for hint in hints.hints) == 7
    worker.run()
    assert {status(one)[0] for one in runs} == {"complete"}


def test_all_due_timers_are_fired_whatever_the_batch(worker: LocalWorker, clock: Clock, settings: object) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "SWEEP_BATCH": 3}  # type: ignore[attr-defined]
    for _ in range(8):
        Nap.start({})
    worker.run()
    clock.move(hours=3)
    assert sweeps.fire_timers(USING) == 8


def insert_timer(started: object, *, epoch: int, kind: str = "sleep") -> int:
    statement = """
        INSERT INTO outlast_timer (workflow_id, kind, due_at, epoch, intent_version, policy_version, status)
        VALUES (%(id)s::uuid, %(kind)s, flows_now() - interval '1 minute', %(epoch)s::int, 1, '', 'pending') RETURNING id
    """
    return int(run("insert", statement, {"id": row(started).pk, "kind": kind, "epoch": epoch}, USING)[0][0])


@pytest.mark.req("D2")
@pytest.mark.parametrize("epoch", [-1, 1, 7])
def test_a_timer_of_another_epoch_is_counted_as_stale(worker: LocalWorker, asleep: object, epoch: int) -> None:
    timer = insert_timer(asleep, epoch=epoch)
    before = (row(asleep).version, row(asleep).wake_seq)
    assert sweeps.fire_timers(USING) == 0
    found = Timer.objects.get(pk=timer)
    assert (found.status, found.fired_at is None) == ("stale", False)
    assert (row(asleep).version, row(asleep).wake_seq) == before
    assert status(asleep)[0] == "waiting"


@pytest.mark.req("D2")
@pytest.mark.parametrize("ending", ["complete", "cancelled", "superseded", "failed"])
def test_a_timer_of_an_ended_run_is_counted_as_stale(worker: LocalWorker, clock: Clock, ending: str) -> None:
    started = factories.in_status(flows.core.protocol.Status(ending), worker)  # type: ignore[attr-defined]
    before = row(started).version
    timer = insert_timer(started, epoch=row(started).epoch)
    worker.tick()
    assert Timer.objects.get(pk=timer).status == "stale"
    assert (row(started).version, status(started)[0]) == (before, ending)


@pytest.mark.parametrize("verb", ["cancel", "supersede"])
def test_ending_a_run_takes_its_timers_along(worker: LocalWorker, clock: Clock, verb: str) -> None:
    started = Dated.start({"key": "k"})
    worker.run()
    assert sorted(Timer.objects.values_list("kind", flat=True)) == ["wait_deadline", "workflow_deadline"]
    flows.cancel(started) if verb == "cancel" else flows.supersede(started, goal="x")
    assert not Timer.objects.exists()


def test_a_timer_while_paused_is_recorded_and_counts_on_resume(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    flows.pause(asleep)
    clock.move(hours=2)
    worker.tick()
    assert status(asleep) == ("paused", "WAITING", "nap")
    assert worker.run() == 0
    flows.resume(asleep)
    worker.run()
    assert status(asleep)[0] == "complete"


def test_a_resumed_sleep_sleeps_on(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    """Pause and resume of a sleeper: it goes back to its wait, and its row says until when."""
    due = row(asleep).due_at
    flows.pause(asleep)
    flows.resume(asleep)
    worker.run()
    assert status(asleep) == ("waiting", "WAITING", "nap")
    assert row(asleep).due_at == due
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert status(asleep)[0] == "complete"


def test_timers_close_by_are_not_left_to_the_next_tick(worker: LocalWorker, declare: object, hints: Counting) -> None:
    flow = declare("t-short", nap=flows.Sleep(timedelta(seconds=1), then="done"), done=flows.End(flows.COMPLETE))  # type: ignore[operator]
    flow.start({})
    worker.run()
    assert [round(seconds) for seconds in hints.looks] == [1]
    hints.clear()
    worker.tick()
    assert len(hints.looks) == 1
    assert 0 < hints.looks[0] <= 1


def test_a_locked_workflow_blocks_no_sweep(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    other = Nap.start({})
    worker.run()
    clock.move(hours=2)
    holder = connection.copy()
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            cursor.execute("SELECT FROM outlast_workflow WHERE id = %s FOR UPDATE", [row(asleep).pk])
        assert sweeps.fire_timers(USING) == 1
        assert (status(asleep)[0], status(other)[0]) == ("waiting", "runnable")
        holder.rollback()
    finally:
        holder.close()
    assert sweeps.fire_timers(USING) == 1


def test_a_tick_after_the_databases_clock_was_set_back(worker: LocalWorker) -> None:
    """NTP corrected the server: the last tick lies in the future, and the sweeps go on all the same."""
    run("ahead", "UPDATE outlast_tick SET ticked_at = statement_timestamp() + interval '1 hour'", {}, USING)
    assert sweeps.run_tick(USING) is not None
    assert sweeps.run_tick(USING, min_age=2.0) is None


@pytest.mark.failure("clock jumps")
def test_what_was_ready_before_the_durable_clock_went_back_is_not_left_for_an_hour(
    worker: LocalWorker, clock: Clock, hints: Counting
) -> None:
    """Its hint was lost; by the clock of now it became ready in the future."""
    run = Line.start({})
    clock.move(hours=-1)
    hints.clear()
    worker.tick()
    assert [hint.ids for hint in hints.hints] == [(str(row(run).pk),)]


@pytest.mark.failure("clock jumps")
def test_timers_wait_for_their_time_also_where_the_clock_goes_back(worker: LocalWorker, clock: Clock, asleep: object) -> None:
    """An attempt is under way meanwhile; its lease is on real time."""
    Line.start({})
    owned = factories.take_one(worker)
    clock.move(minutes=50)
    clock.move(hours=-1)
    worker.tick()
    assert (status(asleep)[0], Timer.objects.get().status) == ("waiting", "pending")
    assert factories.complete(owned) is factories.Progress.RUN
    clock.move(minutes=65)
    worker.tick()
    assert status(asleep)[0] == "waiting", "an hour after it fell asleep, and not sooner"
    clock.move(minutes=6)
    for _ in range(2):
        worker.tick()
    assert (status(asleep)[0], row(asleep).wake_seq) == ("runnable", 1)


def test_a_tick_in_a_record_that_was_emptied(worker: LocalWorker) -> None:
    """A host's tests flush every table; the clock must not stop for want of its one row."""
    run("empty", "DELETE FROM outlast_tick", {}, USING)
    assert sweeps.run_tick(USING) is not None
    assert sweeps.run_tick(USING, min_age=2.0) is None


def test_the_production_clock_is_the_databases(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT flows_now() = statement_timestamp(), provolatile FROM pg_proc WHERE proname = 'flows_now'")
        assert cursor.fetchone() == (True, "s")
    assert durable.now(USING).tzinfo is not None


def test_a_moved_clock_does_not_move_leases(worker: LocalWorker, clock: Clock) -> None:
    started = Line.start({})
    factories.take_one(worker)
    clock.move(minutes=5)
    worker.tick()
    assert status(started)[0] == "running"
