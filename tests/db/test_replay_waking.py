"""Replay of what the gate refused, of releases, deadlines and versions: what is judged again, what is given, and what cannot be judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, MIGRATE, Activity, Deadline, End, Flow, Gate, Wait, policies, restart_from
from flows.core.history import Drift
from flows.models import Transition
from flows.services.migrate import migrate
from flows.services.replay import replay
from flows.testing import Clock, LocalWorker
from tests.db.test_replay_drift import drift, edit, edit_log, emptied
from tests.factories import row, status, work
from tests.support.releasing import WAYS, both, flow_of, now_is
from tests.support.versions import unload, version

__all__ = ["emptied"]

pytestmark = pytest.mark.req("S1", "H1", "I1", "G2")

TAMPERS = True

Declare = Callable[..., type[Flow]]
NAME = "t-migrated"


def steps(run: Any) -> list[tuple[str, str]]:
    """(trigger, how) of each arrow; the replay goes the recorded way."""
    (found,) = replay([run], keep_steps=True)
    assert found.drift is None
    return [(step.logged.trigger, step.how) for step in found.steps if step.logged is not None]


def noted(run: Any, name: str) -> Transition:
    """The newest arrow whose note says that."""
    return Transition.objects.filter(workflow_id=run.id, note__has_key=name).latest("seq")


# ---------------------------------------------------------------- the gate


def denied(declare: Declare, worker: LocalWorker) -> Any:
    """A run that a look has refused."""
    gate = Gate(authority="auth.nobody_has_it")
    flow = declare("t-denied", one=Activity(work, then="act"), act=Activity(work, gate=gate, then="done"), done=End(COMPLETE))
    run = flow.start({})
    worker.run()
    assert status(run) == ("waiting", "POLICY_BLOCKED", "act")
    return run


def test_the_verdict_of_a_look_is_given_and_what_follows_is_decided(worker: LocalWorker, declare: Declare) -> None:
    run = denied(declare, worker)
    assert steps(run)[-1] == ("refused", "decided")


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (None, ("to_status", "waiting")),
        ("PLACEMENT_DENIED", ("verdict", "PLACEMENT_DENIED")),
        ("INTENT_SUPERSEDED", ("verdict", "INTENT_SUPERSEDED")),
    ],
)
def test_another_verdict_than_the_recorded_one_is_located(
    worker: LocalWorker, declare: Declare, verdict: str | None, expected: tuple[str, str]
) -> None:
    run = denied(declare, worker)
    at = noted(run, "verdict").seq
    edit_log(run, at, note=json.dumps({"verdict": verdict, "reason": "so it is"} if verdict else {}))
    found = drift(run)
    assert (found.seq, found.field, found.recorded) == (at, *expected)


@pytest.mark.parametrize(
    ("verdict", "replayed"),
    [
        ("PLACEMENT_DENIED", None),
        ("CANDIDATE_INVALID", None),
        ("INTENT_SUPERSEDED", "superseded (finish act INTENT_SUPERSEDED)"),
    ],
)
def test_a_verdict_that_nothing_could_give_is_located_too(
    worker: LocalWorker, declare: Declare, verdict: str, replayed: str | None
) -> None:
    """Where the verdicts were edited with the log: no gate of that node looks at it, or the workflow's own history denies it."""
    run = denied(declare, worker)
    at = noted(run, "verdict").seq
    edit_log(run, at, note=json.dumps({"verdict": verdict, "reason": "so it is"}))
    edit("UPDATE outlast_verdict SET verdict = %s WHERE workflow_id = %s AND verdict <> 'ALLOWED'", verdict, run.id)
    found = drift(run)
    assert (found.seq, found.field, found.recorded) == (at, "to_status", "waiting")
    assert replayed is None or found.replayed == replayed


def test_a_policy_that_blocked_is_given(worker: LocalWorker, declare: Declare) -> None:
    policies.publish("t-replayed", {"limit": 1})
    flow = declare(
        "t-blocked",
        meta={"policy": "t-replayed"},
        ask=Wait("t.blocked", key="k", deadline=Deadline(days=1, then=ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    policies.publish("t-replayed", {"limit": 0}, blocks=True)
    flows.signal("e1", "t.blocked", key="k")
    worker.run()
    assert row(run).outcome == "POLICY_BLOCKED"
    assert policies.adopt(run, reason="looked at")
    worker.run()
    assert row(run).status == "complete"
    assert ("policy", "given") in steps(run)
    edit_log(run, Transition.objects.get(workflow_id=run.id, trigger="policy").seq, to_status="paused")
    assert drift(run).field == "to_status"


# ---------------------------------------------------------------- releases


@pytest.mark.parametrize("policy", [MIGRATE, restart_from("again")], ids=["migrate", "restart"])
def test_a_pinned_release_is_the_one_that_was_decided_on(
    worker: LocalWorker, clock: Clock, declare: Declare, policy: Any
) -> None:
    both(compatible=True)
    bring, wake = WAYS["event"]
    run = bring(flow_of(declare, policy), worker, clock)
    now_is("R18")
    wake(run, worker, clock)
    worker.run()
    assert ("pin", "given") in steps(run)
    pin = Transition.objects.get(workflow_id=run.id, trigger="pin")
    edit_log(run, pin.seq, trigger_ref="R19")
    found = drift(run)
    assert found == Drift(pin.seq + 1, "release", "R19", "R18")


# ---------------------------------------------------------------- deadlines


def test_of_several_deadlines_each_is_handled_where_the_log_says(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = declare(
        "t-several-woken",
        meta={"deadline": Deadline(hours=2, then=ESCALATE), "sla": {"gold": Deadline(hours=1, then="late")}},
        ask=Wait("t.several", key="k", deadline=Deadline(days=9, then=ESCALATE), then="done"),
        late=Wait("t.late", key="k", deadline=Deadline(days=9, then=ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    clock.move(hours=3)
    for _ in range(3):
        worker.tick()
        worker.run()
    assert [step for step in steps(run) if step[0] == "expired"]
    told = Transition.objects.filter(workflow_id=run.id, note__has_key="deadline").order_by("seq")
    first = told[0]
    edit_log(run, first.seq, note=json.dumps({**first.note, "deadline": ["sla silver"]}))
    assert drift(run).seq == first.seq


# ---------------------------------------------------------------- versions


def migrated(declare: Declare, worker: LocalWorker) -> tuple[Any, type[Flow]]:
    """A run of version 1 that waited, was taken over, and came to its end under version 2; and version 1."""
    ask = Wait("t.migrated", key="k", deadline=Deadline(days=1, then=ESCALATE), then="two")
    nodes = {"ask": ask, "two": Activity(work, then="done"), "done": End(COMPLETE)}
    one = version(declare, NAME, 1, {"one": Activity(work, then="ask"), **nodes})
    run = one.start({})
    worker.run()
    version(declare, NAME, 2, {"zero": Activity(work, then="ask"), **nodes}, migrate_from={1: {"one": "zero"}})
    assert migrate(run)
    worker.run()
    flows.signal("m1", "t.migrated", key="k")
    worker.run()
    assert row(run).status == "complete"
    return run, one


def test_each_part_of_a_migrated_run_is_replayed_under_its_own_version(worker: LocalWorker, declare: Declare) -> None:
    run, _ = migrated(declare, worker)
    found = steps(run)
    assert found[2] == ("completed", "decided"), "under version 1, for version 2 has no such node"
    assert ("migrate", "given") in found
    assert found[-1] == ("completed", "decided")
    edit_log(run, 3, to_node="two")
    assert drift(run).seq == 3


def test_what_was_decided_under_a_version_that_is_gone_is_not_judged(worker: LocalWorker, declare: Declare) -> None:
    run, one = migrated(declare, worker)
    unload(one, worker)
    found = steps(run)
    at = [trigger for trigger, _ in found].index("migrate")
    assert {how for trigger, how in found[:at] if trigger in ("start", "completed")} == {"not judged"}
    assert "not judged" not in {how for _, how in found[at:]}
    (answer,) = replay([run])
    assert (answer.unjudged, bool(answer)) == (2, True)


def test_a_migration_from_another_version_is_located(worker: LocalWorker, declare: Declare) -> None:
    run, _ = migrated(declare, worker)
    at = Transition.objects.get(workflow_id=run.id, trigger="migrate")
    edit_log(run, at.seq, note=json.dumps({**at.note, "to": 7}))
    assert drift(run).seq >= at.seq
