"""The one way to answer a request: the admin, a message channel, a command and a test all call this.

    lock workflow → wait → request ──► read anew, judge ──► request, review, log entry, evidence, wake     one transaction
                                              └─ refused ──► review                                        the same, nothing else

An answer decides nothing about the workflow: it is evidence, and wakes. The workflow's next turn reads it and asks the gate.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.binding import Code, Refusal, judge
from approvals.core.status import ANSWERS, STATUS_AFTER
from approvals.models import Request
from approvals.services import history, people
from approvals.services.facts import request_facts
from approvals.store import requests as store
from approvals.store import reviews
from flows.conf import conf
from flows.core import payload
from flows.core.errors import HalfMove, PayloadError, UsageError
from flows.services import identify
from flows.services.hinting import hint_ready
from flows.store import events, locks
from flows.store.sql import committing

logger = logging.getLogger("outlast.approvals")

MAX_COMMENT = 4000
ACCEPTED, ALREADY = "accepted", "already"


class UnknownRequest(UsageError):
    """No approval request with that id."""

    code = "UNKNOWN_REQUEST"

    def __init__(self, request: object) -> None:
        super().__init__(f"There is no approval request {request!s:.80}. The inbox in the admin lists those that exist.")


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
    """What became of an answer: "accepted", "already" (the same answer again), or the code of a refusal; and why, for a person."""

    code: str
    sentence: str
    request_id: int

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


def decide(request: Any, *, verdict: str, digest: str, by: Any, comment: str = "", using: str | None = None) -> Decided:
    """Answer a request for approval, atomic with the caller's transaction. The first answer stands; the same again changes nothing.

    Args:
        request: the request or its id. verdict: "approve", "changes" or "deny". digest: of the candidate that `by` has seen.
        by: the user who answers; rights are looked up anew. comment: for the next step of the flow; needed unless approving.
    Raises:
        UnknownRequest, UnknownVerdict, NobodyAnswers: the call makes no sense. PayloadError: the comment cannot be stored.
    """
    alias = identify.alias(using)
    request_id = _request_id(request)
    if verdict not in ANSWERS:
        raise UnknownVerdict(verdict)
    identify.user(by, NobodyAnswers)
    text, seen = clean("the comment", comment, MAX_COMMENT), clean("the digest", digest, 200)
    with committing("decide approval", alias):
        row = _locked(request_id, alias)
        given = _Given(verdict, seen, text, people.current(by, alias), identify.label(by))
        refusal = _try(row, given, alias)
    return _told(request_id, given, refusal)


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


def _request_id(request: Any) -> int:
    number = request.pk if isinstance(request, Request) else request
    try:
        return int(number)
    except (TypeError, ValueError):
        raise UnknownRequest(request) from None


def _locked(request_id: int, using: str) -> Request:
    """The request's row, with workflow, wait and request locked in this order."""
    found = store.of(request_id, using)
    if found is None:
        raise UnknownRequest(request_id)
    workflow_id, wait_id = found
    locks.workflows([workflow_id], using)
    if not store.lock(request_id, wait_id, using):
        raise UnknownRequest(request_id)
    return Request.objects.using(using).get(pk=request_id)


def _try(row: Request, given: _Given, using: str) -> Refusal | None:
    """Judge under the locks and make the answer true; a refusal is recorded and returned."""
    person = people.facts(given.user, row, verdict=given.verdict, digest=given.digest, comment=given.comment)
    for _attempt in range(2):
        known = request_facts(row.pk, using)
        if known is None:
            raise UnknownRequest(row.pk)
        refusal = judge(known, person)
        if refusal is not None:
            if refusal.code is not Code.ALREADY:
                _review(row, given, refusal.code.value, using)
            return refusal
        # Zero rows here: its time passed between the two statements. Then the second look says so.
        if store.answer(row.pk, status=STATUS_AFTER[given.answer], answer=given.answer, digest=given.digest, using=using):
            _accept(row, given, using)
            return None
    raise HalfMove(f"request {row.pk} takes the answer and its row does not")


def _accept(row: Request, given: _Given, using: str) -> None:
    """Everything that an answer is, beside the request's own row: audit, history, evidence, wake."""
    _review(row, given, "", using)
    history.log(row, given.user, given.answer, using)
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


def _review(row: Request, given: _Given, refused: str, using: str) -> None:
    reviews.record(
        row.pk,
        verdict=given.verdict,
        digest=given.digest,
        by=identify.user_key(given.user),
        by_label=given.label,
        comment=given.comment,
        refused=refused,
        using=using,
    )


def _told(request_id: int, given: _Given, refusal: Refusal | None) -> Decided:
    code = ACCEPTED if refusal is None else ALREADY if refusal.code is Code.ALREADY else refusal.code.value
    facts = {"request": request_id, "verdict": given.verdict, "code": code}
    logger.info("approval request %s: %s, %s", request_id, given.verdict, code, extra=facts)
    if refusal is None:
        return Decided(code, _accepted(given.verdict), request_id)
    return Decided(code, _(refusal.template) % refusal.params, request_id)


def _accepted(verdict: str) -> str:
    return {
        "approve": _("Approved: this exact candidate, and nothing else. The workflow goes on and checks everything again first."),
        "changes": _("Your request for changes was handed to the workflow, with your comment."),
        "deny": _("Denied. The workflow goes on without this candidate."),
    }[verdict]
