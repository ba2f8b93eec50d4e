"""Is this answer for exactly this pending candidate, from somebody who may give it? One pure function over facts read under lock.

    who      active, permitted, asked (or standing in for somebody who is), not answering for himself
    before   the same answer again; somebody answered first; who counts already
    alive    intent, workflow, status of the request, wait, time
    what     the digest that was seen, a sound candidate, an answer on offer, a reason where one is needed
The first refusal is the answer; its code is stable, its sentence says why and the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from approvals.core.seats import Place, free, gone
from approvals.core.sentences import Code, Told, template
from approvals.core.status import ANSWER, ANSWERED, NEEDS_COMMENT, VERDICTS, RequestKind, RequestStatus

__all__ = [
    "CHECKS",
    "OWN_NAME",
    "UNSHOWN",
    "Code",
    "Refusal",
    "RequestFacts",
    "ReviewFacts",
    "Shown",
    "Taken",
    "Told",
    "judge",
    "may_answer",
    "place_of",
]

#: Answers that make something of the candidate, or of the form: it has to be the recorded one.
MAKES_SOMETHING = frozenset({"approve", "narrow", ANSWER})


@dataclass(frozen=True, slots=True)
class Taken:
    """An answer that was taken: who gave it, in whose name, what, about which digest. `said`: what a form was filled in with, as a digest."""

    by: Any
    label: str
    verdict: str
    digest: str
    persons: frozenset[Hashable] = frozenset()
    said: str = ""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The request and what it is bound to, as recorded now. `sound_digest` is the frozen candidate's, computed anew.

    `whom`: who may answer now, in words. `taken`: every answer that was, oldest first. `requester`: the accountable person.
    `step`: the one that is asked now.
    """

    status: str
    whom: str
    answers: tuple[str, ...]
    self_approval: bool
    requester: Hashable
    digest: str
    sound_digest: str | None
    intent_version: int
    intent_version_now: int
    intent_status: str
    workflow_status: str
    epoch: int
    epoch_now: int
    waiting: bool
    expired: bool
    taken: tuple[Taken, ...] = ()
    kind: str = RequestKind.APPROVAL
    step: int = 0

    @property
    def counted(self) -> frozenset[Hashable]:
        """Whose answers were taken, their own or in their name."""
        return frozenset(person for one in self.taken for person in one.persons)

    @property
    def barred(self) -> frozenset[Hashable]:
        """Who may not answer (any more), nor be stood in for."""
        return self.counted if self.self_approval or self.requester is None else self.counted | {self.requester}


@dataclass(frozen=True, slots=True)
class Shown:
    """Where somebody was shown that their answer would count. None: that was not shown.

    `step`: in which step. `delegation`: by which delegation; `OWN_NAME`: in their own name.
    """

    step: int | None = None
    delegation: int | None = None


#: Stands for a delegation where there is none: ids begin with 1.
OWN_NAME = 0
UNSHOWN = Shown()


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """Who answers, with which rights at this moment, and what. `places`: in whose name they may, their own first. `label`: of the account."""

    by: Any
    person: Hashable
    active: bool
    permitted: bool
    places: tuple[Place, ...]
    verdict: str = ""
    digest: str = ""
    comment: str = ""
    said: str = ""
    shown: Shown = UNSHOWN
    label: str = ""

    @property
    def persons(self) -> frozenset[Hashable]:
        """Who that is: the person, and whoever had an account of that name before."""
        return frozenset({self.person, gone(self.label)})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an answer changed nothing. `template` takes `params`, so that the words can be translated. `kind`: of the request."""

    code: Code
    params: Mapping[str, Any] = field(default_factory=dict)
    kind: str = RequestKind.APPROVAL
    told: Told = Told.ANYBODY

    @property
    def template(self) -> str:
        return template(self.code, self.kind, self.told)

    def of(self, account: str) -> Refusal:
        """The same, as it is told to somebody else than the account that it is about."""
        return replace(self, told=Told.SOMEBODY_ELSE, params={**self.params, "account": account})

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return self.template % self.params


Check = Callable[[RequestFacts, ReviewFacts], Refusal | None]


def judge(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The first reason why this answer is not taken, or None: it is."""
    return _first(CHECKS, request, review)


def may_answer(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The same without the answer itself: whether this person can be offered the form."""
    return _first(WHO + BEFORE + ALIVE, request, review)


def place_of(request: RequestFacts, review: ReviewFacts) -> Place:
    """In whose name an answer counts that `judge` takes: the own place if there is one."""
    return free(review.places, request.barred)[0]


def _first(checks: tuple[Check, ...], request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    for check in checks:
        if refusal := check(request, review):
            return replace(refusal, kind=request.kind)
    return None


def check_account(_request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """An active account with the permission to answer."""
    if not review.active:
        return Refusal(Code.USER_INACTIVE)
    return None if review.permitted else Refusal(Code.NOT_PERMITTED)


def check_asked(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """Among those who are asked now. Being a superuser is power over the system, not the competence that the flow asks for."""
    answered = any(one.by == review.by for one in request.taken)
    return None if review.places or answered else Refusal(Code.NOT_ASKED, {"whom": request.whom})


def check_self(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """Not the accountable person, nor in their name, unless the flow allows it."""
    if request.self_approval or request.requester is None:
        return None
    own = request.requester in review.persons
    if own or (review.places and not free(review.places, [request.requester])):
        return Refusal(Code.SELF_APPROVAL, {"whom": request.whom})
    return None


def check_first_answer(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The first answer stands; the very same one again is recognised (a double click, a message delivered twice)."""
    same = (review.by, review.verdict, review.digest, review.said)
    stands = request.status == RequestStatus.PENDING or request.status in ANSWERED
    if stands and any((one.by, one.verdict, one.digest, one.said) == same for one in request.taken):
        return Refusal(Code.ALREADY)
    if request.status not in ANSWERED:
        return None
    last = request.taken[-1] if request.taken else None
    params = {"who": last.label if last else "?", "answer": last.verdict if last else request.status}
    told = Told.WHO_ANSWERED if last and last.by == review.by else Told.ANYBODY if review.verdict else Told.WHO_LOOKS
    return Refusal(Code.ANSWERED_BEFORE, params, told=told)


def check_once(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """Nobody counts twice in one request, neither by themselves nor by somebody who stands in for them.

    Of several places it may be one that has answered, and another that may not answer about their own work: then none is left.
    """
    if request.status == RequestStatus.PENDING and (review.persons & request.counted or not free(review.places, request.barred)):
        own = any(one.by == review.by for one in request.taken)
        return Refusal(Code.COUNTED_BEFORE, told=Told.WHO_ANSWERED if own else Told.ANYBODY)
    return None


def check_intent(request: RequestFacts, _review: ReviewFacts) -> Refusal | None:
    """The goal is still the one that the request was made for."""
    if request.intent_status == "active" and request.intent_version == request.intent_version_now:
        return None
    params = {"bound": request.intent_version, "now": request.intent_version_now, "status": request.intent_status}
    return Refusal(Code.INTENT_SUPERSEDED, params)


def check_workflow(request: RequestFacts, _review: ReviewFacts) -> Refusal | None:
    """The workflow is alive, in the same generation."""
    if request.workflow_status not in ("waiting", "paused", "runnable", "running"):
        return Refusal(Code.WORKFLOW_ENDED, {"status": request.workflow_status})
    return None if request.epoch == request.epoch_now else Refusal(Code.NOT_WAITING)


_CLOSED = {
    RequestStatus.EXPIRED: Code.REQUEST_EXPIRED,
    RequestStatus.CANCELLED: Code.REQUEST_CANCELLED,
    RequestStatus.REVOKED: Code.REQUEST_REVOKED,
    RequestStatus.INVALIDATED: Code.REQUEST_INVALIDATED,
}


def check_pending(request: RequestFacts, _review: ReviewFacts) -> Refusal | None:
    """The request is pending, in time, and its wait still takes an answer."""
    if request.status != RequestStatus.PENDING:
        return Refusal(_CLOSED.get(RequestStatus(request.status), Code.NOT_WAITING))
    if request.expired:
        return Refusal(Code.REQUEST_EXPIRED)
    return None if request.waiting else Refusal(Code.NOT_WAITING)


def check_digest(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The answer is for the candidate that would be executed, to the last byte."""
    if review.digest == request.digest:
        return None
    return Refusal(Code.STALE_CANDIDATE, {"seen": review.digest[:19] or "?", "now": request.digest[:19]})


def check_sound(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """What would be approved, kept a part of, or was filled in, hashes to its recorded digest; saying no to a candidate stays possible."""
    if review.verdict not in MAKES_SOMETHING or request.sound_digest == request.digest:
        return None
    return Refusal(Code.CANDIDATE_INVALID)


def check_place(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The answer counts where its giver was shown: in that step, and in that name."""
    place = place_of(request, review)
    now = Shown(request.step, place.delegation or OWN_NAME)
    if review.shown.step in (None, now.step) and review.shown.delegation in (None, now.delegation):
        return None
    return Refusal(Code.PLACE_CHANGED, {"whom": request.whom, "who": place.label})


def check_offered(request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """The flow has a route for this answer."""
    if VERDICTS.get(review.verdict) in request.answers:
        return None
    return Refusal(Code.ANSWER_NOT_OFFERED, {"verdict": review.verdict, "answers": ", ".join(request.answers)})


def check_comment(_request: RequestFacts, review: ReviewFacts) -> Refusal | None:
    """A no says why."""
    needed = review.verdict in NEEDS_COMMENT and not review.comment.strip()
    return Refusal(Code.COMMENT_REQUIRED) if needed else None


WHO: tuple[Check, ...] = (check_account, check_asked, check_self)
BEFORE: tuple[Check, ...] = (check_first_answer, check_once)
ALIVE: tuple[Check, ...] = (check_intent, check_workflow, check_pending)
WHAT: tuple[Check, ...] = (check_digest, check_sound, check_place, check_offered, check_comment)
CHECKS: tuple[Check, ...] = WHO + BEFORE + ALIVE + WHAT
