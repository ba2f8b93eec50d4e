"""Commitments: planned before the call, owed when it is known to have happened, and no end without an end of them."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import (
    CANCEL,
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Ask,
    Commits,
    Deadline,
    Effect,
    End,
    Flow,
    Servicing,
    Wait,
    commitments,
)
from flows import errors as kinds
from flows.core.effects import DidNotHappen, Happened
from flows.models import Commitment, Event, Notice, Operation, Timer
from flows.services import obligations
from flows.services.attempt import Attempt
from flows.testing import Clock, LocalWorker
from tests.factories import does, row, status, work
from tests.support.approving import ROLE
from tests.support.filling import FORM

pytestmark = pytest.mark.req("J1", "J2")

released: list[Any] = []
faults: list[Exception] = []
says: list[Any] = []


def release(operation: Any) -> Any:
    released.append((operation.id, operation.reference, operation.terms, operation.of.id))
    if faults:
        raise faults.pop(0)
    return {"released": operation.reference}


def ask(operation: Any) -> Any:
    return says.pop(0)


WINDOW = Commits(
    "window",
    release=Servicing(release, idempotent=True),
    reference=lambda result: result["id"],
    terms=lambda result: {"minutes": result["minutes"]},
    deadline=Deadline(hours=2, then=ESCALATE),
)


class Reserve(Flow):
    """Reserves a window, waits in it, and uses it."""

    class Meta:
        name = "t-reserve"

    reserve = Activity(work, commits=WINDOW, effect=Effect(reconcile=ask), on={kinds.PolicyDenied: "gave_up"}, then="go")
    go = Wait("t.go", key="r", choices={"use": "use", "leave": "done", "fail": "gave_up"}, read=lambda s: s.event["payload"]["do"],
              deadline=Deadline(days=9, then=ESCALATE))  # fmt: skip
    use = Activity(work, fulfils="window", then="done")
    done = End(COMPLETE)
    gave_up = End(FAILED)


class Holding(Flow):
    """Holds a window while people are asked."""

    class Meta:
        name = "t-holding"

    reserve = Activity(work, commits=WINDOW, effect=Effect(reconcile=ask), then="which")
    which = Ask(FORM, why="It is held meanwhile.", role=ROLE, deadline=Deadline(days=9, then=ESCALATE), then="done")
    done = End(COMPLETE)


class Hold(Flow):
    """One hold without a release, one that may outlive the run, one whose breach cancels the run."""

    class Meta:
        name = "t-hold"

    hold = Activity(work, commits=(Commits("hold", kind="thing"), Commits("lease", deferrable=True)), then="done")
    done = End(COMPLETE)


class Strict(Flow):
    class Meta:
        name = "t-strict"

    take = Activity(
        work, commits=Commits("token", kind="capability", release=release, deadline=Deadline(hours=1, then=CANCEL)), then="go"
    )
    go = Wait("t.go", key="s", then="done", deadline=Deadline(days=9, then=ESCALATE))
    done = End(COMPLETE)


@pytest.fixture(autouse=True)
def _nothing() -> None:
    released.clear()
    faults.clear()
    says.clear()
    does["reserve"] = lambda attempt: {"id": "w-1", "minutes": 30}


def ledger() -> dict[str, str]:
    return {c.name: c.status for c in Commitment.objects.all()}


def go(what: str) -> None:
    flows.signal(f"e-{what}", "t.go", key="r", payload={"do": what})


def test_a_run_that_waits_and_owes_something_says_what_it_waits_for(worker: LocalWorker) -> None:
    """What it holds meanwhile is no reason why it stands still."""
    run = Holding.start({})
    worker.run()
    assert flows.describe(run).commitments[0]["status"] == "active"
    assert [one.code for one in flows.describe(run).why][:1] == ["WAITING"]
    assert "answer" in flows.describe(run).decision_needed


def test_it_is_planned_before_the_call_and_active_with_its_result(worker: LocalWorker) -> None:
    seen: list[Any] = []

    def call(attempt: Attempt) -> Any:
        seen.append((ledger(), row(run).owed))
        return {"id": "w-1", "minutes": 30}

    does["reserve"] = call
    run = Reserve.start({})
    worker.run()
    assert seen == [({"window": "planned"}, 2)]
    held = Commitment.objects.get()
    assert (held.status, held.kind, held.reference, held.terms) == ("active", "window", "w-1", {"minutes": 30})
    assert (status(run)[0], row(run).owed, held.operation_id) == ("waiting", 1, f"{run.id}/reserve/1")
    assert Timer.objects.get(commitment_id=held.pk).due_at == held.deadline_at
    assert [one.pk for one in commitments.active(kind="window", workflow=run)] == [held.pk]
    assert commitments.active(kind="other") == []
    (shown,) = flows.describe(run).commitments
    assert (shown["name"], shown["reference"], shown["status"], shown["deadline_at"]) == (
        "window",
        "w-1",
        "active",
        held.deadline_at,
    )


def test_a_good_end_releases_it_first(worker: LocalWorker) -> None:
    run = Reserve.start({})
    worker.run()
    go("leave")
    worker.run()
    assert released == [(f"{run.id}/reserve/1/release/window", "w-1", {"minutes": 30}, f"{run.id}/reserve/1")]
    assert (status(run)[:2], ledger(), row(run).owed) == (("complete", "COMPLETE"), {"window": "released"}, 0)
    assert not Timer.objects.filter(status="pending").exists()


def test_who_fulfils_it_needs_no_release(worker: LocalWorker) -> None:
    run = Reserve.start({})
    worker.run()
    go("use")
    worker.run()
    assert (status(run)[:2], ledger(), released, row(run).owed) == (("complete", "COMPLETE"), {"window": "fulfilled"}, [], 0)


@pytest.mark.parametrize("how", ["cancel", "supersede", "fail"])
def test_a_bad_end_releases_it_too(worker: LocalWorker, how: str) -> None:
    run = Reserve.start({})
    worker.run()
    if how == "cancel":
        flows.cancel(run)
    elif how == "supersede":
        flows.supersede(run, goal="other")
    else:
        go("fail")
    worker.run()
    assert status(run)[0] == {"cancel": "cancelled", "supersede": "superseded", "fail": "failed"}[how]
    assert (ledger(), len(released)) == ({"window": "released"}, 1)


def test_a_cancel_in_doubt_waits_for_the_answer_and_releases_what_is_there(worker: LocalWorker) -> None:
    def cut(attempt: Attempt) -> Any:
        flows.cancel(run)
        raise ConnectionResetError

    does["reserve"] = cut
    says.append(Happened({"id": "w-9", "minutes": 1}))
    run = Reserve.start({})
    worker.run()
    assert (status(run)[0], ledger(), released[0][1]) == ("cancelled", {"window": "released"}, "w-9")


def test_what_did_not_happen_is_not_owed(worker: LocalWorker) -> None:
    def cut(attempt: Attempt) -> Any:
        flows.cancel(run)
        raise ConnectionResetError

    does["reserve"] = cut
    says.append(DidNotHappen())
    run = Reserve.start({})
    worker.run()
    assert (status(run)[0], ledger(), released, row(run).owed) == ("cancelled", {"window": "void"}, [], 0)


def test_a_failed_start_of_it_owes_nothing(worker: LocalWorker) -> None:
    def refuse(attempt: Attempt) -> Any:
        raise kinds.PolicyDenied

    does["reserve"] = refuse
    run = Reserve.start({})
    worker.run()
    assert (status(run)[0], ledger(), row(run).owed) == ("failed", {"window": "void"}, 0)


def test_a_release_in_doubt_is_made_again_where_that_is_harmless(worker: LocalWorker, clock: Clock) -> None:
    run = Reserve.start({})
    worker.run()
    faults.extend([ConnectionResetError(), kinds.AmbiguousOutcome()])
    flows.cancel(run)
    worker.run()
    assert (status(run)[0], len(released)) == ("cancelling", 1), "not at once"
    for _ in range(2):
        clock.move(seconds=10)
        worker.tick()
        worker.run()
    assert (status(run)[0], ledger(), len(released)) == ("cancelled", {"window": "released"}, 3)
    assert len({one[0] for one in released}) == 1, "the same operation each time"


def test_without_a_release_a_person_says_what_becomes_of_it(worker: LocalWorker, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("robin")
    run = Hold.start({}, by=user)
    worker.run()
    assert (status(run)[:2], row(run).owed) == (("reconciling", "RECONCILIATION_REQUIRED"), 1)
    assert ledger() == {"hold": "active", "lease": "deferred"}
    obligations.go_on(run.id, "default")
    assert list(Notice.objects.values_list("code", flat=True)) == ["COMMITMENT_OPEN"], "told once"
    (held,) = commitments.active(workflow=run)
    assert commitments.transfer(held, to="the night shift", by=user, reason="They hold it on")
    assert status(run)[:2] == ("complete", "COMPLETE_WITH_DEFERRED_COMMITMENTS")
    held.refresh_from_db()
    assert (held.status, held.holder, held.reason, held.closed_by) == (
        "transferred",
        "the night shift",
        "They hold it on",
        "robin",
    )
    assert not commitments.fulfil(held, by=user, reason="again")


def test_one_that_may_outlive_the_run_is_named_in_its_outcome(worker: LocalWorker) -> None:
    run = Hold.start({})
    worker.run()
    (held,) = commitments.active(workflow=run)
    commitments.fulfil(held, by=None, reason="used")
    assert (status(run)[1], ledger()) == ("COMPLETE_WITH_DEFERRED_COMMITMENTS", {"hold": "fulfilled", "lease": "deferred"})


def test_a_breach_is_an_event_and_told_once(worker: LocalWorker, clock: Clock, django_user_model: Any) -> None:
    run = Reserve.start({}, by=django_user_model.objects.create_user("robin"))
    worker.run()
    clock.move(hours=3)
    worker.tick()
    worker.tick()
    held = Commitment.objects.get()
    assert (held.status, held.breached_at is not None, held.told_at is not None) == ("breached", True, True)
    event = Event.objects.get()
    assert (event.type, event.key) == ("commitment.breached", str(run.id))
    assert event.payload == {"workflow": str(run.id), "commitment": "window", "kind": "window", "reference": "w-1"}
    assert list(Notice.objects.values_list("code", flat=True)) == ["COMMITMENT_BREACHED"]
    assert (status(run)[0], row(run).owed) == ("waiting", 1)
    go("leave")
    worker.run()
    assert (status(run)[0], ledger()) == ("complete", {"window": "released"})


def test_a_breach_may_cancel_and_what_is_held_is_given_back(worker: LocalWorker, clock: Clock) -> None:
    run = Strict.start({})
    worker.run()
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (status(run)[0], ledger()) == ("cancelled", {"token": "released"})


def test_a_deadline_goes_on_while_the_run_is_cancelling(worker: LocalWorker, clock: Clock) -> None:
    run = Reserve.start({})
    worker.run()
    faults.extend([kinds.Transient() for _ in range(6)])
    flows.cancel(run)
    worker.run()
    clock.move(hours=3)
    worker.tick()
    assert status(run)[0] == "cancelling"
    assert Timer.objects.get(kind="commitment_deadline").status == "stale", "it is being released, which is what was wanted"


def test_a_person_ends_one_whose_release_failed(worker: LocalWorker, clock: Clock) -> None:
    run = Strict.start({})
    worker.run()
    faults.extend([kinds.Transient() for _ in range(9)])
    flows.cancel(run)
    for _ in range(9):
        worker.run()
        clock.move(minutes=15)
        worker.tick()
    assert (status(run)[:2], row(run).error_code) == (("cancelling", "HUMAN_REQUIRED"), "SERVICING_FAILED")
    (held,) = commitments.active()
    assert commitments.fulfil(held, by=None, reason="The provider confirmed by telephone")
    assert status(run)[:2] == ("cancelled", "CANCELLED")
    assert Operation.objects.get(kind="release").status == "abandoned"


@pytest.mark.parametrize(
    ("result", "reference", "terms", "code"),
    [
        ({"minutes": 30}, "", {"minutes": 30}, "REFERENCE_FAILED:KeyError"),
        ({"id": "w-1"}, "w-1", None, "TERMS_FAILED:KeyError"),
        ("secret", "", None, "REFERENCE_FAILED:TypeError TERMS_FAILED:TypeError"),
    ],
)
def test_what_cannot_be_read_from_the_result_is_said_on_the_commitment(
    worker: LocalWorker, result: Any, reference: str, terms: Any, code: str
) -> None:
    """One function that raises leaves the other alone, and the commitment is owed all the same."""
    does["reserve"] = lambda attempt: result
    run = Reserve.start({})
    worker.run()
    held = Commitment.objects.get()
    assert (held.status, held.reference, held.terms, held.reason) == ("active", reference, terms, code)
    assert flows.describe(run).commitments[0]["reason"] == code
    go("leave")
    worker.run()
    held.refresh_from_db()
    assert (held.status, held.reason) == ("released", code)


def test_who_fulfils_it_without_a_word_leaves_the_code(worker: LocalWorker) -> None:
    does["reserve"] = lambda attempt: {"minutes": 30}
    Reserve.start({})
    worker.run()
    go("use")
    worker.run()
    assert Commitment.objects.values_list("status", "reason").get() == ("fulfilled", "REFERENCE_FAILED:KeyError")


def test_an_unknown_commitment_is_named(worker: LocalWorker) -> None:
    with pytest.raises(commitments.UnknownCommitment, match="no commitment 77"):
        commitments.fulfil(77, by=None, reason="x")
