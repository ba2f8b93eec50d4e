"""The periodic scan: what breaks an invariant is logged, and Beat has it done."""

from __future__ import annotations

import pytest

from flows.testing import Clock, LocalWorker
from tasks import beat
from tasks.tasks import scan
from tests import factories
from tests.factories import Line

pytestmark = pytest.mark.req("P1")


def test_the_scan_logs_what_breaks_an_invariant(worker: LocalWorker, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    run = Line.start({})
    factories.take_one(worker)
    scan()
    assert caplog.records == []
    worker.stop()
    clock.move(minutes=2)
    scan()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("outlast.invariants", "ERROR")
    assert record.getMessage().startswith(f"no active workflow without owner or wait: workflow {run.id}, running at one")


def test_beat_sends_a_tick_each_second_and_a_scan_each_ten_minutes() -> None:
    assert {entry["task"]: entry["schedule"] for entry in beat.entries().values()} == {"outlast.tick": 1.0, "outlast.scan": 600.0}
