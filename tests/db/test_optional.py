"""Optional work is dropped under overload, and said to be; what is owed is not."""

from __future__ import annotations

from typing import Any

import pytest

from flows import COMPLETE, Activity, Effect, End, Flow
from flows.models import Transition, Workflow
from flows.testing import Clock, LocalWorker
from tests.factories import Line, called, row, work

pytestmark = pytest.mark.req("K1", "R2")


class Report(Flow):
    """Needs one thing, and would like two others."""

    class Meta:
        name = "t-report"

    need = Activity(work, effect=Effect(idempotent=True), then="nice")
    nice = Activity(work, optional=True, then="nicer")
    nicer = Activity(work, optional=True, queue="luxury", then="done")
    done = End(COMPLETE, result=lambda state: sorted(state.results))


class First(Flow):
    """Begins with what it can do without."""

    class Meta:
        name = "t-first-optional"

    nice = Activity(work, optional=True, then="need")
    need = Activity(work, then="done")
    done = End(COMPLETE, result=lambda state: sorted(state.results))


@pytest.fixture
def limited(settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "OVERLOAD_SECONDS": 30}


def crowd(clock: Clock) -> None:
    """Work that nobody here offers to do waits in the agents' queue for a minute."""
    waiting = Line.start({}, priority=9)
    Workflow.objects.filter(pk=waiting.id).update(placement="nowhere")
    clock.move(minutes=1)


def notes(run: Any) -> list[Any]:
    found = Transition.objects.filter(workflow_id=run.id, note__has_key="dropped").order_by("seq")
    return [one.note["dropped"] for one in found]


def test_with_room_everything_is_done(worker: LocalWorker, limited: None) -> None:
    run = Report.start({})
    worker.run(["agents", "luxury"])
    assert row(run).result == ["need", "nice", "nicer"]
    assert notes(run) == []


def test_under_overload_what_is_optional_is_dropped_and_said_so(worker: LocalWorker, clock: Clock, limited: None) -> None:
    crowd(clock)
    run = Report.start({})
    worker.run(["agents", "luxury"])
    assert row(run).result == ["need", "nicer"], "the other queue has room"
    assert (called("need"), called("nice"), notes(run)) == (1, 0, [["nice"]])


def test_what_waits_already_is_dropped_when_it_is_taken_up(worker: LocalWorker, clock: Clock, limited: None) -> None:
    crowd(clock)
    run = First.start({})
    worker.run(["agents"])
    assert (row(run).status, row(run).result, called("nice"), notes(run)) == ("complete", ["need"], 0, [["nice"]])


def test_without_the_setting_nothing_is_dropped(worker: LocalWorker, clock: Clock) -> None:
    crowd(clock)
    run = Report.start({})
    worker.run(["agents", "luxury"])
    assert row(run).result == ["need", "nice", "nicer"]
