"""Holds: what is held is not taken up, what runs lets go at its next step, and a lift costs one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, transaction

import flows
from flows import COMPLETE, FAILED, Activity, Dependency, Effect, End, Limit, Sleep, hours
from flows.core import declared as declarations
from flows.core.misuse import CannotHold, NotPermitted, ReasonMissing, UnknownDependency, UnknownFlow
from flows.errors import Transient
from flows.models import Hold, Slot, Transition, Workflow
from flows.services import holds, sweeps
from flows.store import tick
from flows.testing import Clock, LocalWorker
from tests.factories import Line, called, does, row, status, work
from tests.support.record import Counting

USING = "default"
WHY = "the provider asked us to stop"


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("payments", rate=1000, ceiling=5)
    Limit("gpu", concurrency=1)
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def paying(declare: Callable[..., type[flows.Flow]]) -> type[flows.Flow]:
    return declare(
        "t-held-paying", look=Activity(work, then="pay"), pay=Activity(work, needs="payments", then="done"), done=End(COMPLETE)
    )


def test_nothing_of_a_held_flow_is_taken_up_until_the_hold_is_lifted(worker: LocalWorker, paying: Any, hints: Counting) -> None:
    line, pay = Line.start({}), paying.start({})
    assert flows.hold("flow", "t-line", reason=WHY)
    worker.run()
    assert (row(line).status, row(line).version, row(pay).status) == ("runnable", 1, "complete"), "nothing is written to a run"
    (hold,) = flows.holds()
    assert (hold.scope, hold.name, hold.reason, holds.ready(hold, USING)) == ("flow", "t-line", WHY, 1)
    hints.clear()
    assert flows.lift("flow", "t-line", reason="they are well")
    assert [hint.ids for hint in hints.hints] == [(str(line.id),)], "workers are told at once"
    worker.run()
    assert row(line).status == "complete"
    assert flows.holds() == []
    (kept,) = Hold.objects.all()
    assert (kept.lifted_at is not None, kept.reason, kept.lifted_reason) == (True, WHY, "they are well")


@pytest.mark.parametrize(
    ("scope", "name"), [("all", ""), ("flow", "t-line"), ("key", "order-1"), ("tenant", "acme"), ("dependency", "payments")]
)
def test_each_scope_holds_its_own_and_nothing_else(worker: LocalWorker, paying: Any, scope: str, name: str) -> None:
    mine = {
        "all": Line.start({}, key="x"),
        "flow": Line.start({}),
        "key": paying.start({}, key="order-1"),
        "tenant": paying.start({}, key="t"),
        "dependency": paying.start({}),
    }
    Workflow.objects.filter(key="t").update(tenant="acme")
    other = paying.start({}, key="order-2")
    worker.looks_for_holds = True  # also on the way to the node that needs the dependency
    flows.hold(scope, name, reason=WHY)
    worker.run()
    run = mine[scope]
    held_at = "pay" if scope == "dependency" else row(run).node
    assert (row(run).status, row(run).node) == ("runnable", held_at)
    assert row(other).status == ("runnable" if scope in ("all", "dependency") else "complete")
    flows.lift(scope, name, reason=WHY)
    worker.run()
    assert set(Workflow.objects.values_list("status", flat=True)) == {"complete"}


def test_a_running_step_is_finished_and_the_next_one_is_not_begun(worker: LocalWorker, hints: Counting) -> None:
    worker.looks_for_holds = True

    def hold(_attempt: Any) -> Any:
        flows.hold("flow", "t-line", reason=WHY)
        hints.clear()
        return {"kept": True}

    does["one"] = hold
    run = Line.start({})
    worker.run()
    assert status(run) == ("runnable", "", "two")
    assert (called("one"), called("two")) == (1, 0)
    assert hints.hints == [], "nobody is told of what nobody may take"
    does["two"] = lambda attempt: {"saw": attempt.results["one"]}
    flows.lift("flow", "t-line", reason=WHY)
    worker.run()
    assert (row(run).status, row(run).result["two"]) == ("complete", {"saw": {"kept": True}})
    assert called("one") == 1


def test_what_was_claimed_and_not_begun_is_given_back(worker: LocalWorker) -> None:
    worker.looks_for_holds, worker.batch_size = True, 3
    does["one"] = lambda _attempt: bool(flows.hold("all", reason=WHY))
    Line.start_many([(f"k{number}", {}) for number in range(3)])
    worker.run()
    assert list(Workflow.objects.order_by("id").values_list("status", "node")) == [
        ("runnable", "two"),
        ("runnable", "one"),
        ("runnable", "one"),
    ]
    assert called("one") == 1
    flows.lift("all", reason=WHY)
    does.clear()
    worker.run()
    assert set(Workflow.objects.values_list("status", flat=True)) == {"complete"}


def test_a_run_that_wakes_is_not_begun_either(worker: LocalWorker, clock: Clock, declare: Any) -> None:
    flow = declare(
        "t-held-nap", nap=Sleep(hours(1), then="pay"), pay=Activity(work, needs="payments", then="done"), done=End(COMPLETE)
    )
    run = flow.start({})
    worker.run()
    flows.hold("dependency", "payments", reason=WHY)
    clock.move(hours=2)
    worker.looks_for_holds = True
    worker.tick()
    worker.run()
    assert status(run) == ("runnable", "", "pay"), "its wait was over, and what comes next is held"
    assert called("pay") == 0
    flows.lift("dependency", "payments", reason=WHY)
    worker.run()
    assert row(run).status == "complete"


@pytest.mark.usefixtures("clock")
def test_cancel_and_servicing_pass_every_hold(worker: LocalWorker, declare: Any) -> None:
    undone = []
    effect = Effect(compensate=lambda operation: undone.append(operation.id))
    flow = declare(
        "t-held-undo",
        buy=Activity(work, effect=effect, then="ship"),
        ship=Activity(work, then="done"),
        done=End(COMPLETE),
        gone=End(FAILED),
    )
    run, plain = flow.start({}), Line.start({})
    worker.looks_for_holds = True
    does["buy"] = lambda _attempt: bool(flows.hold("all", reason=WHY))
    worker.run()
    assert status(run)[::2] == ("runnable", "ship")
    flows.cancel(plain)
    flows.cancel(run)
    worker.run()
    assert (row(plain).status, row(run).status, len(undone)) == ("cancelled", "cancelled", 1)


def test_who_waits_for_capacity_and_is_held_takes_no_slot(worker: LocalWorker, declare: Any) -> None:
    scarce = {"gpu": Activity(work, limits="gpu", then="done"), "done": End(COMPLETE)}
    first, second = declare("t-held-a", **scarce), declare("t-held-b", **scarce)
    busy: list[Any] = []

    def hold_and_wait(_attempt: Any) -> None:
        busy.extend([first.start({}), second.start({})])
        flows_taken = worker.run(["agents"])  # both find the one slot taken, and wait
        assert flows_taken
        flows.hold("flow", "t-held-a", reason=WHY)

    does["gpu"] = hold_and_wait
    first.start({})
    worker.run()
    does.clear()
    worker.tick()
    worker.run()
    assert [row(run).status for run in busy] == ["waiting", "complete"]
    assert not Slot.objects.filter(workflow_id=busy[0].id).exists()
    flows.lift("flow", "t-held-a", reason=WHY)
    worker.tick()
    worker.run()
    assert row(busy[0]).status == "complete"


def test_nobody_is_told_of_held_work_and_it_is_no_overload(worker: LocalWorker, hints: Counting) -> None:
    held, free = Line.start({}), Line.start({}, key="free")
    Workflow.objects.update(updated_at="2020-01-01T00:00Z")
    flows.hold("flow", "t-line", reason=WHY)
    hints.clear()
    assert sweeps.dispatch_ready(USING) == 0
    assert tick.oldest("agents", USING) is None
    flows.lift("flow", "t-line", reason=WHY)
    assert {one for hint in hints.hints for one in hint.ids} == {str(held.id), str(free.id)}
    assert tick.oldest("agents", USING) is not None


def test_twice_is_once(worker: LocalWorker) -> None:
    first = flows.hold("flow", "t-line", reason=WHY)
    again = flows.hold("flow", "t-line", reason="me too")
    assert (first.answer, again.answer, again.hold) == ("accepted", "already", first.hold)
    assert flows.lift("flow", "t-line", reason=WHY).answer == "accepted"
    assert flows.lift("flow", "t-line", reason=WHY).answer == "already"
    assert flows.hold("flow", "t-line", reason=WHY).answer == "accepted", "held again: a row of its own"
    assert Hold.objects.count() == 2


def test_only_the_hold_that_was_seen_is_lifted(worker: LocalWorker) -> None:
    first = flows.hold("all", reason=WHY).hold
    assert first is not None
    flows.lift("all", reason=WHY)
    flows.hold("all", reason="another matter")
    assert flows.lift("all", reason=WHY, seen=first.id).answer == "already"
    assert len(flows.holds()) == 1


def test_two_holds_of_one_run_are_lifted_one_by_one(worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    flows.hold("key", "k", reason=WHY)
    flows.hold("all", reason=WHY)
    flows.lift("all", reason=WHY)
    worker.run()
    assert row(run).status == "runnable"
    told = flows.describe(run)
    assert told.decision_needed.startswith("a person lifts what holds it (key k is held since ")
    assert told.decision_needed.endswith(f": {WHY}): flows.lift")
    assert told.ways_on == ["lift"]


@pytest.mark.parametrize(
    ("scope", "name", "error", "text"),
    [
        ("everything", "", CannotHold, "no scope 'everything': hold all, flow, key, dependency, tenant"),
        (None, "", CannotHold, "no scope None"),
        ("all", "t-line", CannotHold, "A hold of everything has no name"),
        ("flow", "", CannotHold, "needs a name"),
        ("key", 7, CannotHold, "needs a name, and 7 is none"),
        ("key", "a\x00b", CannotHold, "is none"),
        ("flow", "t-lime", UnknownFlow, "t-lime"),
        ("dependency", "payment", UnknownDependency, "payment"),
    ],
)
def test_what_holds_nothing_is_refused(worker: LocalWorker, scope: Any, name: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text.replace("(", r"\(")):
        flows.hold(scope, name, reason=WHY)
    assert not Hold.objects.exists()


def test_a_reason_and_the_right_are_needed(worker: LocalWorker) -> None:
    users = get_user_model().objects
    ann, cat = users.create_user("ann"), users.create_user("cat")
    ann.user_permissions.add(Permission.objects.get(codename="hold_work"))
    for verb in (flows.hold, flows.lift):
        with pytest.raises(NotPermitted, match=r"outlast_flows\.hold_work"):
            verb("all", reason=WHY, by=cat)
        with pytest.raises(ReasonMissing):
            verb("all", reason=" ", by=ann)
    made = flows.hold("all", reason=WHY, by=ann).hold
    assert made is not None
    assert (made.by, Hold.objects.get().user) == ("ann", ann)
    ann.delete()
    assert flows.holds()[0].by == "ann"


def test_the_database_keeps_what_is_open_once(worker: LocalWorker) -> None:
    flows.hold("flow", "t-line", reason=WHY)
    for scope, name in (("flow", "t-line"), ("all", "x"), ("flow", ""), ("world", "x")):
        with pytest.raises(DatabaseError), transaction.atomic():
            Hold.objects.create(scope=scope, name=name, reason=WHY, since="2026-01-01T00:00Z")


def test_a_failed_step_of_a_held_run_keeps_its_retry(worker: LocalWorker, clock: Clock) -> None:
    worker.looks_for_holds = True
    does["one"] = lambda _attempt: _raise()
    run = Line.start({})
    worker.run()
    flows.hold("flow", "t-line", reason=WHY)
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert (status(run)[0], called("one")) == ("runnable", 1)
    does.clear()
    flows.lift("flow", "t-line", reason=WHY)
    worker.run()
    assert row(run).status == "complete"
    assert Transition.objects.filter(workflow_id=run.id, trigger="lost").count() == 0


def _raise() -> None:
    raise Transient
