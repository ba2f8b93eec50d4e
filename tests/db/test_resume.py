"""A resume looks whether what its checkpoint names is still there; if not, the conflict is explained and nothing stale is applied (A5)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Candidate, Checkpoint, Deadline, Decision, DidNotHappen, Effect, End, Wait
from flows.errors import StateConflict
from flows.models import Attempt, Operation, Transition
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support.deciding import rows

pytestmark = pytest.mark.req("A5")

#: What `validate=` says, until a test says otherwise.
says: list[Any] = []


@pytest.fixture
def flow(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> type[flows.Flow]:
    """A checkpoint is saved, days pass, an edit is applied by an effect; a conflict has a way of its own."""
    says.clear()
    return declare(
        "t-resume",
        meta={"checkpoint": Checkpoint(validate=lambda attempt: says[0] if says else None)},
        plan=Activity(factories.work, then="pause"),
        pause=Wait("t.resume", key="k", deadline=Deadline(days=9, then=ESCALATE), then="apply"),
        apply=Activity(factories.work, effect=Effect(reconcile=lambda operation: DidNotHappen()), then="done"),
        done=End(COMPLETE),
    )


def asleep(flow: type[flows.Flow], worker: LocalWorker) -> Any:
    does["plan"] = lambda attempt: attempt.save_checkpoint({"revision": "abc"})
    run = flow.start({})
    worker.run()
    return run


def wake(worker: LocalWorker) -> None:
    flows.signal("wake", "t.resume", key="k", payload={})
    worker.run()


@pytest.mark.failure("checkpoint references deleted state")
def test_a_conflict_is_explained_and_nothing_stale_is_applied(flow: type[flows.Flow], worker: LocalWorker) -> None:
    run = asleep(flow, worker)
    says.append("main no longer contains abc: its history was rewritten")
    wake(worker)
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "apply")
    assert row(run).error_code == "STATE_CONFLICT"
    assert (factories.called("apply"), Operation.objects.count()) == (0, 0), "no call was made, and none was begun"
    last = Transition.objects.filter(workflow_id=run.id).latest("seq")
    assert last.note["conflict"] == "main no longer contains abc: its history was rewritten"
    tried = Attempt.objects.get(workflow_id=run.id, node="apply")
    assert (tried.error_code, tried.error_class) == ("STATE_CONFLICT", "CheckpointConflict")


def test_a_person_who_resumes_has_it_looked_at_again(flow: type[flows.Flow], worker: LocalWorker) -> None:
    run = asleep(flow, worker)
    says.append("gone")
    wake(worker)
    flows.resume(run.id)
    worker.run()
    assert (status(run)[1], factories.called("apply")) == ("HUMAN_REQUIRED", 0)
    says.clear()  # the revision is back
    flows.resume(run.id)
    worker.run()
    assert (status(run)[0], factories.called("apply")) == ("complete", 1)


@pytest.mark.parametrize("woken", ["event", "recovery", "retry", "resume"])
def test_every_wake_up_looks(flow: type[flows.Flow], worker: LocalWorker, clock: Clock, woken: str) -> None:
    run = asleep(flow, worker)
    if woken == "event":
        says.append("gone")
        wake(worker)
    elif woken == "recovery":
        does["apply"] = lambda attempt: [factories.lose(worker), says.append("gone"), factories.failing(1)(attempt)]
        wake(worker)
        other = factories.another_worker()
        factories.drive(other, clock, 3)
    elif woken == "retry":
        does["apply"] = lambda attempt: [says.append("gone"), factories.failing(1)(attempt)]
        wake(worker)
        factories.drive(worker, clock, 2)
    else:
        flows.pause(run.id)
        says.append("gone")
        flows.resume(run.id)
        wake(worker)
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "apply")
    assert factories.called("apply") == (0 if woken in ("event", "resume") else 1)
    assert Transition.objects.filter(workflow_id=run.id).latest("seq").note["conflict"] == "gone"


@pytest.mark.parametrize("answer", [True, False, 0, ["gone"]])
def test_an_answer_that_is_neither_none_nor_a_text_is_not_guessed_at(
    flow: type[flows.Flow], worker: LocalWorker, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    """`return exists(revision)` would mean the opposite of what it says."""
    run = asleep(flow, worker)
    says.append(answer)
    wake(worker)
    assert (status(run)[1], row(run).error_code, factories.called("apply")) == ("HUMAN_REQUIRED", "COMPETENCE_FAILURE", 0)
    assert "validate= of the checkpoint of t-resume returned" in caplog.text
    assert "it returns None, or a text that explains the conflict" in caplog.text


def test_a_validator_that_fails_is_a_failed_attempt_and_no_pass(
    flow: type[flows.Flow], worker: LocalWorker, clock: Clock
) -> None:
    run = asleep(flow, worker)
    says.append(None)
    tries = []

    def unreachable(attempt: Any) -> str | None:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionRefusedError
        return None

    definition = flow.definition
    object.__setattr__(definition.checkpoint, "validate", unreachable)
    wake(worker)
    assert factories.called("apply") == 0
    factories.drive(worker, clock, 4)
    assert (status(run)[0], factories.called("apply"), len(tries)) == ("complete", 1, 3)


def test_a_text_that_cannot_be_stored_is_made_storable(
    flow: type[flows.Flow], worker: LocalWorker, caplog: pytest.LogCaptureFixture
) -> None:
    run = asleep(flow, worker)
    says.append("a\x00b\ud800" + "x" * 9000)
    with caplog.at_level(logging.CRITICAL, "outlast.attempt"):  # what is logged is no text either, and cannot be reported
        wake(worker)
    note = Transition.objects.filter(workflow_id=run.id).latest("seq").note["conflict"]
    assert (note[:4], len(note)) == ("a\N{REPLACEMENT CHARACTER}b?", 500)


def test_a_decision_is_told_and_its_route_takes_the_conflict_along(
    worker: LocalWorker, declare: Callable[..., type[flows.Flow]]
) -> None:
    says.clear()
    flow = declare(
        "t-replan",
        meta={"checkpoint": Checkpoint(validate=lambda attempt: says[0] if says else None)},
        plan=Activity(factories.work, then="pause"),
        pause=Wait("t.resume", key="k", deadline=Deadline(days=9, then=ESCALATE), then="apply"),
        apply=Activity(factories.work, on={StateConflict: "choose"}, then="done"),
        choose=Decision(factories.work, choices={"again": "later"}, queue="cleanup"),
        later=Activity(factories.work, queue="cleanup", then="done"),
        done=End(COMPLETE),
    )
    seen: list[Any] = []

    def choose(attempt: Any) -> Candidate:
        conflict = [item.text for item in attempt.context(max_tokens=500).items("checkpoint") if item.name == "conflict"]
        seen.append((attempt.checkpoint_conflict, conflict))
        says.clear()
        attempt.save_checkpoint({"revision": "def"})
        return Candidate("again")

    does["choose"] = choose
    run = asleep(flow, worker)
    says.append("abc is gone")
    wake(worker)
    assert seen == [("abc is gone", ['"abc is gone"'])]
    assert (status(run)[0], factories.called("apply"), row(run).checkpoint) == ("complete", 0, {"revision": "def"})
    assert [one.choice for one in rows(run)] == ["again"]
    notes = Transition.objects.filter(workflow_id=run.id, note__has_key="conflict").values_list("to_node", "note__conflict")
    assert list(notes) == [("choose", "abc is gone")]


def test_where_a_conflict_leads_is_told_of_it_in_the_same_turn_and_in_another(
    worker: LocalWorker, declare: Callable[..., type[flows.Flow]]
) -> None:
    """Which turn takes it up is chance; what it is told is not."""
    for queue in ("agents", "cleanup"):
        says.clear()
        flow = declare(
            f"t-leads-{queue}",
            meta={"checkpoint": Checkpoint(validate=lambda attempt: says[0] if says else None)},
            plan=Activity(factories.work, then="pause"),
            pause=Wait("t.resume", key=queue, deadline=Deadline(days=9, then=ESCALATE), then="apply"),
            apply=Activity(factories.work, on={StateConflict: "again"}, then="done"),
            again=Activity(factories.work, queue=queue, then="done"),
            done=End(COMPLETE),
        )
        seen: list[str | None] = []
        does["again"] = lambda attempt, seen=seen: seen.append(attempt.checkpoint_conflict)
        run = asleep(flow, worker)
        says.append("abc is gone")
        flows.signal(f"wake-{queue}", "t.resume", key=queue, payload={})
        worker.run()
        assert (status(run)[0], seen, factories.called("apply")) == ("complete", ["abc is gone"], 0)
