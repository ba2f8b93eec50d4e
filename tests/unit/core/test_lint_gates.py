"""Mistakes about gates: what is asked for can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.commitments import Commits
from flows.core.definition import Definition
from flows.core.lint import PREFIX
from flows.core.nodes import COMPLETE, Activity, Approval, Decision, End, Sleep
from flows.core.policies import ESCALATE, Deadline
from flows.core.requirements import Competence, Fresh, Gate
from flows.core.spans import hours
from tests.support.flow_values import declare, work
from tests.unit.core.test_lint import ids

pytestmark = pytest.mark.req("G5", "H1")


def other(attempt: Any) -> str:
    return "v2"


def gated(gate: Gate, *, verifies: str = "propose", decides: bool = True, **options: Any) -> Definition:
    first = Decision(work, choices={"go": "check"}) if decides else Activity(work, then="check")
    return declare(
        propose=first,
        check=Activity(work, verifies=verifies, commits=Commits("window"), then="act"),
        act=Activity(work, gate=gate, then="done", **options),
        done=End(COMPLETE),
    )


def asked(**options: Any) -> Definition:
    due = Deadline(hours=1, then=ESCALATE)
    return declare(
        propose=Decision(work, choices={"go": "check"}),
        check=Activity(work, verifies="propose", then="ask"),
        ask=Approval(candidate="propose", role="r", expires=due, approved="act", denied="done", **options),
        act=Activity(work, gate=Gate(verified_by="check", approved_by="ask"), then="done"),
        done=End(COMPLETE),
    )


SOUND = Gate(
    verified_by="check",
    fresh={"main": work},
    authority="app.act",
    competence=Competence("propose", 3),
    commitments="window",
    placement="eu",
)

WRONG: list[tuple[str, Callable[[], Definition], str]] = [
    (
        "E071",
        lambda: declare(nap=Sleep(hours(1), gate=Gate(authority="app.act"), then="done"), done=End(COMPLETE)),
        "Node 'nap' asks for authority but runs no activity.",
    ),
    ("E072", lambda: gated(Gate(verified_by="propose")), "Node 'act': verified_by='propose' verifies nothing."),
    ("E072", lambda: gated(Gate(verified_by="nobody")), "Node 'act': verified_by='nobody' verifies nothing."),
    ("E072", lambda: gated(Gate(), verifies="done"), "Node 'check': verifies='done' is not a node with a candidate."),
    (
        "E072",
        lambda: declare(
            propose=Decision(work, choices={"go": "judge"}),
            judge=Decision(work, verifies="propose", choices={"go": "done"}),
            done=End(COMPLETE),
        ),
        "Node 'judge' decides, so it verifies nothing: verifies='propose'.",
    ),
    (
        "E073",
        lambda: declare(
            propose=Decision(work, choices={"go": "act"}),
            act=Activity(work, gate=Gate(fresh={"main": work}), then="again"),
            again=Activity(work, gate=Gate(fresh={"main": other}), then="done"),
            done=End(COMPLETE),
        ),
        "Node 'again': fresh 'main' is looked at by another probe elsewhere.",
    ),
    ("E020", lambda: gated(Gate(fresh={"main": "no path"})), "Node 'act', fresh 'main': 'no path' is not a dotted path."),
    (
        "E074",
        lambda: declare(act=Activity(work, gate=Gate(fresh={"main": work}), then="done"), done=End(COMPLETE)),
        "Node 'act' wants main fresh, and nobody looks at it before.",
    ),
    ("E075", lambda: gated(Gate(commitments="door")), "Node 'act' stands on the commitment 'door', which no node begins."),
    (
        "E076",
        lambda: gated(Gate(competence=Competence("act", 3))),
        "Node 'act': nobody verifies 'act', so nothing closes its envelope.",
    ),
    (
        "E076",
        lambda: declare(
            propose=Decision(work, choices={"go": "check"}),
            check=Activity(work, verifies="propose", then="act"),
            act=Activity(work, gate=Gate(competence=Competence("propose", 3)), then="again"),
            again=Activity(work, gate=Gate(competence=Competence("propose", 4)), then="done"),
            done=End(COMPLETE),
        ),
        "Node 'again' allows another number of errors of 'propose' than elsewhere.",
    ),
    (
        "E080",
        lambda: asked(subset="files"),
        "Node 'act' wants a verification, and 'ask' lets reviewers keep a part of the candidate.",
    ),
    ("W003", lambda: gated(Gate(placement="eu")), "Node 'act': its gate wants the placement 'eu', and any worker may take it."),
    (
        "W003",
        lambda: gated(Gate(placement="eu"), placement="us"),
        "Node 'act': its gate wants the placement 'eu', and any worker",
    ),
]


def test_a_gate_that_asks_for_everything_is_sound() -> None:
    assert ids(gated(SOUND, placement="eu")) == []
    assert ids(asked()) == []


@pytest.mark.parametrize(("id_", "make", "message"), WRONG, ids=[f"{one[0]} {index}" for index, one in enumerate(WRONG)])
def test_each_mistake_is_named(id_: str, make: Callable[[], Definition], message: str) -> None:
    found = lint.problems(make())
    assert [one.id for one in found] == [PREFIX + id_]
    assert message in found[0].message
    assert found[0].hint


@pytest.mark.parametrize(
    "make", [lambda: Fresh(work, within=hours(0)), lambda: Fresh(work, reuse=hours(-1)), lambda: Competence("propose", -1)]
)
def test_a_policy_that_makes_no_sense_is_refused_when_it_is_made(make: Callable[[], Any]) -> None:
    from flows.core.errors import DefinitionError

    with pytest.raises(DefinitionError):
        make()
