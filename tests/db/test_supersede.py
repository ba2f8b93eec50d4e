"""A new goal: every run of the old version ends in one transaction, whatever it was doing; nothing old resurrects it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

import flows
from flows.core.errors import PayloadError
from flows.core.protocol import Status
from flows.models import Activity, Attempt, Intent, IntentRevision, Workflow
from flows.services.proceed import Progress
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Line, in_status, row, status

pytestmark = pytest.mark.req("D1")

LIVE = [Status.RUNNABLE, Status.RUNNING, Status.WAITING, Status.PAUSED]


@pytest.mark.req("D2")
@pytest.mark.parametrize("source", LIVE)
def test_every_live_run_of_the_old_version_ends(worker: LocalWorker, source: Status) -> None:
    run = in_status(source, worker)
    done = flows.supersede(run, goal="Another", by=factories.person("robin"), reason="Changed my mind")
    assert (done.answer, done.intent_id, done.version, done.ended, done.started) == (
        "accepted",
        run.intent_id,
        2,
        (run.id,),
        None,
    )
    workflow = row(run)
    assert (workflow.status, workflow.outcome, workflow.error_code) == ("superseded", "SUPERSEDED", "INTENT_SUPERSEDED")
    assert (workflow.epoch, workflow.intent_version, workflow.worker_id, workflow.active_seq) == (1, 1, None, None)
    intent = Intent.objects.get()
    assert (intent.version, intent.goal, intent.status) == (2, "Another", "active")
    revision = IntentRevision.objects.get()
    assert (revision.version, revision.ended_as, revision.reason, revision.by_label) == (
        1,
        "superseded",
        "Changed my mind",
        "robin",
    )
    assert worker.run() == 0


@pytest.mark.parametrize("source", [Status.COMPLETE, Status.FAILED, Status.CANCELLED])
def test_ended_runs_stay_as_they_ended(worker: LocalWorker, source: Status) -> None:
    run = in_status(source, worker)
    before = status(run)
    done = flows.supersede(run, goal="Another")
    assert (done.answer, done.ended) == ("accepted", ())
    assert status(run) == before


def test_all_runs_of_an_intent_and_no_others(worker: LocalWorker) -> None:
    first = Line.start({})
    others = [Line.start({}, intent=first) for _ in range(3)]
    stranger = Line.start({})
    factories.take_one(worker)
    done = flows.supersede(first, goal="Another")
    assert set(done.ended) == {first.id, *(run.id for run in others)}
    assert status(stranger)[0] == "runnable"


def test_a_new_run_for_the_new_goal(worker: LocalWorker) -> None:
    run = Line.start({})
    done = flows.supersede(run, goal="Another", flow=Line, input={"n": 2}, key="second", by=factories.person("robin"))
    assert done.started is not None
    assert done.started.created
    assert (row(done.started).intent_version, row(done.started).intent_id) == (2, run.intent_id)
    worker.run()
    assert (status(done.started)[0], status(run)[0]) == ("complete", "superseded")


def test_the_same_supersede_twice_is_once(worker: LocalWorker) -> None:
    """A request that is sent again, because its answer was lost, ends nothing that it started itself."""
    run = Line.start({})
    first = flows.supersede(run, goal="Another", flow=Line, input={"n": 2}, key="second")
    again = flows.supersede(run, goal="Another", flow=Line, input={"n": 2}, key="second")
    assert (again.answer, again.version, again.ended) == ("already", 2, ())
    assert again.started is not None
    assert first.started is not None
    assert (again.started.id, again.started.created) == (first.started.id, False)
    assert Intent.objects.get().version == 2
    worker.run()
    assert status(first.started)[0] == "complete"


def test_the_same_goal_twice_with_nothing_to_end_is_once(worker: LocalWorker) -> None:
    run = Line.start({})
    assert flows.supersede(run, goal="Another").answer == "accepted"
    assert flows.supersede(run, goal="Another").answer == "already"
    assert Intent.objects.get().version == 2
    assert flows.supersede(run, goal="Yet another").version == 3


def test_the_same_words_end_what_was_started_meanwhile(worker: LocalWorker) -> None:
    """Runs that somebody else began under this version are not of this call: they end."""
    run = Line.start({}, goal="Same")
    flows.supersede(run, goal="Same again")
    other = Line.start({}, intent=run)
    done = flows.supersede(run, goal="Same again")
    assert (done.answer, done.ended, done.version) == ("accepted", (other.id,), 3)


def test_a_supersede_of_a_cancelled_intent_is_too_late(worker: LocalWorker) -> None:
    run = Line.start({})
    flows.cancel_intent(run)
    done = flows.supersede(run, goal="Another", flow=Line)
    assert (done.answer, bool(done), done.started) == ("too_late", False, None)
    assert Workflow.objects.count() == 1


def test_cancel_of_an_intent_cancels_all_its_runs(worker: LocalWorker) -> None:
    user = get_user_model().objects.create_user("robin")
    first = in_status(Status.RUNNING, worker)
    others = [Line.start({}, intent=first) for _ in range(2)]
    done = flows.cancel_intent(first, reason="No longer", by=user)
    assert (done.answer, len(done.ended)) == ("accepted", 3)
    assert {status(run)[0] for run in (first, *others)} == {"cancelled"}
    revision = IntentRevision.objects.get()
    assert (revision.ended_as, revision.by_id) == ("cancelled", user.pk)
    again = flows.cancel_intent(first)
    assert (again.answer, again.ended, again.version) == ("already", (), 2)
    assert IntentRevision.objects.count() == 1


@pytest.mark.req("D3", "B7")
def test_a_result_after_the_goal_changed_moves_nothing_and_is_kept(worker: LocalWorker) -> None:
    run = Line.start({})

    def act(attempt: Any) -> Any:
        flows.supersede(run, goal="Another")
        return {"done": "all the same"}

    factories.does["two"] = act
    worker.run()
    assert status(run) == ("superseded", "SUPERSEDED", "two")
    attempt = Attempt.objects.get(workflow_id=run.id, node="two")
    assert (attempt.outcome, attempt.late_result) == ("fenced", {"done": "all the same"})
    assert Activity.objects.get(workflow_id=run.id, node="two").result is None
    assert factories.called("three") == 0


@pytest.mark.req("D3")
def test_an_old_owner_moves_nothing(worker: LocalWorker) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    flows.supersede(run, goal="Another")
    version = row(run).version
    assert factories.complete(owned) is Progress.LOST
    assert factories.fail(owned) is Progress.LOST
    assert row(run).version == version


@pytest.mark.req("D2")
def test_a_claim_of_work_for_an_old_version_ends_it(worker: LocalWorker) -> None:
    """Whatever left it behind: the gate asks the intent, not the row."""
    run = Line.start({})
    factories.take_one(worker)  # claimed, so that the next claim reads the intent
    Intent.objects.update(version=5)
    worker.stop()
    other = factories.another_worker()
    other.tick()
    other.run()
    assert status(run) == ("superseded", "SUPERSEDED", "one")
    assert factories.called("one") == 0


def test_a_supersede_goes_with_the_callers_transaction(worker: LocalWorker, clock: Clock) -> None:
    run = in_status(Status.WAITING, worker)
    with transaction.atomic():
        flows.supersede(run, goal="Another", flow=Line)
        transaction.set_rollback(True)
    assert status(run)[0] == "waiting"
    assert (Intent.objects.get().version, Workflow.objects.count()) == (1, 1)


def test_a_failure_of_the_new_start_undoes_the_supersede(worker: LocalWorker) -> None:
    run = Line.start({}, key="taken")
    with pytest.raises(flows.errors.KeyConflict):
        flows.supersede(run, goal="Another", flow=Line, input={"n": 1}, key="taken")
    assert (status(run)[0], Intent.objects.get().version) == ("runnable", 1)


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("", "is empty: say what is wanted now"),
        ("  \n", "is empty"),
        (5, "must be text, got int"),
        (None, "must be text"),
    ],
)
def test_a_new_goal_is_said_in_words(goal: Any, said: str) -> None:
    run = Line.start({}, goal="Same")
    with pytest.raises(PayloadError, match=f"^the goal: {said}"):
        flows.supersede(run, goal=goal)
    assert status(run)[0] == "runnable"


def test_what_is_no_text_is_said_to_be_none() -> None:
    with pytest.raises(PayloadError, match=r"^the goal of t-line: must be text, got list$"):
        Line.start({}, goal=["Ship it"])
    run = Line.start({}, goal="  Ship it ")
    assert Intent.objects.get(pk=run.intent_id).goal == "Ship it"
    with pytest.raises(PayloadError, match=r"^the reason: must be text, got int"):
        flows.cancel(run, reason=5)  # type: ignore[arg-type]
    assert status(run)[0] == "runnable"
