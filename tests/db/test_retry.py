"""Retries live in the record: finite, on durable time, the same operation; then a visible end. Suspended runs go on when a person says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import flows
from flows import COMPLETE, FAILED, Activity, Branch, Candidate, Decision, End, Retry, Visits, seconds
from flows import errors as kinds
from flows.models import Activity as ActivityRow
from flows.models import Attempt, Notice, Timer, Transition, Wait
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Line, calls, does, failing, row, status

pytestmark = pytest.mark.req("B3", "B4")

Declare = Callable[..., type[flows.Flow]]


def outcomes(run: Any, node: str = "one") -> list[tuple[int, str, str | None]]:
    rows = Attempt.objects.filter(workflow_id=run.id, node=node).order_by("activity_seq", "number")
    return list(rows.values_list("number", "outcome", "error_code"))


def step(worker: LocalWorker, clock: Clock, **span: float) -> int:
    clock.move(**span)
    worker.tick()
    return worker.run()


def test_a_retry_waits_for_its_time_on_the_durable_clock(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = failing(2)
    worker.run()
    workflow = row(run)
    assert (*status(run), workflow.error_code) == ("waiting", "WAITING", "one", "TRANSIENT")
    wait, timer = Wait.objects.get(), Timer.objects.get()
    assert (wait.kind, wait.status, wait.reason) == ("retry_window", "open", "trying again after TRANSIENT")
    assert (timer.kind, timer.wait_id, timer.due_at) == ("retry", wait.pk, workflow.due_at)
    assert timer.due_at - workflow.updated_at == timedelta(seconds=10)
    assert step(worker, clock, seconds=9) == 0
    assert step(worker, clock, seconds=2) == 1
    assert status(run)[0] == "waiting"
    second = Timer.objects.get(status="pending")
    assert second.due_at - row(run).updated_at == timedelta(seconds=20)
    assert step(worker, clock, seconds=21) == 1
    assert status(run)[0] == "complete"
    assert outcomes(run) == [(1, "failed", "TRANSIENT"), (2, "failed", "TRANSIENT"), (3, "succeeded", None)]
    assert [call for call in calls if call[0] == "one"] == [("one", 1, 1), ("one", 1, 2), ("one", 1, 3)]
    assert list(Wait.objects.values_list("status", flat=True)) == ["satisfied", "satisfied"]


def test_the_history_survives_the_worker(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = failing(2)
    worker.run()
    worker.stop()
    other = factories.another_worker()
    step(other, clock, minutes=1)
    third = factories.another_worker()
    other.stop()
    step(third, clock, minutes=1)
    assert status(run)[0] == "complete"
    assert [entry[:2] for entry in outcomes(run)] == [(1, "failed"), (2, "failed"), (3, "succeeded")]


def test_the_last_failure_asks_a_person(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = failing(99)
    worker.run()
    for _ in range(5):
        step(worker, clock, minutes=1)
    assert (*status(run), row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "one", "RETRIES_EXHAUSTED:TRANSIENT")
    assert factories.called("one") == 3
    assert Wait.objects.get(status="open").kind == "human"
    assert not Timer.objects.filter(status="pending").exists()
    assert ActivityRow.objects.get(workflow_id=run.id).status == "scheduled"


def test_a_person_resumes_the_same_operation(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    operations = []

    def act(attempt: Any) -> Any:
        operations.append(attempt.operation_id)
        return failing(1)(attempt) if len(operations) <= 3 else {"ok": True}

    does["one"] = act
    worker.run()
    step(worker, clock, minutes=1)
    step(worker, clock, minutes=1)
    assert status(run)[1] == "HUMAN_REQUIRED"
    assert flows.resume(run, by=factories.person("robin")).answer == "accepted"
    worker.run()
    assert status(run)[0] == "complete"
    assert len(operations) == 4
    assert len(set(operations)) == 1
    assert [entry[0] for entry in outcomes(run)] == [1, 2, 3, 4]


def test_after_a_resume_one_more_failure_asks_again(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = failing(99)
    worker.run()
    for _ in range(3):
        step(worker, clock, minutes=1)
    flows.resume(run)
    worker.run()
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    assert factories.called("one") == 4


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (kinds.StateConflict, "HUMAN_REQUIRED", "STATE_CONFLICT"),
        (kinds.VerificationFailed, "HUMAN_REQUIRED", "VERIFICATION_FAILED"),
        (kinds.PolicyDenied, "POLICY_BLOCKED", "POLICY_DENIED"),
        (kinds.CompetenceFailure, "HUMAN_REQUIRED", "COMPETENCE_FAILURE"),
        (kinds.InvalidCandidate, "HUMAN_REQUIRED", "INVALID_CANDIDATE"),
        (kinds.AmbiguousOutcome, "HUMAN_REQUIRED", "AMBIGUOUS_OUTCOME"),
    ],
)
def test_what_each_class_of_failure_leads_to(worker: LocalWorker, error: type[Exception], outcome: str, code: str) -> None:
    run = Line.start({})
    does["one"] = failing(1, error)
    worker.run()
    assert (*status(run), row(run).error_code) == ("waiting", outcome, "one", code)
    assert Attempt.objects.get().error_class == error.__name__
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_a_goal_that_is_gone_stops_the_run(worker: LocalWorker) -> None:
    run = Line.start({})
    does["one"] = failing(1, kinds.IntentSuperseded)
    worker.run()
    assert (*status(run)[:2], row(run).error_code, row(run).epoch) == ("superseded", "SUPERSEDED", "INTENT_SUPERSEDED", 1)


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, AssertionError, RecursionError])
def test_anything_else_may_be_tried_again(worker: LocalWorker, clock: Clock, error: type[Exception]) -> None:
    run = Line.start({})
    does["one"] = failing(1, error)
    worker.run()
    assert row(run).error_code == "UNCLASSIFIED_ERROR"
    step(worker, clock, minutes=1)
    assert status(run)[0] == "complete"


def test_no_exception_text_is_stored(worker: LocalWorker) -> None:
    run = Line.start({})
    does["one"] = failing(1, lambda: kinds.PolicyDenied("password=hunter2", token="hunter2"))
    worker.run()
    for model in (Transition, Attempt, ActivityRow, Wait, Notice):
        assert "hunter2" not in str(list(model.objects.values()))
    assert "hunter2" not in str(row(run).__dict__)


def test_a_provider_may_ask_for_more_time(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    does["one"] = failing(1, lambda: kinds.Transient(retry_after=3600))
    worker.run()
    assert Timer.objects.get().due_at - row(run).updated_at == timedelta(hours=1)


def test_a_failure_with_a_route_of_its_own(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-routed",
        one=Activity(factories.work, on={kinds.VerificationFailed: "other"}, then="done"),
        other=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    does["one"] = failing(1, kinds.VerificationFailed)
    worker.run()
    assert status(run)[0] == "complete"
    assert [call[0] for call in calls] == ["one", "other"]
    assert ActivityRow.objects.get(node="one").status == "failed"


def test_visits_end_a_loop(worker: LocalWorker, declare: Declare) -> None:
    again = {"again": "work", "enough": "done"}
    flow = declare(
        "t-loop",
        work=Activity(factories.work, visits=Visits(3, then="gave_up"), then="look"),
        look=Branch(lambda state: "again", choices=again),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )
    run = flow.start({})
    worker.run()
    assert (*status(run), row(run).error_code) == ("failed", "FAILED", "gave_up", "ENDED_AT:gave_up")
    assert calls == [("work", 1, 1), ("work", 2, 1), ("work", 3, 1)]
    assert len({(call[0], call[1]) for call in calls}) == 3


def test_visits_are_counted_over_workers_and_turns(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-turns",
        work=Activity(factories.work, visits=Visits(2, then="gave_up"), then="there"),
        there=Activity(factories.work, queue="cleanup", then="work"),
        gave_up=End(FAILED),
    )
    run = flow.start({})
    for _ in range(8):
        other = factories.another_worker()
        other.run()
        other.stop()
    assert status(run)[:2] == ("failed", "FAILED")
    assert [call[:2] for call in calls] == [("work", 1), ("there", 1), ("work", 2), ("there", 2)]


def test_a_malformed_candidate_is_asked_for_again_within_bounds(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    retry = Retry(max_attempts=3, initial=seconds(1), jitter=0, retry_on=(kinds.InvalidCandidate,))
    flow = declare("t-malformed", choose=Decision(factories.work, choices={"go": "done"}, retry=retry), done=End(COMPLETE))
    answers = iter(
        [Candidate("fly"), {"choice": "go"}, Candidate("go", {"n": 1}), Candidate("fly"), Candidate("go", 2**60), None]
    )
    does["choose"] = lambda attempt: next(answers)
    good, bad = flow.start({}), None
    factories.drive(worker, clock)
    assert status(good)[0] == "complete"
    assert ActivityRow.objects.get(workflow_id=good.id).result["value"] == {"n": 1}
    bad = flow.start({})
    factories.drive(worker, clock)
    assert (*status(bad), row(bad).error_code) == ("waiting", "HUMAN_REQUIRED", "choose", "RETRIES_EXHAUSTED:INVALID_CANDIDATE")
    assert factories.called("choose") == 6


def test_workers_that_keep_dying_are_not_fed_for_ever(worker: LocalWorker) -> None:
    """SLOWLY allows two lost attempts."""
    run = Line.start({})
    worker.stop()
    for _ in range(6):
        victim = factories.another_worker()
        if not factories.take_up_to(victim, 1):
            break
        if row(run).status == "running" and ActivityRow.objects.get(workflow_id=run.id).lost > 2:
            break
        factories.lose(victim)
    lost = [entry[1] for entry in outcomes(run)]
    assert lost == ["lost"] * 3
    other = factories.another_worker()
    factories.lose(victim)
    other.run()
    assert (*status(run), row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "one", "WORKER_LOST")
    assert factories.called("one") == 0
    flows.resume(run)
    other.run()
    assert status(run)[0] == "complete"
