"""Schedules under contention and crashes: one occurrence, one run, and no half of either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

import flows
from flows import Overlap, minutes
from flows import schedules as faces
from flows.models import Occurrence, Schedule, Workflow
from flows.services import sweeps
from flows.services.schedules import planning, starting
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests.support.races import overtaken, racers, together
from tests.support.scheduling import NAME, USING, Declare, lasting, made, moments, quick, runs, tick, told

pytestmark = pytest.mark.req("M1")


@pytest.mark.failure("two Beats")
def test_two_planners_plan_each_moment_once(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare), overlap=Overlap.ALLOW)
    with racers(2) as (one, two):
        for number in range(1, 31):
            clock.move(seconds=60)
            outcomes = together((one, lambda: planning.plan_due(USING)), (two, lambda: planning.plan_due(USING)))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            assert sum(outcomes) >= 1
            assert len(moments()) == number
            outcomes = together((one, lambda: starting.start_due(USING)), (two, lambda: starting.start_due(USING)))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            starting.start_due(USING)
            assert Workflow.objects.count() == number


def test_who_plans_passes_over_what_another_clock_holds(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare))
    clock.move(seconds=61)
    met = overtaken(lambda: planning.plan_due(USING), lambda: planning.plan_due(USING))
    assert (met.first, met.second, met.blocked) == (1, 0, False)
    met = overtaken(lambda: starting.start_due(USING), lambda: starting.start_due(USING))
    assert not met.blocked
    assert len(runs()) == 1


def test_a_start_and_the_cancel_of_the_run_before_it(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """The run ends at the moment at which its overlap is looked at: it is skipped, or started, and never both."""
    made(lasting(declare), overlap=Overlap.SKIP)
    with racers(2) as (one, two):
        for number in range(1, 16):
            clock.move(seconds=60)
            tick(worker)
            living = Workflow.objects.filter(status="waiting").order_by("created_at").last()
            clock.move(seconds=60)
            planning.plan_due(USING)
            assert living is not None
            outcomes = together((one, lambda: starting.start_due(USING)), (two, lambda run=living: flows.cancel(run)))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
            tick(worker, 2)
            assert told()[-1] in {("started", ""), ("skipped", "OVERLAP")}
            assert Occurrence.objects.filter(status="started").count() == Workflow.objects.filter(status="waiting").count() <= 1
            for run in Workflow.objects.filter(status="waiting"):
                flows.cancel(run)
            tick(worker, 2)
            assert not Occurrence.objects.filter(status="started").exists(), number


def test_supersede_by_a_schedule_and_by_a_person_do_not_deadlock(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(lasting(declare), overlap=Overlap.SUPERSEDE)
    clock.move(seconds=60)
    tick(worker)
    with racers(2) as (one, two):
        for number in range(15):
            clock.move(seconds=60)
            planning.plan_due(USING)
            run = Workflow.objects.order_by("-created_at").first()
            outcomes = together(
                (one, lambda: starting.start_due(USING)),
                (two, lambda run=run, number=number: flows.supersede(run, goal=f"other {number}")),
            )
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
            tick(worker, 2)
    assert Occurrence.objects.filter(status="started").count() <= 1


def test_a_pause_waits_for_who_plans_and_then_holds(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made(quick(declare))
    clock.move(seconds=61)
    met = overtaken(lambda: planning.plan_due(USING), lambda: faces.pause(NAME))
    assert met.blocked
    assert starting.start_due(USING) == 0
    assert told() == [("pending", "")]


def test_two_that_run_it_now_add_two_and_two_that_make_up_add_each_moment_once(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    schedule = made(quick(declare), cron="*/10 * * * *", overlap=Overlap.ALLOW)
    end = schedule.planned_until
    with racers(2) as (one, two):
        outcomes = together((one, lambda: faces.run_now(NAME)), (two, lambda: faces.run_now(NAME)))
        assert all(outcomes), outcomes
        fill = {"since": end - minutes(60), "until": end}
        outcomes = together((one, lambda: faces.backfill(NAME, **fill)), (two, lambda: faces.backfill(NAME, **fill)))
        assert sorted(len(outcome.moments) for outcome in outcomes) == [0, 6]
    assert Occurrence.objects.count() == 8


def test_of_two_changes_that_saw_the_same_revision_one_is_refused(worker: LocalWorker, declare: Declare) -> None:
    made(quick(declare))
    with racers(2) as (one, two):
        for revision in range(1, 20):
            outcomes = together(
                (one, lambda revision=revision: faces.change(NAME, seen=revision, cap=2)),
                (two, lambda revision=revision: faces.change(NAME, seen=revision, cap=3)),
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Acted", "ScheduleTaken"]
    assert Schedule.objects.get().revision == 20


# ---------------------------------------------------------------- crashes


class Crash(BaseException):
    """The process is gone: nothing of it is caught."""


@contextmanager
def dying_at(number: int, passed: list[str]) -> Iterator[None]:
    """Die at the point of that number: within a transaction, before a commit or after it."""

    def seam(when: str, name: str) -> None:
        passed.append(f"{when} {name}")
        if len(passed) - 1 == number:
            raise Crash

    sql.seam = seam
    try:
        yield
    except Crash:
        connections[USING].close()
    finally:
        sql.seam = None


@pytest.mark.serial
@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE, Overlap.SUPERSEDE])
def test_a_crash_at_any_point_leaves_both_or_neither(
    worker: LocalWorker, clock: Clock, declare: Declare, overlap: Overlap
) -> None:
    """A moment comes, and the clock dies at every point of planning, starting and ending; whoever comes next finds a whole."""
    made(lasting(declare), overlap=overlap)
    number, names = 0, set[str]()
    while True:
        clock.move(seconds=60)
        before = len(moments())
        passed: list[str] = []
        with dying_at(number, passed):
            sweeps.run_tick(USING)
        assert Workflow.objects.count() == Occurrence.objects.filter(workflow__isnull=False).count()
        for run in Workflow.objects.filter(status="waiting"):
            flows.cancel(run)
        tick(worker, 3)
        assert len(moments()) == before + 1
        assert len({*Workflow.objects.values_list("key", flat=True)}) == Workflow.objects.count()
        assert not Occurrence.objects.filter(status__in=["pending", "queued"]).exists()
        names |= {name.partition(" ")[2] for name in passed}
        if len(passed) <= number:
            break
        number += 1
    assert {"plan occurrences", "schedule planned", "plan schedule", "start occurrence"} <= names
    assert number > 12
