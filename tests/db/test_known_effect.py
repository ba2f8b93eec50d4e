"""An effect whose answer was lost, and which is known to have happened: its result is taken, whatever has changed, and it is not made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import (
    COMPLETE,
    Activity,
    Budget,
    Checkpoint,
    Commits,
    Decision,
    Effect,
    End,
    Flow,
    Gate,
    Migrated,
    Pipeline,
    Retry,
    Spend,
    Step,
    Verdict,
    Visits,
    budgets,
    commitments,
    policies,
    releases,
    restart_from,
    seconds,
)
from flows.core.effects import Happened, Unknown
from flows.errors import StateConflict, Transient
from flows.models import Operation
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support import waking
from tests.support.versions import version

pytestmark = pytest.mark.req("B5", "H1", "J1")


class World:
    """What is outside: each call moves it, and the first answer is lost."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.says: list[Any] = []
        self.main, self.down, self.gone = "v1", False, None

    def merge(self, attempt: Any) -> dict[str, Any]:
        self.made.append(attempt.operation_id)
        self.main, self.down, self.gone = "v2", True, "the branch is deleted"
        if len(self.made) == 1:
            raise ConnectionResetError
        return {}

    def find(self, operation: Any) -> Any:
        return self.says.pop(0) if self.says else Unknown("busy")

    def head(self, attempt: Any) -> str:
        return self.main

    def dial(self, attempt: Any) -> str:
        if self.down and attempt.node == "merge":
            raise Transient("down")
        return "v1"

    def is_there(self, attempt: Any) -> str | None:
        return self.gone if attempt.node == "merge" else None


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def user(transactional_db: None) -> Iterator[Any]:
    user = get_user_model().objects.create_user("wanda")
    waking.grant(user)
    return user


#: What changes between the doubt and the answer to it → (gate, meta, the change).
Change = Callable[[Any, World, Any], Any]
CHANGES: dict[str, tuple[Callable[[World], Gate | None], Callable[[World], dict[str, Any]], Change]] = {
    "what is fresh": (lambda world: Gate(fresh={"main": world.head}), lambda world: {}, lambda run, world, user: None),
    "a probe that fails": (lambda world: Gate(fresh={"main": world.dial}), lambda world: {}, lambda run, world, user: None),
    "a right": (
        lambda world: Gate(authority=waking.PERMISSION),
        lambda world: {},
        lambda run, world, user: user.user_permissions.clear(),
    ),
    "the policy": (
        lambda world: None,
        lambda world: {"policy": "kp"},
        lambda run, world, user: policies.publish("kp", {"a": 2}),
    ),
    "the checkpoint": (
        lambda world: None,
        lambda world: {"checkpoint": Checkpoint(validate=world.is_there)},
        lambda run, world, user: None,
    ),
    "the budget": (
        lambda world: None,
        lambda world: {"budget": Budget(cost="5")},
        lambda run, world, user: budgets.limit(run.intent_id, cost="0", reason="no more"),
    ),
    "the release": (
        lambda world: None,
        lambda world: {"on_release": restart_from("save")},
        lambda run, world, user: releases.make_current("R18", by=None, reason="newer"),
    ),
    "a commitment": (
        lambda world: Gate(commitments="window"),
        lambda world: {},
        lambda run, world, user: commitments.fulfil(commitments.active(kind="window")[0], by=user, reason="gone"),
    ),
}


def nodes(world: World, gate: Gate | None) -> dict[str, Any]:
    elsewhere = dict.fromkeys(waking.ROUTED, "propose")
    on = {Verdict(name): node for name, node in elsewhere.items() if name != "APPROVAL_REQUIRED"}
    return {
        "save": Activity(lambda attempt: attempt.save_checkpoint({"branch": "b"}), then="hold"),
        "hold": Activity(lambda attempt: {}, commits=Commits("window", release=lambda operation: None), then="propose"),
        "propose": Decision(waking.propose, choices={"go": "merge"}, visits=Visits(5, then="done")),
        "merge": Activity(
            world.merge,
            gate=gate,
            effect=Effect(reconcile=world.find),
            retry=Retry(max_attempts=2, initial=seconds(1), jitter=0),
            spends=Spend(cost="1"),
            on={StateConflict: "propose", Transient: "propose", **on},
            visits=Visits(3, then="done"),
            then="done",
        ),
        "done": End(COMPLETE, result=lambda state: state.results.get("merge")),
    }


def in_doubt(world: World, worker: LocalWorker, flow: type[Flow], user: Any) -> Any:
    policies.publish("kp", {"a": 1})
    releases.register("R17", models={"m": 1})
    releases.register("R18", models={"m": 2})
    releases.make_current("R17", by=None, reason="first")
    run = flow.start({}, by=user)
    worker.run()
    assert factories.status(run)[0] == "reconciling"
    return run


def settle(world: World, worker: LocalWorker, clock: Clock) -> None:
    world.says.append(Happened({"merged": 1}))
    for _ in range(5):
        clock.move(minutes=20)
        worker.tick()
        worker.run()


@pytest.mark.parametrize("what", CHANGES)
def test_its_result_is_taken_whatever_has_changed(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any, what: str
) -> None:
    gate, meta, change = CHANGES[what]
    run = in_doubt(world, worker, version(declare, "t-known", 1, nodes(world, gate(world)), **meta(world)), user)
    change(run, world, user)
    settle(world, worker, clock)
    assert len(world.made) == 1
    assert (factories.row(run).status, factories.row(run).result) == ("complete", {"merged": 1})
    assert list(Operation.objects.filter(node="merge").values_list("status", flat=True)) == ["succeeded"]


@pytest.mark.req("G2")
def test_its_version_takes_it_before_a_migration(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any
) -> None:
    """Version 2 has no such node: at the wake-up version 1 takes the result; a migration by hand before that is refused."""
    run = in_doubt(world, worker, version(declare, "t-known", 1, nodes(world, None)), user)
    newer = nodes(world, None)
    newer["merge2"] = newer.pop("merge")
    newer["propose"] = Decision(waking.propose, choices={"go": "merge2"}, visits=Visits(5, then="done"))
    version(declare, "t-known", 2, newer, migrate="at_wake", migrate_from={1: {"merge": "merge2"}})
    settle(world, worker, clock)
    assert len(world.made) == 1
    assert factories.row(run).status == "complete"


@pytest.mark.req("C4")
@pytest.mark.parametrize("mended", ["a right", "never"])
def test_what_the_gate_does_not_let_ask_again(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any, mended: str
) -> None:
    """Asking for the same again would settle the doubt, and the gate refuses. Where that can be mended the resume asks again; else a person says
    what became of it.
    """
    flow = declare(
        "t-again",
        hold=Activity(lambda attempt: {}, commits=Commits("window", release=lambda operation: None), then="propose"),
        propose=Decision(waking.propose, choices={"go": "merge"}),
        merge=Activity(
            world.merge,
            gate=Gate(authority=waking.PERMISSION, commitments="window"),
            effect=Effect(idempotent=True),
            retry=Retry(max_attempts=3, initial=seconds(1), jitter=0),
            then="done",
        ),
        done=End(COMPLETE),
    )
    run = flow.start({}, by=user)
    worker.run()
    if mended == "never":
        assert commitments.fulfil(commitments.active(kind="window")[0], by=None, reason="gone")
    else:
        user.user_permissions.clear()
    for _ in range(3):
        clock.move(minutes=20)
        worker.tick()
        worker.run()
    (operation,) = Operation.objects.filter(node="merge")
    assert (operation.status, operation.again) == ("uncertain", mended != "never")
    if mended == "never":
        assert factories.status(run)[:2] == ("waiting", "RECONCILIATION_REQUIRED")
        with pytest.raises(flows.errors.OutcomeUnknown):
            flows.resume(run)
        return
    assert factories.status(run)[:2] == ("waiting", "POLICY_BLOCKED")
    waking.grant(user)
    assert flows.resume(run)
    worker.run()
    assert (factories.row(run).status, len(set(world.made)), len(world.made)) == ("complete", 1, 2)


def test_what_a_visit_has_done_itself_does_not_stop_it(worker: LocalWorker, clock: Clock, declare: Any, world: World) -> None:
    """Two effects; the first moves main, the second fails once: the attempt after it does the rest, and the first is not made again."""
    pushed: list[str] = []

    def push(attempt: Any) -> dict[str, Any]:
        with attempt.effect("push") as call:
            call.call(lambda: pushed.append(world.main))
        world.main = "v2"
        if attempt.number == 1:
            raise Transient("the tag is taken")
        return {}

    flow = declare(
        "t-named",
        propose=Decision(waking.propose, choices={"go": "merge"}, visits=Visits(4, then="done")),
        merge=Activity(
            push,
            gate=Gate(fresh={"main": world.head}),
            effects={"push": Effect(reconcile=world.find)},
            retry=Retry(max_attempts=3, initial=seconds(1), jitter=0),
            on={Verdict.REVALIDATION_REQUIRED: "propose"},
            then="done",
        ),
        done=End(COMPLETE),
    )
    run = flow.start({})
    for _ in range(4):
        worker.run()
        clock.move(minutes=1)
        worker.tick()
    assert factories.row(run).status == "complete"
    assert pushed == ["v1"]


def test_a_step_of_a_pipeline_may_move_what_its_gate_wants_fresh(worker: LocalWorker, declare: Any, world: World) -> None:
    def push(attempt: Any) -> dict[str, Any]:
        world.main += "+"
        return {}

    flow = declare(
        "t-steps",
        propose=Decision(waking.propose, choices={"go": "merge"}, visits=Visits(4, then="done")),
        merge=Pipeline(
            Step("push", push),
            Step("tag", factories.work),
            gate=Gate(fresh={"main": world.head}),
            on={Verdict.REVALIDATION_REQUIRED: "propose"},
            then="done",
        ),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert (factories.row(run).status, world.main) == ("complete", "v1+")


@pytest.mark.req("H4")
@pytest.mark.parametrize("ends", [1, 0])
def test_a_pipeline_has_verified_when_its_last_step_has_ended(worker: LocalWorker, declare: Any, ends: int) -> None:
    """One of two steps is not enough: the other could not run."""

    def unit(attempt: Any) -> dict[str, Any]:
        if not ends:
            raise StateConflict("no test runner")
        return {}

    flow = declare(
        "t-verified",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Pipeline(
            Step("lint", factories.work), Step("unit", unit), verifies="propose", on={StateConflict: "act"}, then="act"
        ),
        act=Activity(factories.work, gate=Gate(verified_by="check"), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).verifications.count() == ends
    assert (factories.row(run).status, factories.row(run).error_code) == (
        ("complete", None) if ends else ("waiting", "VERIFICATION_REQUIRED")
    )


@pytest.mark.req("H1")
def test_an_attempt_that_decided_nothing_sets_no_baseline(worker: LocalWorker, declare: Any, world: World) -> None:
    """The second visit looks at v2, and fails: the candidate is the first one's, made on v1."""

    def propose(attempt: Any) -> flows.Candidate:
        if attempt.visit > 1:
            raise StateConflict("nothing better")
        return flows.Candidate("go", {"on": attempt.versions["main"]})

    def move(attempt: Any) -> None:
        world.main = "v2"

    flow = declare(
        "t-baseline",
        propose=Decision(propose, choices={"go": "move"}, on={StateConflict: "act"}, visits=Visits(3, then="done")),
        move=Activity(move, then="propose"),
        act=Activity(factories.work, gate=Gate(fresh={"main": world.head}), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).outcome == "REVALIDATION_REQUIRED"


@pytest.mark.req("F1", "G2")
@pytest.mark.parametrize("how", ["given", "removed"])
def test_a_pipeline_keeps_the_approval_that_it_has_used_over_a_migration(
    worker: LocalWorker, clock: Clock, declare: Any, how: str
) -> None:
    """The migration gives a result, or takes a step away: the numbers of activities shift, the visit is the same."""
    world = {"fails": True}

    def second(attempt: Any) -> dict[str, Any]:
        if world["fails"]:
            raise Transient("later")
        return {}

    def declared(*steps: Step) -> dict[str, Any]:
        retry = Retry(max_attempts=5, initial=seconds(60), jitter=0)
        return {
            "propose": Decision(waking.propose, choices={"go": "ask"}),
            "ask": waking.approval("merge"),
            "merge": Pipeline(*steps, gate=Gate(approved_by="ask"), retry=retry, then="done"),
            "done": End(COMPLETE),
            "no": End(COMPLETE),
        }

    one, two, three = Step("one", factories.work), Step("two", factories.work), Step("three", second)
    user = waking.make_user()
    run = version(declare, "t-used", 1, declared(one, two, three)).start({}, by=user)
    worker.run()
    request = waking.Request.objects.get(workflow_id=run.id)
    assert waking.decide(request, verdict="approve", digest=request.digest, by=user)
    worker.run()
    given = Migrated("merge", results={"extra": {"x": 1}} if how == "given" else {})
    newer = declared(one, two, three) if how == "given" else declared(two, three)
    newer["extra"] = Activity(factories.work, then="done")
    version(declare, "t-used", 2, newer, migrate="at_wake", migrate_from={1: lambda state: given})
    world["fails"] = False
    clock.move(minutes=2)
    worker.tick()
    worker.run()
    assert (factories.row(run).status, factories.row(run).flow_version) == ("complete", 2)
    assert waking.Request.objects.filter(workflow_id=run.id).count() == 1
