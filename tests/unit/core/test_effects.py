"""Effects: an error says what is known of the call, a doubt has a way on, and unknown never becomes a yes or a no."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flows.core import errors
from flows.core.effects import (
    LOOKS_LOST,
    NOT_RECONCILABLE,
    OPERATION_MOVES,
    OUTCOME_UNKNOWN,
    UNSETTLED,
    AskAgain,
    AskPerson,
    DidNotHappen,
    Effect,
    Happened,
    OperationStatus,
    Settle,
    Unknown,
    after_error,
    after_probe,
    at_doubt,
)
from flows.core.policies import Retry
from flows.core.spans import seconds

pytestmark = pytest.mark.req("B5")


def probe(operation: Any) -> Any:
    return Unknown()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.StateConflict(), "failed"),
        (errors.PolicyDenied(), "failed"),
        (errors.Transient("refused before it was sent"), "failed"),
        (errors.CapacityUnavailable(), "failed"),
        (errors.ActivityTimeout(), "uncertain"),
        (errors.AmbiguousOutcome(), "uncertain"),
        (ConnectionResetError(), "uncertain"),
        (TimeoutError(), "uncertain"),
        (KeyError("x"), "uncertain"),
        (KeyboardInterrupt(), "uncertain"),
    ],
)
def test_only_who_says_what_failed_says_that_it_did_not_happen(error: BaseException, status: str) -> None:
    assert after_error(error) == status


def test_a_doubt_is_reconciled_or_asked_for_again_or_shown_to_a_person() -> None:
    assert at_doubt(Effect(reconcile=probe)) == AskAgain(timedelta(0))
    assert at_doubt(Effect(reconcile=probe, idempotent=True)) == AskAgain(timedelta(0)), "to ask costs less than to do"
    assert at_doubt(Effect(idempotent=True)) == Settle(OperationStatus.PLANNED)
    assert at_doubt(Effect()) == AskPerson(NOT_RECONCILABLE)


def test_every_question_has_a_last() -> None:
    few = Effect(reconcile=probe, probes=Retry(max_attempts=2, max_lost=3))
    assert at_doubt(few, tries=1, lost=3) == AskAgain(timedelta(0))
    assert at_doubt(few, tries=2) == AskPerson(OUTCOME_UNKNOWN)
    assert at_doubt(few, tries=0, lost=4) == AskPerson(LOOKS_LOST), "workers keep dying under it"


def test_an_answer_settles_and_no_answer_is_bounded_and_spaced() -> None:
    effect = Effect(reconcile=probe, probes=Retry(max_attempts=3, initial=seconds(2), backoff=3, jitter=0))
    assert after_probe(effect, Happened({"id": 1}), 1) == Settle(OperationStatus.SUCCEEDED)
    assert after_probe(effect, DidNotHappen(), 1) == Settle(OperationStatus.PLANNED)
    assert after_probe(effect, Unknown(), 1) == AskAgain(seconds(2))
    assert after_probe(effect, Unknown(), 2) == AskAgain(seconds(6))
    assert after_probe(effect, Unknown(), 3) == AskPerson(OUTCOME_UNKNOWN)
    assert after_probe(effect, Happened(), 3) == Settle(OperationStatus.SUCCEEDED)


@pytest.mark.parametrize("answer", [None, True, "happened", OperationStatus.SUCCEEDED])
def test_anything_else_is_no_answer(answer: Any) -> None:
    with pytest.raises(TypeError, match="answers Happened, DidNotHappen or Unknown"):
        after_probe(Effect(reconcile=probe), answer, 1)


def test_every_status_has_its_row_and_what_is_unsettled_ends_only_by_a_settlement() -> None:
    assert set(OPERATION_MOVES) == set(OperationStatus)
    for status in UNSETTLED:
        assert OperationStatus.IN_FLIGHT not in OPERATION_MOVES[status] or status is OperationStatus.UNCERTAIN, "asked for again"
        assert OperationStatus.COMPENSATED not in OPERATION_MOVES[status]
    ends = {status for status, targets in OPERATION_MOVES.items() if not targets}
    assert ends == {"compensated", "abandoned"}


def test_a_timeout_is_positive() -> None:
    with pytest.raises(errors.DefinitionError, match="positive"):
        Effect(reconcile=probe, timeout=timedelta(0))
