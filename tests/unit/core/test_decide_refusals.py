"""The engine and what stands in its way: the gate at every entry, and author functions that raise."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.errors import IntentSuperseded, StateConflict, Transient, classify
from flows.core.moves import Finish, Open, Park, RetryLater, Run, Suspend
from flows.core.nodes import COMPLETE, Activity, Approval, Branch, End, Sleep, Wait
from flows.core.policies import ESCALATE, Deadline, Retry, Visits
from flows.core.protocol import Outcome, Status
from flows.core.requirements import Gate
from flows.core.state import Completed, Entered, Failed, Woken
from flows.core.verdicts import Verdict
from tests.support.flow_values import activity, approval, approved_flow, artifact, ask, declare, state, wait, work

DUE = Deadline(hours=1, then=ESCALATE)


def raising(_: Any) -> Any:
    raise ZeroDivisionError("in the author's function")


def line(**options: Any) -> Any:
    """Three nodes in a line: first, second, done."""
    return declare(first=Activity(work, then="second"), second=Activity(work, then="done", **options), done=End(COMPLETE))


# ---------------------------------------------------------------- the gate


def answered(answer: str = "approved", **values: Any) -> Any:
    return state("ask", wait=wait("ask", "approval", {"answer": answer}), results={"propose": artifact()}, **values)


@pytest.mark.req("H1", "F2")
def test_an_approved_candidate_opens_the_gate() -> None:
    made = ask(approved_flow(), answered(), Woken(), approvals={"ask": approval(artifact()["digest"])})
    assert made.move == Open("merge")
    assert made.refusal is None
    assert made.wait_result == {"answer": "approved"}


@pytest.mark.req("H1", "F2")
def test_an_answer_alone_opens_nothing_so_people_are_asked_again() -> None:
    made = ask(approved_flow(), answered(), Woken(), approvals={"ask": approval("sha256:other")})
    assert isinstance(made.move, Park)
    assert made.move.node == "ask"
    assert made.refusal is not None
    assert made.refusal.verdict is Verdict.APPROVAL_REQUIRED


def test_a_refusal_takes_its_declared_route() -> None:
    made = ask(approved_flow(on={Verdict.APPROVAL_REQUIRED: "no"}), answered(), Woken(), approvals={"ask": None})
    assert isinstance(made.move, Finish)
    assert made.move.node == "no"
    assert made.refusal is not None


def test_an_approved_activity_is_asked_about_again_when_a_worker_takes_it_up() -> None:
    at = state("merge", activity=activity("merge", seq=4), results={"propose": artifact()})
    used = approval(artifact()["digest"], "consumed", used_by=4)
    assert ask(approved_flow(), at, Woken(), approvals={"ask": used}).move == Run()
    made = ask(approved_flow(), at, Woken(), approvals={"ask": approval(artifact()["digest"], "consumed", used_by=5)})
    assert isinstance(made.move, Park), "used up by another visit"


@pytest.mark.req("B5")
@pytest.mark.parametrize("options", [{}, {"on": {Verdict.APPROVAL_REQUIRED: "no"}}], ids=["asks again", "has a route"])
def test_no_route_of_a_refusal_goes_past_an_effect_in_doubt(options: Any) -> None:
    at = state("merge", activity=activity("merge", doubt=True), results={"propose": artifact()})
    made = ask(approved_flow(**options), at, Woken(), approvals={"ask": None})
    assert isinstance(made.move, Suspend)
    assert (made.move.node, made.move.code) == ("merge", Verdict.APPROVAL_REQUIRED)
    assert made.refusal is not None


@pytest.mark.req("B5")
def test_overload_does_not_drop_an_effect_in_doubt() -> None:
    flow = line(optional=True)
    assert isinstance(ask(flow, state("second", activity=activity("second")), Woken(), overloaded={"agents"}).move, Finish)
    at = state("second", activity=activity("second", doubt=True))
    assert ask(flow, at, Woken(), overloaded={"agents"}).move == Run()


@pytest.mark.req("H1")
def test_a_result_is_kept_even_if_the_approval_is_gone_by_then() -> None:
    at = state("merge", activity=activity("merge"), results={"propose": artifact()})
    assert isinstance(ask(approved_flow(), at, Completed(1), approvals={"ask": None}).move, Finish)


@pytest.mark.req("H1", "C4")
@pytest.mark.parametrize("fact", [None, approval("sha256:other"), approval("sha256:other", "denied")])
def test_resuming_a_run_that_the_gate_stopped_asks_the_gate_again(fact: Any) -> None:
    made = ask(approved_flow(), state("merge", results={"propose": artifact()}), Entered(), approvals={"ask": fact})
    assert isinstance(made.move, Park)
    assert made.move.node == "ask"


@pytest.mark.req("H1")
def test_a_gate_on_the_first_node_is_asked_before_anything_runs() -> None:
    flow = declare(
        merge=Activity(work, gate=Gate(approved_by="ask"), then="done"),
        ask=Approval(candidate="merge", role="r", approved="merge", denied="done", expires=DUE),
        done=End(COMPLETE),
    )
    made = ask(flow, state("merge"), Entered(), approvals={"ask": None})
    assert isinstance(made.move, Suspend)
    assert made.move.code == "CANDIDATE_INVALID"


@pytest.mark.req("D1")
@pytest.mark.parametrize("trigger", [Entered(), Woken()])
def test_a_wake_up_for_a_goal_that_is_gone_ends_the_run(trigger: Any) -> None:
    made = ask(line(), state(), trigger, intent_version=2)
    assert made.move == Finish("first", Status.SUPERSEDED, Outcome.SUPERSEDED, code="INTENT_SUPERSEDED")


@pytest.mark.req("G2")
@pytest.mark.parametrize("trigger", [Entered(), Woken()])
def test_a_changed_definition_waits_for_a_migration(trigger: Any) -> None:
    made = ask(line(), state(), trigger, fingerprint="another")
    assert isinstance(made.move, Suspend)
    assert (made.move.outcome, made.move.code) == (Outcome.WORKFLOW_MIGRATION_REQUIRED, "WORKFLOW_MIGRATION_REQUIRED")


@pytest.mark.parametrize("trigger", [Completed(1), Failed(classify(ValueError()))])
def test_an_ended_attempt_at_a_node_that_is_gone_waits_for_a_migration(trigger: Any) -> None:
    made = ask(line(), state("elsewhere"), trigger)
    assert isinstance(made.move, Suspend)
    assert made.move.outcome is Outcome.WORKFLOW_MIGRATION_REQUIRED


# ---------------------------------------------------------------- faults of authors


LEAVING_FIRST: dict[str, Any] = {"node": "first", "activity": activity()}
AT_SECOND: dict[str, Any] = {"node": "second", "activity": activity("second")}
ANSWERED: dict[str, Any] = {"node": "second", "wait": wait("second", "event", {"payload": 1})}
CONFLICT = Failed(classify(StateConflict()))
SECOND_VISIT: dict[str, Any] = {**LEAVING_FIRST, "visits": {"second": 1}}


def event(**options: Any) -> Wait:
    return Wait("e", then="done", deadline=DUE, **{"key": "k", **options})


@pytest.mark.parametrize(
    ("second", "at", "trigger"),
    [
        (Branch(raising, choices={"x": "done"}), LEAVING_FIRST, Completed()),
        (Branch(lambda state: "undeclared", choices={"x": "done"}), LEAVING_FIRST, Completed()),
        (Branch(lambda state: ["x"], choices={"x": "done"}), LEAVING_FIRST, Completed()),  # type: ignore[arg-type, return-value]
        (event(key=raising), LEAVING_FIRST, Completed()),
        (event(key=lambda state: ""), LEAVING_FIRST, Completed()),
        (Sleep(until=raising, then="done"), LEAVING_FIRST, Completed()),
        (Activity(work, then="nowhere"), AT_SECOND, Completed()),
        (Activity(work, then="done", on={StateConflict: "nowhere"}), AT_SECOND, CONFLICT),
        (Activity(work, then="done", visits=Visits(1, "nowhere")), SECOND_VISIT, Completed()),
        (event(read=raising), ANSWERED, Woken()),
        (event(read=lambda state: object()), ANSWERED, Woken()),
    ],
)
def test_what_a_function_of_the_flow_raises_ends_in_a_visible_state(second: Any, at: dict[str, Any], trigger: Any) -> None:
    flow = declare(first=Activity(work, then="second"), second=second, done=End(COMPLETE))
    made = ask(flow, state(**at), trigger)
    assert isinstance(made.move, Suspend)
    assert (made.move.node, made.move.outcome, made.move.code) == (at["node"], Outcome.HUMAN_REQUIRED, "DEFINITION_FAULT")
    assert made.fault is not None
    assert "author" not in made.move.reason, "messages are logged, never stored"


@pytest.mark.parametrize("result", [raising, lambda state: object(), lambda state: float("nan"), lambda state: "\x00"])
def test_an_end_that_cannot_give_its_result_ends_in_a_visible_state(result: Any) -> None:
    flow = declare(first=Activity(work, then="done"), done=End(COMPLETE, result=result))
    made = ask(flow, state(activity=activity()), Completed())
    assert isinstance(made.move, Suspend)
    assert made.move.code == "DEFINITION_FAULT"


def test_a_fault_on_the_way_of_a_refusal_ends_in_a_visible_state_too() -> None:
    flow = declare(
        first=Activity(work, then="done", on={Verdict.WORKFLOW_MIGRATION_REQUIRED: "second"}),
        second=Wait("e", key=raising, then="done", deadline=DUE),
        done=End(COMPLETE),
    )
    made = ask(flow, state(activity=activity()), Woken(), fingerprint="another")
    assert isinstance(made.move, Suspend)
    assert made.move.code == "DEFINITION_FAULT"
    assert isinstance(made.fault, ZeroDivisionError)


def test_a_candidate_that_cannot_be_hashed_ends_in_a_visible_state() -> None:
    at = state("merge", results={"propose": {**artifact(), "value": 2**60}}, activity=activity("merge"))
    made = ask(approved_flow(), at, Woken(), approvals={"ask": approval(artifact()["digest"])})
    assert isinstance(made.move, Suspend)
    assert made.move.outcome is Outcome.HUMAN_REQUIRED


def test_a_superseded_attempt_ends_the_run() -> None:
    made = ask(line(), state(activity=activity()), Failed(classify(IntentSuperseded())))
    assert isinstance(made.move, Finish)
    assert made.move.status is Status.SUPERSEDED


def test_a_retry_keeps_the_workflow_at_its_node() -> None:
    flow = line(retry=Retry(jitter=0))
    made = ask(flow, state("second", activity=activity("second")), Failed(classify(Transient())))
    assert isinstance(made.move, RetryLater)


def test_a_decision_is_the_same_every_time() -> None:
    at = answered()
    fact = {"ask": approval(artifact()["digest"])}
    assert ask(approved_flow(), at, Woken(), approvals=fact) == ask(approved_flow(), at, Woken(), approvals=fact)
