"""Mistakes about deadlines: each id is found where the mistake is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.commitments import Commits
from flows.core.definition import Definition
from flows.core.lint import PREFIX
from flows.core.nodes import COMPLETE, Activity, Decision, End, Sleep, Wait, Window
from flows.core.policies import BREACH, DEGRADE, ESCALATE, HUMAN, RELEASE, Deadline, Visits
from flows.core.requirements import Fresh, Gate
from flows.core.spans import hours
from tests.support.flow_values import declare, work
from tests.unit.core.test_lint import DEADLINES, activity, event, ids, sound

pytestmark = pytest.mark.req("G5", "L1")

END = {"deadline": Deadline(days=1, then=ESCALATE)}


def due(then: Any, **options: Any) -> Deadline:
    return Deadline(hours=1, then=then, **options)


def holding(meta: dict[str, Any], **options: Any) -> Definition:
    commits = Commits("w", release=work, **options)
    return declare(meta, first=Activity(work, commits=commits, then="done"), done=End(COMPLETE))


def fresh(*then: Any, bounded: Any = True) -> Definition:
    """A decision, a pause, and nodes whose gates want it fresh, each with its own `then`."""
    gated = {
        f"act{number}": Activity(
            work,
            gate=Gate(fresh={"main": Fresh(work, within=hours(1), then=one)}),
            then=f"act{number + 1}" if number + 1 < len(then) else "done",
        )
        for number, one in enumerate(then)
    }
    look = Decision(work, choices={"a": "nap"}, visits=Visits(3, "done") if bounded else None)
    return declare(look=look, nap=Sleep(hours(9), then="act0"), **gated, done=End(COMPLETE))


WRONG: list[tuple[str, Callable[[], Definition], str, str]] = [
    ("E027", lambda: declare({"sla": hours(3)}), "Meta.sla is datetime.timedelta", "sla = Deadline("),
    ("E027", lambda: declare({"sla": {"answer": 3}}), "Meta.sla has 'answer': 3", "sla = Deadline("),
    ("E006", lambda: declare({"sla": due("nowhere")}), "Meta.sla leads to 'nowhere'", ""),
    ("E006", lambda: fresh("nowhere"), "Freshness of 'main' leads to 'nowhere'", ""),
    ("E006", lambda: event(deadline=due(RELEASE, to="nowhere")), "Node 'first' (deadline) leads to 'nowhere'", ""),
    ("E012", lambda: fresh("look", bounded=False), "The nodes look, nap, act0 lead round in a cycle", "visits="),
    (
        "E036",
        lambda: holding({}, deadline=due(RELEASE, to="done")),
        "Node 'first': the deadline of the commitment 'w' leads to 'done'.",
        "",
    ),
    ("E051", lambda: holding({}, deadline=due(HUMAN)), "Node 'first', the commitment 'w': then='human'", "breach, cancel"),
    ("E051", lambda: sound(ask=_approval(BREACH)), "Node 'ask', expires: then='breach' is no policy", "escalate"),
    ("E052", lambda: declare({"deadline": due(RELEASE)}), "Meta.deadline: RELEASE finds nothing", "commits="),
    ("E052", lambda: declare({"sla": {"a": due(DEGRADE)}}), "Meta.sla 'a': DEGRADE finds nothing", "optional=True"),
    (
        "E052",
        lambda: activity(commits=Commits("w", deadline=due(RELEASE))),
        "Node 'first', the commitment 'w': RELEASE, and it has no release=.",
        "",
    ),
    ("E053", lambda: event(deadline=due(BREACH)), "Node 'first', deadline: after breach it goes on waiting", "Meta: deadline"),
    (
        "E087",
        lambda: event(deadline=Deadline(business=hours(1), then=ESCALATE)),
        "Node 'first', deadline: business= without calendar=.",
        "business=hours(8)",
    ),
    (
        "E087",
        lambda: event(deadline=Deadline(hours=1, calendar="office", then=ESCALATE)),
        "Node 'first', deadline: calendar= without business=.",
        "Name both",
    ),
    (
        "E087",
        lambda: declare(first=Sleep(business=hours(1), then="done"), done=End(COMPLETE)),
        "Node 'first': business= without calendar=.",
        "",
    ),
    ("E054", lambda: fresh("look", ESCALATE), "Node 'act1': the freshness budget 'main' is another one at 'act0'.", "once"),
]

RIGHT: list[tuple[str, Callable[[], Definition]]] = [
    ("E051", lambda: holding({}, deadline=due(BREACH))),
    ("E051", lambda: holding({}, deadline=due(RELEASE))),
    ("E052", lambda: holding({"deadline": due(RELEASE)})),
    ("E052", lambda: declare({"sla": due(DEGRADE)}, first=Activity(work, optional=True, then="done"), done=End(COMPLETE))),
    ("E052", lambda: declare({"sla": due(DEGRADE, to="done")})),
    (
        "E053",
        lambda: declare(END, first=Wait("e", key="k", then="done", deadline=due(BREACH)), done=End(COMPLETE)),
    ),
    ("E054", lambda: fresh(ESCALATE, ESCALATE)),
    ("E087", lambda: event(deadline=Deadline(business=hours(1), calendar="office", then=ESCALATE))),
    ("E087", lambda: declare(first=Sleep(business=hours(1), calendar="office", then="done"), done=End(COMPLETE))),
    ("E087", lambda: declare(first=Sleep(until=Window("office"), then="done"), done=End(COMPLETE))),
    ("E054", lambda: fresh("look", "")),
]


def _approval(then: Any) -> Any:
    from tests.unit.core.test_lint import approval

    return approval(expires=due(then))


@pytest.mark.parametrize(("code", "make", "message", "hint"), WRONG, ids=[f"{case[0]}-{n}" for n, case in enumerate(WRONG)])
def test_each_mistake_is_found_once_with_its_way_out(code: str, make: Callable[[], Definition], message: str, hint: str) -> None:
    found = [one for one in lint.problems(make()) if one.id == PREFIX + code]
    assert len(found) == 1, lint.problems(make())
    assert found[0].message.startswith(message)
    assert hint in found[0].hint
    assert found[0].hint


@pytest.mark.parametrize(("code", "make"), RIGHT, ids=[f"{case[0]}-{n}" for n, case in enumerate(RIGHT)])
def test_what_is_close_to_a_mistake_and_none_is_not_reported(code: str, make: Callable[[], Definition]) -> None:
    assert ids(make()) == []


def test_every_id_has_a_case_of_each_kind() -> None:
    assert {case[0] for case in WRONG} >= DEADLINES == {case[0] for case in RIGHT}
