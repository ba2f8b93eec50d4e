"""Before a deploy: which live workflows another definition of their flow would break, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Approval,
    Candidate,
    Deadline,
    Decision,
    End,
    Flow,
    Migrated,
    Pipeline,
    Sleep,
    Step,
    Wait,
    hours,
    registry,
)
from flows.core import definition as declared
from flows.services.foresee import Forecast, foresee
from flows.testing import Clock, LocalWorker
from tests.factories import branches, does, row, take_one, work

pytestmark = pytest.mark.req("S1", "G2")

Declare = Callable[..., type[Flow]]
DAY = Deadline(days=1, then=ESCALATE)


def first(declare: Declare, **nodes: Any) -> type[Flow]:
    return declare("t-next", **{**NODES, **nodes})


def another(declare: Declare, version: int = 2, migrate_from: Any = None, **nodes: Any) -> type[Flow]:
    """The next version of it; it is not offered, and does not take the first one's place."""
    meta = {"version": version, **({"migrate_from": migrate_from} if migrate_from else {})}
    made = declare("t-next", meta=meta, **nodes)
    declared.DECLARED.remove(made)
    declared.DECLARED.insert(0, made)
    registry._lookup.cache_clear()
    return made


NODES: dict[str, Any] = {
    "one": Activity(work, then="ask"),
    "ask": Wait("t.next", key=lambda state: "k", deadline=DAY, then="two"),
    "two": Activity(work, then="done"),
    "done": End(COMPLETE),
}


def told(flow: type[Flow], run: Any = None) -> list[tuple[str, str]]:
    """The problems of the one live workflow."""
    (found,) = foresee(flow, [run] if run is not None else None)
    return [tuple(problem) for problem in found.problems]


def waiting(flow: type[Flow], worker: LocalWorker) -> Any:
    run = flow.start({})
    worker.run()
    assert row(run).status == "waiting"
    return run


def test_what_goes_the_same_way_breaks_nothing(worker: LocalWorker, declare: Declare) -> None:
    run = waiting(first(declare), worker)
    more = another(declare, **{**NODES, "two": Activity(work, then="three"), "three": Activity(work, then="done")})
    (found,) = foresee(more)
    assert found == Forecast(str(run.id), "t-next", 1, None, "waiting", "ask")
    assert found


def test_a_node_that_is_gone(worker: LocalWorker, declare: Declare) -> None:
    waiting(first(declare), worker)
    nodes = {"one": Activity(work, then="done"), "done": End(COMPLETE)}
    assert told(another(declare, **nodes)) == [
        ("node", "it is at ask, which is not in t-next@2"),
        ("path", "arrow 3, to_status: recorded 'waiting', replayed 'complete (finish done)'"),
    ]


def test_a_way_that_is_another(worker: LocalWorker, declare: Declare) -> None:
    """A step before the wait, as a security scan that nobody had done."""
    waiting(first(declare), worker)
    scanned = {"one": Activity(work, then="scan"), "scan": Activity(work, then="ask"), "ask": NODES["ask"]}
    ((what, why),) = told(another(declare, **scanned, two=NODES["two"], done=NODES["done"]))
    assert what == "path"
    assert why == "arrow 3, to_status: recorded 'waiting', replayed 'running (open scan)'"


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (Wait("t.other", key="k", deadline=DAY, then="two"), "it waits at ask for t.next k; t-next@2 would wait for t.other k"),
        (Wait("t.next", key="x", deadline=DAY, then="two"), "it waits at ask for t.next k; t-next@2 would wait for t.next x"),
        (Wait("t.next", key=lambda state: branches["gone"], deadline=DAY, then="two"), "the key of ask raises KeyError: 'gone'"),
        (Sleep(hours(1), then="two"), "it waits at ask for an event; there that is a timer"),
    ],
)
def test_a_wait_that_would_be_another(worker: LocalWorker, declare: Declare, ask: Any, expected: str) -> None:
    waiting(first(declare), worker)
    assert ("wait", expected) in told(another(declare, **{**NODES, "ask": ask}))


def test_an_activity_that_is_open_and_none_there(worker: LocalWorker, declare: Declare) -> None:
    flow = first(declare)
    run = flow.start({})
    take_one(worker)
    nodes = {**NODES, "one": Wait("t.one", key="k", deadline=DAY, then="ask")}
    assert ("activity", "its activity one is open; in t-next@2 that is an event") in told(another(declare, **nodes), run)


@pytest.mark.parametrize(("names", "breaks"), [("ab", False), ("abc", False), ("bc", True), ("a", True)])
def test_a_step_that_is_open_and_gone_there(worker: LocalWorker, declare: Declare, names: str, breaks: bool) -> None:  # noqa: FBT001
    def line(steps: str) -> dict[str, Any]:
        return {"one": Pipeline(*[Step(name, work) for name in steps], then="done"), "done": End(COMPLETE)}

    flow = declare("t-next", **line("ab"))
    does["one.b"] = lambda attempt: 1 / 0
    flow.start({})
    worker.run()
    found = told(another(declare, **line(names)))
    assert (("activity", "step b of one is open, and t-next@2 has no such step") in found) is (names == "a")
    assert bool(found) is breaks


def test_the_same_version_in_another_shape_would_stop_every_run(worker: LocalWorker, declare: Declare) -> None:
    run = waiting(first(declare), worker)
    changed = another(declare, version=1, **{**NODES, "two": Activity(work, then="three"), "three": End(COMPLETE)})
    ((what, why),) = told(changed, run)
    assert what == "fingerprint"
    assert why.startswith("version 1 was started as ")


def test_a_timing_may_change_under_the_same_version(worker: LocalWorker, declare: Declare) -> None:
    waiting(first(declare), worker)
    assert told(another(declare, version=1, **{**NODES, "two": Activity(work, timeout=hours(2), then="done")})) == []


# ---------------------------------------------------------------- migrations


def test_a_migration_takes_a_workflow_over_where_its_way_is_another(worker: LocalWorker, declare: Declare) -> None:
    waiting(first(declare), worker)
    nodes = {
        "scan": Activity(work, then="listen"),
        "listen": Wait("t.next", key="k", deadline=DAY, then="done"),
        "done": End(COMPLETE),
    }
    seen: list[Any] = []

    def take_over(state: Any) -> Migrated:
        seen.append(
            (
                state.node,
                state.results["one"]["by"],
                state.wait.event_type if hasattr(state.wait, "event_type") else state.wait.kind,
            )
        )
        return Migrated(node="scan")

    assert told(another(declare, migrate_from={1: take_over}, **nodes)) == []
    assert seen == [("ask", "one", "event")]
    assert [what for what, _ in told(another(declare, version=3, **nodes))] == ["node", "path"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda state: Migrated(node="nowhere"), "<lambda> answered node 'nowhere', which version 2 does not have"),
        (lambda state: {}["gone"], "<lambda> raised KeyError"),
        (lambda state: None, "<lambda> has no place for it"),
        (lambda state: flows.cancel(state.workflow_id), "a function of the flow asks a database"),
    ],
)
def test_a_migration_that_does_not_work(worker: LocalWorker, declare: Declare, function: Any, expected: str) -> None:
    run = waiting(first(declare), worker)
    ((what, why),) = told(another(declare, migrate_from={1: function}, **NODES))
    assert what == "migration"
    assert why.startswith(expected)
    assert row(run).status == "waiting"


def test_a_migration_that_stays_at_its_node_must_know_what_is_open_there(worker: LocalWorker, declare: Declare) -> None:
    waiting(first(declare), worker)
    stays = another(
        declare, migrate_from={1: lambda state: Migrated(state.node)}, **{**NODES, "ask": Sleep(hours(1), then="two")}
    )
    assert told(stays) == [("wait", "it waits at ask for an event; there that is a timer")]


def test_a_migration_for_another_version_is_none(worker: LocalWorker, declare: Declare) -> None:
    waiting(first(declare), worker)
    nodes = {"one": Activity(work, then="done"), "done": End(COMPLETE)}
    found = told(another(declare, version=3, migrate_from={2: lambda state: Migrated(node="one")}, **nodes))
    assert [what for what, _ in found] == ["node", "path"]


# ---------------------------------------------------------------- which


def test_only_live_runs_of_the_flow_are_looked_at(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = first(declare)
    ended, live = flow.start({}), flow.start({})
    worker.run()
    flows.cancel(ended)
    declare("t-else", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    target = another(declare, one=Activity(work, then="done"), done=End(COMPLETE))
    assert [one.id for one in foresee(target)] == [str(live.id)]
    both = {one.id: [problem.what for problem in one.problems] for one in foresee(target, live=False)}
    assert both == {str(ended.id): ["path"], str(live.id): ["node", "path"]}


def test_an_approval_is_waited_for_there_too(worker: LocalWorker, declare: Declare) -> None:
    def asking(role: str) -> dict[str, Any]:
        return {
            "propose": Decision(lambda attempt: Candidate("go", 1), choices={"go": "ask"}),
            "ask": Approval(candidate="propose", role=role, expires=DAY, approved="done", denied="done"),
            "done": End(COMPLETE),
        }

    declare("t-next", **asking("one")).start({})
    worker.run()
    assert told(another(declare, **asking("two"))) == []
