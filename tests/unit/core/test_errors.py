"""The error taxonomy: every class has its code and its route, and whatever else is raised is classified too."""

from __future__ import annotations

import pytest

from flows.core import errors, misuse, turn_errors
from flows.core.errors import ActivityError, OutlastError, Route, classify

pytestmark = pytest.mark.req("B3")

TABLE = {
    errors.Transient: ("TRANSIENT", Route.RETRY),
    errors.ActivityTimeout: ("ACTIVITY_TIMEOUT", Route.RETRY),
    errors.CapacityUnavailable: ("CAPACITY_UNAVAILABLE", Route.CAPACITY),
    errors.StateConflict: ("STATE_CONFLICT", Route.REPLAN),
    errors.IntentSuperseded: ("INTENT_SUPERSEDED", Route.STOP),
    errors.VerificationFailed: ("VERIFICATION_FAILED", Route.VERIFY),
    errors.PolicyDenied: ("POLICY_DENIED", Route.POLICY),
    errors.CompetenceFailure: ("COMPETENCE_FAILURE", Route.HUMAN),
    turn_errors.ToolFailed: ("TOOL_FAILED", Route.HUMAN),
    turn_errors.TurnStopped: ("TURN_STOPPED", Route.HUMAN),
    turn_errors.TurnCalls: ("TURN_CALLS", Route.HUMAN),
    turn_errors.TurnTools: ("TURN_TOOLS", Route.HUMAN),
    turn_errors.TurnTokens: ("TURN_TOKENS", Route.HUMAN),
    turn_errors.TurnTime: ("TURN_TIME", Route.HUMAN),
    turn_errors.TurnRepeats: ("TURN_REPEATS", Route.HUMAN),
    turn_errors.TurnEntries: ("TURN_ENTRIES", Route.HUMAN),
    errors.OperationConflict: ("OPERATION_CONFLICT", Route.HUMAN),
    errors.InvalidCandidate: ("INVALID_CANDIDATE", Route.REPLAN),
    errors.AmbiguousOutcome: ("AMBIGUOUS_OUTCOME", Route.RECONCILE),
    errors.ActivityError: ("ACTIVITY_ERROR", Route.RETRY),
}


def all_subclasses(cls: type) -> set[type]:
    return {cls}.union(*(all_subclasses(one) for one in cls.__subclasses__()))


@pytest.mark.parametrize("cls", TABLE)
def test_each_activity_error_has_its_code_and_route(cls: type[ActivityError]) -> None:
    code, route = TABLE[cls]
    failure = classify(cls("said in the log"))
    assert (failure.code, failure.route) == (code, route)
    assert failure.classes[0] == cls.__name__


def test_the_table_above_is_the_whole_taxonomy() -> None:
    ours = {cls for cls in all_subclasses(ActivityError) if cls.__module__ in (errors.__name__, turn_errors.__name__)}
    assert ours == set(TABLE)


def test_every_error_of_the_package_has_a_code_of_its_own() -> None:
    ours = [cls for cls in all_subclasses(OutlastError) if cls.__module__ == errors.__name__]
    codes = [cls.code for cls in ours]
    assert len(set(codes)) == len(codes)
    assert all(code == code.upper() and code for code in codes)


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), ZeroDivisionError(), TimeoutError()])
def test_an_unclassified_error_may_be_tried_again(error: Exception) -> None:
    failure = classify(error)
    assert (failure.code, failure.route) == (errors.UNCLASSIFIED, Route.RETRY)


def test_the_classes_of_a_failure_run_from_the_most_specific_to_exception() -> None:
    class Gone(errors.StateConflict):
        pass

    assert classify(Gone()).classes == ("Gone", "StateConflict", "ActivityError", "OutlastError", "Exception")


def test_a_providers_wait_travels_with_the_failure_and_the_message_does_not() -> None:
    error = errors.CapacityUnavailable("secret text", retry_after=30, model="m")
    failure = classify(error)
    assert failure.retry_after == 30
    assert "secret" not in repr(failure)
    assert error.details == {"model": "m"}


def test_usage_errors_end_in_the_way_out() -> None:
    assert "`manage.py flows list`" in str(misuse.UnknownWorkflow("x"))
    assert "INSTALLED_APPS" in str(misuse.UnknownFlow("x", ["b", "a"]))
    assert "(known: a, b)" in str(misuse.UnknownFlow("x", ["b", "a"]))
    assert "use another key" in str(misuse.KeyConflict("flow", "key"))
    assert "flows.describe" in str(misuse.UnknownIntent("x"))
    assert "new intent" in str(misuse.IntentClosed("x", "cancelled"))
