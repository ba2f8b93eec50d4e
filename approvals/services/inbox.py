"""Whose turn it is: the pending requests that a user may answer, soonest to expire first."""

from __future__ import annotations

from typing import Any

from django.db.models import DateTimeField, F, Func, Q, QuerySet

from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.services import people

#: How many requests are asked about one by one, where rights hang on single objects.
MAX_OBJECTS = 200

SOONEST = (F("expires_at").asc(nulls_last=True), F("id").asc())


class FlowsNow(Func):
    """The durable clock, inside a query."""

    template = "flows_now()"
    output_field = DateTimeField()


def pending(requests: QuerySet[Request]) -> QuerySet[Request]:
    """Those that wait for an answer and are in time."""
    return requests.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=FlowsNow()), status=RequestStatus.PENDING)


def eligible(requests: QuerySet[Request], user: Any) -> QuerySet[Request]:
    """Those of them that this user may answer: in the role, not about the user's own work, with the permission."""
    found = pending(requests).filter(role__in=people.groups(user)).exclude(requester_id=user.pk, self_approval=False)
    if people.has_permission(user, people.ANSWER):
        return found
    some = found.order_by(*SOONEST)[:MAX_OBJECTS]
    return found.filter(pk__in=[request.pk for request in some if people.has_permission(user, people.ANSWER, request)])


def next_for(user: Any, *, other_than: int, using: str) -> int | None:
    """The next request that this user should look at."""
    found = eligible(Request.objects.using(using).exclude(pk=other_than), user)
    return found.order_by(*SOONEST).values_list("pk", flat=True).first()
