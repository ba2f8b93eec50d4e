"""Who is to be told of what has happened to a request: looked up when it is told, one account a person, a bounded number of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet

from approvals.core.notices import OPEN, NoticeKind
from approvals.core.seats import audience, key
from approvals.models import Notice, Request, Review
from approvals.services import people
from approvals.services.facts import request_facts
from approvals.store import reviews

logger = logging.getLogger("outlast.notices")

#: So many people at most are told of one thing.
MAX_PEOPLE = 100


def of(event: Notice, using: str) -> list[Any]:
    """The accounts that are told of an event; whether each still has to be is judged once more when it is sent."""
    request = event.request
    match event.kind:
        case NoticeKind.ASKED | NoticeKind.REMINDER:
            found = _asked(request, request.audiences, using)
        case NoticeKind.ESCALATED:
            added = [key(one["audience"]) for one in request.escalation[event.number - 1 : event.number]]
            found = [*_accounts([request.requester_id], using), *_asked(request, added, using)]
        case NoticeKind.ASSIGNED:
            found = _accounts([event.user_id], using)
        case NoticeKind.WITHDRAWN:
            found = _accounts(told(request.pk, using).values_list("user_id", flat=True), using)
        case _:
            found = _accounts(_took_part(event, using), using)
    if len(found) > MAX_PEOPLE:
        logger.warning("%s: %s people would be told; the first %s are", event, len(found), MAX_PEOPLE)
    return found[:MAX_PEOPLE]


def told(request_id: int, using: str) -> QuerySet[Notice]:
    """What was sent of an open question, or may have been: a try that failed proves nothing."""
    sent = Notice.objects.using(using).filter(request_id=request_id, kind__in=sorted(OPEN)).exclude(channel="")
    return sent.filter(Q(sent_at__isnull=False) | Q(tries__gt=0, gave_up_at=None))


def _asked(request: Request, keys: Sequence[str], using: str) -> list[Any]:
    """Who may answer what is put to these audiences, or stands in for somebody who may; nobody who counts already, nor who is accountable."""
    able = list(islice(people.asked(keys, using), MAX_PEOPLE + 1))
    known = request_facts(request.pk, using)
    barred = known.barred if known is not None else frozenset()
    found = [*able, *_standing_in(able, keys, request.workflow.flow_name, using)]
    return _one_account_each([user for user in found if people.person_of(user) not in barred])


def _standing_in(givers: Sequence[Any], keys: Sequence[str], flow: str, using: str) -> list[Any]:
    held = people.held(using).filter(giver_id__in=[user.pk for user in givers], taker_id__isnull=False)
    rows = held.select_related("taker").order_by("pk")
    asked = [audience(one) for one in keys]
    return [row.taker for row in rows if any(people.covers(row, one, flow) for one in asked)]


def _took_part(event: Notice, using: str) -> list[Any]:
    """The accountable user, and everybody who approved; without whoever did what is told."""
    request = event.request
    taken = [one.by for one in reviews.taken(request.pk, using)]
    if event.kind == NoticeKind.REVOKED:
        revoking = Review.objects.using(using).filter(request_id=request.pk, verdict="revoke", refused="")
        by = revoking.order_by("-pk").values_list("by_id", flat=True).first()
    else:
        by = taken.pop() if taken else None
    return [user for user in (request.requester_id, *taken) if user != by]


def _accounts(keys: Iterable[Any], using: str) -> list[Any]:
    wanted = [one for one in dict.fromkeys(keys) if one is not None]
    rows = {user.pk: user for user in people.users(using).filter(pk__in=wanted)} if wanted else {}
    return [rows[one] for one in wanted if one in rows]


def _one_account_each(users: Iterable[Any]) -> list[Any]:
    """One person with two accounts is told once."""
    found: dict[Any, Any] = {}
    for user in users:
        found.setdefault(people.person_of(user), user)
    return list(found.values())
