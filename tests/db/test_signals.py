"""Events: kept whether or not anybody waits, matched exactly, taken once, and never more than evidence."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

import flows
from flows.models import Event, Transition, Wait
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Fork, branches, does, row, status
from tests.support.record import Counting
from tests.support.trace import dying_after


def events() -> list[tuple[str, str, int]]:
    return list(Event.objects.order_by("id").values_list("event_id", "status", "deliveries"))


@pytest.fixture
def asking(worker: LocalWorker) -> Any:
    """A workflow that waits for t.asked / k."""
    run = Ask.start({"key": "k"})
    worker.run()
    return run


def test_a_signal_wakes_and_the_turn_decides(worker: LocalWorker, asking: Any, hints: Counting) -> None:
    hints.clear()
    received = flows.signal("e1", "t.asked", key="k", payload={"a": 1})
    assert (received.answer, received.event_id, received.woken) == ("accepted", "e1", (asking.id,))
    assert bool(received)
    assert [hint.label for hint in hints.hints] == ["t-ask.ask"]
    assert status(asking) == ("runnable", "", "ask")
    wait = Wait.objects.get(workflow_id=asking.id)
    assert (wait.status, wait.evidence) == ("open", {"id": "e1", "payload": {"a": 1}})
    log = Transition.objects.get(workflow_id=asking.id, seq=row(asking).version)
    assert (log.trigger, log.trigger_ref) == ("event", "e1")
    worker.run()
    assert status(asking) == ("waiting", "WAITING", "again")
    first = Wait.objects.order_by("id").first()
    assert first is not None
    assert (first.status, first.result) == ("satisfied", {"value": {"a": 1}, "event": "e1", "payload": {"a": 1}})
    event = Event.objects.get()
    assert (event.status, event.wait_id, event.workflow_id) == ("consumed", first.pk, asking.id)


def test_the_same_signal_twice_is_once(worker: LocalWorker, asking: Any) -> None:
    flows.signal("e1", "t.asked", key="k", payload={"a": 1, "b": 2})
    again = flows.signal("e1", "t.asked", key="k", payload={"b": 2, "a": 1})
    assert (again.answer, again.woken, bool(again)) == ("already", (), False)
    worker.run()
    assert flows.signal("e1", "t.asked", key="k", payload={"a": 1, "b": 2}).answer == "already"
    worker.run()
    assert status(asking) == ("waiting", "WAITING", "again")
    assert events() == [("e1", "consumed", 3)]


def test_an_early_signal_waits_for_its_wait(worker: LocalWorker, hints: Counting) -> None:
    assert flows.signal("e1", "t.asked", key="k").answer == "kept"
    assert flows.signal("e1", "t.asked", key="k").answer == "already"
    run = Ask.start({"key": "k"})
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")
    assert events() == [("e1", "consumed", 2)]
    assert worker.run() == 0


def test_early_signals_are_taken_in_their_order_and_once(worker: LocalWorker) -> None:
    for number in range(3):
        flows.signal(f"e{number}", "t.asked", key="k", payload={"n": number})
    runs = [Ask.start({"key": "k"}) for _ in range(2)]
    worker.run()
    taken = [flows.get(run).waits.get(node="ask").result["payload"]["n"] for run in runs]
    assert taken == [0, 1]
    assert [event[1] for event in events()] == ["consumed", "consumed", "pending"]


@pytest.mark.parametrize(
    ("event_type", "key", "payload"),
    [("t.asked", "k", {"a": 2}), ("t.again", "k", {"a": 1}), ("t.asked", "other", {"a": 1})],
    ids=["payload", "type", "key"],
)
def test_a_known_id_with_other_content_is_a_conflict(
    worker: LocalWorker, asking: Any, event_type: str, key: str, payload: dict[str, Any]
) -> None:
    flows.signal("e1", "t.asked", key="k", payload={"a": 1})
    for _ in range(2):
        conflict = flows.signal("e1", event_type, key=key, payload=payload)
        assert (conflict.answer, bool(conflict)) == ("conflict", False)
    worker.run()
    kept = Event.objects.get(status="conflict")
    assert (kept.type, kept.key, kept.payload, kept.workflow_id) == (event_type, key, payload, None)
    assert status(asking) == ("waiting", "WAITING", "again")


def test_a_conflict_is_never_consumed(worker: LocalWorker) -> None:
    flows.signal("e1", "t.asked", key="k", payload={"a": 1})
    flows.signal("e1", "t.again", key="k", payload={"a": 1})
    run = Ask.start({"key": "k"})
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")


@pytest.mark.parametrize(("event_type", "key"), [("t.asked", "K"), ("t.Asked", "k"), ("t.asked", "k "), ("t.again", "k")])
def test_a_channel_is_matched_exactly(worker: LocalWorker, asking: Any, event_type: str, key: str) -> None:
    assert flows.signal("e1", event_type, key=key).answer == "kept"
    assert status(asking)[0] == "waiting"


def test_one_signal_wakes_everybody_on_its_channel(worker: LocalWorker) -> None:
    runs = [Ask.start({"key": "k"}) for _ in range(3)]
    worker.run()
    received = flows.signal("e1", "t.asked", key="k")
    assert set(received.woken) == {run.id for run in runs}
    worker.run()
    assert {status(run) for run in runs} == {("waiting", "WAITING", "again")}


def test_a_second_event_before_the_turn_is_kept_for_later(worker: LocalWorker, asking: Any) -> None:
    flows.signal("e1", "t.asked", key="k", payload={"n": 1})
    assert flows.signal("e2", "t.asked", key="k", payload={"n": 2}).answer == "kept"
    worker.run()
    assert flows.get(asking).waits.get(node="ask").result["payload"] == {"n": 1}
    assert events() == [("e1", "consumed", 1), ("e2", "pending", 1)]


@pytest.mark.req("D2")
@pytest.mark.parametrize("end", ["cancel", "supersede"])
def test_a_signal_for_an_ended_workflow_resurrects_nothing(worker: LocalWorker, asking: Any, end: str) -> None:
    flows.cancel(asking) if end == "cancel" else flows.supersede(asking, goal="another")
    ended = status(asking)
    assert flows.signal("e1", "t.asked", key="k").answer == "kept"
    worker.run()
    assert status(asking) == ended
    assert Wait.objects.get().status == "withdrawn"


def test_a_signal_goes_with_the_callers_transaction(worker: LocalWorker, asking: Any, hints: Counting) -> None:
    hints.clear()
    with transaction.atomic():
        assert flows.signal("e1", "t.asked", key="k").answer == "accepted"
        assert not hints.hints
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert status(asking)[0] == "waiting"
    assert flows.signal("e1", "t.asked", key="k").answer == "accepted"


def test_a_signal_while_paused_is_recorded_and_counts_on_resume(worker: LocalWorker, asking: Any) -> None:
    flows.pause(asking)
    assert flows.signal("e1", "t.asked", key="k").answer == "accepted"
    assert status(asking) == ("paused", "WAITING", "ask")
    assert worker.run() == 0
    flows.resume(asking)
    worker.run()
    assert status(asking) == ("waiting", "WAITING", "again")


def test_an_early_signal_is_not_lost_by_parking_into_a_pause(worker: LocalWorker) -> None:
    """The pause is asked while the step before the wait runs, and the event is there already."""
    flows.signal("e1", "t.right", key="k", payload={"a": 1})
    branches["to"] = "right"
    does["first"] = lambda attempt: flows.pause(attempt.workflow_id) and None
    run = Fork.start({"key": "k"})
    worker.run()
    assert status(run) == ("paused", "WAITING", "right")
    flows.resume(run)
    worker.run()
    assert status(run) == ("complete", "COMPLETE", "done")
    assert Event.objects.get().status == "consumed"


def test_a_signal_meets_a_workflow_that_is_ready_for_another_reason(worker: LocalWorker, asking: Any, clock: Clock) -> None:
    """Deadline and event both before the turn: the event is evidence, and evidence goes first."""
    clock.move(hours=2)
    worker.tick()
    assert status(asking)[0] == "runnable"
    assert flows.signal("e1", "t.asked", key="k").answer == "accepted"
    worker.run()
    assert status(asking) == ("waiting", "WAITING", "again")


def test_a_signal_while_the_turn_decides_is_decided_on(worker: LocalWorker, asking: Any, clock: Clock) -> None:
    clock.move(hours=2)
    worker.tick()
    owned = factories.take_one(worker)
    assert flows.signal("e1", "t.asked", key="k").answer == "accepted"
    assert factories.enter(owned).value == "run"
    assert row(asking).node == "after"


def test_undeclared_values_need_a_person(worker: LocalWorker, declare: Any) -> None:
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    flow = declare(
        "t-choices",
        ask=flows.Wait(
            "t.c", key="k", read=lambda state: state.event["payload"].get("say"), choices={"yes": "done"}, deadline=deadline
        ),
        done=flows.End(flows.COMPLETE),
    )
    run = flow.start({})
    worker.run()
    flows.signal("e1", "t.c", key="k", payload={"say": "maybe"})
    worker.run()
    assert (*status(run), row(run).error_code) == ("waiting", "HUMAN_REQUIRED", "ask", "UNDECLARED_CHOICE")
    flows.resume(run)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "ask")
    flows.signal("e2", "t.c", key="k", payload={"say": "yes"})
    worker.run()
    assert status(run)[0] == "complete"


def test_the_longest_names_fit_their_index(worker: LocalWorker, declare: Any) -> None:
    """Two names of a channel stand in one index entry, and letters outside ASCII take more bytes."""
    name = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(333))
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    run = declare("t-long", ask=flows.Wait(name, key=name, deadline=deadline, then="done"), done=flows.End(flows.COMPLETE)).start(
        {}, key=name
    )
    worker.run()
    assert flows.signal(name, name, key=name).answer == "accepted"
    assert flows.signal(name, name, key=name, payload={"other": 1}).answer == "conflict"
    worker.run()
    assert status(run)[0] == "complete"
    assert flows.signal("early", name, key=name).answer == "kept"
    for long in (name * 2, name + "x" * 2):
        with pytest.raises(flows.errors.PayloadError, match="1 to 500 characters"):
            flows.signal(long, "t", key="k")


@pytest.mark.parametrize("dies", [None, 1, 2])
def test_two_waits_in_a_row_whose_events_are_there_already(worker: LocalWorker, declare: Any, dies: int | None) -> None:
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    flow = declare(
        "t-row",
        one=flows.Wait("t.r1", key="k", deadline=deadline, then="two"),
        two=flows.Wait("t.r2", key="k", deadline=deadline, then="done"),
        done=flows.End(flows.COMPLETE, result=lambda state: [state.results[name]["payload"]["n"] for name in ("one", "two")]),
    )
    flows.signal("e1", "t.r1", key="k", payload={"n": 1})
    flows.signal("e2", "t.r2", key="k", payload={"n": 2})
    run = flow.start({})
    if dies is not None:
        assert dying_after(factories.take_one(worker), "park", dies)
        factories.lose(worker)
        worker = factories.another_worker()
    worker.run()
    assert (status(run)[0], row(run).result) == ("complete", [1, 2])
    assert [event[1] for event in events()] == ["consumed", "consumed"]


def test_a_pause_between_two_waits_whose_events_are_there(
    worker: LocalWorker, declare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    flow = declare(
        "t-row-paused",
        one=flows.Wait("t.p1", key="k", deadline=deadline, then="two"),
        two=flows.Wait("t.p2", key="k", deadline=deadline, then="done"),
        done=flows.End(flows.COMPLETE),
    )
    for number in (1, 2):
        flows.signal(f"e{number}", f"t.p{number}", key="k")
    run = flow.start({})
    owned = factories.take_one(worker)
    monkeypatch.setattr(sql, "seam", lambda when, name: flows.pause(run) if (when, name) == ("after", "park") else None)
    factories.enter(owned)
    monkeypatch.setattr(sql, "seam", None)
    assert status(run)[0] == "paused"
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_what_a_signal_is_about_and_its_position_are_kept(worker: LocalWorker, asking: Any) -> None:
    about = flows.About(workflow=asking.id, epoch=0, intent=1)
    assert flows.signal("e1", "t.asked", key="k", about=about, position=7).answer == "accepted"
    kept = Event.objects.get()
    assert (kept.about_workflow, kept.about_epoch, kept.about_intent, kept.about_wait) == (asking.id, 0, 1, None)
    assert kept.position == 7


@pytest.mark.parametrize("given", [{"about": {"workflow": "x"}}, {"position": -1}, {"position": "7"}, {"position": True}])
def test_what_it_cannot_be_about_is_refused_and_nothing_kept(given: dict[str, Any]) -> None:
    with pytest.raises(flows.errors.PayloadError):
        flows.signal("e1", "t.asked", key="k", **given)
    assert not Event.objects.exists()
