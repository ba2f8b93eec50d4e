"""Activity, Decision and Pipeline: what an attempt's end leads to. Every path ends."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core import canonical
from flows.core.errors import (
    DefinitionError,
    Failure,
    IntentSuperseded,
    InvalidCandidate,
    PolicyDenied,
    Route,
    StateConflict,
    Transient,
    VerificationFailed,
    classify,
)
from flows.core.moves import Finish, Goto, Open, RetryLater, Run, Suspend
from flows.core.nodes import Activity, Candidate, Decision, Pipeline, Step, candidate_of
from flows.core.policies import Retry
from flows.core.protocol import Outcome, Status
from flows.core.spans import minutes, seconds
from flows.core.state import Completed, Entered, Failed, Woken
from flows.core.verdicts import Verdict
from tests.support.flow_values import activity, declare, state, work

ONCE = Retry(max_attempts=1)


def node(kind: Any) -> Any:
    """The node, named `first` as in a flow."""
    return declare(first=kind).nodes["first"]


# ---------------------------------------------------------------- Activity


def test_an_activity_is_entered_by_opening_it() -> None:
    assert node(Activity(work, then="next")).enter(state()) == Open("first")


def test_a_good_result_leads_to_the_next_node() -> None:
    assert node(Activity(work, then="next")).resume(state(activity=activity()), Completed(1)) == Goto("next")


def test_an_activity_that_is_taken_up_is_run() -> None:
    for trigger in (Woken(), Entered()):
        assert node(Activity(work, then="next")).resume(state(activity=activity()), trigger) == Run()


def test_taking_up_without_an_open_activity_opens_one() -> None:
    assert node(Activity(work, then="next")).resume(state(), Woken()) == Open("first")


@pytest.mark.req("B3")
@pytest.mark.parametrize(("lost", "move"), [(2, Run), (3, Suspend)])
def test_a_person_looks_when_workers_keep_dying_under_an_activity(lost: int, move: type) -> None:
    made = node(Activity(work, then="next", retry=Retry(max_lost=2))).resume(state(activity=activity(lost=lost)), Woken())
    assert isinstance(made, move)
    if isinstance(made, Suspend):
        assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "WORKER_LOST")


@pytest.mark.req("B3")
@pytest.mark.parametrize("failures", [0, 1])
def test_a_transient_failure_is_tried_again_later(failures: int) -> None:
    made = node(Activity(work, then="next", retry=Retry(jitter=0))).resume(
        state(activity=activity(failures=failures)), Failed(classify(Transient()))
    )
    assert made == RetryLater(seconds(2**failures), "TRANSIENT")


@pytest.mark.req("B3")
def test_when_retries_are_exhausted_a_person_is_asked_with_the_last_code() -> None:
    made = node(Activity(work, then="next")).resume(state(activity=activity(failures=2)), Failed(classify(Transient())))
    assert isinstance(made, Suspend)
    assert (made.node, made.outcome, made.code) == ("first", Outcome.HUMAN_REQUIRED, "RETRIES_EXHAUSTED:TRANSIENT")


@pytest.mark.parametrize(("failures", "expected"), [(0, RetryLater), (2, Goto)])
def test_a_routed_transient_failure_is_retried_first(failures: int, expected: type) -> None:
    made = node(Activity(work, then="next", on={Transient: "other"})).resume(
        state(activity=activity(failures=failures)), Failed(classify(Transient()))
    )
    assert isinstance(made, expected)


def test_a_failure_that_may_not_be_retried_takes_its_route_at_once() -> None:
    made = node(Activity(work, then="next", on={StateConflict: "plan"})).resume(
        state(activity=activity()), Failed(classify(StateConflict()))
    )
    assert made == Goto("plan")


def test_the_most_specific_class_names_the_route() -> None:
    class Moved(StateConflict):
        pass

    routes = {StateConflict: "general", Moved: "special"}
    sample = node(Activity(work, then="next", on=routes))
    assert sample.resume(state(activity=activity()), Failed(classify(Moved()))) == Goto("special")
    assert sample.resume(state(activity=activity()), Failed(classify(StateConflict()))) == Goto("general")


def test_exception_as_a_key_catches_everything_that_retries_do_not_mend() -> None:
    sample = node(Activity(work, then="next", on={Exception: "other"}, retry=ONCE))
    assert sample.resume(state(activity=activity()), Failed(classify(ValueError()))) == Goto("other")


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (VerificationFailed(), Outcome.HUMAN_REQUIRED, "VERIFICATION_FAILED"),
        (StateConflict(), Outcome.HUMAN_REQUIRED, "STATE_CONFLICT"),
        (PolicyDenied(), Outcome.POLICY_BLOCKED, "POLICY_DENIED"),
    ],
)
def test_a_failure_without_a_route_stops_visibly(error: Exception, outcome: Outcome, code: str) -> None:
    made = node(Activity(work, then="next")).resume(state(activity=activity()), Failed(classify(error)))
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (outcome, code)


@pytest.mark.parametrize("routes", [{}, {Exception: "other"}])
def test_a_superseded_goal_ends_the_run_even_where_all_errors_have_a_route(routes: Any) -> None:
    made = node(Activity(work, then="next", on=routes)).resume(state(activity=activity()), Failed(classify(IntentSuperseded())))
    assert made == Finish("first", Status.SUPERSEDED, Outcome.SUPERSEDED, code="INTENT_SUPERSEDED")


def test_a_providers_wait_is_kept() -> None:
    made = node(Activity(work, then="next")).resume(state(activity=activity()), Failed(classify(Transient(retry_after=120))))
    assert made == RetryLater(minutes(2), "TRANSIENT")


def test_verdicts_and_errors_have_separate_routes() -> None:
    sample = node(Activity(work, then="next", on={Verdict.REVALIDATION_REQUIRED: "check", ValueError: "other"}))
    assert sample.route_for_verdict(Verdict.REVALIDATION_REQUIRED) == "check"
    assert sample.route_for_verdict(Verdict.BUDGET_EXHAUSTED) is None
    assert sample.route_for_error(("REVALIDATION_REQUIRED",)) is None
    assert sample.route_for_error(("ValueError", "Exception")) == "other"


def test_an_activity_without_a_next_node_cannot_say_where_it_leads() -> None:
    with pytest.raises(DefinitionError, match=r"^then= names a node as text, got ''\.$"):
        list(node(Activity(work)).targets())


# ---------------------------------------------------------------- Decision


def decision(**options: Any) -> Any:
    return node(Decision(work, choices={"patch": "test", "give_up": "gave_up"}, **options))


@pytest.mark.req("G1")
def test_a_candidate_becomes_an_artifact_with_its_digest_and_revision() -> None:
    made = decision().accept(Candidate("patch", {"a": 1}, evidence=["log"]), state(activity=activity(visit=3)))
    assert made == {
        "choice": "patch",
        "value": {"a": 1},
        "evidence": ["log"],
        "digest": canonical.digest({"choice": "patch", "value": {"a": 1}}),
        "revision": 3,
    }


def test_the_digest_binds_choice_and_value_and_not_the_evidence() -> None:
    at = state(activity=activity())
    accept = decision().accept
    same = accept(Candidate("patch", {"a": 1, "b": 2}, "x"), at)["digest"]
    assert accept(Candidate("patch", {"b": 2, "a": 1}, "y"), at)["digest"] == same
    assert accept(Candidate("patch", {"a": 1, "b": 3}, "x"), at)["digest"] != same
    assert accept(Candidate("give_up", {"a": 1, "b": 2}, "x"), at)["digest"] != same


@pytest.mark.req("G1")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"choice": "patch"}, "first returned dict; a Decision returns Candidate(choice, value)."),
        (None, "first returned NoneType; a Decision returns Candidate(choice, value)."),
        (Candidate("merge"), "first chose 'merge'; declared are give_up, patch."),
        (
            Candidate("patch", 2**60),
            "the candidate of first: the integer 1152921504606846976 is beyond 2^53; send it as a string",
        ),
        (Candidate("patch", float("nan")), "the candidate of first: nan is not a JSON number"),
    ],
)
def test_a_malformed_candidate_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(InvalidCandidate) as caught:
        decision().accept(answer, state(activity=activity()))
    assert str(caught.value) == message


def test_a_schema_may_answer_false_or_raise() -> None:
    def strict(value: Any) -> None:
        raise InvalidCandidate("too long")

    for schema, message in ((lambda value: False, "its schema refuses"), (strict, "too long")):
        with pytest.raises(InvalidCandidate, match=message):
            decision(schema=schema).accept(Candidate("patch"), state(activity=activity()))
    assert decision(schema=lambda value: None).accept(Candidate("patch"), state(activity=activity()))["choice"] == "patch"


@pytest.mark.req("B3")
def test_a_malformed_candidate_is_asked_for_again_within_bounds_then_a_person_decides() -> None:
    failed = Failed(classify(InvalidCandidate()))
    assert isinstance(decision().resume(state(activity=activity()), failed), RetryLater)
    made = decision().resume(state(activity=activity(failures=2)), failed)
    assert isinstance(made, Suspend)
    assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "RETRIES_EXHAUSTED:INVALID_CANDIDATE")
    own = decision(retry=Retry(max_attempts=5, retry_on=(KeyError,)))
    assert isinstance(own.resume(state(activity=activity(failures=3)), failed), RetryLater)
    assert own.retry.retry_on == (KeyError, InvalidCandidate)
    never = decision(retry=Retry(never_on=(InvalidCandidate,)))
    assert isinstance(never.resume(state(activity=activity()), failed), Suspend)


@pytest.mark.req("G1")
def test_code_names_the_next_node_from_the_choice() -> None:
    assert decision().resume(state(activity=activity()), Completed({"choice": "give_up"})) == Goto("gave_up")


@pytest.mark.parametrize("result", [None, "patch", {"choice": "merge"}, {"choice": None}, {"choice": ["patch"]}, {}])
def test_a_result_without_a_declared_choice_is_a_malformed_candidate(result: Any) -> None:
    made = decision().resume(state(activity=activity()), Completed(result))
    assert isinstance(made, RetryLater)
    assert made.code == "INVALID_CANDIDATE"


def test_any_nodes_result_can_be_a_candidate() -> None:
    artifact = {"choice": "patch", "value": 1, "evidence": None, "digest": "sha256:x", "revision": 2}
    at = state(results={"propose": artifact, "build": {"image": "i"}}, visits={"build": 4})
    assert candidate_of(at, "propose") == artifact
    built = candidate_of(at, "build")
    assert built is not None
    assert (built["choice"], built["value"], built["revision"]) == ("", {"image": "i"}, 4)
    assert built["digest"].startswith("sha256:")
    assert candidate_of(at, "nothing") is None


# ---------------------------------------------------------------- Pipeline


def pipeline() -> Any:
    return node(Pipeline(Step("a", work), Step("b", work, timeout=minutes(1)), Step("c", work), then="next"))


@pytest.mark.req("G3")
def test_a_pipeline_runs_its_steps_in_order_then_goes_on() -> None:
    sample = pipeline()
    assert sample.enter(state()) == Open("first", "a")
    for step, expected in (("a", Open("first", "b")), ("b", Open("first", "c")), ("c", Goto("next"))):
        assert sample.resume(state(activity=activity(step=step)), Completed(1)) == expected


@pytest.mark.req("G3")
def test_a_failed_step_stops_the_pipeline() -> None:
    made = pipeline().resume(state(activity=activity(step="b")), Failed(classify(StateConflict())))
    assert isinstance(made, Suspend)
    assert made.code == "STATE_CONFLICT"


def test_a_failed_step_takes_the_pipelines_route() -> None:
    sample = node(Pipeline(Step("a", work), then="next", on={StateConflict: "other"}))
    assert sample.resume(state(activity=activity(step="a")), Failed(classify(StateConflict()))) == Goto("other")


def test_each_step_has_its_own_timeout() -> None:
    assert pipeline().step("b").timeout == minutes(1)
    assert pipeline().step("a").timeout == minutes(10)


@pytest.mark.parametrize("steps", [(), (Step("a", work), Step("a", work)), (Step("", work),)])
def test_a_pipeline_without_distinct_steps_is_refused(steps: Any) -> None:
    with pytest.raises(DefinitionError, match="at least one Step, and the names of its steps must differ"):
        Pipeline(*steps, then="next")


def test_a_pipeline_has_the_options_of_an_activity() -> None:
    sample = Pipeline(Step("a", work), then="next", queue="slow", retry=ONCE)
    assert (sample.queue, sample.retry, sample.then) == ("slow", ONCE, "next")


def test_what_nobody_but_a_person_can_settle_ends_with_one_until_it_has_a_route() -> None:
    for route in (Route.RECONCILE, Route.HUMAN, Route.REPLAN, Route.VERIFY):
        made = node(Activity(work, then="next")).resume(state(activity=activity()), Failed(Failure("CODE", route)))
        assert isinstance(made, Suspend)
        assert (made.outcome, made.code) == (Outcome.HUMAN_REQUIRED, "CODE")
