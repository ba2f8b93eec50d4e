"""Schedules in the record: each moment is planned once, started with its run in one transaction, or left away with its reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flows
from flows import Compute, Missed, Overlap, calendars, minutes, seconds
from flows import schedules as faces
from flows.core.schedules.words import MOVES, OccurrenceStatus
from flows.models import Notice, Occurrence, Schedule, Workflow
from flows.services import sweeps
from flows.services.schedules import planning, starting
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.db.test_guards import ILLEGAL, execute, refused
from tests.factories import person
from tests.support.scheduling import USING, Declare, lasting, made, minutes_after, moments, now, quick, runs, tick, told

pytestmark = pytest.mark.req("M1", "D4")


@pytest.mark.req("C3")
def test_each_moment_is_a_run_for_its_accountable_user_with_its_cause(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    schedule = made(quick(declare), input={"report": 7}, priority=3, tenant="acme")
    assert schedule.next_at == schedule.anchor + minutes(1)
    tick(worker)
    assert told() == []
    clock.move(seconds=61)
    tick(worker)
    (occurrence,) = Occurrence.objects.all()
    run = Workflow.objects.get()
    assert (occurrence.status, occurrence.scheduled_for, occurrence.workflow_id) == (
        "started",
        schedule.anchor + minutes(1),
        run.pk,
    )
    assert (run.started_by, run.user_label, run.priority, run.tenant) == ("schedule:nightly", "ann", 3, "acme")
    assert run.key == f"schedule:nightly:{occurrence.scheduled_for.astimezone(UTC).isoformat()}"
    assert run.input == {"report": 7}
    assert run.status == "complete"
    tick(worker)
    assert told() == [("done", "")]
    schedule.refresh_from_db()
    assert (schedule.planned_until, schedule.next_at) == (schedule.anchor + minutes(1), schedule.anchor + minutes(2))


@pytest.mark.failure("Beat stops")
@pytest.mark.parametrize(
    ("missed", "wanted"),
    [
        (Missed.EVERY, [("done", "")] * 60),
        (Missed.NEWEST, [("skipped", "MISSED")] * 59 + [("done", "")]),
        (Missed.SKIP, [("skipped", "MISSED")] * 59 + [("done", "")]),
    ],
)
def test_beat_stops_for_an_hour(worker: LocalWorker, clock: Clock, declare: Declare, missed: Missed, wanted: Any) -> None:
    """The last one is on time again; of the others the policy says what becomes, and each has its row."""
    schedule = made(quick(declare), missed=missed, cap=25, overlap=Overlap.ALLOW)
    clock.move(minutes=60, seconds=5)
    tick(worker, 5)
    assert moments() == minutes_after(schedule.anchor, 60)
    assert told() == wanted
    assert runs() == ["complete"] * sum(status == "done" for status, _ in wanted)


@pytest.mark.failure("clock jumps")
def test_a_clock_that_jumps_back_plans_nothing_twice(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    schedule = made(quick(declare), overlap=Overlap.ALLOW)
    clock.move(minutes=3, seconds=1)
    tick(worker)
    clock.move(hours=-1)
    tick(worker, 2)
    assert len(moments()) == 3
    clock.move(hours=1, minutes=1)
    tick(worker, 2)
    assert moments() == minutes_after(schedule.anchor, 4)
    assert len(runs()) == len({*Workflow.objects.values_list("key", flat=True)})


@pytest.mark.failure("two Beats")
def test_two_beats_and_five_ticks_are_one(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare))
    clock.move(seconds=61)
    for _ in range(5):
        sweeps.run_tick(USING)
        planning.plan_due(USING)
        starting.start_due(USING)
    worker.run()
    assert (told(), runs()) == ([("started", "")], ["complete"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jumps=st.lists(st.integers(-3700, 3700), min_size=1, max_size=6),
    missed=st.sampled_from(Missed),
    beats=st.integers(1, 2),
    span=st.sampled_from([60, 420]),
)
def test_however_the_clock_goes_each_declared_moment_has_its_row_once(
    worker: LocalWorker, clock: Clock, declare: Declare, jumps: list[int], missed: Missed, beats: int, span: int
) -> None:
    """Beat stands still, two Beats, the clock jumps ahead and back: exactly the declared occurrences, in every policy."""
    name = f"s-{len(Schedule.objects.all())}"
    flow = quick(declare, f"t-{name}")
    schedule = made(flow, name, every=seconds(span), missed=missed, cap=7, overlap=Overlap.ALLOW)
    furthest = now()
    for jump in jumps:
        clock.move(seconds=jump)
        furthest = max(furthest, now())
        for _ in range(beats):
            sweeps.run_tick(USING)
    clock.move(seconds=(furthest - now()).total_seconds() + 1)
    while planning.plan_due(USING):
        pass
    end = now()
    assert schedule.anchor is not None
    wanted = [schedule.anchor + number * seconds(span) for number in range(1, 2 + (end - schedule.anchor) // seconds(span))]
    assert moments(name) == [one for one in wanted if one <= end]
    rows = Occurrence.objects.filter(schedule=schedule)
    assert not rows.exclude(code__in=["", "MISSED"]).exists()
    if missed is Missed.EVERY:
        assert not rows.filter(status="skipped").exists()
    Schedule.objects.update(next_at=None)
    rows.filter(status="pending").update(status="skipped", code="MISSED")


def test_jitter_delays_the_start_and_not_the_moment(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    schedule = made(quick(declare), jitter=minutes(5), every=minutes(10))
    clock.move(minutes=10, seconds=1)
    tick(worker)
    (occurrence,) = Occurrence.objects.all()
    assert (occurrence.status, occurrence.scheduled_for) == ("pending", schedule.anchor + minutes(10))
    assert occurrence.scheduled_for < occurrence.due_at < occurrence.scheduled_for + minutes(5)
    clock.move(minutes=5)
    tick(worker)
    occurrence.refresh_from_db()
    assert occurrence.status == "started"


def live(worker: LocalWorker, clock: Clock, declare: Declare, overlap: Overlap, **options: Any) -> Schedule:
    """One run of it lives, and the next moment has come."""
    schedule = made(lasting(declare), overlap=overlap, **options)
    clock.move(seconds=61)
    tick(worker)
    assert (told(), runs()) == ([("started", "")], ["waiting"])
    clock.move(seconds=60)
    tick(worker)
    return schedule


def test_overlap_allow(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    live(worker, clock, declare, Overlap.ALLOW)
    assert (told(), runs()) == ([("started", "")] * 2, ["waiting"] * 2)


def test_overlap_skip_and_from_the_third_in_a_row_on_somebody_knows(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    live(worker, clock, declare, Overlap.SKIP)
    assert told()[1:] == [("skipped", "OVERLAP")]
    for _ in range(4):
        clock.move(seconds=60)
        tick(worker)
    assert told()[1:] == [("skipped", "OVERLAP")] * 5
    assert Notice.objects.values_list("code", "user__username").get() == ("SCHEDULE_STUCK", "ann")
    flows.signal("e1", "t.end", key=str(Workflow.objects.get().key))
    tick(worker, 2)
    clock.move(seconds=60)
    tick(worker)
    assert told()[-1] == ("started", "")
    assert Schedule.objects.get().overlapped == 0


def test_overlap_queue_holds_one(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    live(worker, clock, declare, Overlap.QUEUE)
    assert told()[1:] == [("queued", "")]
    clock.move(seconds=60)
    tick(worker)
    assert told()[1:] == [("queued", ""), ("skipped", "QUEUE_FULL")]
    flows.signal("e1", "t.end", key=str(Workflow.objects.get().key))
    tick(worker, 2)
    assert told() == [("done", ""), ("started", ""), ("skipped", "QUEUE_FULL")]


def test_overlap_cancel_old(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    live(worker, clock, declare, Overlap.CANCEL_OLD)
    tick(worker)
    assert told() == [("cancelled", "CANCELLED"), ("started", "")]
    assert runs() == ["cancelled", "waiting"]


def test_overlap_supersede(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    live(worker, clock, declare, Overlap.SUPERSEDE)
    tick(worker)
    assert told() == [("cancelled", "INTENT_SUPERSEDED"), ("started", "")]
    assert runs() == ["superseded", "waiting"]
    assert len({*Workflow.objects.values_list("intent_id", flat=True)}) == 1
    assert {*Workflow.objects.values_list("user_label", flat=True)} == {"ann"}


def test_a_failed_run_fails_its_occurrence_with_its_code(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = declare("t-fails", one=flows.Activity(factories.work, on={ValueError: "bad"}, then="bad"), bad=flows.End(flows.FAILED))
    made(flow)
    clock.move(seconds=61)
    tick(worker, 2)
    assert [status for status, _ in told()] == ["failed"]


def test_what_is_outside_the_calendar_or_too_soon_is_left_away(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    calendars.publish("shut", {"zone": "UTC", "week": {}})
    made(quick(declare), calendar="shut")
    made(quick(declare, "t-often"), "often", cooldown=minutes(90), overlap=Overlap.ALLOW)
    for _ in range(2):
        clock.move(seconds=60)
        clock.move(seconds=1)
        tick(worker)
    assert told() == [("skipped", "CALENDAR")] * 2
    assert told("often") == [("done", ""), ("skipped", "COOLDOWN")]


@pytest.mark.parametrize("code", ["NO_CALENDAR", "NOBODY_ACCOUNTABLE", "REFUSED"])
def test_what_cannot_be_started_is_tried_five_times(worker: LocalWorker, clock: Clock, declare: Declare, code: str) -> None:
    flow, options = quick(declare), {}
    if code == "NO_CALENDAR":
        options["calendar"] = "nowhere"
    schedule = made(flow, **options)
    if code == "NOBODY_ACCOUNTABLE":
        person("ann").delete()
        person("ann")  # somebody else of that name
    if code == "REFUSED":
        flow.start({"other": 1}, key=f"schedule:nightly:{(schedule.anchor + minutes(1)).astimezone(UTC).isoformat()}")
    clock.move(seconds=61)
    Schedule.objects.update(next_at=schedule.anchor + minutes(1))
    for tries in range(1, 6):
        tick(worker)
        Schedule.objects.update(next_at=None)  # this one moment is what it is about
        occurrence = Occurrence.objects.get()
        assert (occurrence.code, occurrence.tries, occurrence.status) == (
            code,
            min(tries, 4),
            "failed" if tries == 5 else "pending",
        )
        tick(worker)
        clock.move(seconds=15 * tries + 1)
    assert runs() == []


def test_computed_at_completion_the_next_counts_from_the_end_of_the_run(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    schedule = made(lasting(declare), compute=Compute.COMPLETION, every=minutes(10))
    clock.move(minutes=10, seconds=1)
    tick(worker)
    schedule.refresh_from_db()
    assert (told(), schedule.next_at) == ([("started", "")], None)
    clock.move(minutes=35)
    tick(worker)
    assert len(told()) == 1
    flows.signal("e1", "t.end", key=str(Workflow.objects.get().key))
    worker.run()
    ended = now()
    tick(worker)
    schedule.refresh_from_db()
    assert told() == [("done", "")]
    assert schedule.next_at is not None and abs(schedule.next_at - ended - minutes(10)) < seconds(2)
    clock.move(minutes=10, seconds=2)
    tick(worker)
    assert told() == [("done", ""), ("started", "")]


def test_computed_at_completion_also_what_is_left_away_is_an_end(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    calendars.publish("shut", {"zone": "UTC", "week": {}})
    made(quick(declare), compute=Compute.COMPLETION, calendar="shut", missed=Missed.EVERY)
    clock.move(minutes=5, seconds=1)
    tick(worker, 2)
    assert told() == [("skipped", "CALENDAR")]
    assert Schedule.objects.get().next_at is not None


def test_once_comes_once(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare), at=now() + minutes(1))
    clock.move(hours=1)
    tick(worker, 2)
    assert (told(), Schedule.objects.get().next_at) == ([("done", "")], None)


def test_a_run_that_is_continued_as_new_goes_on_as_the_next(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = quick(declare)
    made(flow)
    clock.move(seconds=61)
    tick(worker)
    following = lasting(declare).start({}, key="next")
    execute("UPDATE outlast_workflow SET continued_to = %s WHERE key LIKE 'schedule:%%'", following.id)
    with transaction.atomic():
        execute("ALTER TABLE outlast_workflow DISABLE TRIGGER outlast_workflow_moved")
        execute("UPDATE outlast_workflow SET outcome = 'CONTINUED' WHERE key LIKE 'schedule:%%'")
        assert starting.end_over(USING) == 1
        assert Occurrence.objects.values_list("status", "workflow_id", "ended_at").get() == ("started", following.id, None)
        transaction.set_rollback(True)


def test_a_schedule_that_cannot_be_read_here_holds_up_no_other(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare))
    made(quick(declare, "t-other"), "other")
    Schedule.objects.filter(name="nightly").update(time_zone="Mars/Olympus")
    clock.move(seconds=61)
    tick(worker)
    assert (told(), told("other")) == ([], [("started", "")])


def test_what_was_missed_for_very_long_is_one_row(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    schedule = made(quick(declare), every=seconds(10), missed=Missed.SKIP)
    clock.move(days=3)
    while planning.plan_due(USING):
        pass
    over = Occurrence.objects.get(code="OVER_CAP")
    assert over.passed_to is not None and abs(now() - over.passed_to - timedelta(days=1)) < minutes(1)
    assert schedule.anchor is not None
    assert over.scheduled_for == schedule.anchor + 501 * seconds(10)
    later = Occurrence.objects.filter(scheduled_for__gt=over.passed_to).count()
    assert abs(later - 8640) <= 2


@pytest.mark.req("A2")
@pytest.mark.parametrize("old", list(OccurrenceStatus))
@pytest.mark.parametrize("new", list(OccurrenceStatus))
def test_the_database_makes_the_moves_of_the_table_and_no_other(
    worker: LocalWorker, clock: Clock, declare: Declare, old: OccurrenceStatus, new: OccurrenceStatus
) -> None:
    made(quick(declare))
    clock.move(seconds=61)
    tick(worker)
    execute("ALTER TABLE outlast_occurrence DISABLE TRIGGER outlast_occurrence_moved")
    execute("UPDATE outlast_occurrence SET status = %s", old)
    execute("ALTER TABLE outlast_occurrence ENABLE TRIGGER outlast_occurrence_moved")
    if (old, new) in MOVES:
        execute("UPDATE outlast_occurrence SET status = %s", new)
    else:
        with refused(ILLEGAL, "illegal move of occurrence"):
            execute("UPDATE outlast_occurrence SET status = %s", new)


@pytest.mark.req("A2")
def test_an_occurrence_is_one_moment_of_one_schedule(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare))
    clock.move(seconds=61)
    tick(worker)
    with refused("OL006", "cannot be changed"):
        execute("UPDATE outlast_occurrence SET scheduled_for = now()")
    row = Occurrence.objects.get()
    row.pk, row.status = None, "pending"
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)
    row.scheduled_for = datetime(2026, 1, 1, tzinfo=UTC)
    row.status = "started"
    with refused(ILLEGAL):
        row.save(force_insert=True)


def test_the_face_has_the_next_moments(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare), cron="30 2 * * *", zone="Europe/Vienna")
    found = faces.next("nightly", 400)
    assert len(found) == 400
    assert {one.by for one in found} == {"", "first", "shift"}
    assert next(one for one in found if one.by == "shift").local.endswith("03:00:00+02:00")
