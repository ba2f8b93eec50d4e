"""What a supersede would do is said before it is done; and the scan finds what breaks an invariant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

import flows
from flows.core.effects import Unknown
from flows.errors import UnknownIntent
from flows.models import Operation, Timer, Wait
from flows.services import invariants
from flows.services.attempt import Attempt
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.db.test_commitments import Hold, Reserve
from tests.db.test_compensation import Trip, booked, name, says
from tests.factories import Line, does, failing, row

pytestmark = pytest.mark.req("D3", "P1")


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    says.clear()


def test_a_preview_names_what_dies_what_is_undone_and_what_stands(worker: LocalWorker) -> None:
    run = booked(worker)
    before = row(run).version
    (ending,) = flows.preview(run)
    assert (ending.workflow, ending.flow, ending.status, ending.node) == (run.id, "t-trip", "waiting", "go")
    assert (ending.withdrawn, ending.timers) == (["event at go"], 1)
    assert ending.undone == [name(run, "hotel"), name(run, "flight")]
    assert (ending.stands, ending.in_doubt, ending.released) == ([name(run, "insurance")], [], [])
    assert row(run).version == before, "nothing is changed"
    flows.supersede(run, goal="other")
    worker.run()
    assert flows.preview(run) == []


def test_a_preview_names_what_is_owed_and_what_is_in_doubt(worker: LocalWorker) -> None:
    does["reserve"] = lambda attempt: {"id": "w-1", "minutes": 30}
    held = Reserve.start({})
    worker.run()
    (ending,) = flows.preview(held)
    assert (ending.released, ending.by_people) == (["window w-1"], [])

    def cut(attempt: Attempt) -> Any:
        raise ConnectionResetError

    does["hotel"] = cut
    says.append(Unknown())
    doubtful = Trip.start({})
    worker.run()
    (ending,) = flows.preview(doubtful)
    assert (ending.status, ending.in_doubt) == ("reconciling", [name(doubtful, "hotel")])


def test_an_unknown_goal_is_named(worker: LocalWorker) -> None:
    with pytest.raises(UnknownIntent, match="no intent"):
        flows.preview("nothing")


def test_the_command_shows_the_preview(worker: LocalWorker, capsys: pytest.CaptureFixture[str]) -> None:
    run = booked(worker)
    call_command("flows", "preview", str(run.id), "--json")
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["undone"] == [name(run, "hotel"), name(run, "flight")]


def test_a_sound_record_breaks_nothing(worker: LocalWorker) -> None:
    booked(worker)
    assert invariants.scan() == []


def test_the_scan_finds_what_nobody_wakes_ends_or_services(worker: LocalWorker) -> None:
    run, held = booked(worker), Hold.start({})
    does["one"] = failing(1)
    retrying = Line.start({})
    worker.run()
    Timer.objects.filter(workflow_id__in=[run.id, retrying.id]).delete()
    Wait.objects.filter(workflow_id=run.id).update(deadline_at=None)
    found = {(one.invariant, one.workflow) for one in invariants.scan()}
    assert found == {
        ("no waiting workflow without a wake-up condition", run.id),
        ("no waiting workflow without a wake-up condition", retrying.id),
        ("no retry path without an end", retrying.id),
        ("no active commitment without a servicing path", held.id),
    }
    for broken in (run, retrying):
        flows.cancel(broken)
    worker.run()


def test_the_scan_finds_work_whose_owner_is_gone(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    factories.take_one(worker)
    assert invariants.scan() == []
    worker.stop()
    clock.move(minutes=2)
    assert [(one.invariant, one.workflow) for one in invariants.scan()] == [("no active workflow without owner or wait", run.id)]


def test_the_scan_finds_reconciliation_that_nobody_serves(worker: LocalWorker, clock: Clock) -> None:
    def cut(attempt: Attempt) -> Any:
        raise ConnectionResetError

    does["hotel"] = cut
    run = Trip.start({})
    worker.run()
    clock.move(minutes=30)
    assert invariants.scan() == [], "a live worker serves the cleanup queue"
    worker.stop()
    (found,) = invariants.scan()
    operation = Operation.objects.get(status="uncertain")
    assert (found.invariant, found.workflow) == ("no reconciliation without protected capacity", run.id)
    assert operation.pk in found.what
    with pytest.raises(CommandError, match="breaks an invariant"):
        call_command("flows", "verify")
