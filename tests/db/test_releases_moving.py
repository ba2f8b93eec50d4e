"""A person moves runs; runs that nobody may take are told about once, and found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import HUMAN, MIGRATE, Flow, releases
from flows.core.misuse import UnknownFlow, UnknownWorkflow
from flows.core.protocol import Status
from flows.models import Notice, Timer, Transition, Wait, Worker
from flows.services import describe, invariants, notices, releasing
from flows.services.proceed import Progress
from flows.services.releases import move_all
from flows.store.sql import run as execute
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Line, Nap, another_worker, in_status, row
from tests.support.releasing import answer, begin, both, flow_of, is_at, now_is, pins, register

pytestmark = pytest.mark.req("I1")

MOVES = {
    Status.RUNNABLE: "moved", Status.WAITING: "moved", Status.PAUSED: "moved", Status.RUNNING: "busy", Status.COMPLETE: "too_late",
    Status.CANCELLED: "too_late", Status.SUPERSEDED: "too_late", Status.FAILED: "too_late",
}  # fmt: skip


def move(run: Any, to: str = "R18", **options: Any) -> releases.Moved:
    return releases.move(run, to=to, by=None, reason="a test", **options)


@pytest.mark.parametrize("status", MOVES)
def test_a_run_at_rest_is_moved(worker: LocalWorker, status: Status) -> None:
    both(compatible=True)
    run = in_status(status, worker)
    before = row(run)
    found = move(run)
    assert (found.code, found.status, found.source, found.target, found.compatible) == (MOVES[status], status, "R17", "R18", True)
    assert bool(found) is (MOVES[status] == "moved")
    after = row(run)
    assert (after.status, after.node, after.outcome, after.epoch) == (before.status, before.node, before.outcome, before.epoch)
    if found:
        assert (after.release, pins(run)) == ("R18", [(status, "R17", "R18")])
        assert move(run).code == "already"
    else:
        assert (after.version, after.release, pins(run)) == (before.version, "R17", [])
        assert found.sentence
    flows.cancel(run)


def test_waits_and_timers_are_kept(worker: LocalWorker, clock: Clock) -> None:
    both()
    ask, nap = Ask.start({"key": "x"}), Nap.start({})
    worker.run()
    kept = list(Wait.objects.values_list("pk", "status")), list(Timer.objects.values_list("pk", "status"))
    assert move(ask)
    assert move(nap)
    assert (list(Wait.objects.values_list("pk", "status")), list(Timer.objects.values_list("pk", "status"))) == kept
    flows.signal("e1", "t.asked", key="x")
    clock.move(minutes=61)
    worker.tick()
    worker.run()
    assert (row(ask).node, row(nap).status) == ("again", "complete")


def test_a_run_under_no_release_is_moved_to_one(worker: LocalWorker) -> None:
    run = Line.start({})
    both()
    assert (move(run).source, row(run).release, row(run).passed_over) == ("", "R18", "R17")
    worker.run()
    assert row(run).status == "complete"


def test_it_is_taken_by_the_workers_of_the_new_release(worker: LocalWorker, hints: Any) -> None:
    both()
    run = Line.start({})
    other = another_worker(releases=["R18"])
    assert other.run() == 0
    hints.clear()
    move(run)
    assert [hint.ids for hint in hints.hints] == [(str(run.id),)]
    assert other.run() == 1


def test_what_cannot_be_moved(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    with pytest.raises(releases.UnknownRelease):
        move(run, to="R71")
    with pytest.raises(releases.ReasonMissing, match="Say why the run is moved"):
        releases.move(run, to="R18", by=None, reason="")
    with pytest.raises(UnknownWorkflow):
        move("00000000-0000-0000-0000-000000000000")


def test_the_log_says_who_and_why(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    user = get_user_model().objects.create_superuser("ann")
    releases.move(run, to="R18", by=user, reason="The old prompts are wrong")
    logged = Transition.objects.get(workflow_id=run.id, trigger="pin")
    assert logged.note == {"release": {"from": "R17", "to": "R18"}, "by": "ann", "reason": "The old prompts are wrong"}


def test_a_paused_run_that_was_suspended_for_its_release_stays_paused(
    worker: LocalWorker, declare: Callable[..., type[Flow]]
) -> None:
    both()
    run = begin(flow_of(declare, HUMAN), worker)
    now_is("R18")
    answer(run)
    worker.run()
    flows.pause(run)
    assert move(run).status == "paused"
    flows.resume(run)
    worker.run()
    assert is_at(run) == ("waiting", "nap", "R18", None)


# ------------------------------------------------------------------ many


def test_many_are_moved_each_by_itself(worker: LocalWorker) -> None:
    both()
    running, waiting, done = Line.start({}, priority=9), Ask.start({"key": "x"}), Line.start({})
    assert factories.enter(factories.take_one(worker)) is Progress.RUN
    worker.run()
    ready = Line.start({})
    options: dict[str, Any] = {"to": "R18", "source": "R17", "by": None, "reason": "a test"}
    expected = {running.id: "busy", waiting.id: "moved", ready.id: "moved"}
    assert {one.id: one.code for one in move_all(**options, dry_run=True)} == expected
    assert {row(run).release for run in (running, waiting, ready)} == {"R17"}
    assert {one.id: one.code for one in move_all(**options, flow=Ask)} == {waiting.id: "moved"}
    assert {one.id: one.code for one in move_all(**options)} == {running.id: "busy", ready.id: "moved"}
    assert [row(run).release for run in (running, waiting, ready, done)] == ["R17", "R18", "R18", "R17"]
    flows.cancel(running)


def test_many_of_nothing(worker: LocalWorker) -> None:
    free = Line.start({})
    both()
    options: dict[str, Any] = {"to": "R18", "by": None, "reason": "a test"}
    assert [one.id for one in move_all(**options, source="")] == [free.id]
    with pytest.raises(releases.UnknownRelease):
        move_all(**options, source="R71")
    with pytest.raises(UnknownFlow):
        move_all(**options, source="R17", flow="t-none")
    with pytest.raises(releases.UnknownRelease):
        move_all(to="R71", by=None, reason="x", source="R17")


# ------------------------------------------------------------------ nobody offers it


@pytest.fixture
def quickly(settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "RELEASE_ALERT_SECONDS": 30.0}


def gone(worker: LocalWorker, seconds: int) -> None:
    """The worker stopped so long ago; leases are on real time."""
    worker.stop()
    ago = (
        "UPDATE outlast_worker SET lease_until = statement_timestamp() - %(s)s::int * interval '1 second' WHERE status <> 'alive'"
    )
    execute("ago", ago, {"s": seconds}, "default")


@pytest.fixture
def stuck(worker: LocalWorker, clock: Clock, quickly: None) -> Any:
    """A run that is pinned to R17 and ready for half a minute, with workers of R18 only."""
    both()
    user = get_user_model().objects.create_user("ann", email="ann@example.org")
    run = Line.start({}, by=user)
    gone(worker, 31)
    another_worker(name="new", releases=["R18"])
    clock.move(seconds=31)
    return run


def alert(run: Any) -> bool:
    view = describe.describe(run).release
    assert view is not None
    return view.alert


def test_somebody_is_told_once(stuck: Any) -> None:
    new = Worker.objects.get(name="new")
    assert releasing.alert("default") == [stuck.id]
    assert releasing.alert("default") == []
    assert alert(stuck)
    assert [(one.outcome, one.code) for one in Notice.objects.all()] == [("RELEASE_NOT_OFFERED", "RELEASE_NOT_OFFERED")]
    assert notices.send_owed("default") == 1
    assert new.status == "alive"


def test_the_clock_tells(stuck: Any, worker: LocalWorker) -> None:
    worker.tick()
    worker.tick()
    assert Notice.objects.count() == 1


def test_it_is_found_by_the_scan(stuck: Any) -> None:
    (found,) = invariants.scan()
    assert (found.workflow, found.invariant) == (stuck.id, invariants.OFFERED)
    assert found.what == "ready at one, and no live worker offers release R17: start one, or flows releases move"


@pytest.mark.parametrize("names", [["R17"], None], ids=["it", "whatever it is given"])
def test_a_worker_that_offers_it_ends_the_alert(stuck: Any, names: Any) -> None:
    releasing.alert("default")
    own = another_worker(releases=names)
    assert not alert(stuck)
    assert invariants.scan() == []
    own.run()
    assert row(stuck).status == "complete"


def test_moving_it_ends_the_alert(stuck: Any) -> None:
    releasing.alert("default")
    move(stuck)
    assert not alert(stuck)
    assert invariants.scan() == []


def test_it_is_told_again_when_it_is_ready_again(stuck: Any, clock: Clock) -> None:
    releasing.alert("default")
    flows.pause(stuck)
    assert releasing.alert("default") == []
    flows.resume(stuck)
    assert releasing.alert("default") == []
    clock.move(seconds=31)
    assert releasing.alert("default") == [stuck.id]


@pytest.mark.parametrize("case", ["not so long ready", "a worker was there", "no release", "waiting"])
def test_what_is_no_alert(worker: LocalWorker, clock: Clock, quickly: None, case: str) -> None:
    if case != "no release":
        both()
    Ask.start({"key": "x"}) if case == "waiting" else Line.start({})
    if case == "waiting":
        worker.run()
    gone(worker, 10 if case == "a worker was there" else 31)
    clock.move(seconds=10 if case == "not so long ready" else 31)
    assert releasing.alert("default") == []
    assert [one for one in invariants.scan() if one.invariant == invariants.OFFERED] == []


def test_a_run_that_another_release_may_decide_about_is_none(
    worker: LocalWorker, clock: Clock, quickly: None, declare: Callable[..., type[Flow]]
) -> None:
    both()
    run = flow_of(declare, MIGRATE).start({"key": "k"})
    gone(worker, 31)
    clock.move(seconds=31)
    assert releasing.alert("default") == [run.id], "R17 is current: it needs a worker"
    flows.pause(run)
    flows.resume(run)
    clock.move(seconds=31)
    now_is("R18")
    assert releasing.alert("default") == []
    assert move(run, "R17").code == "kept"
    clock.move(seconds=31)
    assert releasing.alert("default") == [run.id]


def test_many_names_and_no_run(worker: LocalWorker, clock: Clock, quickly: None) -> None:
    for number in range(5):
        register(f"old-{number}")
    Line.start({})
    clock.move(seconds=31)
    worker.tick()
    assert Notice.objects.count() == 0
