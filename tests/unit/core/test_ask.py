"""The Ask node: what it asks, where an answer leads, and the mistakes in writing one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import canonical, graph, lint
from flows.core.definition import Definition
from flows.core.errors import DefinitionError
from flows.core.fields import Field
from flows.core.moves import Goto, Park, Rest, Suspend
from flows.core.nodes import COMPLETE, Activity, Approval, Ask, End, Escalation
from flows.core.nodes.ask import ASK_EXPIRED
from flows.core.nodes.base import Node
from flows.core.policies import BREACH, ESCALATE, Deadline
from flows.core.requirements import Gate
from flows.core.spans import hours
from flows.core.state import Woken
from tests.support.flow_values import declare, state, wait, work

pytestmark = pytest.mark.req("C6", "G5")

DUE = Deadline(hours=1, then=ESCALATE)
AMOUNT = Field("amount", kind="integer")
WAY = Field("way", kind="choice", choices=["left", "right"])


def ask(form: Any = (AMOUNT,), **options: Any) -> Ask:
    made = Ask(list(form) if isinstance(form, tuple) else form, **{"role": "r", "deadline": DUE, "then": "done", **options})
    object.__setattr__(made, "name", "ask")
    return made


def test_it_asks_for_a_form_with_its_digest() -> None:
    move = ask(why="Because.", reminders=[hours(1)], escalation=[Escalation("m", hours=2)]).enter(state("ask"))
    assert isinstance(move, Park)
    assert (move.kind, move.reason, move.deadline, move.on_expiry) == ("ask", "waiting for an answer of r", hours(1), "escalate")
    asked, body = move.detail["candidate"], {"choice": "", "value": {"why": "Because.", "fields": [AMOUNT.frozen]}}
    assert asked == {**body, "evidence": None, "digest": canonical.digest(body), "revision": 1}
    assert move.detail["steps"] == [{"name": "r", "need": 1, "audience": {"role": "r"}}]
    assert (move.detail["answers"], move.detail["self_approval"], move.detail["bulk"]) == (["answered"], True, False)
    assert (move.detail["reminders"], move.detail["escalation"]) == ([3600.0], [{"after": 7200.0, "audience": {"role": "m"}}])


def test_other_words_are_another_question_and_other_people_another_ladder() -> None:
    def digest(**options: Any) -> tuple[str, str]:
        detail: Any = ask(**options).enter(state("ask")).detail  # type: ignore[union-attr]
        return detail["candidate"]["digest"], detail["ladder"]

    form, ladder = digest()
    assert digest(why="x")[0] != form
    assert digest(form=[Field("amount", kind="integer", help="In euros.")])[0] != form
    assert digest(role="others") == (form, digest(role="others")[1])
    assert digest(role="others")[1] != ladder


def test_its_shape_is_what_is_asked_for_and_not_in_which_words() -> None:
    assert ask().shape() == ask(form=(Field("amount", kind="integer", label="How much?"),), why="x").shape()
    assert ask().shape() != ask(form=(Field("amount"),)).shape()
    assert ask().shape() != ask(role="others").shape()


@pytest.mark.parametrize(
    ("node", "answer", "leads"),
    [
        (ask(), {"amount": 3}, Goto("done")),
        (ask((WAY,), route_by="way", then="", choices={"left": "a", "right": "b"}), {"way": "right"}, Goto("b")),
        (ask((WAY,), route_by="way", choices={"left": "a", "right": "b"}), {"way": None}, Goto("done")),
    ],
)
def test_an_answer_leads_on(node: Ask, answer: Any, leads: Any) -> None:
    given = {"answer": answer, "by": "rita", "request": "7"}
    at = state("ask", wait=wait("ask", "ask", given))
    assert node.resume(at, Woken()) == leads
    assert node.result(at) == given


def test_a_choice_that_is_no_longer_declared_is_a_persons_business() -> None:
    node = ask((WAY,), route_by="way", then="", choices={"left": "a", "right": "b"})
    at = state("ask", wait=wait("ask", "ask", {"answer": {"way": "up"}, "by": "rita", "request": "7"}))
    move = node.resume(at, Woken())
    assert isinstance(move, Suspend)
    assert move.code == "UNDECLARED_CHOICE"


def test_without_an_answer_it_rests_until_its_deadline() -> None:
    assert ask().resume(state("ask", wait=wait("ask", "ask")), Woken()) == Rest()
    move = ask().resume(state("ask", wait=wait("ask", "ask", due=True)), Woken())
    assert isinstance(move, Suspend)
    assert move.code == ASK_EXPIRED
    assert ask(deadline=Deadline(hours=1, then="done")).resume(state("ask", wait=wait("ask", "ask", due=True)), Woken()) == Goto(
        "done"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"form": lambda state: "ab"}, "a list of fields"),
        ({"form": lambda state: []}, "0 fields"),
        ({"form": lambda state: [AMOUNT], "route_by": "way"}, "no field of kind"),
        ({"form": lambda state: [WAY], "route_by": "way", "choices": {"left": "done"}}, "no route for the choice 'right'"),
        ({"why": lambda state: 5}, "why= of ask ask"),
        ({"why": lambda state: "x" * 2001}, "why= of ask ask"),
        ({"to": lambda state: "", "role": ""}, "user name"),
    ],
)
def test_what_a_function_makes_is_looked_at_before_anybody_is_asked(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        ask(**options).enter(state("ask"))


# ---------------------------------------------------------------------- mistakes


def one(node: Node, **more: Any) -> Definition:
    return declare(ask=node, **more, done=End(COMPLETE))


def fresh(form: Any = (AMOUNT,), **options: Any) -> Ask:
    return Ask(list(form) if isinstance(form, tuple) else form, **{"role": "r", "deadline": DUE, "then": "done", **options})


ROUTES = {"left": "done", "right": "done"}

CASES: list[tuple[str, Callable[[], Any], str]] = [
    ("E079", lambda: fresh(form="ab"), "its form is 'ab'"),
    ("E079", lambda: fresh(form=[]), "its form has 0 fields"),
    ("E079", lambda: fresh(form=(AMOUNT, AMOUNT)), "its form has amount more than once"),
    ("E079", lambda: fresh(why=5), "why is 5"),
    ("E079", lambda: fresh(then="", choices=ROUTES), "has choices= and no route_by="),
    ("E079", lambda: fresh(then="", route_by="way", choices=ROUTES), "has route_by='way', which is no field"),
    ("E079", lambda: fresh((WAY,), then="", route_by="way", choices={"left": "done"}), "no route for the choice 'right'"),
    (
        "E079",
        lambda: fresh((Field("way", kind="choice", choices=["left"], required=False),), then="", route_by="way",
                      choices={"left": "done"}),
        "no then= for an answer without way",
    ),
    ("E030", lambda: fresh((WAY,), then="", route_by="way", choices={**ROUTES, "up": "done"}), "way is never 'up'"),
    ("E030", lambda: fresh((WAY,), route_by="way", choices=ROUTES), "has then= though way is always given"),
    ("E010", lambda: fresh(then=""), "does not say what comes next"),
    ("E011", lambda: fresh((WAY,), then="", route_by="way", choices={"left": "done", "right": ""}), "leads to ''"),
    ("E006", lambda: fresh(then="nowhere"), "leads to 'nowhere'"),
    ("E009", lambda: fresh(deadline=None), "may wait for ever"),
    ("E051", lambda: fresh(deadline=Deadline(hours=1, then=BREACH)), "no policy of a deadline of its kind (ask)"),
    ("E078", lambda: fresh(role=""), "asks nobody"),
    ("E078", lambda: fresh(permission="release"), "cannot ask"),
    ("E078", lambda: fresh(reminders=[hours(0)]), "has a reminder"),
    ("E078", lambda: fresh(escalation=["m"]), "has 'm' in escalation="),
    ("E027", lambda: fresh(route_by=3), "route_by is 3"),
    ("E027", lambda: fresh(self_answer="no"), "self_answer is 'no'"),
    ("E021", lambda: fresh(to="rita"), "must be a plain function"),
    ("E022", lambda: fresh(form=lambda: [AMOUNT]), "cannot be called so"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "make", "told"), CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_a_mistake_is_found_with_a_way_out(code: str, make: Callable[[], Ask], told: str) -> None:
    found = lint.problems(one(make()))
    matching = [problem for problem in found if problem.id == lint.PREFIX + code and told in problem.message]
    assert matching, found
    assert matching[0].hint


@pytest.mark.parametrize(
    "make",
    [
        lambda: fresh(),
        lambda: fresh(form=lambda state: [AMOUNT], why=lambda state: "x"),
        lambda: fresh((WAY,), then="", route_by="way", choices=ROUTES),
        lambda: fresh(role="", pool="p", permission="shop.order", to=lambda state: "rita", self_answer=False),
    ],
)
def test_what_is_written_rightly_has_no_problem(make: Callable[[], Ask]) -> None:
    assert lint.problems(one(make())) == []


def test_a_round_through_an_ask_is_bounded_and_its_answer_may_be_asked_about() -> None:
    flow = declare(
        ask=fresh(then="allow"),
        allow=Approval(candidate="ask", role="r", expires=DUE, approved="done", denied="ask"),
        done=End(COMPLETE),
    )
    assert lint.problems(flow) == []


@pytest.mark.req("C6", "F1")
def test_no_gate_may_stand_on_an_ask() -> None:
    flow = declare(ask=fresh(then="act"), act=Activity(work, gate=Gate(approved_by="ask"), then="done"), done=End(COMPLETE))
    (found,) = lint.problems(flow)
    assert (found.id, found.message) == ("outlast_flows.E016", "Node 'act': approved_by='ask' is not an Approval.")
    assert flow.approvals == frozenset()


def test_it_is_drawn_as_what_waits_for_people() -> None:
    flow = one(fresh((WAY,), then="", route_by="way", choices=ROUTES))
    drawn = graph.mermaid(flow)
    assert 'n0[/"ask<br/>ask, 1 h at most"/]' in drawn
    assert 'n0 -->|"left, right"| n1' in drawn
    assert graph.FILLS["ask"] in graph.svg(flow)
