"""The engine: one move for a definition, a state, a trigger and facts; nothing an author writes can make it raise."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.decide import DEFAULT_APPROVAL_VISITS
from flows.core.definition import Definition
from flows.core.errors import StateConflict, Transient, classify
from flows.core.moves import CancelSelf, Finish, Open, Park, Rest, Run, Suspend
from flows.core.nodes import COMPLETE, FAILED, Activity, Branch, End, Pipeline, Sleep, Step, Wait
from flows.core.policies import CANCEL, ESCALATE, FAIL, Deadline, Visits
from flows.core.protocol import Outcome, Status
from flows.core.spans import hours
from flows.core.state import Completed, Entered, Failed, Woken
from tests.support.flow_values import activity, approved_flow, artifact, ask, declare, state, wait, work

DUE = Deadline(hours=1, then=ESCALATE)
PASSED = (("workflow_deadline", ""),)


def raising(_: Any) -> Any:
    raise ZeroDivisionError("in the author's function")


def line(**options: Any) -> Definition:
    """Three nodes in a line: first, second, done."""
    return declare(
        first=Activity(work, then="second"),
        second=Activity(work, then="done", **options),
        done=End(COMPLETE, result=lambda state: state.results.get("second")),
    )


# ---------------------------------------------------------------- going on


def test_a_run_begins_at_its_first_node() -> None:
    assert ask(line(), state(), Entered()).move == Open("first")


def test_a_result_opens_the_next_activity() -> None:
    assert ask(line(), state(activity=activity()), Completed(1)).move == Open("second")


def test_an_end_sees_the_result_that_led_to_it() -> None:
    made = ask(line(), state("second", activity=activity("second")), Completed({"n": 2})).move
    assert made == Finish("done", Status.COMPLETE, Outcome.COMPLETE, result={"n": 2})


def test_an_open_activity_is_run_when_it_is_taken_up() -> None:
    assert ask(line(), state(activity=activity()), Woken()).move == Run()


def test_a_retry_that_has_waited_is_run() -> None:
    at = state(activity=activity(failures=1), wait=wait("first", "retry_window", due=True))
    assert ask(line(), at, Woken()).move == Run()


def test_steps_of_a_pipeline_add_up_to_its_result() -> None:
    flow = declare(
        first=Pipeline(Step("a", work), Step("b", work), then="done"),
        done=End(COMPLETE, result=lambda state: state.results["first"]),
    )
    assert ask(flow, state(activity=activity(step="a")), Completed(1)).move == Open("first", "b")
    at = state(activity=activity(step="b"), results={"first": {"a": 1}})
    assert ask(flow, at, Completed(2)).move == Finish("done", Status.COMPLETE, Outcome.COMPLETE, result={"a": 1, "b": 2})


def test_a_wait_hands_its_result_on_with_its_evidence() -> None:
    flow = declare(
        first=Wait("e", key="k", then="pick", deadline=DUE),
        pick=Branch(lambda state: state.results["first"]["payload"]["to"], choices={"a": "end_a", "b": "end_b"}),
        end_a=End(COMPLETE),
        end_b=End(FAILED),
    )
    made = ask(flow, state(wait=wait("first", "event", {"id": "e1", "payload": {"to": "b"}})), Woken())
    assert made.move == Finish("end_b", Status.FAILED, Outcome.FAILED, code="ENDED_AT:end_b", via=("pick",))
    assert made.wait_result == {"value": {"to": "b"}, "event": "e1", "payload": {"to": "b"}}


def test_the_way_through_branches_is_named() -> None:
    flow = declare(
        first=Activity(work, then="one"),
        one=Branch(lambda state: "x", choices={"x": "two"}),
        two=Branch(lambda state: "y", choices={"y": "last"}),
        last=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    assert ask(flow, state(activity=activity()), Completed()).move == Open("last", via=("one", "two"))


def test_nothing_arrived_so_the_wait_goes_on() -> None:
    flow = declare(first=Wait("e", key="k", then="done", deadline=DUE), done=End(COMPLETE))
    made = ask(flow, state(wait=wait("first", "event")), Woken())
    assert made.move == Rest()
    assert made.wait_result is None


def test_a_wait_of_another_kind_gives_no_result_to_the_node() -> None:
    flow = declare(first=Wait("e", key="k", then="done", deadline=DUE), done=End(COMPLETE))
    assert ask(flow, state(wait=wait("first", "human")), Woken()).wait_result is None


# ---------------------------------------------------------------- limits on visits


def loop(limit: int, then: str = "gave_up") -> Definition:
    return declare(
        first=Activity(work, then="check", visits=Visits(limit, then=then)),
        check=Activity(work, then="done", on={StateConflict: "first"}),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )


@pytest.mark.req("G5")
@pytest.mark.parametrize(("visits", "expected"), [(1, "first"), (2, "first"), (3, "gave_up")])
def test_a_node_is_entered_as_often_as_its_limit_says(visits: int, expected: str) -> None:
    at = state("check", activity=activity("check"), visits={"first": visits})
    made = ask(loop(3), at, Failed(classify(StateConflict()))).move
    assert isinstance(made, Open | Finish)
    assert made.node == expected


@pytest.mark.req("G5")
def test_a_person_who_resumes_does_not_get_round_the_limit() -> None:
    made = ask(loop(3), state(visits={"first": 3}), Entered()).move
    assert isinstance(made, Finish)
    assert made.node == "gave_up"


def test_limits_that_lead_to_each_other_stop_visibly_and_not_for_ever() -> None:
    flow = declare(
        first=Activity(work, then="second", visits=Visits(1, then="second")),
        second=Activity(work, then="first", visits=Visits(1, then="first")),
        done=End(COMPLETE),
    )
    at = state("first", activity=activity(), visits={"first": 1, "second": 1})
    made = ask(flow, at, Completed()).move
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "DEFINITION_FAULT")


def test_branches_that_lead_round_stop_visibly() -> None:
    flow = declare(first=Branch(lambda state: "x", choices={"x": "first", "y": "done"}), done=End(COMPLETE))
    made = ask(flow, state(), Entered()).move
    assert isinstance(made, Suspend)
    assert made.reason == "the flow goes round without a durable step"


@pytest.mark.req("G5")
def test_people_are_asked_ten_times_then_a_person_must_look() -> None:
    flow = approved_flow()
    results = {"propose": artifact()}
    at = state("propose", activity=activity("propose"), results=results, visits={"ask": DEFAULT_APPROVAL_VISITS - 1})
    assert isinstance(ask(flow, at, Completed(artifact())).move, Park)
    at = state("propose", activity=activity("propose"), results=results, visits={"ask": DEFAULT_APPROVAL_VISITS})
    made = ask(flow, at, Completed(artifact())).move
    assert isinstance(made, Suspend)
    assert (made.node, made.code) == ("ask", "VISITS_EXHAUSTED")
    at = state("ask", results=results, visits={"ask": DEFAULT_APPROVAL_VISITS})
    assert isinstance(ask(flow, at, Entered()).move, Suspend)
    once_more = ask(flow, at, Entered(suspended_by="VISITS_EXHAUSTED")).move
    assert isinstance(once_more, Park), "a person who resumes it has looked"


# ---------------------------------------------------------------- deadlines


def timed(then: Any, **nodes: Any) -> Definition:
    nodes = nodes or {
        "first": Activity(work, then="second"),
        "second": Activity(work, then="done"),
        "late": Activity(work, then="done"),
        "done": End(COMPLETE),
    }
    return declare({"deadline": Deadline(days=1, then=then)}, **nodes)


@pytest.mark.req("C3")
@pytest.mark.parametrize(
    ("then", "move"),
    [
        ("late", Open("late")),
        (CANCEL, CancelSelf("DEADLINE_EXPIRED")),
        (FAIL, Finish("first", Status.FAILED, Outcome.FAILED, code="DEADLINE_EXPIRED")),
        (ESCALATE, Suspend("first", Outcome.HUMAN_REQUIRED, "DEADLINE_EXPIRED", "its deadline has passed", tell=())),
    ],
)
def test_a_passed_deadline_stops_an_activity_that_has_not_run(then: Any, move: Any) -> None:
    made = ask(timed(then), state(activity=activity(), passed=PASSED), Woken())
    assert made.move == move
    assert made.handled == PASSED


def test_a_result_that_comes_with_the_deadline_is_not_worked_for_again() -> None:
    made = ask(timed(ESCALATE), state(activity=activity(), passed=PASSED), Completed(1))
    assert isinstance(made.move, Suspend)
    assert made.move.node == "second", "a person who resumes goes on from the next node"
    assert made.handled == PASSED


def test_a_run_that_ends_with_its_deadline_ends_as_it_would_have() -> None:
    at = state("second", activity=activity("second"), passed=PASSED)
    made = ask(timed(ESCALATE), at, Completed(1))
    assert isinstance(made.move, Finish)
    assert made.move.outcome is Outcome.COMPLETE
    assert made.handled == ()


def test_a_failure_at_the_deadline_is_not_tried_again() -> None:
    made = ask(timed(ESCALATE), state(activity=activity(), passed=PASSED), Failed(classify(Transient())))
    assert made.move == Suspend("first", Outcome.HUMAN_REQUIRED, "DEADLINE_EXPIRED", "its deadline has passed", tell=())


def test_a_passed_deadline_ends_a_wait() -> None:
    flow = timed("late", first=Wait("e", key="k", then="done", deadline=DUE), late=End(FAILED), done=End(COMPLETE))
    made = ask(flow, state(wait=wait("first", "event"), passed=PASSED), Woken())
    assert isinstance(made.move, Finish)
    assert made.move.node == "late"


def test_evidence_that_came_with_the_deadline_is_kept() -> None:
    flow = timed(
        ESCALATE, first=Wait("e", key="k", then="second", deadline=DUE), second=Sleep(hours(1), then="done"), done=End(COMPLETE)
    )
    made = ask(flow, state(wait=wait("first", "event", {"id": "e", "payload": 1}), passed=PASSED), Woken())
    assert isinstance(made.move, Suspend)
    assert made.move.node == "second"
    assert made.wait_result == {"value": 1, "event": "e", "payload": 1}


def test_without_a_declared_deadline_nothing_passes() -> None:
    assert ask(line(), state(activity=activity(), passed=PASSED), Woken()).move == Run()
