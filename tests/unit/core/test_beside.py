"""Waits that stand beside an activity for want of something, or before a run has run: who answers for them, and how they end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flows import COMPLETE, Activity, End, Wait
from flows.core.definition import Definition
from flows.core.moves import Finish, Goto, Park, Part, Rest, Run, Suspend
from flows.core.nodes.expiry import WAIT_EXPIRED
from flows.core.policies import ESCALATE, Deadline
from flows.core.protocol import CAPACITY, SELF_CLOSING, Outcome, Status
from flows.core.state import Lacking, State, WaitState, Woken
from tests.support.flow_values import NOW, activity, ask, declare, state, work

pytestmark = pytest.mark.req("B3", "C1")


@pytest.fixture
def definition() -> Definition:
    return declare(
        first=Activity(work, then="done"),
        ask=Wait("t.beside", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="done"),
        late=End(COMPLETE),
        done=End(COMPLETE),
    )


def standing(node: str, *, due: bool = False, word: str = "escalate", kind: str = "resource") -> WaitState:
    return WaitState(7, node, kind, 0, None, due, "no gpu is free", word)


def test_an_attempt_that_lacks_something_leaves_its_activity_open(definition: Definition) -> None:
    until = NOW + timedelta(hours=2)
    lacking = Lacking("resource", "gpu", "no gpu is free", until, "fail")
    found = ask(definition, state(activity=activity()), lacking).move
    assert found == Park("first", "resource", "no gpu is free", keys=("gpu",), deadline_at=until, on_expiry="fail", beside=True)
    assert found.channels == (), "what it waits for is no event"


@pytest.mark.parametrize("kind", sorted(CAPACITY))
def test_it_rests_until_it_is_closed_by_what_ends_it(definition: Definition, kind: str) -> None:
    assert kind in SELF_CLOSING
    waits = state(activity=activity(), wait=standing("first", kind=kind))
    assert ask(definition, waits, Woken()).move == Rest()
    assert ask(definition, state(activity=activity()), Woken()).move == Run()


@pytest.mark.parametrize(
    ("word", "move"),
    [
        ("escalate", Suspend("first", Outcome.HUMAN_REQUIRED, WAIT_EXPIRED, "its deadline has passed", tell=())),
        ("fail", Finish("first", Status.FAILED, Outcome.FAILED, code=WAIT_EXPIRED)),
        ("breach", Rest()),
        ("", Rest()),
    ],
)
def test_when_its_time_is_over_its_recorded_policy_decides(definition: Definition, word: str, move: object) -> None:
    waits = state(activity=activity(), wait=standing("first", due=True, word=word))
    assert ask(definition, waits, Woken()).move == move


def test_a_policy_may_lead_to_a_node(definition: Definition) -> None:
    waits = state(activity=activity(), wait=standing("first", due=True, word="node:late"))
    found = ask(definition, waits, Woken()).move
    assert isinstance(found, Finish)
    assert found.node == "late"


def test_a_run_that_is_not_admitted_asks_nothing_of_its_node(definition: Definition) -> None:
    """It stands at a Wait, whose own deadline is another one."""

    def at(wait: WaitState) -> State:
        return state(node="ask", wait=wait)

    assert ask(definition, at(standing("ask")), Woken()).move == Rest()
    late = ask(definition, at(standing("ask", due=True, word="node:late")), Woken())
    assert isinstance(late.move, Finish)
    assert late.wait_result is None, "it is no result of the node"


def test_a_park_names_every_channel_it_may_be_woken_by() -> None:
    assert Park("n", "event", "r", event_type="a", keys=("1", "2")).channels == (("a", "1"), ("a", "2"))
    several = Park("n", "event", "r", parts=(Part("x", "a", "1"), Part("y", "b", "2")), need=1)
    assert several.channels == (("a", "1"), ("b", "2"))


def test_which_visit_a_wait_is() -> None:
    own, shared = Park("n", "event", "r"), Park("n", "external_job", "r", same_visit=True)
    assert (own.visit_after({}), own.visit_after({"n": 2})) == (1, 3)
    assert (shared.visit_after({}), shared.visit_after({"n": 2})) == (1, 2)


def test_a_goto_is_only_inside_the_core(definition: Definition) -> None:
    waits = state(activity=activity(), wait=standing("first", due=True, word="node:done"))
    assert not isinstance(ask(definition, waits, Woken()).move, Goto)
