"""An answer of a person, taken: what every kind of request has in common (an approval, a form).

    lock workflow → wait → request ──► read anew, judge ──► request, review, log entry; at the end of it evidence, wake   one transaction
                                              └─ refused ──► review                                                      the same, nothing else

An answer decides nothing about the workflow: it is evidence, and wakes. Two who answer at once do so one after the other, and each is judged by
what is on record then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from approvals.core.binding import UNSHOWN, Code, Refusal, Shown, judge, place_of
from approvals.core.seats import Place
from approvals.core.status import VERDICTS
from approvals.models import Request
from approvals.services import history, people
from approvals.services.facts import judged, said
from approvals.services.locked import UnknownRequest
from approvals.store import requests as store
from approvals.store import reviews
from flows.conf import conf
from flows.core import payload
from flows.core.errors import HalfMove, PayloadError
from flows.core.misuse import UsageError
from flows.services import identify
from flows.services.hinting import hint_ready
from flows.store import events

__all__ = ["ACCEPTED", "ALREADY", "Given", "NobodyAnswers", "clean", "code_of", "facts_of", "noted", "take", "wake"]

logger = logging.getLogger("outlast.approvals")

ACCEPTED, ALREADY = "accepted", "already"

T = TypeVar("T")


class NobodyAnswers(UsageError):
    """An answer needs a user who gives it."""

    code = "NOBODY_ANSWERS"

    def __init__(self) -> None:
        super().__init__("An answer is given by a user of this project: pass by=user; a channel maps its sender to one first.")


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as it was given, checked for its form. `values`: what a form was filled in with; None: it is no form.

    `shown`: where its giver was shown that it would count.
    """

    verdict: str
    digest: str
    comment: str
    user: Any
    label: str
    values: Mapping[str, Any] | None = None
    shown: Shown = UNSHOWN

    @property
    def answer(self) -> str:
        return VERDICTS[self.verdict]


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
    payload.text(text, name)
    return text


def facts_of(given: Given, row: Request) -> Any:
    """What the judge must know of the person and the answer."""
    return people.facts(
        given.user,
        row,
        verdict=given.verdict,
        digest=given.digest,
        comment=given.comment,
        said=said(given.values),
        shown=given.shown,
    )


def take(row: Request, given: Given, write: Callable[[store.Recorded], T | None], using: str) -> tuple[Refusal | None, T | None]:
    """Judge under the locks (`approvals.services.locked`) and make the answer true; (the refusal, what `write` gave).

    A refusal is recorded, except that of the very same answer again.

    Args:
        write: the arrow, one guarded statement of `approvals.store`, for the request as it is recorded now; None: its guard was lost.
    Raises:
        UnknownRequest: it is gone.
    """
    person = facts_of(given, row)
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
        # Zero rows: its time passed between the two statements. Then the second look says so.
        if (done := write(recorded)) is not None:
            reviews.record(row.pk, _said(given, recorded.step, place=place_of(known, person)), using)
            history.log(row, given.user, given.answer, using)
            return None, done
    raise HalfMove(f"request {row.pk} takes the answer and its row does not")


def wake(row: Request, evidence: Mapping[str, Any], trigger: str, using: str) -> None:
    """The answer stands: evidence for the workflow, which is woken.

    Raises:
        PayloadError: it is more than an event may carry.
    """
    woken = events.wake(
        [row.wait_id],
        payload.encode(evidence, f"the answer to request {row.pk}", conf.MAX_PAYLOAD_BYTES),
        event=None,
        trigger=trigger,
        ref=str(row.pk),
        priority_seconds=conf.PRIORITY_SECONDS,
        using=using,
    )
    if not woken:
        raise HalfMove(f"request {row.pk} was answered and its wait {row.wait_id} was not")
    hint_ready([found[:4] for found in woken if found[4] == "waiting"], using)


def code_of(refusal: Refusal | None) -> str:
    """The code that a caller is given."""
    return ACCEPTED if refusal is None else ALREADY if refusal.code is Code.ALREADY else refusal.code.value


def noted(row: Request, given: Given, code: str) -> None:
    """What became of the answer, in the operators' log."""
    facts = {"request": row.pk, "verdict": given.verdict, "code": code}
    logger.info("request %s: %s, %s", row.pk, given.verdict, code, extra=facts)


def _kept(values: Any) -> str:
    """What a form was filled in with, as it is stored; its size was looked at with the answer's."""
    return payload.encode(values, "the answer", conf.MAX_PAYLOAD_BYTES)


def _said(given: Given, step: int, *, refused: str = "", place: Place | None = None) -> reviews.Said:
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
        values=_kept(given.values) if given.values is not None and not refused else None,
    )
