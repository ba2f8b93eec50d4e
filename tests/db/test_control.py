"""Pause, resume and cancel in every status: accepted, already or too late; twice is once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

import flows
from flows.core.protocol import TERMINAL, Status
from flows.models import Activity, Attempt, Timer, Transition, Wait
from flows.services.proceed import Progress
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Line, Nap, does, in_status, row, status
from tests.support.record import Counting

REACHED = [
    Status.RUNNABLE,
    Status.RUNNING,
    Status.WAITING,
    Status.PAUSED,
    Status.COMPLETE,
    Status.FAILED,
    Status.CANCELLED,
    Status.SUPERSEDED,
]
ANSWERS: dict[str, dict[Status, str]] = {
    "cancel": {
        **dict.fromkeys([Status.RUNNABLE, Status.RUNNING, Status.WAITING, Status.PAUSED], "accepted"),
        Status.CANCELLED: "already",
        **dict.fromkeys([Status.COMPLETE, Status.FAILED, Status.SUPERSEDED], "too_late"),
    },
    "pause": {
        **dict.fromkeys([Status.RUNNABLE, Status.RUNNING, Status.WAITING], "accepted"),
        Status.PAUSED: "already",
        **dict.fromkeys(TERMINAL, "too_late"),
    },
    "resume": {
        Status.PAUSED: "accepted",
        **dict.fromkeys([Status.RUNNABLE, Status.RUNNING, Status.WAITING], "already"),
        **dict.fromkeys(TERMINAL, "too_late"),
    },
}
#: Where the verb leads, and the arrow that gets there.
AFTER = {"cancel": ("cancelled", "settled"), "pause": ("paused", "pause"), "resume": ("runnable", "resume")}


def log(run: Any) -> list[tuple[str, str, str]]:
    return list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("from_status", "to_status", "trigger"))


@pytest.mark.parametrize("source", REACHED)
@pytest.mark.parametrize("verb", ["cancel", "pause", "resume"])
def test_what_each_verb_answers_in_each_status(worker: LocalWorker, verb: str, source: Status) -> None:
    run = in_status(source, worker)
    before, version = status(run), row(run).version
    controlled = getattr(flows, verb)(run, reason="because", by=factories.person("robin"))
    assert (controlled.answer, controlled.id) == (ANSWERS[verb][source], run.id)
    assert bool(controlled) == (controlled.answer == "accepted")
    assert controlled.status == row(run).status
    if controlled.answer != "accepted":
        assert (status(run), row(run).version) == (before, version)
    elif (verb, source) == ("pause", Status.RUNNING):
        assert row(run).pause_requested_at is not None
        assert row(run).version == version
    else:
        trigger = Transition.objects.get(workflow_id=run.id, seq=row(run).version).trigger
        assert (row(run).status, trigger) == AFTER[verb]


@pytest.mark.parametrize("source", [Status.RUNNABLE, Status.RUNNING, Status.WAITING, Status.PAUSED])
@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_twice_is_once(worker: LocalWorker, verb: str, source: Status) -> None:
    run = in_status(source, worker)
    getattr(flows, verb)(run)
    before, entries = status(run), log(run)
    assert getattr(flows, verb)(run).answer == "already"
    assert (status(run), log(run)) == (before, entries)


def test_who_and_why_are_in_the_log(worker: LocalWorker) -> None:
    run = Line.start({})
    flows.pause(run, by=factories.person("robin"), reason="Not on Fridays")
    flows.resume(run, by=factories.person("rita"), reason="It is Monday")
    flows.cancel(run, by=factories.person("robin"), reason="No longer wanted")
    rows = Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", "trigger_ref", "note")
    assert list(rows)[1:] == [
        ("pause", "robin", {"reason": "Not on Fridays"}),
        ("resume", "rita", {"reason": "It is Monday"}),
        ("cancel", "robin", {"reason": "No longer wanted"}),
        ("settled", "", None),  # it owed nothing
    ]


def test_cancel_of_a_running_workflow_fences_its_attempt(worker: LocalWorker) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    flows.cancel(run)
    workflow = row(run)
    assert (workflow.status, workflow.outcome, workflow.error_code, workflow.epoch) == ("cancelled", "CANCELLED", "CANCELLED", 1)
    assert (workflow.worker_id, workflow.active_seq) == (None, None)
    assert Activity.objects.get(workflow_id=run.id).status == "fenced"
    attempt = Attempt.objects.get(workflow_id=run.id)
    assert (attempt.outcome, attempt.error_code, attempt.worker_id) == ("fenced", "CANCEL_REQUESTED", worker.incarnation)
    assert factories.complete(owned) is Progress.LOST
    assert [entry[:2] for entry in log(run)][-2:] == [("running", "cancelling"), ("cancelling", "cancelled")]


def test_cancel_withdraws_waits_and_timers(worker: LocalWorker, clock: Clock) -> None:
    ask, nap = Ask.start({"key": "k"}), Nap.start({})
    worker.run()
    for run in (ask, nap):
        flows.cancel(run)
    assert set(Wait.objects.values_list("status", flat=True)) == {"withdrawn"}
    assert not Timer.objects.exists()


def test_a_pause_of_a_ready_workflow_holds_it(worker: LocalWorker, hints: Counting) -> None:
    run = Line.start({})
    flows.pause(run)
    assert worker.run() == 0
    hints.clear()
    flows.resume(run)
    assert [hint.label for hint in hints.hints] == ["t-line.one"]
    worker.run()
    assert status(run)[0] == "complete"


def test_a_pause_during_the_last_step_comes_too_late_to_hold_anything(worker: LocalWorker) -> None:
    run = Line.start({})
    answers = []
    does["three"] = lambda attempt: answers.append(flows.pause(attempt.workflow_id).answer)
    worker.run()
    assert (answers, status(run)[0]) == (["accepted"], "complete")
    assert row(run).pause_requested_at is None


def test_a_pause_can_be_taken_back_before_it_is_followed(worker: LocalWorker) -> None:
    run = Line.start({})

    def act(attempt: Any) -> None:
        assert flows.pause(attempt.workflow_id).answer == "accepted"
        assert flows.pause(attempt.workflow_id).answer == "already"
        assert flows.resume(attempt.workflow_id).answer == "accepted"
        assert flows.resume(attempt.workflow_id).answer == "already"

    does["two"] = act
    worker.run()
    assert status(run)[0] == "complete"


def test_a_pause_between_claim_and_start_runs_nothing(worker: LocalWorker) -> None:
    run = Line.start({})
    first = factories.take_one(worker)
    factories.enter(first)
    factories.complete(first, keeping=factories.LET_GO)
    second = factories.take_one(worker)
    flows.pause(run)
    assert factories.reload_of(second) is Progress.LEFT
    assert status(run) == ("paused", "WAITING", "two")
    attempt = Attempt.objects.get(workflow_id=run.id, node="two")
    assert (attempt.outcome, attempt.number) == ("returned", 1)
    flows.resume(run)
    worker.run()
    assert [call for call in factories.calls if call[0] == "two"] == [("two", 1, 2)]


def test_a_pause_while_a_step_fails_keeps_its_retry(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    act = factories.failing(1)

    def fail(attempt: Any) -> Any:
        if attempt.number == 1:
            flows.pause(attempt.workflow_id)
        return act(attempt)

    does["one"] = fail
    worker.run()
    assert status(run) == ("paused", "WAITING", "one")
    assert Wait.objects.get().kind == "retry_window"
    clock.move(hours=1)
    worker.tick()
    assert worker.run() == 0
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_a_resume_in_the_retry_window_tries_at_once(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = factories.failing(1)
    worker.run()
    flows.pause(run)
    flows.resume(run)
    assert not Timer.objects.exists()
    worker.run()
    assert status(run)[0] == "complete"


def test_a_run_that_waits_for_its_next_attempt_is_resumed_without_a_pause(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = factories.failing(1)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "one")
    assert flows.resume(run, reason="the provider is back")
    assert Wait.objects.get().status == "satisfied"
    assert not Timer.objects.exists()
    assert flows.resume(run).answer == "already"
    worker.run()
    assert status(run)[0] == "complete"


def test_a_resume_is_no_event(worker: LocalWorker, clock: Clock) -> None:
    """A run that waits for something else than its next attempt waits on."""
    run = factories.Ask.start({})
    worker.run()
    assert flows.resume(run).answer == "already"
    assert status(run)[0] == "waiting"


def test_a_pause_outlives_the_worker(worker: LocalWorker) -> None:
    """Accepted is accepted: the owner dies before it could follow the pause."""
    run = Line.start({})
    factories.enter(factories.take_one(worker))
    assert flows.pause(run).answer == "accepted"
    worker.stop()
    other = factories.another_worker()
    other.tick()
    assert other.run() == 0
    assert status(run) == ("paused", "WAITING", "one")
    assert Attempt.objects.get(workflow_id=run.id).outcome == "lost"
    flows.resume(run)
    other.run()
    assert status(run)[0] == "complete"


def test_a_pause_outlives_a_claim_that_is_given_back(worker: LocalWorker) -> None:
    from flows.services.turn import give_back

    run = Line.start({})
    owned = factories.take_one(worker)
    assert flows.pause(run).answer == "accepted"
    give_back([owned.row], owned.worker, owned.using)
    assert status(run) == ("paused", "WAITING", "one")
    assert flows.resume(run).answer == "accepted"
    worker.run()
    assert status(run)[0] == "complete"
    assert row(run).attempts == 3


def test_a_control_verb_goes_with_the_callers_transaction(worker: LocalWorker) -> None:
    run = Line.start({})
    for verb in (flows.pause, flows.cancel):
        with transaction.atomic():
            verb(run)
            transaction.set_rollback(True)
        assert status(run) == ("runnable", "", "one")


def test_a_paused_suspension_stays_one(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = factories.failing(3)
    worker.run()
    for _ in range(2):
        clock.move(minutes=1)
        worker.tick()
        worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "one")
    flows.pause(run)
    assert status(run) == ("paused", "HUMAN_REQUIRED", "one")
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
