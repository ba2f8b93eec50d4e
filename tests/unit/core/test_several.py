"""A wait for several events: what its parts are, what it makes of them, and what the checks say of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import flows
from flows import ESCALATE, Deadline, On, Wait, hours
from flows.core import lint
from flows.core.definition import DECLARED
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Park, Suspend
from flows.core.state import State, WaitState, Woken

END = Deadline(hours=1, then=ESCALATE)
STATE = State("w", "f", 1, "k", "both", {"keys": ["a", "b"]}, datetime(2026, 1, 1, tzinfo=UTC), results={"kid": {"id": "c-1"}})


def wait(**options: Any) -> Wait:
    made = Wait(deadline=END, **{"then": "done", **options})
    object.__setattr__(made, "name", "both")
    return made


def parts(node: Wait) -> list[tuple[str, ...]]:
    move = node.enter(STATE)
    assert isinstance(move, Park)
    return [tuple(part) for part in move.parts]


def test_a_list_of_keys_is_so_many_parts_and_names_are_told_apart() -> None:
    node = wait(all=[On("t.data", key="x"), On("t.doc", key=lambda state: state.input["keys"], name="doc"), On.ended("kid")])
    assert parts(node) == [
        ("t.data", "t.data", "x"),
        ("doc:a", "t.doc", "a"),
        ("doc:b", "t.doc", "b"),
        ("kid", "workflow.ended", "c-1"),
    ]
    move = node.enter(STATE)
    assert isinstance(move, Park)
    assert (move.need, move.event_type, move.keys, move.kind) == (4, "", (), "event")
    assert move.reason == "waiting for all of t.data x, t.doc a, t.doc b and 1 more"
    assert move.deadline == hours(1)
    assert parts(wait(any=[On("t.data", key=["x", "x"])])) == [("t.data:x", "t.data", "x"), ("t.data:x#2", "t.data", "x")]


@pytest.mark.parametrize(
    "options",
    [
        {"any": [On("t.a", key=lambda state: [])]},
        {"any": [On("t.a", key=lambda state: ["a"])], "need": 2},
        {"any": [On("t.a", key=lambda state: [""])]},
        {"any": [On("t.a", key=lambda state: None)]},  # type: ignore[arg-type,return-value]
        {"any": [On("t.a", key=lambda state: [str(number) for number in range(101)])]},
        {"any": [On.ended("nobody")]},
    ],
)
def test_what_no_wait_can_be_made_of_stops_the_run(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        wait(**options).enter(STATE)


EVIDENCE = {
    "id": "e2",
    "events": [
        {"name": "doc", "id": "e1", "type": "t.doc", "key": "a", "payload": {"n": 1}},
        {"name": "t.data", "id": "e2", "type": "t.data", "key": "x", "payload": {"n": 2}},
    ],
}
HEARD = replace(STATE, wait=WaitState(1, "both", "event", 1, EVIDENCE))


def test_its_result_has_the_payloads_by_name_or_what_read_makes_of_them() -> None:
    listed = [
        {"name": "doc", "id": "e1", "type": "t.doc", "key": "a"},
        {"name": "t.data", "id": "e2", "type": "t.data", "key": "x"},
    ]
    node = wait(any=[On("t.data", key="x"), On("t.doc", key="a", name="doc")], need=2)
    assert node.result(HEARD) == {"value": {"doc": {"n": 1}, "t.data": {"n": 2}}, "events": listed}
    assert node.resume(HEARD, Woken()) == Goto("done")
    first = replace(node, read=lambda state: state.events[0]["id"], choices={"e1": "one"}, then="")
    object.__setattr__(first, "name", "both")
    assert (first.result(HEARD) or {})["value"] == "e1"
    assert first.resume(HEARD, Woken()) == Goto("one")
    other = replace(first, choices={"e9": "one"})
    object.__setattr__(other, "name", "both")
    assert isinstance(other.resume(HEARD, Woken()), Suspend)


def test_a_wait_for_one_event_has_the_fingerprint_that_it_had() -> None:
    assert wait(event="t.a", key="k").shape() == {
        "kind": "event",
        "targets": [["", "done"], *([list(END.target)] if END.target else [])],
        "gate": None,
        "event": "t.a",
    }
    assert wait(any=[On("t.a", key="k")]).shape()["events"] == [["t.a", "t.a"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"any": "t.a"}, "no list"),
        ({"any": ["t.a"]}, "no On"),
        ({"any": [On("", key="k")]}, "without a type"),
        ({"any": [On("t.a")]}, "without a key"),
        ({"any": [On("t.a", key=[])]}, "without a key"),
        ({"any": [On("t.a", key="k")], "all": [On("t.b", key="k")]}, "any= and all="),
        ({"any": [On("t.a", key="k")], "event": "t.b", "key": "k"}, "one event, and for several"),
        ({"any": [On("t.a", key="k")], "need": 2}, "needs 2 events, and 1 may come"),
        ({"any": [On("t.a", key="k")], "need": 0}, "needs 0 events"),
        ({"all": [On("t.a", key="k"), On("t.b", key="k")], "need": 2}, "says nothing there"),
        ({"event": "t.a", "key": "k", "need": 2}, "need= is said of any="),
        ({"any": [On("t.a", key="k"), On("t.a", key="q")]}, "two events with the name 't.a'"),
        ({"any": [On("t.a", key=[str(number) for number in range(101)])]}, "100 are the most"),
    ],
)
def test_the_checks_find_what_cannot_be(options: dict[str, Any], said: str) -> None:
    problems = [one for one in found(options) if one.id.endswith("E081")]
    assert [said in one.message for one in problems] == [True], problems


def test_what_can_be_is_not_complained_about() -> None:
    events = [On("t.a", key="k"), On("t.b", key=lambda state: ["k"])]
    assert found({"any": events, "need": 2}) == found({"all": events}) == []


def test_a_wait_for_several_needs_an_end_too() -> None:
    assert [one.id[-4:] for one in found({"any": [On("t.a", key="k")], "deadline": None})] == ["E009"]


def found(options: dict[str, Any]) -> list[lint.Problem]:
    class Several(flows.Flow):
        class Meta:
            name = "t-several-checked"

        both = Wait(**{"deadline": END, "then": "done", **options})
        done = flows.End(flows.COMPLETE)

    DECLARED.remove(Several)
    return lint.problems(Several.definition)


@pytest.mark.parametrize(
    ("by", "codes"),
    [
        (flows.StartedBy("t.a", key=lambda event: event["key"], user="ops"), []),
        (flows.StartedBy("", key=lambda event: "k", user="ops"), ["E083"]),
        (flows.StartedBy("t.a", key=lambda event: "k", user=""), ["E083"]),
        (flows.StartedBy("t.a", key=None, user="ops"), ["E083"]),  # type: ignore[arg-type]
        (flows.StartedBy("t.a", key="k", user="ops"), ["E021"]),  # type: ignore[arg-type]
        (flows.StartedBy("t.a", key=lambda event: "k", user="ops", input=lambda: None), ["E022"]),  # type: ignore[arg-type,misc]
        ("t.a", ["E027"]),
    ],
)
def test_what_an_event_begins_has_a_user_and_a_key(by: Any, codes: list[str]) -> None:
    class Begun(flows.Flow):
        class Meta:
            name = "t-begun-checked"
            started_by = by

        done = flows.End(flows.COMPLETE)

    DECLARED.remove(Begun)
    assert [one.id[-4:] for one in lint.problems(Begun.definition)] == codes
