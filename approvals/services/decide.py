"""The one way to answer a request: the admin, a message channel, a command and a test all call this.

    lock workflow → wait → request ──► read anew, judge ──► not the last approval ──► request, review, log entry                 one transaction
                                              │          └► the last, a no, changes ──► the same, evidence, wake
                                              └─ refused ──► review                                                   the same, nothing else

An answer decides nothing about the workflow: it is evidence, and wakes. The workflow's next turn reads it and asks the gate. Two who answer at
once do so one after the other, and each is judged by what is on record then.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.core.binding import Code, Refusal, judge, place_of
from approvals.core.seats import Place, open_to
from approvals.core.status import ANSWERS, STATUS_AFTER
from approvals.models import Request
from approvals.services import history, people, turns
from approvals.services.facts import judged
from approvals.services.locked import UnknownRequest, locked, request_id_of
from approvals.store import requests as store
from approvals.store import reviews
from flows.conf import conf
from flows.core import payload
from flows.core.errors import HalfMove, PayloadError, UsageError
from flows.services import identify
from flows.services.hinting import hint_ready
from flows.store import events
from flows.store.sql import committing

logger = logging.getLogger("outlast.approvals")

MAX_COMMENT = 4000
ACCEPTED, ALREADY = "accepted", "already"


class UnknownVerdict(UsageError):
    """An answer that no flow knows."""

    code = "UNKNOWN_VERDICT"

    def __init__(self, verdict: object) -> None:
        super().__init__(f"{verdict!r:.80} is no answer to an approval request; say one of: {', '.join(ANSWERS)}.")


class NobodyAnswers(UsageError):
    """An answer needs a user who gives it."""

    code = "NOBODY_ANSWERS"

    def __init__(self) -> None:
        super().__init__("An answer is given by a user of this project: pass by=user; a channel maps its sender to one first.")


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of an answer: "accepted", "already" (the same answer again), or the code of a refusal; and why, for a person.

    `ends`: the request is answered with it; an approval that is not the last leaves it pending.
    """

    code: str
    sentence: str
    request_id: int
    ends: bool = False

    def __bool__(self) -> bool:
        return self.code == ACCEPTED


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer as it was given, checked for its form."""

    verdict: str
    digest: str
    comment: str
    user: Any
    label: str

    @property
    def answer(self) -> str:
        return ANSWERS[self.verdict]


@dataclass(frozen=True, slots=True)
class _Step:
    """Where an approval that is counted leaves the request: (step, approvals given in it) before and after; `now` is None at the last."""

    was: tuple[int, int]
    now: tuple[int, int] | None
    audiences: tuple[str, ...] = ()


def decide(request: Any, *, verdict: str, digest: str, by: Any, comment: str = "", using: str | None = None) -> Decided:
    """Answer a request for approval, atomic with the caller's transaction. What was answered stands; the same again changes nothing.

    An approval counts once for the person and for whom they stand in for; the request is approved by the last one that its steps need. A no, or
    a wish for changes, ends it at once.

    Args:
        request: the request or its id. verdict: "approve", "changes" or "deny". digest: of the candidate that `by` has seen.
        by: the user who answers; rights are looked up anew. comment: for the next step of the flow; needed unless approving.
    Raises:
        UnknownRequest, UnknownVerdict, NobodyAnswers: the call makes no sense. PayloadError: the comment cannot be stored.
    """
    alias = identify.alias(using)
    request_id = request_id_of(request)
    if verdict not in ANSWERS:
        raise UnknownVerdict(verdict)
    identify.user(by, NobodyAnswers)
    text, seen = clean("the comment", comment, MAX_COMMENT), clean("the digest", digest, 200)
    with committing("decide approval", alias):
        row = locked(request_id, alias)
        given = _Given(verdict, seen, text, people.current(by, alias), identify.label(by))
        refusal, step = _try(row, given, alias)
    return _told(row, given, refusal, step)


def clean(name: str, text: str, most: int) -> str:
    """Text from outside, fit to be stored: bounded, no NUL, line ends as one character.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(text, str):
        raise PayloadError(name, f"must be text, got {type(text).__name__}")
    text = text.replace("\r\n", "\n").strip()
    if len(text) > most:
        raise PayloadError(name, f"is {len(text):,} characters; at most {most:,} are kept")
    payload.encode(text, name)
    return text


def _try(row: Request, given: _Given, using: str) -> tuple[Refusal | None, _Step | None]:
    """Judge under the locks and make the answer true; a refusal is recorded and returned."""
    person = people.facts(given.user, row, verdict=given.verdict, digest=given.digest, comment=given.comment)
    for _attempt in range(2):
        recorded = store.facts(row.pk, using)
        if recorded is None:
            raise UnknownRequest(row.pk)
        known = judged(row.pk, recorded, using)
        refusal = judge(known, person)
        if refusal is not None:
            if refusal.code is not Code.ALREADY:
                reviews.record(row.pk, _said(given, recorded.step, refused=refusal.code.value), using)
            return refusal, None
        step = _next_step(recorded, given)
        # Zero rows: its time passed between the two statements. Then the second look says so.
        if _write(row, given, step, using):
            reviews.record(row.pk, _said(given, recorded.step, place=place_of(known, person)), using)
            history.log(row, given.user, given.answer, using)
            if step is None or step.now is None:
                turns.answered(row, using) if row.tool else _wake(row, given, using)
            return None, step
    raise HalfMove(f"request {row.pk} takes the answer and its row does not")


def _next_step(row: store.Recorded, given: _Given) -> _Step | None:
    """Where this approval leaves the request; None for every other answer."""
    if given.answer != "approved":
        return None
    was, more = (row.step, row.given), row.given + 1 < row.need
    if not more and row.step + 1 == len(row.steps):
        return _Step(was, None)
    now = (row.step, row.given + 1) if more else (row.step + 1, 0)
    return _Step(was, now, tuple(open_to(row.steps, now[0], row.escalation, row.escalated)))


def _write(row: Request, given: _Given, step: _Step | None, using: str) -> bool:
    if step is not None and step.now is not None:
        return store.count(row.pk, digest=given.digest, was=step.was, now=step.now, audiences=step.audiences, using=using)
    return store.answer(row.pk, status=STATUS_AFTER[given.answer], answer=given.answer, digest=given.digest, using=using)


def _wake(row: Request, given: _Given, using: str) -> None:
    """The answer stands: evidence for the workflow, which is woken."""
    evidence = {
        "answer": given.answer,
        "comment": given.comment,
        "by": given.label,
        "digest": given.digest,
        "request": str(row.pk),
    }
    woken = events.wake(
        [row.wait_id],
        payload.encode(evidence, f"the answer to request {row.pk}", conf.MAX_PAYLOAD_BYTES),
        event=None,
        trigger="approval",
        ref=str(row.pk),
        priority_seconds=conf.PRIORITY_SECONDS,
        using=using,
    )
    if not woken:
        raise HalfMove(f"request {row.pk} was answered and its wait {row.wait_id} was not")
    hint_ready([found[:4] for found in woken if found[4] == "waiting"], using)


def _said(given: _Given, step: int, *, refused: str = "", place: Place | None = None) -> reviews.Said:
    by = identify.user_key(given.user)
    stands_in = place is not None and place.delegation is not None
    return reviews.Said(
        given.verdict,
        given.digest,
        by,
        given.label,
        given.comment,
        refused,
        for_user=place.user if place is not None and stands_in else None,
        for_label=place.label if place is not None and stands_in else "",
        delegation=place.delegation if place is not None else None,
        step=step,
    )


def _told(row: Request, given: _Given, refusal: Refusal | None, step: _Step | None) -> Decided:
    code = ACCEPTED if refusal is None else ALREADY if refusal.code is Code.ALREADY else refusal.code.value
    facts = {"request": row.pk, "verdict": given.verdict, "code": code}
    logger.info("approval request %s: %s, %s", row.pk, given.verdict, code, extra=facts)
    if refusal is not None:
        return Decided(code, _(refusal.template) % refusal.params, row.pk)
    if step is not None and step.now is not None:
        return Decided(code, _counted(row, step.now), row.pk)
    return Decided(code, _accepted(given.verdict), row.pk, ends=True)


def _counted(row: Request, now: tuple[int, int]) -> str:
    """What is still needed after an approval that is not the last."""
    step, given = now
    name, left = row.steps[step]["name"], row.steps[step]["need"] - given
    return ngettext(
        "Your approval is counted. %(left)s more approval of %(name)s is needed before anything happens.",
        "Your approval is counted. %(left)s more approvals of %(name)s are needed before anything happens.",
        left,
    ) % {"left": left, "name": name}


def _accepted(verdict: str) -> str:
    return {
        "approve": _("Approved: this exact candidate, and nothing else. The workflow goes on and checks everything again first."),
        "changes": _("Your request for changes was handed to the workflow, with your comment."),
        "deny": _("Denied. The workflow goes on without this candidate."),
    }[verdict]
