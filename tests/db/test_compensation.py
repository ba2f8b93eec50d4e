"""The way to a bad end: fence, reconcile, compensate the newest first, and only then cancelled, superseded or failed."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, FAILED, Activity, Deadline, Effect, End, Flow, Servicing, Wait, seconds
from flows import errors as kinds
from flows.core.effects import DidNotHappen, Happened, Unknown
from flows.core.policies import ESCALATE, Retry
from flows.models import Notice, Operation, Transition
from flows.services.attempt import Attempt
from flows.testing import Clock, LocalWorker
from tests.factories import called, does, forget, person, row, status, work

pytestmark = pytest.mark.req("B6", "K1", "D3")

#: What was undone, in order, and what an undoing raises, by node.
undone: list[str] = []
faults: dict[str, list[Exception]] = {}
says: list[Any] = []


def undo(operation: Any) -> Any:
    undone.append(operation.of.id)
    if faults.get(operation.node):
        raise faults[operation.node].pop(0)
    return {"undone": operation.of.evidence}


def ask(operation: Any) -> Any:
    return says.pop(0) if says else Unknown()


TRIES = Retry(max_attempts=2, initial=seconds(5), maximum=seconds(5), jitter=0)


class Trip(Flow):
    """Three bookings, of which two can be undone; then it waits."""

    class Meta:
        name = "t-trip"

    flight = Activity(work, effect=Effect(compensate=undo), then="insurance")
    insurance = Activity(work, effect=Effect(), then="hotel")
    hotel = Activity(
        work,
        effect=Effect(reconcile=ask, compensate=Servicing(undo, reconcile=ask, probes=TRIES)),
        on={kinds.PolicyDenied: "gave_up"},
        then="go",
    )
    go = Wait("t.go", key="x", deadline=Deadline(hours=1, then=ESCALATE), then="last")
    last = Activity(work, on={kinds.PolicyDenied: "gave_up"}, then="done")
    done = End(COMPLETE)
    gave_up = End(FAILED)


@pytest.fixture(autouse=True)
def _nothing_undone() -> None:
    forget()
    undone.clear()
    faults.clear()
    says.clear()


def name(run: Any, node: str) -> str:
    return f"{run.id}/{node}/1"


def last_note(run: Any) -> Any:
    return Transition.objects.get(workflow_id=run.id, seq=row(run).version).note


def statuses() -> dict[str, str]:
    return {o.node + ("" if o.kind == "effect" else f"/{o.kind}"): o.status for o in Operation.objects.all()}


def booked(worker: LocalWorker) -> Any:
    run = Trip.start({})
    worker.run()
    assert status(run)[0] == "waiting"
    return run


def test_cancel_undoes_the_newest_first_and_says_what_stands(worker: LocalWorker) -> None:
    run = booked(worker)
    answer = flows.cancel(run, reason="no longer wanted", by=person("robin"))
    assert (answer.answer, answer.status, status(run)[:2]) == ("accepted", "cancelling", ("cancelling", ""))
    assert flows.cancel(run).answer == "already"
    worker.run()
    assert undone == [name(run, "hotel"), name(run, "flight")]
    assert (status(run)[:2], row(run).owed, row(run).epoch) == (("cancelled", "CANCELLED"), 0, 1)
    assert last_note(run) == {
        "undone": [name(run, "flight"), name(run, "hotel")],
        "not_undone": [name(run, "insurance")],
    }
    assert statuses() == {
        "flight": "compensated", "insurance": "succeeded", "hotel": "compensated",
        "flight/compensation": "succeeded", "hotel/compensation": "succeeded",
    }  # fmt: skip
    assert Operation.objects.get(pk=name(run, "hotel") + "/compensate").of_id == name(run, "hotel")
    assert flows.cancel(run).answer == "already"


def test_supersede_likewise_and_a_superseded_run_has_its_own_end(worker: LocalWorker) -> None:
    run = booked(worker)
    done = flows.supersede(run, goal="another trip")
    assert done.ended == (run.id,)
    assert flows.supersede(run, goal="another trip").answer == "already"
    worker.run()
    assert (status(run)[:2], undone) == (("superseded", "SUPERSEDED"), [name(run, "hotel"), name(run, "flight")])


def test_failed_compensates_too(worker: LocalWorker) -> None:
    def refuse(attempt: Attempt) -> Any:
        raise kinds.PolicyDenied

    does["last"] = refuse
    run = booked(worker)
    flows.signal("e1", "t.go", key="x", payload={})
    worker.run()
    assert (status(run), undone) == (("failed", "FAILED", "gave_up"), [name(run, "hotel"), name(run, "flight")])


def test_a_good_end_undoes_nothing(worker: LocalWorker) -> None:
    run = booked(worker)
    flows.signal("e1", "t.go", key="x", payload={})
    worker.run()
    assert (status(run)[:2], undone) == (("complete", "COMPLETE"), [])


def test_no_compensation_passes_an_effect_in_doubt(worker: LocalWorker, clock: Clock) -> None:
    def cut(attempt: Attempt) -> Any:
        raise ConnectionResetError

    does["hotel"] = cut
    run = Trip.start({})
    worker.run()
    assert status(run)[0] == "reconciling"
    flows.cancel(run)
    assert (status(run)[0], undone) == ("cancelling", [])
    clock.move(minutes=1)
    worker.run()
    assert undone == [], "the hotel is still in doubt"
    says.append(Happened({"room": 1}))
    clock.move(minutes=5)
    worker.tick()
    worker.run()
    assert (status(run)[0], undone) == ("cancelled", [name(run, "hotel"), name(run, "flight")])


def test_what_did_not_happen_is_not_undone(worker: LocalWorker) -> None:
    def cut(attempt: Attempt) -> Any:
        flows.cancel(run)
        raise ConnectionResetError

    does["hotel"] = cut
    says.append(DidNotHappen())
    run = Trip.start({})
    worker.run()
    assert (status(run)[0], undone) == ("cancelled", [name(run, "flight")])
    assert Operation.objects.get(pk=name(run, "hotel")).status == "abandoned"


def test_a_compensation_that_fails_is_tried_again_and_then_is_a_persons(worker: LocalWorker, clock: Clock) -> None:
    run = booked(worker)
    faults["hotel"] = [kinds.Transient(), kinds.Transient()]
    flows.cancel(run)
    worker.run()
    assert undone == [name(run, "hotel")]
    clock.move(seconds=6)
    worker.tick()
    worker.run()
    assert (status(run)[:2], row(run).error_code) == (("cancelling", "HUMAN_REQUIRED"), "SERVICING_FAILED")
    found = Operation.objects.get(kind="compensation")
    assert (found.status, found.due_at, found.attempt) == ("failed", None, 2)
    assert undone == [name(run, "hotel")] * 2, "the flight is not undone before the hotel"


def test_a_compensation_in_doubt_is_asked_about(worker: LocalWorker, clock: Clock) -> None:
    run = booked(worker)
    faults["hotel"] = [ConnectionResetError()]
    says.append(Happened())
    flows.cancel(run)
    worker.run()
    assert (status(run)[0], undone) == ("cancelled", [name(run, "hotel"), name(run, "flight")])


def test_a_plain_compensation_in_doubt_needs_a_person(worker: LocalWorker) -> None:
    run = booked(worker)
    faults["flight"] = [ConnectionResetError()]
    flows.cancel(run)
    worker.run()
    assert (status(run)[:2], row(run).error_code) == (("cancelling", "HUMAN_REQUIRED"), "NOT_RECONCILABLE")
    assert statuses()["flight/compensation"] == "uncertain"


def test_a_compensation_that_never_happens_ends(worker: LocalWorker, clock: Clock) -> None:
    run = booked(worker)
    faults["hotel"] = [ConnectionResetError() for _ in range(9)]
    says.extend([DidNotHappen() for _ in range(9)])
    flows.cancel(run)
    for _ in range(9):
        worker.run()
        clock.move(minutes=1)
        worker.tick()
    assert (status(run)[:2], len(undone)) == (("cancelling", "HUMAN_REQUIRED"), 2)


def test_cancel_while_compensating_a_superseded_run_changes_nothing_and_supersede_wins(worker: LocalWorker) -> None:
    run = booked(worker)
    flows.cancel(run)
    assert row(run).target == "cancelled"
    flows.supersede(run, goal="other")
    assert row(run).target == "superseded"
    assert flows.cancel(run).answer == "already"
    worker.run()
    assert status(run)[:2] == ("superseded", "SUPERSEDED")


@pytest.mark.parametrize(
    "shape", ["before_start", "running", "waiting", "paused", "mid_effect", "uncertain", "reconciling_paused", "completed"]
)
def test_cancel_in_every_shape_ends_and_twice_is_once(worker: LocalWorker, clock: Clock, shape: str) -> None:
    run, told = shaped(worker, shape)
    first, second = flows.cancel(run), flows.cancel(run)
    assert (first.answer, second.answer) == told
    says.extend([DidNotHappen()] * 3)
    for _ in range(4):
        worker.run()
        clock.move(minutes=5)
        worker.tick()
    assert status(run)[0] == ("complete" if shape == "completed" else "cancelled")
    assert (row(run).owed, called("last")) == (0, 1 if shape == "completed" else 0)


def shaped(worker: LocalWorker, shape: str) -> tuple[Any, tuple[str, str]]:
    """A trip in that state, and what a first and a second cancel answer then."""
    accepted = ("accepted", "already")

    def cut(attempt: Attempt) -> Any:
        raise ConnectionResetError

    def cancelling(attempt: Attempt) -> Any:
        shapes.append(flows.cancel(run).answer)
        return {}

    shapes: list[str] = []
    if shape == "before_start":
        return Trip.start({}), accepted
    if shape in ("running", "mid_effect"):
        does["hotel"] = cancelling
        run = Trip.start({})
        worker.run()
        assert shapes == ["accepted"]
        return run, ("already", "already")
    if shape in ("uncertain", "reconciling_paused"):
        does["hotel"] = cut
        run = Trip.start({})
        worker.run()
        if shape == "reconciling_paused":
            assert flows.pause(run).answer == "accepted"
        return run, accepted
    run = booked(worker)
    if shape == "paused":
        flows.pause(run)
    if shape == "completed":
        flows.signal("e1", "t.go", key="x", payload={})
        worker.run()
        return run, ("too_late", "too_late")
    return run, accepted


def test_a_pause_asked_while_reconciling_is_followed_when_it_is_known(worker: LocalWorker) -> None:
    def cut(attempt: Attempt) -> Any:
        raise ConnectionResetError

    does["hotel"] = cut
    run = Trip.start({})
    worker.run()
    flows.pause(run)
    says.append(Happened({"room": 2}))
    Operation.objects.filter(status="uncertain").update(due_at=row(run).created_at)
    worker.run()
    assert status(run)[0] == "paused"
    flows.resume(run)
    worker.run()
    assert (status(run)[0], called("hotel")) == ("waiting", 1)


def test_the_accountable_user_is_told_when_cleanup_needs_a_person(worker: LocalWorker, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("robin")
    run = Trip.start({}, by=user)
    worker.run()
    faults["flight"] = [ConnectionResetError()]
    flows.cancel(run)
    worker.run()
    assert list(Notice.objects.values_list("outcome", "code")) == [("HUMAN_REQUIRED", "NOT_RECONCILABLE")]
