"""What is shown of a request that asks for a form: why, the fields, whether this user may answer, and what was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.core.binding import Refusal, may_answer, place_of
from approvals.core.seats import Place
from approvals.models import Request, Review
from approvals.services import people
from approvals.services.answering import body_of
from approvals.services.facts import request_facts
from approvals.services.packet import reviews_of
from flows.core import payload, redaction
from flows.services import redacting
from flows.services.clock import now


@dataclass(frozen=True, slots=True)
class Asked:
    """One such request as it is shown to one user. `answer`: what was filled in, by field; None: nobody has answered.

    `place`: in whose name an answer of this user would count; None: they may not answer.
    """

    request: Request
    now: datetime
    sound: bool
    why: str
    form: Sequence[Mapping[str, Any]]
    answer: Mapping[str, Any] | None
    refusal: Refusal | None
    place: Place | None
    reviews: Sequence[Review]


def asked(request: Request, user: Any, using: str) -> Asked:
    """Collect what is shown of it to a user."""
    known = request_facts(request.pk, using)
    assert known is not None
    person = people.facts(user, request)
    refusal = may_answer(known, person)
    return Asked(
        request=request,
        now=now(using),
        sound=known.sound_digest == request.digest,
        why=body_of(request)["why"],
        form=body_of(request)["fields"],
        answer=answer_shown(request, user, using),
        refusal=refusal,
        place=place_of(known, person) if refusal is None else None,
        reviews=reviews_of(request, using),
    )


def answer_of(request: Request, using: str) -> Mapping[str, Any] | None:
    """What was answered; None if nobody has."""
    taken = Review.objects.using(using).filter(request_id=request.pk, refused="", values__isnull=False)
    found = payload.decode(taken.values_list("values", flat=True).first())
    return found if isinstance(found, Mapping) else None  # what was erased is no answer any more


def answer_shown(request: Request, user: Any, using: str) -> Mapping[str, Any] | None:
    """The same as this user is shown it."""
    found = answer_of(request, using)
    if found is None:
        return None
    shown = redaction.hide("values", found, redacting.hidden_from(user))
    return shown if isinstance(shown, Mapping) else dict.fromkeys(found, shown)


def file_of(request: Request, name: str, user: Any, using: str) -> Mapping[str, Any] | None:
    """The file that was given in that field, as the answer describes it; None if there is none, or this user is not shown it."""
    value = (answer_shown(request, user, using) or {}).get(name)
    return value if isinstance(value, Mapping) else None
