"""Several versions at once, and the way of a run from one to the next: what goes over, what is left behind, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Branch,
    Deadline,
    End,
    Migrated,
    Pipeline,
    Retry,
    Sleep,
    Step,
    Visits,
    Wait,
    hours,
    seconds,
)
from flows.errors import CannotMigrate, UnknownFlow, UnknownWorkflow
from flows.models import Activity as ActivityRow
from flows.models import Timer, Transition
from flows.models import Wait as WaitRow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import branches, calls, does, row, status
from tests.support.versions import Declare, log, note, unload, version

pytestmark = pytest.mark.req("G2")
#: The definition is changed without a new version.
STRAYS = {"test_a_drifted_run_needs_a_version"}

NAME = "t-versions"
REQUIRED = "WORKFLOW_MIGRATION_REQUIRED"
SLOWLY = Retry(max_attempts=3, initial=seconds(100), jitter=0)
HOUR = Deadline(hours=1, then=ESCALATE)


def line(*names: str, **nodes: Any) -> dict[str, Any]:
    """Activities one after another, and an End that gives all results; `nodes` stand in the place of plain ones."""
    made = {
        name: Activity(factories.work, retry=SLOWLY, then=after) for name, after in zip(names, [*names[1:], "done"], strict=True)
    }
    return {**made, **nodes, "done": End(COMPLETE, result=lambda state: dict(state.results))}


def ask(then: str = "after", event: str = "t.asked", key: str = "k", **options: Any) -> Wait:
    return Wait(event, key=key, then=then, **{"deadline": HOUR, **options})


def test_runs_of_two_versions_go_on_side_by_side(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    old = one.start({}, key="old")
    worker.run()
    two = version(declare, NAME, 2, {"scan": Activity(factories.work, then="ask"), "ask": ask(), **line("after")})
    new = two.start({}, key="new")
    still_old = one.start({}, key="still old")
    worker.run()
    assert [row(run).flow_version for run in (old, new, still_old)] == [1, 2, 1]
    flows.signal("e1", "t.asked", key="k")
    worker.run()
    assert [status(run)[0] for run in (old, new, still_old)] == ["complete"] * 3
    assert ["scan" in row(run).result for run in (old, new, still_old)] == [False, True, False]
    assert two.start({}, key="old").id == old.id  # a key names one run of a flow, whatever its version


def test_a_worker_that_knows_one_version_leaves_the_other_alone(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    two = version(declare, NAME, 2, line("a", "b"))
    worker.flows, worker.versions = [NAME], [2]
    old, new = one.start({}), two.start({})
    worker.run()
    assert (status(old)[0], status(new)[0]) == ("runnable", "complete")


# ---------------------------------------------------------------- one run, by hand


def test_a_ready_run_goes_on_at_the_node_that_the_mapping_names(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("test", "push"))
    run = one.start({})
    two = version(declare, NAME, 2, line("scan", "verify", "push"), migrate_from={1: {"test": "scan"}})
    found = flows.migrate(run, by=factories.person("robin"), reason="needs a scan")
    assert (found.answer, found.from_version, found.to_version, found.from_node, found.to_node) == (
        "migrated",
        1,
        2,
        "test",
        "scan",
    )
    assert bool(found)
    after = row(run)
    assert (after.flow_version, after.fingerprint, after.epoch) == (2, two.definition.fingerprint, 1)
    assert status(run) == ("runnable", "", "scan")
    assert log(run) == [
        ("", "runnable", "start", 0),
        ("runnable", "paused", "pause", 0),
        ("paused", "runnable", "migrate", 1),
    ]
    assert note(run) == {"from": 1, "to": 2, "through": [], "reason": "needs a scan"}
    assert Transition.objects.get(workflow_id=run.id, trigger="migrate").trigger_ref == "robin"
    assert flows.migrate(run).answer == "already"
    worker.run()
    assert [call[0] for call in calls] == ["scan", "verify", "push"]


def test_a_scheduled_activity_of_the_same_name_goes_over(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    work = Activity(factories.work, queue="cleanup", timeout=timedelta(seconds=77), then="b")
    version(declare, NAME, 2, line("a", "b", a=work), migrate_from={1: {}})
    assert flows.migrate(run)
    activity = ActivityRow.objects.get()
    assert (activity.status, activity.visit, activity.timeout_s, row(run).active_seq) == ("scheduled", 1, 77.0, activity.seq)
    assert (row(run).queue, note(run)["kept"]) == ("cleanup", ["activity"])
    worker.run()
    assert (status(run)[0], calls) == ("complete", [("a", 1, 1), ("b", 1, 1)])


def test_a_retry_keeps_its_attempts_and_its_pause(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    does["a"] = factories.failing(2)
    worker.run()
    assert status(run)[0] == "waiting"
    due = Timer.objects.get(kind="retry").due_at
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "a")
    assert (factories.called("a"), row(run).attempts, row(run).due_at) == (1, 1, due)
    timer = Timer.objects.get(kind="retry")
    assert (timer.due_at, timer.epoch, timer.status) == (due, 1, "pending")
    for _ in range(2):
        clock.move(seconds=201)
        worker.tick()
        worker.run()
    assert (status(run)[0], [call[2] for call in calls]) == ("complete", [1, 2, 3, 1])


def test_a_person_who_resumes_does_not_wait_for_a_pause_that_went_over(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, line("a")).start({})
    does["a"] = factories.failing(1)
    worker.run()
    flows.pause(run)
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: {}})
    assert flows.migrate(run)
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_a_retry_whose_node_is_gone_is_left_behind(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    run = version(declare, NAME, 1, line("a")).start({})
    does["a"] = factories.failing(9)
    worker.run()
    version(declare, NAME, 2, line("b"), migrate_from={1: {"a": "b"}})
    assert flows.migrate(run)
    assert not Timer.objects.exists()
    assert (WaitRow.objects.get().status, ActivityRow.objects.get().status) == ("withdrawn", "fenced")
    worker.run()
    assert status(run)[0] == "complete"


def test_a_pipeline_goes_on_with_its_step_or_begins_anew(worker: LocalWorker, declare: Declare) -> None:
    def pipe(*names: str) -> dict[str, Any]:
        return line("line", line=Pipeline(*(Step(name, factories.work) for name in names), retry=SLOWLY, then="done"))

    one = version(declare, NAME, 1, pipe("a", "b"))
    does["line.b"] = factories.failing(1)
    runs = [one.start({})]
    worker.run()
    version(declare, NAME, 2, pipe("a", "b", "c"), migrate_from={1: {}})
    assert flows.migrate(runs[0])
    flows.pause(runs[0])
    flows.resume(runs[0])
    worker.run()
    assert (status(runs[0])[0], sorted(row(runs[0]).result["line"])) == ("complete", ["a", "b", "c"])
    assert [call[0] for call in calls] == ["line.a", "line.b", "line.b", "line.c"]
    does["line.b"] = factories.failing(1)
    again = one.start({})
    worker.run()
    version(declare, NAME, 3, pipe("x", "y"), migrate_from={1: {}})
    assert flows.migrate(again)
    worker.run()
    assert (status(again)[0], sorted(row(again).result["line"])) == ("complete", ["x", "y"])


# ---------------------------------------------------------------- waits


def test_the_same_wait_goes_over_with_its_deadline(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    clock.move(minutes=50)
    until = WaitRow.objects.get().deadline_at
    later = Deadline(hours=9, then="after")
    version(declare, NAME, 2, {"ask": ask(deadline=later, then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    wait = WaitRow.objects.get()
    assert (wait.status, wait.epoch, wait.deadline_at, wait.on_expiry, wait.visit) == ("open", 1, until, "node:after", 1)
    assert status(run) == ("waiting", "WAITING", "ask")
    assert list(wait.workflow.timers.values_list("kind", "on_expiry")) == [("wait_deadline", "node:after")]
    assert (row(run).due_at, note(run)["kept"]) == (until, ["wait"])
    clock.move(minutes=20)
    worker.tick()
    worker.run()
    assert (status(run)[0], [call[0] for call in calls]) == ("complete", ["after"])


def test_an_event_finds_a_wait_that_went_over(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, {"ask": ask(then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert flows.migrate(run)
    assert flows.signal("e1", "t.asked", key="k", payload={"n": 1}).woken == (run.id,)
    worker.run()
    assert row(run).result["ask"]["payload"] == {"n": 1}
    assert [call[0] for call in calls] == ["scan", "after"]


def test_what_had_arrived_goes_over_too(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload={"n": 1})
    version(declare, NAME, 2, {"ask": ask(then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    assert (status(run)[0], row(run).result["ask"]["payload"]) == ("complete", {"n": 1})


@pytest.mark.parametrize("change", ["event", "key", "node"])
def test_another_wait_is_opened_anew(worker: LocalWorker, declare: Declare, change: str) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    name = "hear" if change == "node" else "ask"
    other = ask(event="t.other" if change == "event" else "t.asked", key="other" if change == "key" else "k")
    version(declare, NAME, 2, {name: other, **line("after")}, migrate_from={1: {"ask": name}})
    assert flows.migrate(run)
    worker.run()
    assert list(WaitRow.objects.order_by("id").values_list("node", "status", "epoch")) == [
        ("ask", "withdrawn", 0),
        (name, "open", 1),
    ]
    assert Timer.objects.get().wait_id == WaitRow.objects.latest("id").pk
    flows.signal("e1", other.event, key=str(other.key))
    worker.run()
    assert status(run)[0] == "complete"


def test_an_event_between_is_found_by_the_new_wait(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, {"hear": ask(), **line("after")}, migrate_from={1: {"ask": "hear"}})
    assert flows.migrate(run)
    assert flows.signal("e1", "t.asked", key="k").answer == "kept"
    worker.run()
    assert status(run)[0] == "complete"


def test_a_sleep_goes_over_with_its_moment(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    run = version(declare, NAME, 1, {"nap": Sleep(hours(2), then="after"), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, {"nap": Sleep(hours(9), then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    clock.move(hours=1)
    assert flows.migrate(run)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "nap")
    clock.move(minutes=61)
    worker.tick()
    worker.run()
    assert [call[0] for call in calls] == ["scan", "after"]


def test_a_wait_that_became_an_activity(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, line("ask", "after"), migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    assert (status(run)[0], calls) == ("complete", [("ask", 2, 1), ("after", 1, 1)])


@pytest.mark.parametrize("target", ["fork", "done"])
def test_a_node_that_holds_no_row_is_entered(worker: LocalWorker, declare: Declare, target: str) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    branches["to"] = "after"
    fork = Branch(factories.branch_of, choices={"after": "after"})
    version(declare, NAME, 2, {"fork": fork, **line("after")}, migrate_from={1: {"ask": target}})
    assert flows.migrate(run)
    worker.run()
    assert (status(run)[0], len(calls)) == ("complete", 1 if target == "fork" else 0)


# ---------------------------------------------------------------- paused and suspended


def test_a_paused_run_stays_paused(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    flows.pause(run, reason="holiday")
    version(declare, NAME, 2, {"ask": ask(then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert flows.migrate(run)
    assert status(run) == ("paused", "WAITING", "ask")
    assert log(run)[-2:] == [("paused", "runnable", "migrate", 1), ("runnable", "paused", "pause", 1)]
    flows.signal("e1", "t.asked", key="k")
    worker.run()
    assert status(run)[0] == "paused"
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["scan", "after"]


def exhausted(worker: LocalWorker, declare: Declare) -> Any:
    run = version(declare, NAME, 1, line("a", a=Activity(factories.work, retry=Retry(max_attempts=1), then="done"))).start({})
    does["a"] = factories.failing(1)
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "a")
    return run


@pytest.mark.parametrize("paused", [False, True])
def test_who_waits_for_a_person_still_does(worker: LocalWorker, declare: Declare, *, paused: bool) -> None:
    run = exhausted(worker, declare)
    if paused:
        flows.pause(run)
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    assert (*status(run), row(run).error_code) == ("paused", "HUMAN_REQUIRED", "a", "RETRIES_EXHAUSTED:TRANSIENT")
    assert (WaitRow.objects.get().kind, WaitRow.objects.get().status) == ("human", "open")
    flows.resume(run)
    worker.run()
    assert (status(run)[0], [call[:3] for call in calls]) == ("complete", [("a", 1, 1), ("a", 1, 2), ("b", 1, 1)])


def test_suspended_and_led_elsewhere(worker: LocalWorker, declare: Declare) -> None:
    run = exhausted(worker, declare)
    version(declare, NAME, 2, line("b"), migrate_from={1: {"a": "b"}})
    assert flows.migrate(run)
    assert status(run) == ("paused", "HUMAN_REQUIRED", "b")
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["a", "b"]


def test_a_fault_of_the_flow_is_mended_by_the_next_version(worker: LocalWorker, declare: Declare) -> None:
    fork = Branch(factories.branch_of, choices={"left": "done"})
    run = version(declare, NAME, 1, line("a", a=Activity(factories.work, then="fork"), fork=fork)).start({})
    worker.run()
    assert row(run).error_code == "DEFINITION_FAULT"
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: {}})
    assert flows.migrate(run)
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["a", "b"]  # what is done is not done again


def test_a_fault_led_elsewhere_enters_the_node(worker: LocalWorker, declare: Declare) -> None:
    fork = Branch(factories.branch_of, choices={"left": "done"})
    one = line("b", "a", a=Activity(factories.work, then="fork"), fork=fork)
    run = version(declare, NAME, 1, one).start({})
    worker.run()
    version(declare, NAME, 2, line("b", "c"), migrate_from={1: {"a": "b"}})
    assert flows.migrate(run)
    assert row(run).error_code == "MIGRATED:DEFINITION_FAULT"
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["b", "a", "b", "c"]


# ---------------------------------------------------------------- drift, and its ways out


def drifted(worker: LocalWorker, declare: Declare, **nodes: Any) -> Any:
    """A run that was woken by an event and found version 1 in another shape."""
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    run = one.start({})
    worker.run()
    unload(one)
    version(declare, NAME, 1, {"ask": ask(then="more"), **line("more", "after")})
    factories.offer(worker)
    flows.signal("e1", "t.asked", key="k", payload={"n": 1})
    worker.run()
    assert status(run) == ("waiting", REQUIRED, "ask")
    return run


def test_a_drifted_run_needs_a_version(worker: LocalWorker, declare: Declare) -> None:
    run = drifted(worker, declare)
    for to in (None, 1):
        found = flows.migrate(run, to=to)
        assert found.answer == "refused"
        assert "raise Meta.version and write migrate_from = {1: …}, or put the old shape back and resume" in found.reason
    assert "flows migrate" in flows.describe(run).decision_needed


def test_a_migration_answers_what_a_drifted_run_was_suspended_for(worker: LocalWorker, declare: Declare) -> None:
    run = drifted(worker, declare)
    version(declare, NAME, 2, {"ask": ask(then="scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert "version 2" in flows.describe(run).decision_needed
    assert flows.migrate(run)
    assert (status(run), row(run).error_code) == (("runnable", "", "ask"), None)
    assert flows.resume(run).answer == "already"
    worker.run()
    assert row(run).result["ask"]["payload"] == {"n": 1}
    assert [call[0] for call in calls] == ["scan", "after"]


# ---------------------------------------------------------------- results, visits, deadline


def test_results_that_the_migration_gives(worker: LocalWorker, declare: Declare) -> None:
    def from_one(state: flows.State) -> Migrated:
        return Migrated("b", results={"scan": {"n": state.results["a"]["visit"]}, "a": "new"}, note="scanned by hand")

    run = version(declare, NAME, 1, line("a", "hold", hold=ask(then="done"))).start({})
    worker.run()
    version(declare, NAME, 2, line("scan", "a", "b"), migrate_from={1: from_one})
    assert flows.migrate(run)
    assert (note(run)["said"], note(run)["results"]) == (["scanned by hand"], ["a", "scan"])
    worker.run()
    assert row(run).result == {"scan": {"n": 1}, "a": "new", "b": {"by": "b", "visit": 1, "number": 1}}
    rows = list(ActivityRow.objects.filter(node="a").order_by("seq").values_list("step", "visit", "status"))
    assert rows == [("", 1, "done"), ("(migrated)", 1, "done")]  # what the old version did stays on record


def test_a_given_result_counts_until_the_node_has_one_of_its_own(worker: LocalWorker, declare: Declare) -> None:
    seen: list[Any] = []

    def look(attempt: Any) -> Any:
        seen.append(attempt.results["a"])
        return {"look": attempt.visit}

    run = version(declare, NAME, 1, line("a", "hold", hold=ask(then="done"))).start({})
    worker.run()
    does["look"] = look
    nodes = line("look", "a", a=Activity(factories.work, visits=Visits(3, then="done"), then="look"),
                 look=Activity(factories.work, visits=Visits(2, then="done"), then="a"))  # fmt: skip
    version(declare, NAME, 2, nodes, migrate_from={1: lambda state: Migrated("look", results={"a": "given"})})
    assert flows.migrate(run)
    worker.run()
    assert [one if isinstance(one, str) else one["visit"] for one in seen] == ["given", 2]


@pytest.mark.parametrize("given", ["ask", "line"])
def test_a_given_result_of_a_wait_and_of_a_pipeline(worker: LocalWorker, declare: Declare, given: str) -> None:
    pipe = Pipeline(Step("a", factories.work), then="hold")
    one = {"ask": ask(then="line"), **line("line", "hold", line=pipe, hold=ask(event="t.hold", then="done"))}
    flows.signal("e1", "t.asked", key="k", payload={"n": 1})
    run = version(declare, NAME, 1, one).start({})
    worker.run()
    version(declare, NAME, 2, one, migrate_from={1: lambda state: Migrated("hold", results={given: {"mine": True}})})
    assert flows.migrate(run)
    flows.signal("e2", "t.hold", key="k")
    worker.run()
    assert status(run)[0] == "complete"
    assert row(run).result[given] == {"mine": True}


def test_visits_go_over(worker: LocalWorker, declare: Declare) -> None:
    loop = {
        "a": Activity(factories.work, visits=Visits(2, then="done"), then="hold"),
        "hold": ask(then="a"),
        "done": End(COMPLETE),
    }
    run = version(declare, NAME, 1, loop).start({})
    worker.run()
    version(declare, NAME, 2, {**loop, "b": Activity(factories.work, then="done"), "hold": ask(then="a", deadline=Deadline(hours=2, then="b"))},
            migrate_from={1: {}})  # fmt: skip
    assert flows.migrate(run)
    for number in range(2):
        flows.signal(f"e{number}", "t.asked", key="k")
        worker.run()
    assert (status(run)[0], calls) == ("complete", [("a", 1, 1), ("a", 2, 1)])


def test_the_deadline_of_the_workflow_stands(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    two_days = Deadline(days=2, then=ESCALATE)
    long = ask(deadline=Deadline(days=30, then=ESCALATE))
    run = version(declare, NAME, 1, {"ask": long, **line("after")}, deadline=two_days).start({})
    worker.run()
    version(declare, NAME, 2, {"ask": long, **line("after", "b")}, deadline=two_days, migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    assert Timer.objects.get(kind="workflow_deadline").epoch == 1
    clock.move(days=3)
    worker.tick()
    worker.run()
    assert row(run).error_code == "DEADLINE_EXPIRED"


def test_two_steps_and_a_target_between(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    first, second = one.start({}), one.start({})
    worker.run()
    version(declare, NAME, 2, line("b", "after"), migrate_from={1: {"ask": "b"}})
    version(declare, NAME, 3, line("c", "after"), migrate_from={2: {"b": "c"}})
    assert flows.migrate(first, to=2).to_version == 2
    found = flows.migrate(second)
    assert (found.to_version, found.to_node, note(second)["through"]) == (3, "c", [2])
    assert flows.migrate(first).to_version == 3
    assert row(first).epoch == 2
    worker.run()
    assert {status(run)[0] for run in (first, second)} == {"complete"}


# ---------------------------------------------------------------- what is not migrated


def refusing(state: flows.State) -> Migrated:
    raise CannotMigrate("it has pushed already")


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({1: refusing}, "it has pushed already"),
        ({1: lambda state: None}, "has no place for it"),
        ({1: {"other": "b"}}, "version 2 has no node 'ask'"),
        ({}, "no migrate_from leads from version 1 to a newer version"),
    ],
)
def test_a_refusal_changes_nothing(worker: LocalWorker, declare: Declare, steps: Any, reason: str) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, line("b"), migrate_from=steps)
    before = log(run)
    found = flows.migrate(run)
    assert (found.answer, bool(found)) == ("refused", False)
    assert reason in found.reason
    assert (log(run), row(run).flow_version) == (before, 1)
    flows.signal("e1", "t.asked", key="k")
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize("end", ["complete", "cancelled"])
def test_what_has_ended_is_not_migrated(worker: LocalWorker, declare: Declare, end: str) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    if end == "cancelled":
        flows.cancel(run)
    else:
        flows.signal("e1", "t.asked", key="k")
        worker.run()
    version(declare, NAME, 2, line("ask", "b"), migrate_from={1: {}})
    assert flows.migrate(run).reason == f"it has ended: {end}"


def test_nobody_migrates_under_an_owner(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, line("a", "b")).start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    version(declare, NAME, 2, line("a", "b", "c"), migrate_from={1: {}})
    assert flows.migrate(run).answer == "busy"
    assert flows.migrate(run, dry_run=True).answer == "busy"
    factories.complete(owned, keeping=factories.LET_GO)
    assert flows.migrate(run)


def test_a_dry_run_says_what_would_be_done(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, line("scan"), migrate_from={1: {"ask": "scan"}})
    before = log(run)
    found = flows.migrate(run, dry_run=True)
    assert (found.answer, found.to_node, bool(found)) == ("would_migrate", "scan", False)
    assert log(run) == before


def test_what_does_not_exist(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, line("a")).start({})
    with pytest.raises(UnknownWorkflow):
        flows.migrate("00000000-0000-0000-0000-000000000001")
    with pytest.raises(UnknownFlow):
        flows.migrate(run, to=9)
    assert flows.migrate(run, to=1).answer == "already"
    assert flows.migrate(run).answer == "already"


def test_the_async_twin(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, line("a")).start({})
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: {}})
    assert async_to_sync(flows.amigrate)(run).answer == "migrated"


def test_a_result_that_is_too_large(worker: LocalWorker, declare: Declare, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "MAX_RESULT_BYTES": 100}
    run = version(declare, NAME, 1, line("a")).start({})
    version(declare, NAME, 2, line("a", "b"), migrate_from={1: lambda state: Migrated("b", results={"a": "x" * 200})})
    found = flows.migrate(run)
    assert (found.answer, status(run)[0]) == ("refused", "runnable")
    assert "the result for node 'a' cannot be kept" in found.reason


def test_a_flow_that_is_not_known_here(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    unload(one)
    found = flows.migrate(run)
    assert (found.answer, found.to_version) == ("refused", 0)
    assert "no migrate_from leads from version 1 to a newer version" in found.reason
