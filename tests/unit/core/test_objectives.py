"""Objectives: what cannot be promised is said where it is written, and what nothing can miss is found."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flows import COMPLETE, ESCALATE, Activity, Approval, Deadline, End, Objectives, hours, seconds
from flows.core import lint
from flows.errors import DefinitionError
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("Q1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "promises nothing"),
        ({"complete_within": 4}, r"Write Objectives\(complete_within=hours\(4\)\)"),
        ({"wake_within": seconds(0)}, "needs a positive span"),
        ({"answered_within": seconds(-1)}, "needs a positive span"),
        ({"complete_within": timedelta(days=10**6)}, "a hundred years"),
        ({"complete_within": hours(1), "share": 0}, "more than 0, and 1 at most"),
        ({"complete_within": hours(1), "share": 1.5}, "more than 0, and 1 at most"),
        ({"complete_within": hours(1), "share": float("nan")}, "more than 0, and 1 at most"),
        ({"complete_within": hours(1), "share": "most"}, "share=0.95"),
        ({"complete_within": hours(1), "share": True}, "share=0.95"),
    ],
)
def test_what_cannot_be_promised(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        Objectives(**options)


def test_what_is_promised_in_seconds() -> None:
    given = Objectives(complete_within=hours(4), wake_within=seconds(5), answered_within=hours(8))
    assert dict(given.spans()) == {"complete": 14400.0, "wake": 5.0, "answer": 28800.0}
    assert dict(Objectives(wake_within=seconds(0.5), share=1).spans()) == {"wake": 0.5}


def found(objectives: Any, **meta: Any) -> list[str]:
    nodes = {"first": Activity(work, then="done"), "done": End(COMPLETE)}
    flow = declare({"objectives": objectives, **meta}, **nodes)
    return [one.id.removeprefix(lint.PREFIX) for one in lint.problems(flow)]


def test_what_nothing_can_miss_is_found() -> None:
    day = Deadline(days=1, then=ESCALATE)
    assert found(Objectives(complete_within=hours(4)), deadline=day) == []
    assert found(Objectives(complete_within=hours(40)), deadline=day) == ["W007"]
    assert found(Objectives(answered_within=hours(4))) == ["W007"]
    assert found("four hours") == ["E027"]


def test_where_people_are_asked_answers_may_be_promised() -> None:
    nodes = {
        "first": Activity(work, then="ask"),
        "ask": Approval(candidate="first", role="r", expires=Deadline(hours=9, then=ESCALATE), approved="done", denied="done"),
        "done": End(COMPLETE),
    }
    flow = declare({"objectives": Objectives(answered_within=hours(8))}, **nodes)
    assert [one.id for one in lint.problems(flow)] == []
