"""Faults of the author's own functions, and definitions that changed under a run: visible, explained, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Branch, Deadline, End, Retry, Wait, minutes, registry
from flows.core import definition as declared
from flows.models import Activity as ActivityRow
from flows.models import Transition
from flows.models import Wait as WaitRow
from flows.services import sweeps
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Fork, branches, calls, row, status

Declare = Callable[..., type[flows.Flow]]
FAULT = ("waiting", "HUMAN_REQUIRED")
#: The first has its definition changed, the second what its key answers: a replay finds just that.
STRAYS = {"test_a_node_that_is_gone_needs_a_migration", "test_a_key_that_raises_in_the_second_lap_of_a_wait"}


def test_a_branch_that_raises_asks_a_person_and_keeps_what_is_done(worker: LocalWorker) -> None:
    run = Fork.start({"key": "k"})
    worker.run()
    assert (*status(run), row(run).error_code) == (*FAULT, "first", "DEFINITION_FAULT")
    assert ActivityRow.objects.get().status == "done"
    last = Transition.objects.get(workflow_id=run.id, seq=row(run).version)
    assert last.note["fault"] == "KeyError"
    branches["to"] = "left"
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    assert [call[0] for call in calls] == ["first", "left"]


def test_a_step_that_returned_nothing_is_done_too(worker: LocalWorker) -> None:
    factories.does["first"] = lambda attempt: None
    run = Fork.start({"key": "k"})
    worker.run()
    assert status(run)[:2] == FAULT
    branches["to"] = "left"
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["first", "left"]


def test_as_long_as_the_fault_stands_a_resume_runs_nothing(worker: LocalWorker) -> None:
    run = Fork.start({"key": "k"})
    worker.run()
    for _ in range(3):
        flows.resume(run)
        worker.run()
        assert status(run)[:2] == FAULT
    branches["to"] = "nowhere"
    flows.resume(run)
    worker.run()
    assert status(run)[:2] == FAULT
    branches["to"] = "left"
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["first", "left"]


def test_a_worker_that_dies_between_resume_and_decision(worker: LocalWorker) -> None:
    run = Fork.start({"key": "k"})
    worker.run()
    flows.resume(run)
    factories.take_one(worker)
    factories.lose(worker)
    branches["to"] = "left"
    factories.another_worker().run()
    assert status(run)[0] == "complete"
    assert [call[0] for call in calls] == ["first", "left"]


def test_a_fault_in_the_next_lap_does_not_take_the_last_laps_result(worker: LocalWorker, declare: Declare) -> None:
    """The second visit's branch fails; what was done in that visit is what goes on."""
    flow = declare(
        "t-laps",
        work=Activity(factories.work, visits=flows.Visits(5, then="done"), then="look"),
        look=Branch(lambda state: branches[str(state.results["work"]["visit"])], choices={"again": "work", "on": "done"}),
        done=End(COMPLETE, result=lambda state: state.results["work"]),
    )
    branches["1"] = "again"
    run = flow.start({})
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == (*FAULT, "DEFINITION_FAULT")
    branches["2"] = "on"
    flows.resume(run)
    worker.run()
    assert row(run).result["visit"] == 2
    assert len(calls) == 2


@pytest.mark.parametrize("order", ["wait first", "event first"])
def test_a_read_that_raises_keeps_the_evidence(worker: LocalWorker, declare: Declare, order: str) -> None:
    ask = Wait(
        "t.read", key="k", read=lambda state: branches[state.event["payload"]["say"]], choices={"yes": "done"},
        deadline=Deadline(hours=1, then=ESCALATE),
    )  # fmt: skip
    flow = declare("t-read", ask=ask, done=End(COMPLETE, result=lambda state: state.results["ask"]["value"]))
    early = order == "event first"
    if early:
        flows.signal("e1", "t.read", key="k", payload={"say": "ja"})
    run = flow.start({})
    worker.run()
    if not early:
        flows.signal("e1", "t.read", key="k", payload={"say": "ja"})
        worker.run()
    assert (*status(run)[:2], row(run).error_code) == (*FAULT, "DEFINITION_FAULT")
    assert WaitRow.objects.get().evidence == {"id": "e1", "payload": {"say": "ja"}}
    assert flows.describe(run).decision_needed.startswith("a person")
    flows.resume(run)
    worker.run()
    assert status(run)[:2] == FAULT
    branches["ja"] = "yes"
    flows.resume(run)
    worker.run()
    assert (status(run)[0], row(run).result) == ("complete", "yes")


def test_a_key_that_raises_at_the_start(worker: LocalWorker, declare: Declare) -> None:
    ask = Wait("t.k", key=lambda state: branches["key"], deadline=Deadline(hours=1, then=ESCALATE), then="done")
    run = declare("t-first", ask=ask, done=End(COMPLETE)).start({})
    worker.run()
    assert status(run) == (*FAULT, "ask")
    branches["key"] = "k"
    flows.resume(run)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "ask")
    flows.signal("e1", "t.k", key="k")
    worker.run()
    assert status(run)[0] == "complete"


def test_a_key_that_raises_in_the_second_lap_of_a_wait(worker: LocalWorker, declare: Declare) -> None:
    ask = Wait("t.lap", key=lambda state: branches["key"], deadline=Deadline(hours=1, then=ESCALATE), then="work",
               visits=flows.Visits(2, then="done"))  # fmt: skip
    flow = declare("t-waits", ask=ask, work=Activity(factories.work, then="ask"), done=End(COMPLETE))
    branches["key"] = "one"
    run = flow.start({})
    worker.run()
    del branches["key"]
    flows.signal("e1", "t.lap", key="one")
    worker.run()
    assert (*status(run), factories.called("work")) == (*FAULT, "work", 1)
    branches["key"] = "two"
    flows.resume(run)
    worker.run()
    assert (*status(run), factories.called("work")) == ("waiting", "WAITING", "ask", 1)


def test_branches_that_go_round_end_visibly(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-round",
        first=Activity(factories.work, then="a"),
        a=Branch(lambda state: "b", choices={"b": "b"}),
        b=Branch(lambda state: "a", choices={"a": "a", "done": "done"}),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert (*status(run)[:2], row(run).error_code) == (*FAULT, "DEFINITION_FAULT")


def redeclare(declare: Declare, worker: LocalWorker, name: str, **nodes: Any) -> type[flows.Flow]:
    """A deployment: the same name and version with other nodes."""
    declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls.definition.name != name]
    registry._lookup.cache_clear()
    return declare(name, **nodes)


def test_a_definition_that_changed_needs_a_migration(worker: LocalWorker, declare: Declare) -> None:
    old = {
        "one": Activity(factories.work, then="two"),
        "two": Activity(factories.work, queue="cleanup", then="done"),
        "done": End(COMPLETE),
    }
    run = declare("t-drift", **old).start({})
    worker.run(["agents"])
    redeclare(
        declare, worker, "t-drift", one=Activity(factories.work, then="two"),
        two=Activity(factories.work, queue="cleanup", then="three"), three=Activity(factories.work, then="done"), done=End(COMPLETE),
    )  # fmt: skip
    worker.run()
    assert status(run) == ("waiting", "WORKFLOW_MIGRATION_REQUIRED", "two")
    assert row(run).error_code == "WORKFLOW_MIGRATION_REQUIRED"
    assert factories.called("two") == 0
    redeclare(declare, worker, "t-drift", **{name: _fresh(node) for name, node in old.items()})
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    assert [call[0] for call in calls] == ["one", "two"]


def _fresh(node: Any) -> Any:
    import copy

    return copy.copy(node)


def test_a_node_that_is_gone_needs_a_migration(worker: LocalWorker, declare: Declare) -> None:
    ask = Wait("t.gone", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="done")
    run = declare("t-gone", ask=ask, done=End(COMPLETE)).start({})
    worker.run()
    redeclare(declare, worker, "t-gone", hear=Activity(factories.work, then="done"), done=End(COMPLETE))
    flows.signal("e1", "t.gone", key="k")
    worker.run()
    assert status(run) == ("waiting", "WORKFLOW_MIGRATION_REQUIRED", "ask")
    assert calls == []


def test_timing_may_change_without_a_migration(worker: LocalWorker, declare: Declare) -> None:
    run = declare("t-timing", one=Activity(factories.work, then="done"), done=End(COMPLETE)).start({})
    redeclare(
        declare, worker, "t-timing",
        one=Activity(factories.work, timeout=flows.hours(3), retry=flows.Retry(max_attempts=9), then="done"), done=End(COMPLETE),
    )  # fmt: skip
    worker.run()
    assert status(run)[0] == "complete"


def test_what_no_worker_offers_stays_ready(worker: LocalWorker, declare: Declare) -> None:
    run = declare("t-nobody", one=Activity(factories.work, then="done"), done=End(COMPLETE)).start({})
    declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls.definition.name != "t-nobody"]
    registry._lookup.cache_clear()
    factories.offer(worker)
    assert worker.run() == 0
    assert status(run)[0] == "runnable"


def test_a_sweep_in_a_process_that_does_not_know_the_flow(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """A tick runs anywhere; what it does not know it leaves to those who do, and puts lost work back all the same."""
    flow = declare("t-strange", one=Activity(factories.work, then="done"), done=End(COMPLETE))
    overdue, lost = flow.start({}), flow.start({})
    factories.enter(factories.take_one(worker))
    victim = factories.another_worker()
    factories.take_up_to(victim, 1)
    before = list(declared.DECLARED)
    declared.DECLARED[:] = [cls for cls in before if cls is not flow]
    registry._lookup.cache_clear()
    clock.move(hours=1)
    sweeps.time_out("default")
    factories.lose(victim)
    assert (status(overdue)[0], status(lost)[0]) == ("running", "runnable")
    declared.DECLARED[:] = before
    registry._lookup.cache_clear()
    sweeps.time_out("default")
    assert status(overdue) == ("waiting", "WAITING", "one")


def test_a_fault_between_two_tries_leaves_one_open_activity(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """The flow's deadline wakes it while its retry window is open, and the key of the wait that it leads to cannot be computed."""
    factories.does["one"] = factories.failing(1)
    flow = declare(
        "t-fault-in-window",
        meta={"deadline": Deadline(seconds=5, then="late")},
        one=Activity(factories.work, retry=Retry(max_attempts=3, initial=minutes(5), jitter=0), then="done"),
        late=Wait("t.late", key=lambda state: state.input["nothing"], deadline=Deadline(hours=1, then="done"), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    clock.move(seconds=6)
    worker.tick()
    worker.run()
    assert (row(run).status, row(run).error_code) == ("waiting", "DEFINITION_FAULT")
    assert list(ActivityRow.objects.filter(workflow_id=run.id).values_list("status", flat=True)) == ["scheduled"]
