"""Map, Parallel and Child: what is started, how it is joined, and what becomes of the rest (G4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import ABANDON, ALL, ANY, COMPLETE, FAILED, LEAVE, REQUEST, WAIT, Activity, Child, Deadline, End, Flow, Parallel, api
from flows.core.errors import HalfMove
from flows.core.protocol import Status
from flows.models import Branch, Event, Fan, Intent, Transition, Wait, Workflow
from flows.services import control
from flows.services.children import feeding, stopping
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support.branching import (
    DAY,
    Leaf,
    Slow,
    acts,
    agree,
    children,
    counters,
    failing,
    fan,
    keys,
    mapping,
    over_slow,
    settle,
)
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("G4")

Declare = Callable[..., type[Flow]]


@pytest.fixture(autouse=True)
def _plain(worker: LocalWorker) -> Any:
    acts.clear()
    factories.offer(worker)
    yield
    assert agree() == []


def triggers(run: Any) -> list[str]:
    return list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))


# ---------------------------------------------------------------- Map


def test_each_item_is_a_run_of_its_own_and_they_are_joined_once(worker: LocalWorker, declare: Declare) -> None:
    run = mapping(declare).start({"items": ["a", "b", "c"]})
    worker.run()
    assert status(run)[0] == "complete"
    assert triggers(run).count("children") == 1
    assert row(run).result["map"] == {"total": 3, "succeeded": 3, "failed": 0, "cancelled": 0, "skipped": 0}
    kids = children(run)
    assert [(kid.flow_name, kid.parent_id, kid.depth, kid.status, kid.started_by) for kid in kids] == [
        ("t-map.map", run.id, 1, "complete", "child")
    ] * 3
    assert {kid.intent_id for kid in kids} == {run.intent_id}
    assert list(Branch.objects.order_by("number").values_list("status", "result")) == [
        ("succeeded", {"item": item}) for item in "abc"
    ]
    assert (fan(run).status, counters(run)) == ("closed", {"succeeded": 3})


def test_an_activity_reads_the_items_a_page_at_a_time(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.services.items.PAGE", 2)
    acts["d"] = failing
    does["after"] = lambda attempt: {
        "good": [(one.number, one.result["item"]) for one in attempt.items("map", "succeeded")],
        "bad": [(one.input["item"], one.code) for one in attempt.items("map", "failed")],
        "all": len(list(attempt.items("map"))),
    }
    run = mapping(declare, tolerate=1).start({"items": list("abcde")})
    worker.run()
    assert row(run).result["after"] == {
        "good": [[1, "a"], [2, "b"], [3, "c"], [5, "e"]],
        "bad": [["d", "RETRIES_EXHAUSTED:UNCLASSIFIED_ERROR"]],
        "all": 5,
    }


@pytest.mark.parametrize(("asked", "says"), [(("nothing",), "has no items"), (("map", "gone"), "no status 'gone'")])
def test_what_is_no_list_of_items_is_said(worker: LocalWorker, declare: Declare, asked: tuple[str, ...], says: str) -> None:
    heard: list[str] = []

    def ask(attempt: Any) -> None:
        try:
            list(attempt.items(*asked))
        except flows.errors.DefinitionError as error:
            heard.append(str(error))

    does["after"] = ask
    mapping(declare).start({"items": ["a"]})
    worker.run()
    assert says in heard[0]


def test_no_more_run_at_once_than_is_said(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, concurrency=2).start(keys("a", "b", "c", "d", "e"))
    worker.run()
    assert counters(run) == {"running": 2}
    for number, name in enumerate("abcde", 1):
        flows.signal(f"e{name}", "t.slow", key=name)
        worker.run()
        assert counters(run).get("running", 0) == min(2, 5 - number)
    assert status(run)[0] == "complete"


def test_nothing_to_do_is_joined_at_once(worker: LocalWorker, declare: Declare) -> None:
    run = mapping(declare).start({"items": []})
    worker.run()
    assert status(run)[0] == "complete"
    assert row(run).result["map"]["total"] == 0
    assert fan(run).status == "closed"


def test_one_that_fails_is_one_too_many(worker: LocalWorker, declare: Declare) -> None:
    acts["b"] = failing
    run = mapping(declare, failed="lost").start({"items": ["a", "b"]})
    worker.run()
    assert status(run) == ("failed", "FAILED", "lost")
    assert Branch.objects.get(number=2).error_code == "RETRIES_EXHAUSTED:UNCLASSIFIED_ERROR"


def test_without_a_route_a_person_decides(worker: LocalWorker, declare: Declare) -> None:
    acts["b"] = failing
    run = mapping(declare).start({"items": ["a", "b"]})
    worker.run()
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    assert row(run).error_code == "ITEMS_FAILED"


@pytest.mark.parametrize(
    ("tolerate", "ends"), [(2, "complete"), ("40%", "complete"), (ALL, "complete"), (1, "failed"), ("39%", "failed")]
)
def test_so_many_may_fail(worker: LocalWorker, declare: Declare, tolerate: Any, ends: str) -> None:
    acts["b"] = acts["d"] = failing
    run = mapping(declare, tolerate=tolerate, failed="lost").start({"items": list("abcde")})
    settle(worker)
    assert status(run)[0] == ends


def test_when_too_many_have_failed_the_rest_is_not_started_and_what_runs_is_cancelled(
    worker: LocalWorker, declare: Declare
) -> None:
    run = over_slow(declare, concurrency=2, failed="lost").start(keys("a", "b", "c", "d"))
    worker.run()
    flows.cancel(children(run)[0])
    settle(worker)
    assert status(run)[0] == "failed"
    assert counters(run) == {"cancelled": 2, "skipped": 2}
    assert [kid.status for kid in children(run)] == ["cancelled", "cancelled"]


def test_an_item_that_is_no_object_cannot_be_the_input_of_a_flow(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare).start({"items": ["a"]})
    worker.run()
    assert row(run).error_code == "DEFINITION_FAULT"
    assert not Fan.objects.exists()


def test_too_many_items_are_a_fault_of_the_flow(worker: LocalWorker, declare: Declare, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "MAX_MAP_ITEMS": 2}
    run = mapping(declare).start({"items": [1, 2, 3]})
    worker.run()
    assert (row(run).error_code, Fan.objects.count()) == ("DEFINITION_FAULT", 0)
    assert "MAX_MAP_ITEMS" in Wait.objects.get().reason


def test_an_item_that_cannot_be_started_fails_alone(worker: LocalWorker, declare: Declare, settings: Any) -> None:
    run = over_slow(declare, concurrency=2, tolerate=1).start(
        {"items": [{"key": "a"}, {"key": "b"}, {"key": "c", "x": 99 * "x"}, {"key": "d"}]}
    )
    worker.run()
    settings.OUTLAST = {**settings.OUTLAST, "MAX_INPUT_BYTES": 80}
    for name in "ab":
        flows.signal(f"e{name}", "t.slow", key=name)
    worker.run()
    assert counters(run) == {"succeeded": 2, "failed": 1, "running": 1}
    assert Branch.objects.get(status="failed").error_code == "PAYLOAD_INVALID"


def test_the_deadline_stops_what_runs(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = over_slow(declare, concurrency=1, deadline=Deadline(hours=1, then="lost")).start(keys("a", "b"))
    worker.run()
    clock.move(hours=2)
    settle(worker)
    assert status(run)[0] == "failed"
    assert counters(run) == {"cancelled": 1, "skipped": 1}
    assert Wait.objects.get(workflow_id=run.id).status == "expired"


@pytest.mark.parametrize("error", [HalfMove("a statement missed its partner"), RuntimeError("the function of its release")])
def test_a_child_that_could_not_be_cancelled_is_cancelled_by_the_next_look(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = over_slow(declare, on_cancel=WAIT, concurrency=2).start(keys("a", "b"))
    worker.run()
    flows.cancel(run)
    cancel, failed = control.cancel, []

    def once(child: Any, **options: Any) -> Any:
        if not failed:
            failed.append(child)
            raise error
        return cancel(child, **options)

    monkeypatch.setattr(control, "cancel", once)
    stopping.carry_out("default")
    assert sorted(kid.status for kid in children(run)) == ["cancelled", "waiting"], "one that fails holds up no other"
    settle(worker)
    assert [kid.status for kid in children(run)] == ["cancelled", "cancelled"]
    assert (status(run)[0], row(run).owed) == ("cancelled", 0)


def test_a_visit_has_a_fan_of_its_own(worker: LocalWorker, declare: Declare) -> None:
    acts["b"] = failing
    run = mapping(declare).start({"items": ["b"]})
    worker.run()
    acts.clear()
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    assert list(Fan.objects.order_by("pk").values_list("visit", "failed", "succeeded")) == [(1, 1, 0), (2, 0, 1)]


# ---------------------------------------------------------------- Parallel


def together(declare: Declare, join: Any = ALL, **options: Any) -> type[Flow]:
    return declare(
        "t-par",
        both=Parallel(
            {"a": Slow, "b": Slow, "c": Slow},
            input=lambda state: {name: {"key": name} for name in "abc"},
            join=join, then="done", failed="lost", deadline=DAY, **options,
        ),
        lost=End(FAILED),
        done=End(COMPLETE, result=lambda state: dict(state.results["both"])),
    )  # fmt: skip


def test_all_are_waited_for_and_their_results_are_read_by_name(worker: LocalWorker, declare: Declare) -> None:
    run = together(declare).start({})
    worker.run()
    for name in "abc":
        assert status(run)[0] == "waiting"
        flows.signal(f"e{name}", "t.slow", key=name)
        worker.run()
    assert status(run)[0] == "complete"
    kids = {kid.input["key"]: kid for kid in children(run)}
    assert row(run).result["b"] == {
        "id": str(kids["b"].pk), "status": "succeeded", "outcome": "COMPLETE", "code": None, "result": {"slow": "b"},
    }  # fmt: skip


@pytest.mark.parametrize(("join", "signals"), [(ANY, "b"), (2, "ca")])
def test_the_losers_are_cancelled(worker: LocalWorker, declare: Declare, join: Any, signals: str) -> None:
    run = together(declare, join).start({})
    worker.run()
    for name in signals:
        flows.signal(f"e{name}", "t.slow", key=name)
        worker.run()
    assert status(run)[0] == "complete"
    settle(worker)
    assert {kid.input["key"]: kid.status for kid in children(run)} == {
        name: "complete" if name in signals else "cancelled" for name in "abc"
    }
    assert counters(run) == {"succeeded": len(signals), "cancelled": 3 - len(signals)}


def test_or_they_are_left(worker: LocalWorker, declare: Declare) -> None:
    run = together(declare, ANY, losers=LEAVE).start({})
    worker.run()
    flows.signal("ea", "t.slow", key="a")
    settle(worker)
    assert status(run)[0] == "complete"
    flows.signal("eb", "t.slow", key="b")
    settle(worker)
    assert [kid.status for kid in children(run)] == ["complete", "complete", "waiting"]
    assert counters(run) == {"succeeded": 2, "running": 1}


def test_what_cannot_be_met_any_more_fails_at_once(worker: LocalWorker, declare: Declare) -> None:
    run = together(declare, 2).start({})
    worker.run()
    for kid in children(run)[:2]:
        flows.cancel(kid)
    settle(worker)
    assert status(run)[0] == "failed"
    assert counters(run) == {"cancelled": 3}


def test_a_branch_may_be_an_activity(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-acts",
        both=Parallel({"one": Activity(factories.work), "leaf": Leaf}, then="done", deadline=DAY),
        done=End(COMPLETE, result=lambda state: {name: one["result"] for name, one in state.results["both"].items()}),
    )
    run = flow.start({"name": "n"})
    worker.run()
    assert row(run).result == {"one": {"by": "do", "visit": 1, "number": 1}, "leaf": {"leaf": "n"}}
    assert sorted(kid.flow_name for kid in children(run)) == ["t-acts.both.one", "t-leaf"]


# ---------------------------------------------------------------- Child


def parent(declare: Declare, name: str = "t-parent", **options: Any) -> type[Flow]:
    given = {"completed": "done", "failed": "lost", "deadline": DAY, **options}
    return declare(
        name,
        kid=Child(Slow, input=lambda state: {"key": state.input["key"]}, **given),
        done=End(COMPLETE, result=lambda state: state.results["kid"]), lost=End(FAILED), gone=End(FAILED),
    )  # fmt: skip


def test_a_child_has_its_result_and_its_key(worker: LocalWorker, declare: Declare) -> None:
    run = parent(declare, key=lambda state: "kid-" + state.input["key"]).start({"key": "x"})
    worker.run()
    (kid,) = children(run)
    assert (kid.key, kid.status) == ("kid-x", "waiting")
    flows.signal("e", "t.slow", key="x")
    worker.run()
    assert row(run).result == {
        "id": str(kid.pk), "status": "succeeded", "outcome": "COMPLETE", "code": None, "result": {"slow": "x"},
    }  # fmt: skip


def test_a_key_that_another_run_has_is_a_failure(worker: LocalWorker, declare: Declare) -> None:
    run = parent(declare, key="same").start({"key": "x"})
    other = parent(declare, "t-parent-2", key="same").start({"key": "x"})
    worker.run()
    assert sorted([status(run)[0], status(other)[0]]) == ["failed", "waiting"]
    assert Branch.objects.get(status="failed").error_code == "KEY_TAKEN"


def test_how_it_ended_leads_on(worker: LocalWorker, declare: Declare) -> None:
    run = parent(declare, cancelled="gone").start({"key": "x"})
    worker.run()
    flows.cancel(children(run)[0])
    settle(worker)
    assert status(run) == ("failed", "FAILED", "gone")


def test_one_that_is_not_waited_for_is_told_by_its_id_and_its_end_is_an_event(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-loose",
        kid=Child(Slow, input=lambda state: {"key": "x"}, wait=False, then="after"),
        after=flows.Wait(
            "workflow.ended", key=lambda state: state.results["kid"]["id"], read=lambda state: state.event["payload"]["status"],
            choices={"succeeded": "done", "cancelled": "lost"}, deadline=DAY,
        ),
        done=End(COMPLETE), lost=End(FAILED),
    )  # fmt: skip
    run, other = flow.start({}), flow.start({})
    worker.run()
    assert triggers(run) == ["start", "claim", "decided", "woken"]
    (kid,) = children(run)
    flows.cancel(children(other)[0])
    flows.signal("e", "t.slow", key="x")
    settle(worker)
    assert (status(run)[0], status(other)[0]) == ("complete", "failed")
    event = Event.objects.get(key=str(kid.pk))
    assert (event.type, event.payload["result"], event.payload["outcome"]) == ("workflow.ended", {"slow": "x"}, "COMPLETE")


def test_too_deep_is_a_failure(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-deep",
        kid=Child("t-deep", completed="done", failed="lost", deadline=DAY), done=End(COMPLETE), lost=End(FAILED),
    )  # fmt: skip
    run = flow.start({})
    settle(worker)
    assert status(run)[0] == "failed"
    assert Workflow.objects.count() == feeding.MAX_DEPTH + 1
    assert Branch.objects.order_by("pk").last().error_code in ("ENDED_AT:lost", "CHILD_TOO_DEEP")
    assert Branch.objects.filter(error_code="CHILD_TOO_DEEP").count() == 1


# ---------------------------------------------------------------- the end of a parent


@pytest.mark.parametrize("kind", ["map", "child"])
def test_abandoned_children_go_on(worker: LocalWorker, declare: Declare, kind: str) -> None:
    flow, given = (over_slow(declare, on_cancel=ABANDON, concurrency=1), keys("a", "b")) if kind == "map" else (
        parent(declare, on_cancel=ABANDON), {"key": "a"})  # fmt: skip
    run = flow.start(given)
    worker.run()
    flows.cancel(run)
    assert status(run)[0] == "cancelled"
    settle(worker)
    (kid,) = children(run)
    assert (kid.status, fan(run).status) == ("waiting", "closed")
    flows.signal("e", "t.slow", key="a")
    settle(worker)
    assert row(kid).status == "complete"


def test_children_are_asked_to_end(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, on_cancel=REQUEST, concurrency=2).start(keys("a", "b", "c"))
    worker.run()
    flows.cancel(run)
    assert status(run)[0] == "cancelled", "it does not wait for them"
    settle(worker)
    assert [kid.status for kid in children(run)] == ["cancelled", "cancelled"]
    assert counters(run) == {"cancelled": 2, "skipped": 1}


def test_or_asked_and_waited_for(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, on_cancel=WAIT, concurrency=2).start(keys("a", "b", "c"))
    worker.run()
    flows.cancel(run)
    assert (status(run)[0], row(run).owed) == ("cancelling", 2)
    settle(worker)
    assert (status(run)[0], row(run).owed) == ("cancelled", 0)
    kids = children(run)
    assert [kid.status for kid in kids] == ["cancelled", "cancelled"]
    assert row(run).updated_at > max(kid.updated_at for kid in kids)


def test_a_new_goal_ends_parent_and_children_together(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, on_cancel=WAIT, concurrency=2).start(keys("a", "b", "c"))
    worker.run()
    flows.supersede(run, goal="another")
    settle(worker)
    assert status(run)[0] == "superseded"
    assert [kid.status for kid in children(run)] == ["superseded", "superseded"]
    assert counters(run) == {"cancelled": 2, "skipped": 1}


@pytest.mark.parametrize(("on_cancel", "ends"), [(None, "waiting"), (REQUEST, "cancelled"), (WAIT, "cancelled")])
def test_at_its_end_a_parent_treats_those_that_it_did_not_wait_for_as_declared(
    worker: LocalWorker, declare: Declare, on_cancel: Any, ends: str
) -> None:
    flow = declare(
        "t-end",
        kid=Child(Slow, input=lambda state: {"key": "x"}, wait=False, then="done", on_cancel=on_cancel),
        done=End(COMPLETE),
    )
    run = flow.start({})
    settle(worker)
    assert status(run)[0] == "complete"
    assert children(run)[0].status == ends


def test_a_child_that_was_announced_is_started_though_its_parent_has_ended(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = declare("t-late", kid=Child(Slow, input=lambda state: {"key": "x"}, wait=False, then="done"), done=End(COMPLETE))
    monkeypatch.setattr("flows.services.children.counting.after_commit", lambda fan, using: None)  # its process is gone by then
    runs = [flow.start({}), flow.start({})]
    worker.run()
    assert (status(runs[0])[0], children(runs[0])) == ("complete", [])
    flows.supersede(runs[1], goal="another")
    settle(worker)
    assert [kid.status for kid in children(runs[0])] == ["waiting"]
    assert children(runs[1]) == [], "of an intent that has moved on nothing is begun"
    assert counters(runs[1]) == {"skipped": 1}


# ---------------------------------------------------------------- what happens meanwhile


def test_a_paused_parent_starts_no_more_and_is_joined_all_the_same(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, concurrency=1).start(keys("a", "b"))
    worker.run()
    flows.pause(run)
    flows.signal("ea", "t.slow", key="a")
    settle(worker)
    assert counters(run) == {"succeeded": 1}
    flows.resume(run)
    settle(worker)
    assert counters(run) == {"succeeded": 1, "running": 1}
    flows.signal("eb", "t.slow", key="b")
    settle(worker)
    assert status(run)[0] == "complete"


def test_the_clock_counts_what_no_turn_has_counted(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare).start(keys("a", "b"))
    worker.run()
    for kid in children(run):
        flows.cancel(kid)
    assert counters(run) == {"running": 2}
    worker.tick()
    assert counters(run) == {"cancelled": 2}


def test_a_cancelled_intent_starts_nothing(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, concurrency=1).start(keys("a", "b"))
    worker.run()
    flows.cancel_intent(run)
    settle(worker)
    assert Intent.objects.get().status == "cancelled"
    assert {kid.status for kid in children(run)} == {"cancelled"}
    assert counters(run) == {"cancelled": 1, "skipped": 1}
    assert Status(status(run)[0]) is Status.CANCELLED


def test_a_suspended_child_counts_as_one_that_runs(worker: LocalWorker, declare: Declare) -> None:
    does["do"] = factories.failing(1, flows.errors.CompetenceFailure)
    flow = declare(
        "t-sus",
        one=Parallel({"x": "t-sus-kid"}, then="done", deadline=DAY),
        done=End(COMPLETE),
    )
    declare("t-sus-kid", do=Activity(factories.work, then="done"), done=End(COMPLETE))
    run = flow.start({})
    settle(worker)
    assert counters(run) == {"running": 1}
    assert children(run)[0].outcome == "HUMAN_REQUIRED"
    flows.resume(children(run)[0])
    settle(worker)
    assert status(run)[0] == "complete"


# ---------------------------------------------------------------- people


def test_failed_items_are_run_anew_while_they_are_waited_for(worker: LocalWorker, declare: Declare, cli: Any) -> None:
    run = over_slow(declare, tolerate=1).start(keys("a", "b"))
    worker.run()
    flows.cancel(children(run)[0])
    settle(worker)
    shown = flows.children(run)
    assert [(one.number, one.status) for one in shown] == [(1, "cancelled"), (2, "running")]
    assert [one.number for one in flows.children(run, failed=True)] == [1]
    assert "1 cancelled, 1 running" in cli("children", run.id).out + cli("children", run.id).err
    assert cli("children", run.id, "--retry", "--json").json == {"again": 1}
    assert flows.children(run)[0].id != shown[0].id
    assert counters(run) == {"running": 2}
    for name in "ab":
        flows.signal(f"e{name}", "t.slow", key=name)
    settle(worker)
    assert (status(run)[0], counters(run)) == ("complete", {"succeeded": 2})
    assert api.retry_failed(run) == 0


def test_who_may_not_operate_runs_runs_nothing_anew(worker: LocalWorker, declare: Declare) -> None:
    run = over_slow(declare, tolerate=1).start(keys("a", "b"))
    worker.run()
    with pytest.raises(flows.errors.NotPermitted):
        api.retry_failed(run, by=factories.person("cat"), reason="again")
