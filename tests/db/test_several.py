"""One event for many waits, and many events for one: any of them, all, or so many; whatever comes first."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, On, Wait
from flows.models import Event, Part
from flows.models import Wait as WaitRow
from flows.services.replay import replay
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import status
from tests.support.record import Counting
from tests.support.versions import version

pytestmark = pytest.mark.req("E2")

END = Deadline(hours=1, then=ESCALATE)
DATA, DOC = On("t.data", key="x"), On("t.doc", key=lambda state: state.input["docs"], name="doc")


@pytest.fixture
def flow(declare: Any) -> Any:
    """Of a number of events needed, a flow: data and a list of documents."""

    def made(need: int = 0) -> Any:
        events = {"any": [DATA, DOC], "need": need} if need else {"all": [DATA, DOC]}
        return declare(
            f"t-several-{need}",
            both=Wait(**events, deadline=END, then="after"),
            after=Activity(factories.work, then="done"),
            done=End(COMPLETE, result=lambda state: state.results["both"]),
        )

    return made


def result(run: Any) -> Any:
    return flows.get(run).result


def parts(run: Any) -> list[tuple[str, bool, bool]]:
    found = Part.objects.filter(workflow_id=run.id).order_by("wait_id", "number")
    return [(part.name, part.event_id is not None, part.open) for part in found]


def test_all_of_several_in_any_order(worker: LocalWorker, flow: Any, hints: Counting) -> None:
    run = flow().start({"docs": ["a", "b"]})
    worker.run()
    assert parts(run) == [("t.data", False, True), ("doc:a", False, True), ("doc:b", False, True)]
    hints.clear()
    for key in ("b", "a"):
        received = flows.signal(f"d-{key}", "t.doc", key=key, payload={"of": key})
        assert (received.answer, received.woken, received.place) == ("accepted", (run.id,), "taken")
        assert status(run) == ("waiting", "WAITING", "both")
    assert not hints.hints
    wait = WaitRow.objects.get()
    assert (wait.need, wait.got, wait.evidence, wait.event_type) == (3, 2, None, "")
    assert flows.signal("e-x", "t.data", key="x", payload={"n": 1}).answer == "accepted"
    assert [hint.label for hint in hints.hints] == ["t-several-0.both"]
    worker.run()
    assert status(run)[0] == "complete"
    assert result(run) == {
        "value": {"doc:b": {"of": "b"}, "doc:a": {"of": "a"}, "t.data": {"n": 1}},
        "events": [
            {"name": "doc:b", "id": "d-b", "type": "t.doc", "key": "b"},
            {"name": "doc:a", "id": "d-a", "type": "t.doc", "key": "a"},
            {"name": "t.data", "id": "e-x", "type": "t.data", "key": "x"},
        ],
    }
    assert set(Event.objects.values_list("status", "place", "workflow_id")) == {("consumed", "taken", run.id)}
    assert all(replay([run]))


@pytest.mark.parametrize("early", [0, 1, 2, 3])
def test_so_many_of_several_whether_they_came_before_or_after(worker: LocalWorker, flow: Any, early: int) -> None:
    sent = [("d-a", "t.doc", "a"), ("e-x", "t.data", "x"), ("d-b", "t.doc", "b")]

    def send(which: list[tuple[str, str, str]]) -> None:
        for event_id, event_type, key in which:
            flows.signal(event_id, event_type, key=key)

    kind = flow(2)
    send(sent[:early])
    run = kind.start({"docs": ["a", "b"]})
    worker.run()
    send(sent[early:])
    worker.run()
    assert status(run)[0] == "complete"
    assert [event["id"] for event in result(run)["events"]] == ["d-a", "e-x"]
    last = Event.objects.get(event_id="d-b")
    assert (last.status, last.place) == (("aside", "ended") if early == 2 else ("pending", "early" if early == 3 else "between"))
    assert not Part.objects.filter(open=True).exists()
    assert all(replay([run]))


def test_one_event_fills_one_part_the_lowest_first(worker: LocalWorker, declare: Any) -> None:
    twice = declare(
        "t-twice", both=Wait(all=[On("t.vote", key=["k", "k"], name="vote")], deadline=END, then="done"), done=End(COMPLETE)
    )
    run = twice.start({})
    worker.run()
    assert flows.signal("v1", "t.vote", key="k").answer == "accepted"
    assert parts(run) == [("vote:k", True, False), ("vote:k#2", False, True)]
    assert flows.signal("v1", "t.vote", key="k").answer == "already"
    assert flows.signal("v2", "t.vote", key="k").answer == "accepted"
    worker.run()
    assert status(run)[0] == "complete"
    early = twice.start({})
    flows.signal("v3", "t.vote", key="k")
    flows.signal("v4", "t.vote", key="k")
    flows.signal("v5", "t.vote", key="k")
    worker.run()
    assert status(early)[0] == "complete"
    assert Event.objects.get(event_id="v5").workflow_id is None


def test_one_event_for_a_wait_of_its_own_and_for_a_part(worker: LocalWorker, flow: Any) -> None:
    several = flow(1).start({"docs": ["a"]})
    ask = factories.Ask.start({"key": "a"})
    again = flow(1).start({"docs": ["a"]})
    worker.run()
    received = flows.signal("d-a", "t.doc", key="a")
    assert set(received.woken) == {several.id, again.id}
    worker.run()
    assert {status(several)[0], status(again)[0]} == {"complete"}
    assert status(ask)[0] == "waiting"


def test_an_expired_wait_closes_its_parts_and_what_comes_then_is_kept(worker: LocalWorker, flow: Any, clock: Clock) -> None:
    run = flow().start({"docs": ["a"]})
    worker.run()
    flows.signal("e-x", "t.data", key="x")
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "both")
    assert not Part.objects.filter(open=True).exists()
    received = flows.signal("d-a", "t.doc", key="a")
    assert (received.answer, received.place) == ("kept", "between")
    flows.resume(run)
    worker.run()
    assert [part for part in parts(run) if part[2]] == [("t.data", False, True)], (
        "the document is there, the data must come again"
    )
    flows.signal("e-y", "t.data", key="x")
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize("end", ["cancel", "supersede"])
def test_the_end_of_the_run_closes_its_parts(worker: LocalWorker, flow: Any, end: str) -> None:
    run = flow().start({"docs": ["a"]})
    worker.run()
    flows.cancel(run) if end == "cancel" else flows.supersede(run, goal="another")
    assert not Part.objects.filter(open=True).exists()
    received = flows.signal("e-x", "t.data", key="x")
    assert (received.answer, received.woken, received.place) == ("kept", (), "ended" if end == "cancel" else "superseded")


def test_a_pause_keeps_what_comes(worker: LocalWorker, flow: Any) -> None:
    flows.signal("d-a", "t.doc", key="a")
    run = flow().start({"docs": ["a"]})
    worker.run()
    flows.pause(run)
    assert flows.signal("e-x", "t.data", key="x").answer == "accepted"
    assert (status(run)[0], worker.run()) == ("paused", 0)
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"


def test_so_many_parts_that_cannot_be_stop_the_run(worker: LocalWorker, flow: Any) -> None:
    run = flow().start({"docs": [str(number) for number in range(100)]})
    worker.run()
    assert (*status(run), flows.get(run).error_code) == ("waiting", "HUMAN_REQUIRED", "both", "DEFINITION_FAULT")


def test_a_wait_for_a_hundred(worker: LocalWorker, flow: Any) -> None:
    keys = [str(number) for number in range(99)]
    for key in keys[:50]:
        flows.signal(f"d-{key}", "t.doc", key=key)
    run = flow().start({"docs": keys})
    worker.run()
    for key in keys[50:]:
        flows.signal(f"d-{key}", "t.doc", key=key)
    assert status(run)[0] == "waiting"
    flows.signal("e-x", "t.data", key="x")
    worker.run()
    assert status(run)[0] == "complete"


def test_what_it_lacks_is_said(worker: LocalWorker, flow: Any) -> None:
    run = flow().start({"docs": ["a"]})
    worker.run()
    flows.signal("d-a", "t.doc", key="a")
    (wait,) = flows.describe(run).waits
    assert (wait.reason, wait.answered) == ("waiting for all of t.data x, t.doc a: 1 of 2 have come, t.data x has not", False)


def test_a_migration_takes_it_over_only_where_it_waits_for_the_same(worker: LocalWorker, declare: Any) -> None:
    def made(number: int, *events: On) -> Any:
        nodes = {"both": Wait(all=list(events), deadline=END, then="done"), "done": End(COMPLETE)}
        return version(declare, "t-several-moved", number, nodes, migrate_from={number - 1: {}} if number > 1 else {})

    one = made(1, On("t.m1", key="k"), On("t.m2", key="k"))
    run = one.start({})
    worker.run()
    flows.signal("m1", "t.m1", key="k")
    made(2, On("t.m1", key="k"), On("t.m2", key="k"))
    assert flows.migrate(run, to=2)
    worker.run()
    assert (WaitRow.objects.count(), WaitRow.objects.get().got) == (1, 1)
    made(3, On("t.m1", key="k"), On("t.m3", key="k"))
    assert flows.migrate(run, to=3)
    worker.run()
    assert [part.event_type for part in Part.objects.filter(open=True).order_by("number")] == ["t.m1", "t.m3"]
    for number in (1, 3):
        flows.signal(f"n{number}", f"t.m{number}", key="k")
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize("dies", [("before", "park"), ("after", "park"), ("within", "open parts"), ("within", "early event")])
def test_a_park_on_parts_is_whole_or_not_there(
    worker: LocalWorker, flow: Any, dies: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flows.signal("d-a", "t.doc", key="a")
    run = flow().start({"docs": ["a"]})
    owned = factories.take_one(worker)
    dead: list[str] = []

    def seam(when: str, name: str) -> None:
        if (when, name) == dies and not dead:
            dead.append(name)
            raise SystemExit

    monkeypatch.setattr(sql, "seam", seam)
    with pytest.raises(SystemExit):
        factories.enter(owned, factories.LET_GO)
    monkeypatch.setattr(sql, "seam", None)
    committed = dies[0] == "after"
    assert Part.objects.exists() == committed
    assert Event.objects.get().status == ("consumed" if committed else "pending")
    factories.lose(worker)
    worker = factories.another_worker()
    worker.run()
    flows.signal("e-x", "t.data", key="x")
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize("statement", ["record event", "fill parts", "wake filled"])
def test_a_fill_is_whole_or_not_there(worker: LocalWorker, flow: Any, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = flow(1).start({"docs": ["a"]})
    worker.run()

    def seam(when: str, name: str) -> None:
        if (when, name) == ("within", statement):
            raise SystemExit

    monkeypatch.setattr(sql, "seam", seam)
    with pytest.raises(SystemExit):
        flows.signal("d-a", "t.doc", key="a")
    monkeypatch.setattr(sql, "seam", None)
    assert not Event.objects.exists()
    assert (WaitRow.objects.get().got, status(run)[0]) == (0, "waiting")
    assert flows.signal("d-a", "t.doc", key="a").answer == "accepted"
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.req("E2")
def test_the_end_of_a_child_that_nobody_waits_for_is_one_of_several(worker: LocalWorker, declare: Any) -> None:
    kid = declare("t-kid", one=Activity(factories.work, then="done"), done=End(COMPLETE, result=lambda state: 7))
    nodes = {
        "kid": flows.Child(kid, wait=False, then="both"),
        "both": Wait(all=[On.ended("kid"), On("t.data", key="x")], deadline=END, then="done"),
        "done": End(COMPLETE, result=lambda state: state.results["both"]["value"]["kid"]["result"]),
    }
    run = declare("t-parent-of-kid", **nodes).start({})
    for _ in range(3):
        worker.tick()
        worker.run()
    assert status(run) == ("waiting", "WAITING", "both")
    flows.signal("e-x", "t.data", key="x")
    worker.run()
    assert (status(run)[0], result(run)) == ("complete", 7)
