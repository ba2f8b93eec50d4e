"""The one way to approve or refuse a candidate: the admin, a message channel, a command and a test all call this.

    not the last approval ──► counted, or the next step ──► still pending
    the last, a no, changes ──► the request is answered, and its workflow woken

Every answer is taken as `approvals.services.taking` says: under the locks, judged by what is on record then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.core.binding import UNSHOWN, Refusal, Shown
from approvals.core.narrow import BadPart, narrowed
from approvals.core.seats import open_to
from approvals.core.status import ANSWERS, STATUS_AFTER
from approvals.models import Request
from approvals.models.wording import step_in_words
from approvals.services import people, turns
from approvals.services.locked import locked, request_id_of
from approvals.services.notices import owing
from approvals.services.taking import ACCEPTED, ALREADY, Given, NobodyAnswers, clean, code_of, noted, take, wake
from approvals.store import requests as store
from flows.core import payload
from flows.core.misuse import UsageError
from flows.services import identify
from flows.store.sql import committing

__all__ = [
    "ACCEPTED",
    "ALREADY",
    "MAX_COMMENT",
    "Decided",
    "NobodyAnswers",
    "UnknownVerdict",
    "clean",
    "decide",
]

MAX_COMMENT = 4000


class UnknownVerdict(UsageError):
    """An answer that no flow knows."""

    code = "UNKNOWN_VERDICT"

    def __init__(self, verdict: object) -> None:
        super().__init__(f"{verdict!r:.80} is no answer to an approval request; say one of: {', '.join(ANSWERS)}.")


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
class _Step:
    """Where an answer leaves the request: (step, approvals given in it) before and after; `now` is None where that ends it."""

    was: tuple[int, int]
    now: tuple[int, int] | None
    audiences: tuple[str, ...] = ()


def decide(
    request: Any,
    *,
    verdict: str,
    digest: str,
    by: Any,
    comment: str = "",
    keep: Sequence[int] | None = None,
    shown: Shown = UNSHOWN,
    using: str | None = None,
) -> Decided:
    """Answer a request for approval, atomic with the caller's transaction. What was answered stands; the same again changes nothing.

    An approval counts once for the person and for whom they stand in for; the request is approved by the last one that its steps need. A no, or
    a wish for changes, ends it at once.

    Args:
        request: the request or its id. verdict: "approve", "changes", "deny" or "narrow". digest: of the candidate that `by` has seen.
        by: the user who answers; rights are looked up anew. comment: for the next step of the flow; needed unless approving.
        keep: with "narrow", the numbers (from 0) of what is kept of the list that the flow declares. That part is asked about anew.
        shown: where a page told `by` that the answer would count; elsewhere it is not taken (PLACE_CHANGED).
    Raises:
        UnknownRequest, UnknownVerdict, NobodyAnswers, BadPart: the call makes no sense. PayloadError: the comment cannot be stored.
    """
    alias = identify.alias(using)
    request_id = request_id_of(request)
    if verdict not in ANSWERS:
        raise UnknownVerdict(verdict)
    if keep is not None and verdict != "narrow":
        raise BadPart("keep= is what is kept of a list, and belongs to the verdict “narrow”: to approve is to approve all of it.")
    identify.user(by, NobodyAnswers)
    text, seen = clean("the comment", comment, MAX_COMMENT), clean("the digest", digest, 200)
    with committing("decide approval", alias):
        row = locked(request_id, alias)
        given = Given(verdict, seen, text, people.current(by, alias), identify.label(by), shown=shown)
        kept: dict[str, Any] = {}

        def write(recorded: store.Recorded) -> _Step | None:
            if given.answer == "narrowed":
                whole = {**payload.decode(row.candidate), "revision": row.revision}
                kept["candidate"] = narrowed(whole, row.subset, keep or ())
            return _write(row, given, _next_step(recorded, given), alias)

        refusal, step = take(row, given, write, alias)
        if step is not None and step.now is None:
            owing.decided(row.pk, alias)
            if row.tool:
                turns.answered(row, alias)
            else:
                wake(row, {**_evidence(row, given), **kept}, "approval", alias)
        elif step is not None and step.now is not None and step.now[0] != step.was[0]:
            owing.asked(row.pk, step.now[0], alias)
    return _told(row, given, refusal, step)


def _next_step(row: store.Recorded, given: Given) -> _Step:
    """Where this answer leaves the request."""
    was, more = (row.step, row.given), row.given + 1 < row.need
    if given.answer != "approved" or (not more and row.step + 1 == len(row.steps)):
        return _Step(was, None)
    now = (row.step, row.given + 1) if more else (row.step + 1, 0)
    return _Step(was, now, tuple(open_to(row.steps, now[0], row.escalation, row.escalated)))


def _write(row: Request, given: Given, step: _Step, using: str) -> _Step | None:
    if step.now is not None:
        written = store.count(row.pk, digest=given.digest, was=step.was, now=step.now, audiences=step.audiences, using=using)
    else:
        status = STATUS_AFTER[given.answer]
        written = store.answer(row.pk, status=status, answer=given.answer, digest=given.digest, using=using)
    return step if written else None


def _evidence(row: Request, given: Given) -> dict[str, Any]:
    return {
        "answer": given.answer,
        "comment": given.comment,
        "by": given.label,
        "digest": given.digest,
        "request": str(row.pk),
    }


def _told(row: Request, given: Given, refusal: Refusal | None, step: _Step | None) -> Decided:
    code = code_of(refusal)
    noted(row, given, code)
    if refusal is not None:
        return Decided(code, _(refusal.template) % refusal.params, row.pk)
    if step is not None and step.now is not None:
        return Decided(code, _counted(row, step.now), row.pk)
    return Decided(code, _accepted(given.verdict), row.pk, ends=True)


def _counted(row: Request, now: tuple[int, int]) -> str:
    """What is still needed after an approval that is not the last."""
    step, given = now
    name, left = step_in_words(row.steps[step]), row.steps[step]["need"] - given
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
        "narrow": _("What you kept is a candidate of its own, and is asked about anew: nothing is approved yet."),
    }[verdict]
