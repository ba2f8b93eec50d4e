"""Waits and what ends them: an event is never lost between the inbox and the wait, a timer fires once, the later one loses."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

import flows
from flows.models import Event, Timer, Transition, Wait, Workflow
from flows.services import sweeps
from flows.services.owned import Owned
from flows.services.proceed import Progress
from flows.store import locks
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Nap, row, status
from tests.support.races import PATIENCE, all_of, overtaken, racers, together
from tests.support.record import stranded

pytestmark = pytest.mark.req("C3")

USING = "default"
ROUNDS = 1000


def claimed(worker: LocalWorker, count: int) -> list[tuple[Any, Owned]]:
    """So many runs, each with its own key, that stand right before their wait."""
    runs = Ask.start_many([(f"{count}-{number}", {"key": f"k{number}"}) for number in range(count)])
    by_id = {run.id: run for run in runs}
    return [(by_id[owned.row.id], owned) for owned in factories.take_up_to(worker, count)]


def meet(pairs: list[tuple[Any, Owned]], patch: pytest.MonkeyPatch) -> tuple[Counter[str], int]:
    """Park and signal each run, aligned at their channel; the answers, and how many were left without their event."""
    answers: Counter[str] = Counter()
    line, channel = threading.Barrier(2), locks.channel

    def aligned(*args: Any) -> None:
        line.wait(PATIENCE)
        channel(*args)

    patch.setattr(locks, "channel", aligned)
    with racers(2) as (turn, sender):
        for _, owned in pairs:
            key = owned.state.input["key"]
            parked, received = together(
                (turn, lambda owned=owned: factories.enter(owned, factories.LET_GO)),
                (sender, lambda key=key: flows.signal(f"e-{key}", "t.asked", key=key)),
            )
            assert parked is Progress.LEFT, parked
            answers[received.answer] += 1
    patch.setattr(locks, "channel", channel)
    ids = [run.id for run, _ in pairs]
    lost = Workflow.objects.filter(pk__in=ids, status="waiting", waits__status="open", waits__evidence=None).count()
    return answers, lost


@pytest.mark.req("E1")
def test_a_park_against_a_signal_loses_no_event(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 aligned rounds: 0 lost."""
    answers, lost = meet(claimed(worker, ROUNDS), monkeypatch)
    assert lost == 0
    assert set(answers) == {"accepted", "kept"}, "the two never really met"
    assert set(Event.objects.filter(type="t.asked").values_list("status", flat=True)) == {"consumed"}


def test_without_the_channel_lock_an_event_is_lost(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lock is there for: the park has not committed, the signal does not see it, and nobody brings the two together."""
    monkeypatch.setattr(locks, "channel", lambda *args: None)
    ((run, owned),) = claimed(worker, 1)
    met = overtaken(lambda: factories.enter(owned, factories.LET_GO), lambda: flows.signal("e1", "t.asked", key="k0"))
    assert (met.second.answer, met.blocked) == ("kept", False)
    assert stranded() == [f"{run.id}: waits for an event that is in the inbox"]
    flows.cancel(run)


@pytest.mark.parametrize("first", ["park", "signal"])
def test_whichever_comes_second_sees_the_first(worker: LocalWorker, first: str) -> None:
    ((run, owned),) = claimed(worker, 1)

    def park() -> Any:
        return factories.enter(owned, factories.LET_GO)

    def send() -> Any:
        return flows.signal("e1", "t.asked", key="k0").answer

    met = overtaken(park, send) if first == "park" else overtaken(send, park)
    assert met.blocked
    assert (met.second if first == "park" else met.first) == ("accepted" if first == "park" else "kept")
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")


def test_the_second_of_two_deliveries_loses(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    met = overtaken(lambda: flows.signal("e1", "t.asked", key="k"), lambda: flows.signal("e1", "t.asked", key="k"))
    assert (met.first.answer, met.second.answer, met.blocked) == ("accepted", "already", True)
    assert row(run).wake_seq == 1


@pytest.mark.parametrize("waiting", [True, False], ids=["waited for", "early"])
def test_of_many_deliveries_one_counts(worker: LocalWorker, waiting: bool) -> None:  # noqa: FBT001
    runs = [Ask.start({"key": f"k{number}"}) for number in range(40)]
    if waiting:
        worker.run()
    with racers(4) as threads:
        for number in range(40):
            received = together(*[
                (racer, lambda number=number: flows.signal(f"e{number}", "t.asked", key=f"k{number}").answer) for racer in threads
            ])  # fmt: skip
            assert sorted(received) == sorted(["accepted" if waiting else "kept", "already", "already", "already"])
    worker.run()
    assert {status(run) for run in runs} == {("waiting", "WAITING", "again")}
    assert set(Event.objects.values_list("deliveries", "status")) == {(4, "consumed")}


def test_the_second_of_two_contents_under_one_id_loses(worker: LocalWorker) -> None:
    with racers(2) as (one, two):
        for number in range(60):
            answers = together(
                (one, lambda number=number: flows.signal(f"e{number}", "t.asked", key="k", payload={"n": 1}).answer),
                (two, lambda number=number: flows.signal(f"e{number}", "t.again", key="q", payload={"n": 2}).answer),
            )
            assert sorted(answers) == ["conflict", "kept"]
    assert Event.objects.filter(status="pending").count() == Event.objects.filter(status="conflict").count() == 60


def test_one_event_for_two_waits_that_open_meanwhile_is_taken_once_each(worker: LocalWorker) -> None:
    """An early event belongs to the first wait; the second goes on waiting."""
    for number in range(40):
        first, second = Ask.start({"key": f"k{number}"}), Ask.start({"key": f"k{number}"})
        flows.signal(f"e{number}", "t.asked", key=f"k{number}")
        one, two = factories.take_up_to(worker, 2)
        all_of([lambda one=one: factories.enter(one, factories.LET_GO), lambda two=two: factories.enter(two, factories.LET_GO)])
        worker.run()
        assert sorted([status(first)[2], status(second)[2]]) == ["again", "ask"]
        flows.cancel(first)
        flows.cancel(second)


def test_a_signal_behind_a_cancel_loses(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    met = overtaken(lambda: flows.cancel(run), lambda: flows.signal("e1", "t.asked", key="k"))
    assert met.blocked
    assert (met.second.answer, met.second.woken) == ("kept", ())
    assert status(run)[0] == "cancelled"


def test_a_cancel_behind_a_signal_wins_over_the_wake(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    met = overtaken(lambda: flows.signal("e1", "t.asked", key="k"), lambda: flows.cancel(run))
    assert (met.first.answer, met.second.answer) == ("accepted", "accepted")
    assert worker.run() == 0
    assert status(run)[0] == "cancelled"


@pytest.fixture
def asleep(worker: LocalWorker, clock: Clock) -> Any:
    run = Nap.start({})
    worker.run()
    clock.move(hours=2)
    return run


def test_the_second_sweep_of_one_timer_skips_and_loses(asleep: Any) -> None:
    met = overtaken(lambda: sweeps.fire_timers(USING), lambda: sweeps.fire_timers(USING))
    assert (met.first, met.second, met.blocked) == (1, 0, False)
    assert row(asleep).wake_seq == 1


def test_of_many_sweeps_each_timer_fires_once(worker: LocalWorker, clock: Clock) -> None:
    for _ in range(120):
        Nap.start({})
    worker.run()
    clock.move(hours=2)
    told = all_of([lambda: sweeps.fire_timers(USING)] * 5)
    assert sum(told) == 120
    assert set(Workflow.objects.values_list("wake_seq", "status")) == {(1, "runnable")}
    assert Transition.objects.filter(trigger="timer").count() == 120


def test_a_fire_beside_a_cancel_skips_and_loses(asleep: Any, worker: LocalWorker) -> None:
    met = overtaken(lambda: flows.cancel(asleep), lambda: sweeps.fire_timers(USING))
    assert (met.second, met.blocked) == (0, False)
    assert (status(asleep)[0], Timer.objects.count()) == ("cancelled", 0)


def test_a_cancel_behind_a_fire_wins_over_the_wake(asleep: Any, worker: LocalWorker) -> None:
    met = overtaken(lambda: sweeps.fire_timers(USING), lambda: flows.cancel(asleep))
    assert (met.first, met.second.answer, met.blocked) == (1, "accepted", True)
    assert worker.run() == 0
    assert status(asleep)[0] == "cancelled"


def test_a_signal_beside_the_deadline_is_never_lost(worker: LocalWorker, clock: Clock) -> None:
    """Evidence goes first where both came before the turn; else the event is kept for the next time."""
    runs = [Ask.start({"key": f"k{number}"}) for number in range(60)]
    worker.run()
    clock.move(hours=2)
    with racers(3) as (sweep, sender, turn):
        for number in range(60):
            together(
                (sweep, lambda: sweeps.fire_timers(USING)),
                (sender, lambda number=number: flows.signal(f"e{number}", "t.asked", key=f"k{number}")),
                (turn, lambda: worker.run()),
            )
    worker.run()
    for number, run in enumerate(runs):
        event = Event.objects.get(event_id=f"e{number}")
        if status(run)[1] == "HUMAN_REQUIRED":
            assert event.status == "pending"
            flows.resume(run)
            worker.run()
        assert status(run) == ("waiting", "WAITING", "again")
    assert set(Event.objects.filter(type="t.asked").values_list("status", flat=True)) == {"consumed"}


def test_a_resume_beside_a_fire_loses_nothing(worker: LocalWorker, clock: Clock) -> None:
    with racers(2) as (sweep, person):
        for _ in range(60):
            run = Nap.start({})
            worker.run()
            flows.pause(run)
            clock.move(hours=2)
            together((sweep, lambda: sweeps.fire_timers(USING)), (person, lambda run=run: flows.resume(run)))
            sweeps.fire_timers(USING)
            worker.run()
            assert status(run)[0] == "complete"
    assert not Wait.objects.filter(status="open").exists()


def test_a_resume_of_the_next_attempt_beside_its_time_makes_one(worker: LocalWorker, clock: Clock) -> None:
    """Whoever comes second finds nothing to wake: one way out of the wait, and no attempt more than the one."""
    with racers(2) as (sweep, person):
        for _ in range(40):
            run = factories.Line.start({})
            factories.does["one"] = factories.failing(1)
            worker.run()
            assert status(run) == ("waiting", "WAITING", "one")
            clock.move(hours=1)
            together((sweep, lambda: sweeps.fire_timers(USING)), (person, lambda run=run: flows.resume(run)))
            sweeps.fire_timers(USING)
            worker.run()
            assert status(run)[0] == "complete"
            out = Transition.objects.filter(workflow_id=run.id, from_status="waiting").values_list("trigger", flat=True)
            assert list(out) in (["resume"], ["timer"])
            assert Transition.objects.filter(workflow_id=run.id, trigger="claim", to_node="one").count() == 2
    assert not Wait.objects.filter(status="open").exists()
    assert not Timer.objects.filter(status="pending").exists()
