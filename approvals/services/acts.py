"""What a person may do about a request besides answering it: say who looks at it, take it back. What a page offers; the services judge anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from approvals.core.binding import RequestFacts, may_answer
from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.services import people
from approvals.services.taking_back import may_revoke
from flows.services import warrant

#: So many people at most are offered, where one is chosen to look at a request.
MAX_OFFERED = 100


@dataclass(frozen=True, slots=True)
class Acts:
    """Each: whether this person may do it now."""

    claim: bool = False
    release: bool = False
    assign: bool = False
    revoke: bool = False


def acts(request: Request, user: Any, moment: datetime, using: str, *, answers: bool) -> Acts:
    """What is offered to a user.

    Args:
        moment: now. answers: whether they may answer it.
    """
    in_time = request.expires_at is None or request.expires_at > moment
    if not in_time:
        return Acts()
    if request.status == RequestStatus.APPROVED:
        return Acts(revoke=may_revoke(request.pk, user, using))
    if request.status != RequestStatus.PENDING:
        return Acts()
    others = warrant.is_permitted(user, people.ASSIGN, using)
    own = request.claimed_by_id == user.pk
    return Acts(claim=answers and not own, release=bool(request.claimed_label) and (own or others), assign=others)


def assignable(request: Request, known: RequestFacts, using: str) -> list[Any]:
    """Users who may answer a request now: those who are asked, and those who stand in for one of them. At most `MAX_OFFERED`."""
    asked = list(islice(people.asked(request.audiences, using), MAX_OFFERED))
    found = {user.pk: user for user in asked if people.person_of(user) not in known.barred}
    for user in people.standing_in([user.pk for user in asked], using):
        if user.pk not in found and may_answer(known, people.facts(user, request)) is None:
            found[user.pk] = user
    return list(found.values())[:MAX_OFFERED]
