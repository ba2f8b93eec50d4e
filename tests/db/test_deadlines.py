"""Deadlines of waits and of whole flows, each with each declared policy; expiry never approves, and what is done stays done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import CANCEL, COMPLETE, ESCALATE, FAIL, Activity, Deadline, End, Pipeline, Retry, Sleep, Step, Wait, hours, minutes
from flows.models import Activity as ActivityRow
from flows.models import Attempt, Timer
from flows.models import Wait as WaitRow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import calls, does, failing, row, status
from tests.support.versions import version

Declare = Callable[..., type[flows.Flow]]

POLICIES = [
    (ESCALATE, ("waiting", "HUMAN_REQUIRED")),
    (CANCEL, ("cancelled", "CANCELLED")),
    (FAIL, ("failed", "FAILED")),
    ("other", ("complete", "COMPLETE")),
]


def step(worker: LocalWorker, clock: Clock, **span: float) -> int:
    clock.move(**span)
    worker.tick()
    return worker.run()


def waiting_flow(declare: Declare, then: Any) -> type[flows.Flow]:
    return declare(
        "t-wait",
        before=Activity(factories.work, then="ask"),
        ask=Wait("t.w", key="k", deadline=Deadline(hours=2, then=then), then="done"),
        **({"other": Activity(factories.work, then="done")} if then == "other" else {}),
        done=End(COMPLETE),
    )


def dated_flow(declare: Declare, then: Any, first: Any = None) -> type[flows.Flow]:
    return declare(
        "t-dated-flow",
        meta={"deadline": Deadline(hours=2, then=then)},
        one=first or Activity(factories.work, retry=Retry(initial=minutes(90), maximum=minutes(90), jitter=0), then="nap"),
        nap=Sleep(hours(5), then="last"),
        last=Activity(factories.work, then="done"),
        **({"other": Activity(factories.work, then="done")} if then == "other" else {}),
        done=End(COMPLETE),
    )


@pytest.mark.parametrize(("then", "expected"), POLICIES, ids=str)
def test_the_deadline_of_a_wait(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, expected: tuple[str, str]
) -> None:
    run = waiting_flow(declare, then).start({})
    worker.run()
    wait = WaitRow.objects.get()
    assert (wait.on_expiry, wait.deadline_at, row(run).due_at) == (
        "node:other" if then == "other" else str(then),
        Timer.objects.get().due_at,
        wait.deadline_at,
    )
    assert step(worker, clock, minutes=119) == 0
    step(worker, clock, minutes=2)
    assert status(run)[:2] == expected
    assert WaitRow.objects.get(pk=wait.pk).status == ("withdrawn" if then is CANCEL else "expired")
    assert [call[0] for call in calls] == (["before", "other"] if then == "other" else ["before"])
    if then is not CANCEL:
        assert row(run).error_code == (None if then == "other" else "WAIT_EXPIRED")
    assert not Timer.objects.filter(status="pending").exists()
    if then is ESCALATE:
        flows.resume(run)
        worker.run()
        assert status(run) == ("waiting", "WAITING", "ask")
        flows.signal("e1", "t.w", key="k")
        worker.run()
        assert status(run)[0] == "complete"


@pytest.mark.parametrize(("then", "expected"), POLICIES, ids=str)
def test_the_deadline_of_a_flow_while_it_waits(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, expected: tuple[str, str]
) -> None:
    run = dated_flow(declare, then).start({})
    worker.run()
    assert status(run) == ("waiting", "WAITING", "nap")
    step(worker, clock, minutes=119)
    assert status(run) == ("waiting", "WAITING", "nap")
    step(worker, clock, minutes=2)
    assert status(run)[:2] == expected
    if then is ESCALATE:
        assert row(run).error_code == "DEADLINE_EXPIRED"
        assert set(Timer.objects.values_list("kind", "status")) == {("workflow_deadline", "handled")}
        flows.resume(run)
        worker.run()
        assert status(run) == ("waiting", "WAITING", "nap")
        step(worker, clock, hours=6)
        assert status(run)[0] == "complete"


@pytest.mark.parametrize(("then", "expected"), POLICIES, ids=str)
def test_the_deadline_of_a_flow_while_a_step_runs(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, expected: tuple[str, str]
) -> None:
    """The step is not interrupted; its result is kept, and the policy applies to what would come next."""

    def long(attempt: Any) -> Any:
        clock.move(hours=3)
        worker.tick()
        return {"long": True}

    does["one"] = long
    run = dated_flow(declare, then, Activity(factories.work, timeout=hours(9), then="nap")).start({})
    worker.run()
    assert status(run)[:2] == expected
    attempt = Attempt.objects.get(node="one")
    if then is CANCEL:
        assert (attempt.outcome, attempt.late_result) == ("fenced", {"long": True})
    else:
        assert (attempt.outcome, ActivityRow.objects.get(node="one").result) == ("succeeded", {"long": True})
    assert factories.called("one") == 1
    if then is ESCALATE:
        flows.resume(run)
        worker.run()
        assert status(run) == ("waiting", "WAITING", "nap")


@pytest.mark.parametrize(("then", "expected"), POLICIES, ids=str)
def test_the_deadline_of_a_flow_in_a_retry_window(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, expected: tuple[str, str]
) -> None:
    does["one"] = failing(2)
    run = dated_flow(declare, then).start({})
    worker.run()
    step(worker, clock, minutes=91)
    assert status(run)[:2] == ("waiting", "WAITING")
    step(worker, clock, minutes=30)
    assert status(run)[:2] == expected
    assert factories.called("one") == 2
    assert not WaitRow.objects.filter(kind="retry_window", status="open").exists()
    if then is ESCALATE:
        flows.resume(run)
        worker.run()
        assert factories.called("one") == 3


@pytest.mark.parametrize("status_before", ["runnable", "paused", "suspended"])
def test_the_deadline_of_a_flow_that_nobody_works_on(
    worker: LocalWorker, clock: Clock, declare: Declare, status_before: str
) -> None:
    if status_before == "suspended":
        does["one"] = failing(1, flows.errors.CompetenceFailure)
    run = dated_flow(declare, FAIL).start({})
    if status_before == "suspended":
        worker.run()
        assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    if status_before == "paused":
        flows.pause(run)
    clock.move(hours=3)
    worker.tick()
    if status_before == "paused":
        assert worker.run() == 0
        flows.resume(run)
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == ("failed", "FAILED", "DEADLINE_EXPIRED")
    assert factories.called("one") == (1 if status_before == "suspended" else 0)


def test_a_run_that_ends_in_time_leaves_no_timer(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = declare(
        "t-intime",
        meta={"deadline": Deadline(hours=2, then=FAIL)},
        one=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "complete"
    assert not Timer.objects.exists()


def test_an_answer_after_the_deadline_is_early_for_the_next_time(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = waiting_flow(declare, ESCALATE).start({})
    worker.run()
    step(worker, clock, hours=3)
    assert flows.signal("e1", "t.w", key="k").answer == "kept"
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_an_old_owner_cancels_nothing_by_a_deadline(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """It decided to cancel, slept past its lease, and meanwhile the event came and the run went on."""
    run = waiting_flow(declare, CANCEL).start({})
    worker.run()
    clock.move(hours=3)
    worker.tick()
    old = factories.take_one(worker)
    factories.lose(worker)
    flows.signal("e1", "t.w", key="k")
    other = factories.another_worker()
    owned = factories.take_one(other)
    assert factories.enter(old).value == "lost"
    assert row(run).status == "running"
    factories.enter(owned)
    assert status(run)[0] == "complete"


def test_evidence_goes_before_the_deadline_that_cancels(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = waiting_flow(declare, CANCEL).start({})
    worker.run()
    clock.move(hours=3)
    worker.tick()
    owned = factories.take_one(worker)
    flows.signal("e1", "t.w", key="k")
    factories.enter(owned)
    assert status(run)[0] == "complete"


@pytest.mark.req("G3")
def test_a_deadline_within_a_pipeline_asks_a_person_after_it(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """Asked between two steps, a resume would enter the pipeline anew, and its first steps would be done twice."""

    def late(attempt: Any) -> None:
        clock.move(minutes=6)
        worker.tick()

    does["line.a"] = late
    run = declare(
        "t-dated-line",
        meta={"deadline": Deadline(minutes=5, then=ESCALATE)},
        line=Pipeline(Step("a", factories.work), Step("b", factories.work), then="last"),
        last=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    ).start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "last")
    assert calls == [("line.a", 1, 1), ("line.b", 1, 1)]
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    assert calls == [("line.a", 1, 1), ("line.b", 1, 1), ("last", 1, 1)]


# ------------------------------------------------------------------ what it was set with is what it does


@pytest.mark.req("B8", "G2")
@pytest.mark.parametrize("kind", ["deadline", "sla"])
@pytest.mark.parametrize("newer", [{}, {"deadline": flows.Deadline(days=9, then=flows.BREACH)}], ids=["none", "another"])
@pytest.mark.parametrize(
    ("then", "ends"), [(flows.CANCEL, "cancelled"), (flows.ESCALATE, "waiting"), ("late", "complete"), ("gone", "waiting")]
)
def test_a_deadline_does_after_a_migration_what_it_was_set_to_do(
    worker: LocalWorker, clock: Clock, declare: Any, kind: str, newer: dict[str, Any], then: Any, ends: str
) -> None:
    """The newer version declares none, or another; where the node that it leads to is gone, a person decides."""
    nodes = {
        "ask": Wait("t.asked", key="k", deadline=Deadline(days=30, then=ESCALATE), then="done"),
        "late": Activity(factories.work, then="done"),
        "done": End(COMPLETE),
    }
    old = Deadline(days=1, then=then)
    meta = {"deadline": old} if kind == "deadline" else {"sla": {"x": old}}
    run = version(declare, "t-set", 1, {**nodes, "gone": Activity(factories.work, then="done")}, **meta).start({})
    worker.run()
    version(declare, "t-set", 2, {**nodes, "extra": Activity(factories.work, then="done")}, migrate_from={1: {}}, **newer)
    assert flows.migrate(run)
    clock.move(days=2)
    for _ in range(3):
        worker.tick()
        worker.run()
    assert factories.row(run).status == ends
    if ends == "waiting":
        assert factories.row(run).outcome == "HUMAN_REQUIRED"


@pytest.mark.req("B8")
@pytest.mark.parametrize("gated", [1, 0])
def test_a_freshness_budget_lasts_until_nobody_ahead_stands_on_it(
    worker: LocalWorker, clock: Clock, declare: Any, gated: int
) -> None:
    fresh = flows.Fresh(lambda attempt: "v1", within=flows.hours(4), then="propose")
    long = Deadline(days=30, then=ESCALATE)
    flow = declare(
        "t-two-stand",
        propose=flows.Decision(lambda attempt: flows.Candidate("go"), choices={"go": "one"}, visits=flows.Visits(3, then="done")),
        one=Activity(
            factories.work,
            gate=flows.Gate(fresh={"main": fresh}) if gated else None,
            visits=flows.Visits(5, then="done"),
            then="ask",
        ),
        ask=Wait("t.asked", key="k", deadline=long, visits=flows.Visits(5, then="done"), then="two"),
        two=Activity(factories.work, gate=flows.Gate(fresh={"main": fresh}), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert factories.status(run)[2] == "ask"
    clock.move(hours=5)
    worker.tick()
    worker.run()
    assert factories.row(run).activities.filter(node="propose").count() == 2
