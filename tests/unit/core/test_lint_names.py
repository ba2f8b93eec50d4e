"""Mistakes about names: what the record knows by its name is one visible word that every column can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.commitments import Commits
from flows.core.definition import Definition
from flows.core.effects import Effect
from flows.core.nodes import COMPLETE, Activity, Decision, End, Pipeline, Step
from flows.core.policies import BREACH, Deadline
from flows.core.requirements import Fresh, Gate
from tests.support.flow_values import declare, work
from tests.unit.core.test_lint import ids

pytestmark = pytest.mark.req("G5")

SOON = Deadline(hours=1, then=BREACH)
DONE = End(COMPLETE)

PLACES: dict[str, Callable[[str], Definition]] = {
    "the SLA": lambda name: declare(one=Activity(work, then="done"), done=DONE, meta={"sla": {name: SOON}}),
    "what must be fresh,": lambda name: declare(
        propose=Decision(work, choices={"go": "act"}),
        act=Activity(work, gate=Gate(fresh={name: Fresh(work)}), then="done"),
        done=DONE,
    ),
    "the commitment": lambda name: declare(one=Activity(work, commits=(Commits("held"), Commits(name)), then="done"), done=DONE),
    "the effect": lambda name: declare(one=Activity(work, effects={name: Effect(idempotent=True)}, then="done"), done=DONE),
    "the step": lambda name: declare(one=Pipeline(Step("a", work), Step(name, work), then="done"), done=DONE),
    "the node": lambda name: declare(**{name: Activity(work, then="done"), "done": DONE}),
}


@pytest.mark.parametrize(
    "name", [" ", "x ", " x", "a b", "x\n", "x\x00", "\ud800", "x\u200b", "\u202e", "x" * 101, "-x", "<b>"], ids=repr
)
@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_cannot_be_recorded(place: str, name: str) -> None:
    definition = PLACES[place](name)
    assert "E039" in ids(definition)
    (found,) = [one for one in lint.problems(definition) if one.id.endswith("E039")]
    assert found.message.lower().startswith(f"{place.lower()} {name!r}"[:110].lower())
    assert found.hint


@pytest.mark.parametrize("name", ["x", "answer", "é" * 90, "node:x", "deadline", "time-to-answer", "repo/main@v1.2", "2nd", "名"])
@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_can(place: str, name: str) -> None:
    assert "E039" not in ids(PLACES[place](name))


def test_an_sla_alone_needs_no_name() -> None:
    meta: Any = {"sla": SOON}
    assert "E039" not in ids(declare(one=Activity(work, then="done"), done=DONE, meta=meta))
