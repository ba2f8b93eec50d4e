"""The engine: one move for a definition, a state, a trigger and facts; nothing an author writes can make it raise."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core import canonical
from flows.core.decide import DEFAULT_APPROVAL_VISITS
from flows.core.definition import Definition
from flows.core.errors import IntentSuperseded, StateConflict, Transient, classify
from flows.core.moves import CancelSelf, Finish, Open, Park, Rest, RetryLater, Run, Suspend
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Branch, Decision, End, Pipeline, Sleep, Step, Wait
from flows.core.policies import CANCEL, ESCALATE, FAIL, Deadline, Gate, Retry, Visits, hours
from flows.core.protocol import Outcome, Status
from flows.core.state import Completed, Entered, Failed, Woken
from flows.core.verdicts import Verdict
from tests.support.flow_values import activity, approval, ask, declare, state, wait, work

DUE = Deadline(hours=1, then=ESCALATE)


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
    flow = approved()
    results = {"propose": artifact()}
    at = state("propose", activity=activity("propose"), results=results, visits={"ask": DEFAULT_APPROVAL_VISITS - 1})
    assert isinstance(ask(flow, at, Completed(artifact())).move, Park)
    at = state("propose", activity=activity("propose"), results=results, visits={"ask": DEFAULT_APPROVAL_VISITS})
    made = ask(flow, at, Completed(artifact())).move
    assert isinstance(made, Suspend)
    assert (made.node, made.code) == ("ask", "VISITS_EXHAUSTED")


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
        (ESCALATE, Suspend("first", Outcome.HUMAN_REQUIRED, "DEADLINE_EXPIRED", "its deadline has passed")),
    ],
)
def test_a_passed_deadline_stops_an_activity_that_has_not_run(then: Any, move: Any) -> None:
    made = ask(timed(then), state(activity=activity(), deadline_passed=True), Woken())
    assert made.move == move
    assert made.deadline_handled


def test_a_result_that_comes_with_the_deadline_is_not_worked_for_again() -> None:
    made = ask(timed(ESCALATE), state(activity=activity(), deadline_passed=True), Completed(1))
    assert isinstance(made.move, Suspend)
    assert made.move.node == "second", "a person who resumes goes on from the next node"
    assert made.deadline_handled


def test_a_run_that_ends_with_its_deadline_ends_as_it_would_have() -> None:
    at = state("second", activity=activity("second"), deadline_passed=True)
    made = ask(timed(ESCALATE), at, Completed(1))
    assert isinstance(made.move, Finish)
    assert made.move.outcome is Outcome.COMPLETE
    assert not made.deadline_handled


def test_a_failure_at_the_deadline_is_not_tried_again() -> None:
    made = ask(timed(ESCALATE), state(activity=activity(), deadline_passed=True), Failed(classify(Transient())))
    assert made.move == Suspend("first", Outcome.HUMAN_REQUIRED, "DEADLINE_EXPIRED", "its deadline has passed")


def test_a_passed_deadline_ends_a_wait() -> None:
    flow = timed("late", first=Wait("e", key="k", then="done", deadline=DUE), late=End(FAILED), done=End(COMPLETE))
    made = ask(flow, state(wait=wait("first", "event"), deadline_passed=True), Woken())
    assert isinstance(made.move, Finish)
    assert made.move.node == "late"


def test_evidence_that_came_with_the_deadline_is_kept() -> None:
    flow = timed(
        ESCALATE, first=Wait("e", key="k", then="second", deadline=DUE), second=Sleep(hours(1), then="done"), done=End(COMPLETE)
    )
    made = ask(flow, state(wait=wait("first", "event", {"id": "e", "payload": 1}), deadline_passed=True), Woken())
    assert isinstance(made.move, Suspend)
    assert made.move.node == "second"
    assert made.wait_result == {"value": 1, "event": "e", "payload": 1}


def test_without_a_declared_deadline_nothing_passes() -> None:
    assert ask(line(), state(activity=activity(), deadline_passed=True), Woken()).move == Run()


# ---------------------------------------------------------------- the gate


def artifact(value: Any = 1) -> dict[str, Any]:
    body = {"choice": "patch", "value": value}
    return {**body, "evidence": None, "digest": canonical.digest(body), "revision": 1}


def approved(**options: Any) -> Definition:
    return declare(
        propose=Decision(work, choices={"patch": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="merge", denied="no", changes="propose", expires=DUE),
        merge=Activity(work, gate=Gate(approved_by="ask"), then="done", **options),
        done=End(COMPLETE),
        no=End(FAILED),
    )


def answered(answer: str = "approved", **values: Any) -> Any:
    return state("ask", wait=wait("ask", "approval", {"answer": answer}), results={"propose": artifact()}, **values)


@pytest.mark.req("H1", "F2")
def test_an_approved_candidate_opens_the_gate() -> None:
    made = ask(approved(), answered(), Woken(), approvals={"ask": approval(artifact()["digest"])})
    assert made.move == Open("merge")
    assert made.refusal is None
    assert made.wait_result == {"answer": "approved"}


@pytest.mark.req("H1", "F2")
def test_an_answer_alone_opens_nothing_so_people_are_asked_again() -> None:
    made = ask(approved(), answered(), Woken(), approvals={"ask": approval("sha256:other")})
    assert isinstance(made.move, Park)
    assert made.move.node == "ask"
    assert made.refusal is not None
    assert made.refusal.verdict is Verdict.APPROVAL_REQUIRED


def test_a_refusal_takes_its_declared_route() -> None:
    made = ask(approved(on={Verdict.APPROVAL_REQUIRED: "no"}), answered(), Woken(), approvals={"ask": None})
    assert isinstance(made.move, Finish)
    assert made.move.node == "no"
    assert made.refusal is not None


def test_an_approved_activity_is_asked_about_again_when_a_worker_takes_it_up() -> None:
    at = state("merge", activity=activity("merge", seq=4), results={"propose": artifact()})
    used = approval(artifact()["digest"], "consumed", used_by=4)
    assert ask(approved(), at, Woken(), approvals={"ask": used}).move == Run()
    made = ask(approved(), at, Woken(), approvals={"ask": approval(artifact()["digest"], "consumed", used_by=5)})
    assert isinstance(made.move, Park), "used up by another visit"


@pytest.mark.req("H1")
def test_a_result_is_kept_even_if_the_approval_is_gone_by_then() -> None:
    at = state("merge", activity=activity("merge"), results={"propose": artifact()})
    assert isinstance(ask(approved(), at, Completed(1), approvals={"ask": None}).move, Finish)


@pytest.mark.req("H1", "C4")
@pytest.mark.parametrize("fact", [None, approval("sha256:other"), approval("sha256:other", "denied")])
def test_resuming_a_run_that_the_gate_stopped_asks_the_gate_again(fact: Any) -> None:
    made = ask(approved(), state("merge", results={"propose": artifact()}), Entered(), approvals={"ask": fact})
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
    made = ask(approved(), at, Woken(), approvals={"ask": approval(artifact()["digest"])})
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
    assert ask(approved(), at, Woken(), approvals=fact) == ask(approved(), at, Woken(), approvals=fact)
