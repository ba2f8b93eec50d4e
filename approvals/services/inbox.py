"""Whose turn it is: the pending requests that a user may answer, soonest to expire first.

A list, not a judgement: each request says on its own page, and once more when it is answered, whether this user may. People with several
accounts are told apart there.
"""

from __future__ import annotations

from typing import Any

from django.db.models import DateTimeField, Exists, F, Func, OuterRef, Q, QuerySet, TextField

from approvals.core.seats import audience
from approvals.core.status import RequestStatus
from approvals.models import Request, Review
from approvals.services import people

#: How many requests are asked about one by one, where rights hang on single objects.
MAX_OBJECTS = 200

SOONEST = (F("expires_at").asc(nulls_last=True), F("id").asc())


class FlowsNow(Func):
    """The durable clock, inside a query."""

    template = "flows_now()"
    output_field = DateTimeField()


class _Each(Func):
    """Every member of an array, as a row of its own."""

    function = "unnest"
    output_field = TextField()


def pending(requests: QuerySet[Request]) -> QuerySet[Request]:
    """Those that wait for an answer and are in time."""
    return requests.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=FlowsNow()), status=RequestStatus.PENDING)


def asked_now(using: str) -> list[str]:
    """The keys of all audiences that some pending request is put to: few, however many requests there are."""
    rows = Request.objects.using(using).filter(status=RequestStatus.PENDING).order_by()
    return list(rows.annotate(key=_Each("audiences")).values_list("key", flat=True).distinct())


def eligible(requests: QuerySet[Request], user: Any) -> QuerySet[Request]:
    """Those of them that this user may answer: asked, or standing in for somebody who is; not about their own work; not answered by them."""
    using = requests.db
    places = _places(user, using)
    if not places:
        return requests.none()
    found = pending(requests).filter(places).exclude(requester_id=user.pk, self_approval=False).exclude(_said(user))
    if people.has_permission(user, people.ANSWER):
        return found
    some = found.select_related("workflow").order_by(*SOONEST)[:MAX_OBJECTS]
    return found.filter(pk__in=[request.pk for request in some if people.has_permission(user, people.ANSWER, request)])


def _places(user: Any, using: str) -> Q:
    """Where the user sits: in the own name, or in that of somebody who has delegated to them and counts in no answer yet."""
    keys = asked_now(using)
    own = people.Rights(user, using)
    wanted = Q()
    if mine := [key for key in keys if own.is_asked(audience(key))]:
        wanted |= Q(audiences__overlap=mine)
    for delegation in people.delegations(user, using):
        giver = delegation.giver
        if giver is None or not giver.is_active or not people.has_permission(giver, people.ANSWER):
            continue
        rights = people.Rights(giver, using)
        theirs = [
            key for key in keys if people.covers(delegation, audience(key), delegation.flow) and rights.is_asked(audience(key))
        ]
        if theirs:
            place = Q(audiences__overlap=theirs) & ~Q(requester_id=giver.pk, self_approval=False) & ~Q(_said(giver))
            wanted |= place & Q(workflow__flow_name=delegation.flow) if delegation.flow else place
    return wanted


def _said(user: Any) -> Exists:
    """An answer of, or in the name of, this user was taken."""
    taken = Review.objects.filter(request_id=OuterRef("pk"), refused="").exclude(verdict="revoke")
    return Exists(taken.filter(Q(by_id=user.pk) | Q(for_user_id=user.pk)))


def next_for(user: Any, *, other_than: int, using: str) -> int | None:
    """The next request that this user should look at."""
    found = eligible(Request.objects.using(using).exclude(pk=other_than), user)
    return found.order_by(*SOONEST).values_list("pk", flat=True).first()
