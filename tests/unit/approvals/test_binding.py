"""The judge's table: which answers are taken, and the first reason why one is not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from approvals.core.binding import (
    OWN_NAME,
    Code,
    Refusal,
    RequestFacts,
    ReviewFacts,
    Shown,
    Taken,
    Told,
    judge,
    may_answer,
    place_of,
)
from approvals.core.seats import Place, gone
from approvals.core.sentences import SENTENCES, SENTENCES_FOR
from approvals.core.status import ANSWERED, ANSWERS, MOVES, STATUS_AFTER, VERDICTS, RequestStatus, is_legal

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64

REQUEST = RequestFacts(
    status="pending",
    whom="editors",
    answers=("approved", "changes", "denied", "narrowed"),
    self_approval=False,
    requester="person 1",
    digest=DIGEST,
    sound_digest=DIGEST,
    intent_version=1,
    intent_version_now=1,
    intent_status="active",
    workflow_status="waiting",
    epoch=0,
    epoch_now=0,
    waiting=True,
    expired=False,
)
OWN = Place(2, "rita", "person 2")
FOR_RON = Place(3, "ron", "person 3", delegation=7)
FOR_RITA = Place(2, "rita", "person 2", delegation=6)
REVIEW = ReviewFacts(
    by=2, person="person 2", active=True, permitted=True, places=(OWN,), verdict="approve", digest=DIGEST, comment="Fine."
)
MINE = Taken(2, "rita", "approve", DIGEST, frozenset({"person 2"}))
THEIRS = Taken(3, "ron", "deny", DIGEST, frozenset({"person 3"}))
GONE = Taken(None, "ann", "approve", DIGEST, frozenset({gone("ann")}))
RONS = Taken(3, "ron", "approve", DIGEST, frozenset({"person 3"}))


def code(request: dict[str, Any] | None = None, review: dict[str, Any] | None = None) -> Code | None:
    found = judge(dataclasses.replace(REQUEST, **(request or {})), dataclasses.replace(REVIEW, **(review or {})))
    return found.code if found else None


@pytest.mark.parametrize("verdict", sorted(ANSWERS))
@pytest.mark.parametrize("workflow", ["waiting", "paused", "runnable", "running"])
def test_an_answer_for_exactly_this_pending_candidate_is_taken(verdict: str, workflow: str) -> None:
    assert code({"workflow_status": workflow}, {"verdict": verdict}) is None


REFUSED: list[tuple[Code, dict[str, Any], dict[str, Any]]] = [
    (Code.USER_INACTIVE, {}, {"active": False}),
    (Code.NOT_PERMITTED, {}, {"permitted": False}),
    (Code.NOT_ASKED, {}, {"places": ()}),
    (Code.SELF_APPROVAL, {"requester": "person 2"}, {}),
    (Code.SELF_APPROVAL, {"requester": "person 2"}, {"places": (OWN, FOR_RON)}),
    (Code.SELF_APPROVAL, {"requester": "person 3"}, {"places": (FOR_RON,)}),
    (Code.ALREADY, {"taken": (MINE,)}, {}),
    (Code.COUNTED_BEFORE, {"taken": (MINE,)}, {"verdict": "deny"}),
    (Code.COUNTED_BEFORE, {"taken": (MINE,)}, {"by": 9, "places": (Place(9, "rita2", "person 2"),)}),
    (Code.COUNTED_BEFORE, {"taken": (RONS,)}, {"places": (FOR_RON,)}),
    (Code.COUNTED_BEFORE, {"taken": (MINE,)}, {"verdict": "deny", "places": (FOR_RON,)}),
    (Code.COUNTED_BEFORE, {"taken": (MINE,), "requester": "person 3"}, {"by": 9, "person": "p 9", "places": (FOR_RITA, FOR_RON)}),
    (Code.COUNTED_BEFORE, {"taken": (GONE,)}, {"by": 9, "person": "p 9", "label": "ann"}),
    (Code.COUNTED_BEFORE, {"taken": (GONE,)}, {"places": (Place(9, "ann", "p 9", delegation=8),)}),
    (Code.SELF_APPROVAL, {"requester": gone("ann")}, {"person": "p 9", "label": "ann"}),
    (Code.SELF_APPROVAL, {"requester": gone("ann")}, {"places": (Place(9, "ann", "p 9", delegation=8),)}),
    (Code.ALREADY, {"status": "approved", "taken": (MINE,)}, {}),
    (Code.ALREADY, {"status": "consumed", "taken": (MINE,), "workflow_status": "complete", "waiting": False}, {}),
    (Code.ANSWERED_BEFORE, {"status": "denied", "taken": (THEIRS,)}, {}),
    (Code.ANSWERED_BEFORE, {"status": "approved", "taken": (MINE,)}, {"verdict": "deny"}),
    (Code.ANSWERED_BEFORE, {"status": "approved", "taken": (MINE,)}, {"digest": OTHER}),
    (Code.ANSWERED_BEFORE, {"status": "approved", "taken": ()}, {}),
    (Code.INTENT_SUPERSEDED, {"intent_version_now": 2}, {}),
    (Code.INTENT_SUPERSEDED, {"intent_status": "cancelled"}, {}),
    (Code.WORKFLOW_ENDED, {"workflow_status": "cancelled"}, {}),
    (Code.WORKFLOW_ENDED, {"workflow_status": "cancelling"}, {}),
    (Code.WORKFLOW_ENDED, {"workflow_status": "complete"}, {}),
    (Code.NOT_WAITING, {"epoch_now": 1}, {}),
    (Code.REQUEST_EXPIRED, {"expired": True}, {}),
    (Code.REQUEST_EXPIRED, {"status": "expired"}, {}),
    (Code.REQUEST_CANCELLED, {"status": "cancelled"}, {}),
    (Code.REQUEST_REVOKED, {"status": "revoked"}, {}),
    (Code.REQUEST_INVALIDATED, {"status": "invalidated"}, {}),
    (Code.NOT_WAITING, {"waiting": False}, {}),
    (Code.STALE_CANDIDATE, {}, {"digest": OTHER}),
    (Code.STALE_CANDIDATE, {}, {"digest": ""}),
    (Code.STALE_CANDIDATE, {}, {"digest": DIGEST.upper()}),
    (Code.CANDIDATE_INVALID, {"sound_digest": OTHER}, {}),
    (Code.CANDIDATE_INVALID, {"sound_digest": None}, {}),
    (Code.CANDIDATE_INVALID, {"sound_digest": OTHER}, {"verdict": "narrow"}),
    (Code.PLACE_CHANGED, {"step": 1}, {"shown": Shown(step=0)}),
    (Code.PLACE_CHANGED, {}, {"shown": Shown(step=0, delegation=7)}),
    (Code.PLACE_CHANGED, {}, {"shown": Shown(delegation=OWN_NAME), "places": (FOR_RON,)}),
    (Code.PLACE_CHANGED, {}, {"shown": Shown(delegation=8), "places": (FOR_RON,)}),
    (Code.ANSWER_NOT_OFFERED, {"answers": ("approved", "denied")}, {"verdict": "changes"}),
    (Code.ANSWER_NOT_OFFERED, {}, {"verdict": "maybe"}),
    (Code.COMMENT_REQUIRED, {}, {"verdict": "deny", "comment": " \n"}),
    (Code.COMMENT_REQUIRED, {}, {"verdict": "changes", "comment": ""}),
]


@pytest.mark.req("F3")
@pytest.mark.parametrize(("expected", "request_is", "review_is"), REFUSED)
def test_everything_else_is_refused(expected: Code, request_is: dict[str, Any], review_is: dict[str, Any]) -> None:
    assert code(request_is, review_is) is expected


def test_every_refusal_is_in_the_table_and_has_its_sentence() -> None:
    assert {row[0] for row in REFUSED} == set(Code) == set(SENTENCES)


def test_a_sentence_says_who_and_what() -> None:
    found = judge(dataclasses.replace(REQUEST, status="denied", taken=(THEIRS,)), REVIEW)
    assert found == Refusal(Code.ANSWERED_BEFORE, {"who": "ron", "answer": "deny"})
    assert found.sentence == "ron answered this request first (deny). That answer stands; yours is recorded and changes nothing."


def test_who_is_told_of_their_own_answer_hears_it_so() -> None:
    own = judge(dataclasses.replace(REQUEST, status="approved", taken=(MINE,)), dataclasses.replace(REVIEW, verdict="deny"))
    assert own is not None
    assert own.sentence == "You have answered this request (approve). That answer stands, and another one changes nothing."
    looking = may_answer(dataclasses.replace(REQUEST, status="denied", taken=(THEIRS,)), dataclasses.replace(REVIEW, verdict=""))
    assert looking is not None
    assert looking.sentence == "ron answered this request first (deny). That answer stands."
    counted = judge(dataclasses.replace(REQUEST, taken=(MINE,)), dataclasses.replace(REVIEW, verdict="deny"))
    assert counted is not None
    assert counted.sentence.startswith("You have answered this request, and your answer counts.")
    other = judge(dataclasses.replace(REQUEST, taken=(RONS,)), dataclasses.replace(REVIEW, places=(FOR_RON,)))
    assert other is not None
    assert other.sentence.startswith("You, or the person you stand in for, have answered this request before")


@pytest.mark.parametrize("code", [code for code, told in SENTENCES_FOR if told is Told.SOMEBODY_ELSE])
@pytest.mark.parametrize("kind", ["approval", "ask"])
def test_what_is_told_of_another_account_names_it_and_not_who_hears_it(code: Code, kind: str) -> None:
    params = {"whom": "editors", "who": "ron", "answer": "deny"}
    said = Refusal(code, params, kind=kind).of("rita").sentence
    assert "ron answered" in said if code is Code.ANSWERED_BEFORE else "rita" in said
    assert "You" not in said
    assert "your" not in said.lower()


@pytest.mark.req("F5")
def test_an_answer_counts_where_its_giver_was_shown_that_it_would() -> None:
    both = dataclasses.replace(REVIEW, places=(OWN, FOR_RON))
    for shown in (Shown(), Shown(step=0), Shown(delegation=OWN_NAME), Shown(0, OWN_NAME)):
        assert judge(REQUEST, dataclasses.replace(both, shown=shown)) is None
    for_him = dataclasses.replace(REVIEW, places=(FOR_RON,), shown=Shown(0, 7))
    assert judge(REQUEST, for_him) is None
    now = judge(dataclasses.replace(REQUEST, step=1, whom="Legal"), for_him)
    assert now is not None
    assert now.sentence.startswith("Your answer would count for Legal now, in the name of ron;")


def test_who_comes_before_what() -> None:
    """A stranger is not told what became of the request."""
    assert code({"status": "denied", "taken": (THEIRS,), "requester": "person 2"}, {"places": ()}) is Code.NOT_ASKED
    assert code({"workflow_status": "cancelled", "intent_status": "cancelled"}, {"permitted": False}) is Code.NOT_PERMITTED


def test_self_approval_is_allowed_only_where_it_is_declared_or_nobody_is_accountable() -> None:
    assert code({"requester": "person 2", "self_approval": True}) is None
    assert code({"requester": None}) is None


def test_a_no_to_an_unsound_candidate_stays_possible() -> None:
    assert code({"sound_digest": None}, {"verdict": "deny"}) is None


def test_the_form_is_offered_to_those_who_could_answer() -> None:
    nothing_said = dataclasses.replace(REVIEW, verdict="", digest="", comment="")
    assert may_answer(REQUEST, nothing_said) is None
    late = may_answer(dataclasses.replace(REQUEST, expired=True), nothing_said)
    assert late is not None
    assert late.code is Code.REQUEST_EXPIRED
    done = may_answer(dataclasses.replace(REQUEST, status="approved", taken=(MINE,)), nothing_said)
    assert done is not None
    assert done.code is Code.ANSWERED_BEFORE


def test_an_answer_counts_in_the_own_name_where_there_is_one() -> None:
    both = dataclasses.replace(REVIEW, places=(OWN, FOR_RON))
    assert place_of(REQUEST, both) == OWN
    assert place_of(dataclasses.replace(REQUEST, taken=(RONS,)), both) == OWN
    assert place_of(REQUEST, dataclasses.replace(REVIEW, places=(FOR_RON,))) == FOR_RON


def test_after_the_first_of_two_somebody_else_can_still_answer() -> None:
    assert code({"taken": (RONS,)}) is None
    assert code({"taken": (RONS,)}, {"verdict": "deny"}) is None


def test_a_request_moves_forward_only() -> None:
    assert set(MOVES) == {None, *RequestStatus}
    assert is_legal(None, RequestStatus.PENDING)
    for source, targets in MOVES.items():
        assert RequestStatus.PENDING not in targets or source is None
    assert {status for status, targets in MOVES.items() if not targets} == (
        ANSWERED - {RequestStatus.APPROVED, RequestStatus.CHANGES_REQUESTED}
        | {RequestStatus.EXPIRED, RequestStatus.CANCELLED, RequestStatus.REVOKED, RequestStatus.INVALIDATED}
    )
    assert set(STATUS_AFTER) == set(VERDICTS.values())
