"""A step costs one statement and one commit, a turn at most one message; counted at the connection, not believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, End
from flows.models import Worker
from flows.services import sweeps
from flows.services.turn import run_turn
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, Nap, Pipe, row
from tests.support.record import Counting
from tests.support.trace import Trace, tracing

USING = "default"


@pytest.fixture
def trace(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trace]:
    with tracing(monkeypatch) as made:
        yield made


def steps(declare: Any, count: int) -> type[flows.Flow]:
    nodes = {
        f"s{number}": Activity(factories.work, then=f"s{number + 1}" if number + 1 < count else "done") for number in range(count)
    }
    flow: type[flows.Flow] = declare(f"t-{count}-steps", **nodes, done=End(COMPLETE))
    return flow


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_step_is_one_statement_and_one_commit(worker: LocalWorker, trace: Trace, declare: Any, count: int) -> None:
    run = steps(declare, count).start({})
    trace.clear()
    worker.run(["agents"])
    assert row(run).status == "complete"
    work = ["CLAIM", *["ADVANCE"] * (count - 1), "COMPLETE"]
    assert trace.names == [*work, "CLAIM", "CLAIM"]  # nothing more is ready: said once in this turn, once in a second one
    assert trace.commits[: len(work)] == ["claim", *["advance"] * (count - 1), "complete"]
    assert trace.begun == 0
    assert len(trace.others) == 1  # this test's own look


def test_a_start_is_one_statement(trace: Trace, hints: Counting) -> None:
    hints.clear()
    Line.start({"a": 1})
    assert (trace.names, trace.others, trace.begun, trace.commits) == (["START"], [], 0, ["start"])
    assert len(hints.hints) == 1
    trace.clear()
    Line.start_many([(None, {}) for _ in range(50)])
    assert (trace.names, trace.others, trace.begun, trace.commits) == (["START"], [], 1, ["start"])


def test_a_pipeline_is_no_dearer(worker: LocalWorker, trace: Trace) -> None:
    Pipe.start({})
    trace.clear()
    worker.run(["agents"])
    assert trace.names[:4] == ["CLAIM", "ADVANCE", "ADVANCE", "COMPLETE"]


def test_ten_claimed_at_once_are_one_claim(worker: LocalWorker, trace: Trace) -> None:
    Line.start_many([(None, {}) for _ in range(10)])
    worker.batch_size = 10
    trace.clear()
    worker.run(["agents"])
    assert trace.names.count("CLAIM") == 3
    assert len(trace.names) == 3 + 10 * 3


def test_sleeping_and_waking(worker: LocalWorker, trace: Trace, clock: Any) -> None:
    Nap.start({})
    trace.clear()
    worker.run(["agents"])
    assert trace.names[:3] == ["CLAIM", "SELECT", "MOVE"]  # before a sleep the one clock is asked
    clock.move(hours=2)
    trace.clear()
    worker.tick()
    assert (trace.names, trace.begun) == (["LOOK", "DUE", "FIRE"], 1)
    trace.clear()
    worker.run(["agents"])
    assert trace.names[:4] == ["CLAIM", "OPEN_WOKEN", "ADVANCE", "COMPLETE"]
    assert trace.commits[:4] == ["claim", "open", "advance", "complete"]


def test_those_that_wake_together_go_on_together(worker: LocalWorker, trace: Trace, clock: Any) -> None:
    runs = Nap.start_many([(None, {}) for _ in range(10)])
    worker.run(["agents"])
    clock.move(hours=2)
    worker.tick()
    worker.batch_size = 10
    trace.clear()
    worker.run(["agents"])
    assert trace.names[:2] == ["CLAIM", "OPEN_WOKEN"]
    assert trace.names.count("OPEN_WOKEN") == 1
    assert {row(run).status for run in runs} == {"complete"}


def test_waiting_and_being_signalled(worker: LocalWorker, trace: Trace) -> None:
    Ask.start({"key": "k"})
    trace.clear()
    worker.run(["agents"])
    assert trace.names[:4] == ["CLAIM", "CHANNEL", "EARLY", "MOVE"]
    assert trace.commits[:2] == ["claim", "park"]
    trace.clear()
    flows.signal("e1", "t.asked", key="k")
    assert (trace.names, trace.others, trace.begun, trace.commits) == (["CHANNEL", "RECORD", "WAKE"], [], 1, ["signal"])


def test_an_idle_second_is_one_statement(worker: LocalWorker, trace: Trace) -> None:
    sweeps.run_tick(USING)
    trace.clear()
    sweeps.run_tick(USING)
    assert (trace.names, trace.others, trace.begun) == (["LOOK"], [], 0)


def test_a_heartbeat_is_one_statement(worker: LocalWorker, trace: Trace) -> None:
    factories.does["one"] = lambda attempt: trace.clear() or (attempt.heartbeat() and seen.extend(trace.names))
    seen: list[str] = []
    Line.start({})
    worker.run()
    assert seen == ["HEARTBEAT"]


def test_a_turn_sends_no_message_while_it_goes_on(worker: LocalWorker, hints: Counting) -> None:
    Line.start({})
    hints.clear()
    worker.run()
    assert (hints.hints, hints.looks) == ([], [])


def test_a_turn_sends_at_most_one_message_for_a_workflow(worker: LocalWorker, hints: Counting, settings: Any) -> None:
    """With a slice of no time every step is handed over: a message each, and no more."""
    settings.OUTLAST = {**settings.OUTLAST, "SLICE_SECONDS": 0.0}
    Line.start({})
    hints.clear()
    for sent in (1, 2, 3):
        run_turn(worker, "agents", USING)
        assert len(hints.hints) == sent
    assert len(factories.calls) == 3


def test_a_turn_whose_time_is_over_says_that_there_may_be_more(worker: LocalWorker, hints: Counting, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "SLICE_SECONDS": 0.0}
    for _ in range(2):
        Ask.start({"key": "k"})
    hints.clear()
    run_turn(worker, "agents", USING)
    assert len(hints.hints) == 1


def test_a_hand_over_to_another_queue_is_one_message(worker: LocalWorker, hints: Counting) -> None:
    factories.Cross.start({})
    hints.clear()
    worker.run(["agents"])
    assert [(hint.queue, hint.label, len(hint.ids)) for hint in hints.hints] == [("cleanup", "t-cross.there", 1)]


def test_a_wake_of_many_is_one_message_for_ten(worker: LocalWorker, hints: Counting) -> None:
    for _ in range(25):
        Ask.start({"key": "k"})
    worker.run()
    hints.clear()
    flows.signal("e1", "t.asked", key="k")
    assert [len(hint.ids) for hint in hints.hints] == [10, 10, 5]


def test_a_wake_of_very_many_is_no_more_messages_than_slots(worker: LocalWorker, hints: Counting) -> None:
    hints.clear()
    Line.start_many([(None, {}) for _ in range(500)])
    assert len(hints.hints) == 8  # one slot is up; so many go out unasked
    Worker.objects.filter(pk=worker.incarnation).update(concurrency=20)
    hints.clear()
    Line.start_many([(None, {}) for _ in range(500)])
    assert len(hints.hints) == 20


def test_a_broker_that_is_away_costs_nothing_but_time(
    worker: LocalWorker, monkeypatch: pytest.MonkeyPatch, hints: Counting
) -> None:
    def away(*args: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(hints, "publish", away)
    monkeypatch.setattr(hints, "look_soon", away)
    run = factories.Cross.start({})
    worker.placements = ["gpu"]
    worker.run()
    assert row(run).status == "complete"
