"""What is known to have happened is not led away from: by what is loaded, by a failure, by a person; and what comes after it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Branch,
    Deadline,
    Decision,
    Effect,
    End,
    Gate,
    Pipeline,
    Retry,
    Step,
    Visits,
    policies,
    releases,
    seconds,
)
from flows.core.effects import Happened
from flows.core.misuse import CannotResumeAt
from flows.errors import StateConflict
from flows.models import Operation, Verification
from flows.services.proceed import Progress
from flows.services.resolve import resolve
from flows.services.servicing import run_servicing
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.db.test_known_effect import World, in_doubt, settle
from tests.support import waking
from tests.support.trace import Died
from tests.support.versions import unload, version

pytestmark = pytest.mark.req("B5", "D3", "H1")

#: The definition is edited under the run, which a replay of it finds.
STRAYS = {"test_a_node_that_has_no_effect_any_more_runs_no_code[edited]"}

LATE = Deadline(minutes=5, then=ESCALATE)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def user(transactional_db: None) -> Iterator[Any]:
    user = get_user_model().objects.create_user("wanda")
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_flows"))
    return user


def nodes(world: World, **more: Any) -> dict[str, Any]:
    merge = Activity(
        world.merge,
        effect=Effect(reconcile=world.find),
        retry=Retry(max_attempts=2, initial=seconds(1), jitter=0),
        then="publish",
    )
    return {
        "propose": Decision(waking.propose, choices={"go": "merge"}, visits=Visits(5, then="done")),
        "merge": merge,
        "publish": Activity(factories.work, effect=Effect(idempotent=True), then="done"),
        "done": End(COMPLETE),
        **more,
    }


def renamed(world: World) -> dict[str, Any]:
    newer = nodes(world, propose=Decision(waking.propose, choices={"go": "merge2"}, visits=Visits(5, then="done")))
    newer["merge2"] = newer.pop("merge")
    return newer


@pytest.mark.req("G2")
@pytest.mark.parametrize("how", ["at wake", "by hand"])
def test_no_migration_leads_past_it_where_its_version_is_not_loaded(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any, how: str
) -> None:
    one = version(declare, "t-old", 1, nodes(world), deadline=LATE)
    run = in_doubt(world, worker, one, user)
    version(
        declare,
        "t-old",
        2,
        renamed(world),
        migrate="at_wake" if how == "at wake" else None,
        migrate_from={1: {"merge": "merge2"}},
        deadline=LATE,
    )
    unload(one, worker)
    assert resolve(Operation.objects.get(), verdict="happened", by=user, reason="seen", evidence={"merged": 1})
    worker.run()
    if how == "by hand":
        found = flows.migrate(run, reason="x")
        assert not found
        assert "its effect at merge has happened, and its result is still to be taken" in found.reason
    assert len(world.made) == 1


@pytest.mark.parametrize("how", ["migrated", "edited"])
def test_a_node_that_has_no_effect_any_more_runs_no_code(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any, how: str
) -> None:
    one = version(declare, "t-ch", 1, nodes(world), deadline=LATE)
    run = in_doubt(world, worker, one, user)
    settle(world, worker, clock)  # the deadline asks a person before the result is taken
    newer = nodes(world)
    newer["merge"] = Activity(
        world.merge, effects={"push": Effect(idempotent=True)}, gate=Gate(authority="app.nobody"), then="publish"
    )
    if how == "migrated":
        version(declare, "t-ch", 2, newer, migrate_from={1: {}}, deadline=LATE)
        flows.migrate(run, reason="x")
    else:
        unload(one, worker)
        version(declare, "t-ch", 1, newer, deadline=LATE)
    flows.resume(run)
    worker.run()
    assert len(world.made) == 1


@pytest.mark.parametrize("what", ["policy", "release"])
def test_what_comes_after_it_is_judged_as_a_wake_up(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any, what: str
) -> None:
    meta = {"policy": "kp"} if what == "policy" else {"on_release": flows.HUMAN}
    run = in_doubt(world, worker, version(declare, "t-after", 1, nodes(world), **meta), user)
    if what == "policy":
        policies.publish("kp", {"a": 2})
    else:
        releases.make_current("R18", by=None, reason="newer")
    settle(world, worker, clock)
    assert (len(world.made), factories.called("publish")) == (1, 0)
    assert factories.row(run).error_code == ("POLICY_BLOCKED" if what == "policy" else "RELEASE_INCOMPATIBLE")
    assert factories.row(run).node == "publish"


def test_a_request_that_says_something_else_by_now_is_not_compared(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any
) -> None:
    said = {"amount": 1}
    merge = Activity(
        world.merge,
        effect=Effect(reconcile=world.find, request=lambda state: dict(said)),
        retry=Retry(max_attempts=2, initial=seconds(1), jitter=0),
        on={flows.errors.OperationConflict: "propose"},
        then="done",
    )
    run = in_doubt(world, worker, version(declare, "t-said", 1, nodes(world, merge=merge)), user)
    said["amount"] = 2
    settle(world, worker, clock)
    assert (len(world.made), factories.row(run).status) == (1, "complete")


@pytest.mark.req("H4")
def test_nobody_has_it_done_anew(worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any) -> None:
    """Suspended by the deadline, which goes first; a resume without a node takes the result."""
    gate = Gate(verified_by="check")
    check = Activity(factories.work, verifies="propose", then="merge")
    merge = Activity(
        world.merge, gate=gate, effect=Effect(reconcile=world.find), retry=Retry(max_attempts=2, jitter=0), then="done"
    )
    propose = Decision(waking.propose, choices={"go": "check"}, visits=Visits(5, then="done"))
    flow = version(declare, "t-anew", 1, nodes(world, propose=propose, check=check, merge=merge), deadline=LATE)
    run = in_doubt(world, worker, flow, user)
    settle(world, worker, clock)
    assert factories.row(run).error_code == "DEADLINE_EXPIRED"
    with pytest.raises(CannotResumeAt, match="its effect at merge has happened, and its result is still to be taken"):
        flows.resume(run, at="propose")
    assert flows.resume(run)
    worker.run()
    assert (len(world.made), factories.row(run).status) == (1, "complete")


@pytest.mark.req("H4")
def test_a_verification_keeps_what_its_first_attempt_saw(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any
) -> None:
    """It calls a service whose answer is lost: the second attempt takes the answer, and looks at nothing."""
    check = Activity(
        world.merge, verifies="propose", effect=Effect(reconcile=world.find), retry=Retry(max_attempts=2, jitter=0), then="act"
    )
    act = Activity(factories.work, gate=Gate(verified_by="check", fresh={"main": lambda attempt: "v1"}), then="done")
    propose = Decision(waking.propose, choices={"go": "check"})
    made = {"propose": propose, "check": check, "act": act, "done": End(COMPLETE)}
    run = in_doubt(world, worker, version(declare, "t-seen", 1, made), user)
    settle(world, worker, clock)
    assert factories.row(run).status == "complete"
    assert Verification.objects.get().state_versions == {"main": "v1"}


# ------------------------------------------------------------------ resume at


@pytest.mark.req("H4")
def test_after_a_fault_of_the_definition_the_node_is_done_anew(worker: LocalWorker, declare: Any) -> None:
    broken, said = [1], []

    def check(attempt: Any) -> None:
        said.append(attempt.visit)

    def way(state: Any) -> str:
        if broken:
            raise KeyError("x")
        return "on"

    flow = declare(
        "t-fault",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Activity(check, verifies="propose", then="way"),
        way=Branch(way, choices={"on": "done"}),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).error_code == "DEFINITION_FAULT"
    broken.clear()
    assert flows.resume(run, at="propose", reason="the candidate is wrong")
    worker.run()
    assert (said, factories.row(run).status) == ([1, 2], "complete")


@pytest.mark.req("H4")
def test_spent_visits_are_said_instead_of_followed(worker: LocalWorker, declare: Any) -> None:
    factories.does["check"] = factories.failing(9, flows.errors.VerificationFailed)
    flow = declare(
        "t-spent",
        propose=Decision(waking.propose, choices={"go": "check"}, visits=Visits(1, then="gave_up")),
        check=Activity(factories.work, verifies="propose", then="done"),
        done=End(COMPLETE),
        gave_up=End(flows.FAILED),
    )
    run = flow.start({})
    worker.run()
    with pytest.raises(CannotResumeAt, match="the 1 visits of propose are spent"):
        flows.resume(run, at="propose")


@pytest.mark.req("A3", "H4")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_the_commit_of_it_loses_nothing(
    worker: LocalWorker, clock: Clock, declare: Any, when: str
) -> None:
    """Before it nothing has moved, and the person says it again; after it the hint is lost, and the clock finds the run."""
    factories.does["check"] = factories.failing(1, flows.errors.VerificationFailed)
    flow = declare(
        "t-dies",
        propose=Decision(waking.propose, choices={"go": "check"}),
        check=Activity(factories.work, verifies="propose", then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    with pytest.raises(Died):
        dying(when, "resume", lambda: flows.resume(run, at="propose"))
    if when == "before":
        assert factories.status(run) == ("waiting", "HUMAN_REQUIRED", "check")
        assert flows.resume(run, at="propose")
    clock.move(seconds=2)
    worker.tick()
    worker.run()
    assert factories.row(run).status == "complete"
    assert list(factories.row(run).activities.order_by("seq").values_list("node", "status")) == [
        ("propose", "done"),
        ("check", "fenced"),
        ("propose", "done"),
        ("check", "done"),
    ]


def dying(when: str, commit: str, act: Callable[[], Any]) -> None:
    """Do something, in a process that dies at that commit."""

    def die(at: str, name: str) -> None:
        if (at, name) == (when, commit):
            raise Died

    sql.seam = die
    try:
        act()
    finally:
        sql.seam = None


@pytest.mark.req("A7")
def test_a_worker_that_dies_while_it_takes_a_result_leaves_it_to_the_next(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any
) -> None:
    """Claimed, the result read, and gone before its commit; twice. The effect is made once, and its result is taken once."""
    run = in_doubt(world, worker, version(declare, "t-taking", 1, nodes(world)), user)
    world.says.append(Happened({"merged": 1}))
    clock.move(minutes=20)
    worker.tick()
    run_servicing(worker, worker.using)
    for _ in range(2):
        other = factories.another_worker()
        other.flows, other.versions = worker.flows, worker.versions
        owned = factories.take_one(other)
        assert owned.state.activity is not None
        assert owned.state.activity.known
        assert factories.enter(owned) is Progress.RUN
        factories.lose(other)
    factories.drive(worker, clock)
    assert (len(world.made), factories.row(run).status) == (1, "complete")
    assert list(Operation.objects.filter(node="merge").values_list("status", flat=True)) == ["succeeded"]


# ------------------------------------------------------------------ found beside it


@pytest.mark.req("B8")
@pytest.mark.parametrize("name", ["release", "degrade", "breach", "human", "cancel"])
def test_a_deadline_leads_to_a_node_that_is_named_like_a_policy(
    worker: LocalWorker, clock: Clock, declare: Any, name: str
) -> None:
    ask = flows.Wait("t.named", key="k", deadline=Deadline(days=9, then=ESCALATE), then="done")
    made = {"ask": ask, name: Activity(factories.work, then="done"), "done": End(COMPLETE)}
    run = declare("t-named-so", meta={"deadline": Deadline(hours=1, then=name)}, **made).start({})
    worker.run()
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (factories.called(name), factories.row(run).status) == (1, "complete")


@pytest.mark.req("H1")
def test_half_a_pipeline_sets_no_baseline(worker: LocalWorker, declare: Any, world: World) -> None:
    """Its first step looks at v2 and ends well, the second cannot run: what was proposed on v1 stands on v1."""

    def unit(attempt: Any) -> None:
        raise StateConflict("no runner")

    def propose(attempt: Any) -> flows.Candidate:
        world.main = "v2"
        return flows.Candidate("go")

    flow = declare(
        "t-half",
        propose=Decision(propose, choices={"go": "check"}),
        check=Pipeline(
            Step("lint", factories.work), Step("unit", unit), verifies="propose", on={StateConflict: "act"}, then="act"
        ),
        act=Activity(factories.work, gate=Gate(fresh={"main": world.head}), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.row(run).outcome == "REVALIDATION_REQUIRED"


@pytest.mark.req("B5")
def test_what_failed_while_it_is_known_takes_no_other_way(
    worker: LocalWorker, clock: Clock, declare: Any, world: World, user: Any
) -> None:
    """The result that is on record is none that the node can take: a person looks, and nothing leads away."""
    merge = Decision(
        world.merge,
        choices={"go": "done"},
        on={flows.errors.InvalidCandidate: "propose"},
        retry=Retry(max_attempts=1),
    )
    one = version(declare, "t-odd", 1, nodes(world), deadline=LATE)
    run = in_doubt(world, worker, one, user)
    world.says.append(Happened({"merged": 1}))
    clock.move(minutes=20)
    worker.tick()
    worker.run()
    newer = nodes(world, merge=merge)
    version(declare, "t-odd", 2, newer, migrate_from={1: {}}, deadline=LATE)
    flows.migrate(run, reason="x")
    flows.resume(run)
    worker.run()
    assert len(world.made) == 1
    assert factories.row(run).status == "waiting"
