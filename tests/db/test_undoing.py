"""In which order what a run did is undone and what it holds is given back: one compensation that is stuck holds back only what it may need."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import COMPLETE, FAILED, Activity, Commits, Deadline, Effect, End, Flow, Servicing, Wait, seconds
from flows import errors as kinds
from flows.core.policies import ESCALATE, Retry
from flows.models import Commitment, Operation
from flows.services import undoing
from flows.services.resolve import Code, resolve
from flows.testing import Clock, LocalWorker
from tests.factories import forget, row, status, work
from tests.support.obligations import faults as unsound

pytestmark = pytest.mark.req("B6", "J1", "D3")

#: What was done on the way to an end, in order, and what the undoing of a node raises.
done: list[str] = []
faults: dict[str, list[Exception]] = {}


def service(operation: Any) -> Any:
    if faults.get(operation.node):
        raise faults[operation.node].pop(0)
    done.append(f"{operation.kind} {operation.node}")
    return {}


TWICE = Retry(max_attempts=2, initial=seconds(5), maximum=seconds(5), jitter=0)
UNDO = Effect(idempotent=True, compensate=Servicing(service, probes=TWICE))


def gives_back(name: str) -> Commits:
    return Commits(name, release=Servicing(service, probes=TWICE))


class Rollout(Flow):
    """A window, a canary in it, a token for the promotion, the promotion, and a lock that is taken with an effect of its own."""

    class Meta:
        name = "t-rollout"

    window = Activity(work, commits=gives_back("window"), then="canary")
    canary = Activity(work, effect=UNDO, then="token")
    token = Activity(work, commits=gives_back("token"), then="promote")
    promote = Activity(work, effect=UNDO, then="lock")
    lock = Activity(work, effect=UNDO, commits=gives_back("lock"), then="ticket")
    ticket = Activity(work, commits=gives_back("ticket"), then="go")
    go = Wait("t.rollout", key="r", choices={"good": "done", "bad": "gave_up"}, read=lambda s: s.event["payload"]["do"],
              deadline=Deadline(hours=9, then=ESCALATE))  # fmt: skip
    done = End(COMPLETE)
    gave_up = End(FAILED)


@pytest.fixture(autouse=True)
def _nothing() -> None:
    forget()
    done.clear()
    faults.clear()


@pytest.fixture
def ann(transactional_db: None) -> Any:
    return get_user_model().objects.create_superuser("ann")


def rolled_out(worker: LocalWorker) -> Any:
    run = Rollout.start({})
    worker.run()
    assert status(run)[0] == "waiting"
    return run


def ledger() -> dict[str, str]:
    return {one.name: one.status for one in Commitment.objects.order_by("pk")}


def try_again(worker: LocalWorker, clock: Clock) -> None:
    clock.move(seconds=6)
    worker.tick()
    worker.run()


def test_the_newest_first_and_nothing_is_given_back_that_an_undoing_may_need(worker: LocalWorker) -> None:
    run = rolled_out(worker)
    flows.cancel(run)
    worker.run()
    assert done == [
        *("release ticket", "compensation lock", "release lock", "compensation promote"),
        *("release token", "compensation canary", "release window"),
    ]
    assert (status(run)[0], row(run).owed, unsound()) == ("cancelled", 0, [])


def test_a_good_end_gives_everything_back_at_once(worker: LocalWorker) -> None:
    run = rolled_out(worker)
    flows.signal("e1", "t.rollout", key="r", payload={"do": "good"})
    worker.run()
    assert sorted(done) == ["release lock", "release ticket", "release token", "release window"]
    assert status(run)[0] == "complete"


def test_a_compensation_that_waits_for_its_next_try_holds_back_only_what_is_older(worker: LocalWorker, clock: Clock) -> None:
    run = rolled_out(worker)
    faults["promote"] = [kinds.Transient()]
    flows.cancel(run)
    worker.run()
    assert ledger() == {"window": "active", "token": "active", "lock": "released", "ticket": "released"}
    assert "compensation canary" not in done, "the newest first"
    assert (status(run)[:2], unsound()) == (("cancelling", ""), [])
    try_again(worker, clock)
    assert (status(run)[0], set(ledger().values())) == ("cancelled", {"released"})


@pytest.mark.parametrize("verdict", ["happened", "give_up", "retry"])
def test_one_that_is_left_to_a_person_too_and_the_way_out_is_a_verdict(
    worker: LocalWorker, clock: Clock, ann: Any, verdict: str
) -> None:
    run = rolled_out(worker)
    faults["canary"] = [kinds.Transient(), kinds.Transient()]
    flows.signal("e1", "t.rollout", key="r", payload={"do": "bad"})
    worker.run()
    try_again(worker, clock)
    assert (status(run)[:2], row(run).error_code) == (("cancelling", "HUMAN_REQUIRED"), "SERVICING_FAILED")
    assert ledger() == {"window": "active", "token": "released", "lock": "released", "ticket": "released"}
    stuck = f"{run.id}/canary/1/compensate"
    (held,) = undoing.held_back(run.id, "default")
    assert (held.name, held.until) == ("window", (stuck,))
    assert unsound() == []
    assert resolve(stuck, verdict=verdict, by=ann, reason="x").code is Code.ACCEPTED
    worker.run()
    assert (status(run)[0], ledger()["window"], undoing.held_back(run.id, "default")) == ("failed", "released", [])


def test_a_compensation_in_doubt_holds_back_only_what_is_older(worker: LocalWorker) -> None:
    run = rolled_out(worker)
    faults["promote"] = [ConnectionResetError()]
    flows.cancel(run)
    worker.run()
    assert Operation.objects.get(node="promote", kind="compensation").status == "uncertain"
    assert ledger() == {"window": "active", "token": "active", "lock": "released", "ticket": "released"}
    assert [(one.name, one.until) for one in undoing.held_back(run.id, "default")] == [
        ("window", (f"{run.id}/promote/1/compensate", f"{run.id}/canary/1")),
        ("token", (f"{run.id}/promote/1/compensate",)),
    ]


def test_a_release_that_is_stuck_holds_no_compensation_back(worker: LocalWorker, clock: Clock) -> None:
    run = rolled_out(worker)
    faults["ticket"] = [kinds.Transient(), kinds.Transient()]
    flows.cancel(run)
    worker.run()
    try_again(worker, clock)
    assert [one for one in done if one.startswith("compensation")] == [
        *("compensation lock", "compensation promote", "compensation canary"),
    ]
    assert ledger() == {"window": "released", "token": "released", "lock": "released", "ticket": "releasing"}
    assert (status(run)[:2], row(run).owed) == (("cancelling", "HUMAN_REQUIRED"), 1)
    assert undoing.held_back(run.id, "default") == []
