"""Beat looks at the clock itself and sends a tick only where it would find something; a look that finds nothing is the tick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.db import OperationalError, connections

from flows.models import Tick
from flows.services import sweeps
from flows.testing import Clock, LocalWorker
from tasks import beat, schedulers
from tests.factories import Line, Nap

pytestmark = pytest.mark.req("C3")

USING = "default"


class Kept:
    """Connections that are not closed: the test needs them."""

    def __getitem__(self, alias: str) -> Any:
        kept = type("Kept", (), {"close": lambda self: None, "cursor": lambda self: connections[alias].cursor()})
        return kept()


class Sending(schedulers.CalmFileScheduler):
    """Keeps what it would send."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[str] = []
        super().__init__(current_app, schedule_filename=str(folder / "schedule"), lazy=True)

    def apply_async(self, entry: Any, **_: Any) -> Any:
        self.sent.append(entry.task)
        return type("Result", (), {"id": "1"})()

    def beats(self, name: str = "outlast-tick", **entry: Any) -> list[str]:
        self.sent.clear()
        self.apply_entry(self.Entry(name=name, app=self.app, **(entry or beat.entries()[name])))
        return self.sent


@pytest.fixture
def scheduler(worker: LocalWorker, tmp_path: Path) -> Sending:
    sweeps.run_tick(USING)
    return Sending(tmp_path)


def age() -> Any:
    return Tick.objects.get().ticked_at


def test_an_idle_second_sends_nothing_and_counts_as_a_tick(scheduler: Sending) -> None:
    before = age()
    assert scheduler.beats() == []
    assert age() > before


def test_a_first_look_makes_the_mark(scheduler: Sending) -> None:
    Tick.objects.all().delete()
    assert scheduler.beats() == []
    assert Tick.objects.count() == 1


def test_what_is_due_is_sent_for_and_not_marked(scheduler: Sending, worker: LocalWorker, clock: Clock) -> None:
    Nap.start({})
    worker.run()
    assert scheduler.beats() == []
    before = age()
    clock.move(hours=2)
    assert scheduler.beats() == ["outlast.tick"]
    assert age() == before  # so that the workers look themselves if nobody takes the tick
    worker.tick()
    assert scheduler.beats() == []


def test_a_timer_that_is_close_is_sent_for(scheduler: Sending, worker: LocalWorker, clock: Clock) -> None:
    Nap.start({})
    worker.run()
    clock.move(minutes=59, seconds=59)
    assert scheduler.beats() == ["outlast.tick"]


def test_ready_work_that_lies_is_sent_for(scheduler: Sending, clock: Clock) -> None:
    Line.start({})
    clock.move(seconds=2)
    assert scheduler.beats() == ["outlast.tick"]


def test_other_entries_are_sent_without_a_look(scheduler: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "is_idle", lambda using: pytest.fail("looked"))
    assert scheduler.beats("theirs", task="theirs.task", schedule=60.0) == ["theirs.task"]


def test_beat_sends_a_tick_each_second_and_nothing_else() -> None:
    assert {entry["task"]: entry["schedule"] for entry in beat.entries().values()} == {"outlast.tick": 1.0}


def test_with_the_database_away_ticks_are_sent_and_it_is_said_once(
    scheduler: Sending, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(using: str) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(sweeps, "is_idle", away)
    monkeypatch.setattr(schedulers, "connections", Kept())
    assert scheduler.beats() == ["outlast.tick"]
    assert scheduler.beats() == ["outlast.tick"]
    (message,) = [record.message for record in caplog.records if record.name == "outlast.beat"]
    assert message == "the database is away (gone); ticks are sent without a look"
