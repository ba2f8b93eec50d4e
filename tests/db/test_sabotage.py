"""Each kind of orphan: a live record is broken so, behind the guards; one scan finds it, mends or shows it, and touches nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, End, Job, Limit, hours
from flows.core import declared as declarations
from flows.core.liveness import KINDS
from flows.models import Branch, Budget, Commitment, Fan, Finding, Operation, Slot, Timer, Wait, Workflow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Dated, Line, Nap, does, failing, row, status, take_one
from tests.support import branching, budgeting, doubting, owing, record, sabotage, scheduling
from tests.support.record import Counting
from tests.support.sabotage import damage, scan_and_compare

pytestmark = [pytest.mark.req("P1", "P2")]
#: Breaks the record, and mends it; no replay can go that way.
KEEPS_RECORD = TAMPERS = True

LONG_AGO = "interval '1 hour'"
OLD = f"UPDATE outlast_workflow SET updated_at = updated_at - {LONG_AGO} WHERE id = %(id)s"
NO_TIMER = "DELETE FROM outlast_timer WHERE workflow_id = %(id)s AND kind = %(kind)s"

Declare = Callable[..., type[flows.Flow]]


@pytest.fixture(autouse=True)
def others(worker: LocalWorker) -> Iterator[None]:
    """Runs that are as they should be, in every kind of rest; and nothing is left of the test."""
    for number in range(2):
        Ask.start({"key": f"other-{number}"})
        Nap.start({})
        Dated.start({"key": f"dated-{number}"})
    worker.run()
    assert sabotage.is_quiet() == []
    yield
    owing.forget()
    doubting.forget()
    factories.forget()
    record.wipe()


def found(kind: str, *mine: object, repaired: bool, once: bool = True) -> Finding:
    """The one finding of a scan, which changed nothing of anybody else; mended, or open. A second scan finds nothing new."""
    findings, touched = scan_and_compare(*mine)
    assert touched == []
    assert list(findings) == [kind]
    one = findings[kind]
    assert (one.status, one.times, one.before) == ("repaired" if repaired else "open", 1, 0)
    assert (one.closed_at is not None) == repaired
    if repaired:
        assert one.code == KINDS[kind].repair
    if not once:
        return one
    again, touched = scan_and_compare(*mine)
    assert touched == []
    assert {name: row.pk for name, row in again.items()} == {kind: one.pk}
    assert again[kind].times == (1 if repaired else 2)
    return one


def test_a_worker_dies_and_nobody_sees_it(worker: LocalWorker) -> None:
    run = Line.start({})
    owned = take_one(worker)
    factories.enter(owned)
    damage(
        f"UPDATE outlast_workflow SET worker_id = '{Ghost}', updated_at = updated_at - {LONG_AGO} WHERE id = %(id)s",
        f"UPDATE outlast_activity SET worker_id = '{Ghost}' WHERE workflow_id = %(id)s",
        id=run.id,
    )
    found("ownerless", run.id, repaired=True)
    assert status(run)[0] == "runnable"
    worker.run()
    assert status(run)[0] == "complete"


Ghost = "00000000-0000-4000-8000-00000000dead"


def waiting(worker: LocalWorker, key: str = "mine") -> Any:
    run = Ask.start({"key": key})
    worker.run()
    return run


def test_an_event_that_was_kept_and_not_given(worker: LocalWorker) -> None:
    run = waiting(worker, "elsewhere")
    assert flows.signal("e-1", "t.asked", key="mine", payload={"n": 1}).answer == "kept"
    damage("UPDATE outlast_wait SET key = 'mine' WHERE workflow_id = %(id)s", id=run.id)
    found("unwoken", run.id, "e-1", '"place": "early"', repaired=True)
    assert row(run).status == "runnable"


def test_a_run_that_has_its_answer_and_was_not_woken(worker: LocalWorker) -> None:
    run = waiting(worker)
    damage("""UPDATE outlast_wait SET evidence = '{"id": "e", "payload": {}}' WHERE workflow_id = %(id)s""", id=run.id)
    found("unwoken", run.id, repaired=True)
    worker.run()
    assert Wait.objects.get(workflow_id=run.id, status="open").node == "again"


def test_a_wait_that_is_gone_is_a_persons(worker: LocalWorker) -> None:
    run = waiting(worker)
    damage(
        "DELETE FROM outlast_timer WHERE workflow_id = %(id)s", "DELETE FROM outlast_wait WHERE workflow_id = %(id)s", id=run.id
    )
    assert found("unwoken", run.id, repaired=False).facts["why"] == "no wait of it is open"


@pytest.mark.parametrize(("flow", "kind"), [(Ask, "wait_deadline"), (Nap, "sleep"), (Dated, "workflow_deadline")])
def test_the_row_of_a_timer_is_deleted(worker: LocalWorker, clock: Clock, flow: type[flows.Flow], kind: str) -> None:
    run = flow.start({"key": "mine"})
    worker.run()
    was = Timer.objects.get(workflow_id=run.id, kind=kind)
    damage(NO_TIMER, id=run.id, kind=kind)
    found("timer_lost", run.id, repaired=True)
    made = Timer.objects.get(workflow_id=run.id, kind=kind)
    assert (made.due_at, made.on_expiry, made.wait_id, made.epoch) == (was.due_at, was.on_expiry, was.wait_id, was.epoch)
    clock.move(days=3)
    worker.tick()
    assert Timer.objects.get(pk=made.pk).status in ("fired", "handled")


def test_the_timer_of_a_commitment(worker: LocalWorker) -> None:
    case = owing.booked(worker)
    was = Timer.objects.get(kind="commitment_deadline")
    damage(NO_TIMER, id=case.run.id, kind="commitment_deadline")
    found("timer_lost", case.run.id, repaired=True)
    made = Timer.objects.get(kind="commitment_deadline")
    assert (made.due_at, made.on_expiry, made.commitment_id) == (was.due_at, was.on_expiry, was.commitment_id)


def test_the_poll_of_a_job(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    job = Job(lambda attempt: {"id": 7}, event="t.job", key="mine", poll=lambda attempt: {"state": "green"}, then="done")
    flow = declare("t-sabotaged-job", build=job, done=End(COMPLETE))
    run = flow.start({})
    worker.run()
    damage(NO_TIMER, id=run.id, kind="poll")
    found("timer_lost", run.id, repaired=True)
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


def test_the_timer_of_a_retry(worker: LocalWorker, clock: Clock) -> None:
    does["one"] = failing(1)
    run = Line.start({})
    worker.run()
    damage(NO_TIMER, id=run.id, kind="retry")
    found("endless", run.id, repaired=True)
    clock.move(minutes=1)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


def test_the_message_of_a_ready_run_is_lost(worker: LocalWorker, clock: Clock, hints: Counting) -> None:
    run = Line.start({})
    flows.hold("flow", "t-line", reason="not now")
    damage(OLD, id=run.id)
    damage("UPDATE outlast_worker SET started_at = started_at - interval '1 hour'")
    assert sabotage.is_quiet() == [], "what is held is not to be taken"
    damage("DELETE FROM outlast_hold")
    assert sabotage.is_quiet() == [], "something of the queue was taken a moment ago: there is a backlog"
    clock.move(minutes=2)
    hints.clear()
    found("unhinted", run.id, repaired=True, once=False)
    assert [hint.queue for hint in hints.hints][:1] == ["agents"]


def test_a_version_that_nobody_offers_any_more(worker: LocalWorker) -> None:
    run = Line.start({})
    damage(OLD, id=run.id)
    damage("UPDATE outlast_worker SET definitions = array_remove(definitions, 't-line@1')")
    one = found("unoffered", run.id, repaired=False)
    assert (one.subject, one.facts["runs"]) == ("offer:t-line@1/agents//", 1)


def test_a_migration_that_failed(worker: LocalWorker) -> None:
    run = waiting(worker)
    damage("UPDATE outlast_workflow SET outcome = 'WORKFLOW_MIGRATION_REQUIRED', error_code = 'X' WHERE id = %(id)s", id=run.id)
    assert found("migration", run.id, repaired=False).facts["code"] == "X"


def test_no_worker_serves_the_cleanup_queue(worker: LocalWorker) -> None:
    case = owing.doubtful(worker)
    damage(f"UPDATE outlast_operation SET due_at = due_at - {LONG_AGO} WHERE workflow_id = %(id)s", id=case.run.id)
    damage("UPDATE outlast_worker SET queues = array_remove(queues, 'cleanup')")
    assert found("unprotected", case.run.id, repaired=False).facts["operations"] == 1


def test_a_commitment_of_a_run_that_has_ended(worker: LocalWorker) -> None:
    case = owing.booked(worker)
    damage(
        "UPDATE outlast_workflow SET status = 'complete', outcome = 'COMPLETE', owed = 0, due_at = NULL WHERE id = %(id)s",
        "UPDATE outlast_wait SET status = 'satisfied', closed_at = now() WHERE workflow_id = %(id)s",
        "DELETE FROM outlast_timer WHERE workflow_id = %(id)s AND kind = 'wait_deadline'",
        id=case.run.id,
    )
    found("unserviced", case.run.id, repaired=True)
    owing.service(worker)
    assert Commitment.objects.get().status == "released"
    assert row(case.run).owed == 0


def test_a_doubt_that_nobody_asks_about(worker: LocalWorker) -> None:
    case = owing.doubtful(worker)
    damage(
        f"UPDATE outlast_operation SET due_at = NULL, doubt_since = doubt_since - {LONG_AGO} WHERE workflow_id = %(id)s",
        id=case.run.id,
    )
    found("uncertain", case.run.id, repaired=True)
    assert Operation.objects.get().due_at is not None


def test_a_doubt_about_which_nobody_can_be_asked_is_told_to_a_person(worker: LocalWorker) -> None:
    operation = doubting.in_doubt(worker)
    damage(
        f"UPDATE outlast_operation SET doubt_since = doubt_since - {LONG_AGO} WHERE workflow_id = %(id)s",
        "UPDATE outlast_workflow SET status = 'reconciling', outcome = 'RECONCILIATION_REQUIRED' WHERE id = %(id)s",
        "UPDATE outlast_wait SET status = 'withdrawn', closed_at = now() WHERE workflow_id = %(id)s",
        id=operation.workflow_id,
    )
    found("uncertain", operation.workflow_id, operation.pk, repaired=True)
    assert Workflow.objects.get(pk=operation.workflow_id).outcome == "HUMAN_REQUIRED"


def test_a_run_that_waits_for_what_is_settled(worker: LocalWorker) -> None:
    case = owing.doubtful(worker, owing.Charging)
    damage(
        "UPDATE outlast_operation SET status = 'succeeded', due_at = NULL WHERE workflow_id = %(id)s",
        f"UPDATE outlast_workflow SET owed = 0, updated_at = updated_at - {LONG_AGO} WHERE id = %(id)s",
        id=case.run.id,
    )
    found("uncertain", case.run.id, repaired=True)
    assert row(case.run).status == "runnable"


def test_a_callback_with_the_name_of_another_run(worker: LocalWorker) -> None:
    stranger = "00000000-0000-4000-8000-000000000001"
    flows.signal("e-1", "t.asked", key="nobody", payload={}, about=flows.About(workflow=stranger))
    one = found("misdirected", "e-1", repaired=False)
    assert one.facts["event_id"] == "e-1"


def test_a_callback_that_nobody_takes(worker: LocalWorker, clock: Clock) -> None:
    flows.signal("e-1", "t.asked", key="nobody", payload={})
    damage("UPDATE outlast_event SET place = 'unclaimed' WHERE event_id = 'e-1'")
    found("unclaimed", "e-1", repaired=False)


@pytest.mark.parametrize("told", [True, False])
def test_the_end_of_a_child_is_not_counted(worker: LocalWorker, declare: Declare, *, told: bool) -> None:
    run = branching.over_slow(declare, "t-sabotaged-map").start(branching.keys("a", "b"))
    branching.settle(worker)
    first, _ = branching.children(run)
    ended = "ended_at = now() - interval '1 hour', outcome = 'COMPLETE', result = '{}'" if told else "ended_at = NULL"
    damage(
        "UPDATE outlast_workflow SET status = 'complete', outcome = 'COMPLETE', due_at = NULL WHERE id = %(id)s",
        "UPDATE outlast_wait SET status = 'satisfied', closed_at = now() WHERE workflow_id = %(id)s",
        "DELETE FROM outlast_timer WHERE workflow_id = %(id)s",
        f"UPDATE outlast_branch SET {ended} WHERE workflow_id = %(id)s",
        id=first.pk,
    )
    found("branch_uncounted", run.id, first.pk, repaired=True)
    assert branching.counters(run) == {"running": 1, "succeeded": 1}
    assert Branch.objects.get(workflow_id=first.pk).status == "succeeded"


def test_a_group_that_is_complete_and_was_not_joined(worker: LocalWorker, declare: Declare) -> None:
    run = branching.mapping(declare, "t-sabotaged-join").start({"items": [1, 2]})
    branching.settle(worker)
    assert status(run)[0] == "complete"
    again = branching.over_slow(declare, "t-sabotaged-slow").start(branching.keys("a"))
    branching.settle(worker)
    child = branching.children(again)[0]
    damage(
        "UPDATE outlast_workflow SET status = 'complete', outcome = 'COMPLETE', due_at = NULL WHERE id = %(child)s",
        "UPDATE outlast_wait SET status = 'satisfied', closed_at = now() WHERE workflow_id = %(child)s",
        "DELETE FROM outlast_timer WHERE workflow_id = %(child)s",
        """UPDATE outlast_branch SET status = 'succeeded', ended_at = now(), counted_at = now(), outcome = 'COMPLETE'
           WHERE workflow_id = %(child)s""",
        "UPDATE outlast_fan SET running = 0, succeeded = 1 WHERE workflow_id = %(id)s",
        child=child.pk,
        id=again.id,
    )
    found("fan_adrift", again.id, child.pk, repaired=True)
    assert status(again)[0] == "runnable"


def test_a_group_for_which_nobody_waits(worker: LocalWorker, declare: Declare) -> None:
    run = branching.mapping(declare, "t-sabotaged-left").start({"items": [1]})
    branching.settle(worker)
    damage("UPDATE outlast_fan SET status = 'open', closed_at = NULL WHERE workflow_id = %(id)s", id=run.id)
    found("fan_adrift", run.id, repaired=True)
    assert Fan.objects.get(workflow_id=run.id).status == "closed"


def test_a_slot_of_an_attempt_that_is_over(worker: LocalWorker, declare: Declare) -> None:
    before = list(declarations.DECLARED)
    Limit("sabotaged", concurrency=1)
    flow = declare("t-sabotaged-slot", one=Activity(factories.work, limits="sabotaged", then="done"), done=End(COMPLETE))
    run = flow.start({})
    worker.run()
    declarations.DECLARED[:] = [*before, *[one for one in declarations.DECLARED if one not in before]]
    damage(f"UPDATE outlast_slot SET workflow_id = %(id)s, activity_seq = 1, fence = 1, since = since - {LONG_AGO}", id=run.id)
    found("slot_adrift", run.id, f'"limit_id": {Slot.objects.get().limit_id}', repaired=True)
    assert Slot.objects.get().workflow_id is None


def test_a_schedule_that_is_left_behind(worker: LocalWorker, declare: Declare) -> None:
    schedule = scheduling.made(scheduling.quick(declare, "t-sabotaged-daily"), every=hours(24))
    damage(f"UPDATE outlast_schedule SET next_at = now() - {LONG_AGO} WHERE id = %(id)s", id=schedule.pk)
    found("behind", schedule.name, repaired=True)
    schedule.refresh_from_db()
    assert schedule.next_at is not None


def test_a_ledger_that_somebody_wrote(worker: LocalWorker) -> None:
    run = budgeting.Thinker.start({})
    worker.run()
    damage("UPDATE outlast_budget SET spent = spent + 1 WHERE workflow_id = %(id)s AND kind = 'model_calls'", id=run.id)
    assert found("unbalanced", run.id, repaired=False).facts["spent"] == "3.000000"


def test_a_reservation_of_an_attempt_that_is_over(worker: LocalWorker) -> None:
    run = budgeting.Thinker.start({})
    worker.run()
    damage(
        """INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
           SELECT id, 'reserved', 1, workflow_id, 'think', 1, 9, 0, '', '', now() FROM outlast_budget
           WHERE workflow_id = %(id)s AND kind = 'model_calls'""",
        "UPDATE outlast_budget SET reserved = reserved + 1 WHERE workflow_id = %(id)s AND kind = 'model_calls'",
        id=run.id,
    )
    found("unsettled", run.id, repaired=True)
    assert Budget.objects.get(workflow_id=run.id, kind="model_calls").reserved == 0


@pytest.mark.parametrize("what", ["log", "activity"])
def test_half_a_move(worker: LocalWorker, what: str) -> None:
    if what == "log":
        run = waiting(worker)
        damage("UPDATE outlast_workflow SET version = version + 1 WHERE id = %(id)s", id=run.id)
    else:
        run = Line.start({})
        damage("UPDATE outlast_activity SET status = 'running' WHERE workflow_id = %(id)s", id=run.id)
    found("half", run.id, repaired=False)


def test_every_kind_is_broken_here_but_that_of_another_app() -> None:
    """Those of requests stand in tests/db/approvals/test_adrift.py."""
    broken = set(re.findall(r'found\(\s*"(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert set(KINDS) - broken == {"request_adrift"}
