"""Pages of requests and of delegations that stay right while rows come and go: the next page begins after the last row, not at a number.

A cursor says where a page ended and in which order; it carries no right. What a page may hold is asked of the database each time.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.utils.dateparse import parse_datetime

from approvals.core.status import RequestStatus
from approvals.models import Delegation, Request
from approvals.services import inbox, people
from flows.core.misuse import UsageError
from flows.core.spans import in_utc

Row = TypeVar("Row", bound=Model)

#: Ids are bigints; what is larger is no id.
MAX_ID = 2**63 - 1
MAX_CURSOR = 200


class BadCursor(UsageError):
    """Not a cursor of this list."""

    code = "BAD_CURSOR"

    def __init__(self) -> None:
        super().__init__("The cursor is not one of this list: take it from `next` of the page before, with the same queue.")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursor of the next page; None: there are no more."""

    rows: Sequence[Row]
    following: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page ended: the last row's id and, in the order of expiry, when it expires."""

    order: str
    id: int
    expires: datetime | None = None

    def written(self) -> str:
        text = json.dumps([self.order, self.id, self.expires.isoformat() if self.expires else None], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str, order: str) -> _Place:
    try:
        if len(cursor) > MAX_CURSOR:
            raise BadCursor
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        said, number, expires = json.loads(raw.decode())
        moment = None if expires is None else in_utc(parse_datetime(expires))
        sound = said == order and type(number) is int and 0 < number <= MAX_ID
        if not sound or (expires is not None and moment is None):
            raise BadCursor
    except (binascii.Error, UnicodeError, ValueError, TypeError, RecursionError, OverflowError):
        raise BadCursor from None
    return _Place(order, number, moment)


#: Whose turn it is; then the others.
QUEUES: dict[str, Callable[[QuerySet[Request], Any], QuerySet[Request]]] = {
    "mine": inbox.eligible,
    "pending": lambda requests, user: requests.filter(status=RequestStatus.PENDING),
    "answered": lambda requests, user: requests.exclude(answer=""),
    "all": lambda requests, user: requests,
}
BY_EXPIRY = ("mine", "pending")


def may_browse(user: Any) -> bool:
    """Who may view, and who may answer: nobody answers blindly."""
    return any(people.has_permission(user, name) for name in (people.VIEW, people.ANSWER))


def may_view(user: Any, request: Request) -> bool:
    """The same of one request."""
    return any(people.has_permission(user, name, request) for name in (people.VIEW, people.ANSWER))


def find(number: int, using: str) -> Request | None:
    """A request with all that is shown of it."""
    if not 0 < number <= MAX_ID:
        return None
    return Request.objects.using(using).select_related("workflow", "intent", "requester").filter(pk=number).first()


def requests(
    user: Any, *, queue: str, limit: int, cursor: str | None = None, flow: str | None = None, workflow: Any = None, using: str
) -> Page[Request]:
    """A page of a queue: soonest to expire first while they are pending, else the newest first.

    Args:
        queue: one of `QUEUES`. flow: only of this flow (of pending ones). workflow: only of the workflow with this id.
    Raises:
        BadCursor: the cursor is of another list.
    """
    place = _read(cursor, queue) if cursor is not None else None
    rows = QUEUES[queue](Request.objects.using(using), user)
    if flow is not None:
        rows = rows.filter(workflow__flow_name=flow)
    if workflow is not None:
        rows = rows.filter(workflow_id=workflow)
    rows = rows.select_related("workflow", "intent").defer("candidate", "evidence")
    found = _soonest(rows, place, limit + 1) if queue in BY_EXPIRY else _newest(rows, place, limit + 1)
    last = found[limit - 1] if len(found) > limit else None
    expires = last.expires_at if last is not None and queue in BY_EXPIRY else None
    return Page(found[:limit], _Place(queue, last.pk, expires).written() if last is not None else None)


def delegations(user: Any, *, everybody: bool, limit: int, cursor: str | None = None, using: str) -> Page[Delegation]:
    """A page of delegations, the newest first: those from or to this user, or `everybody`'s.

    Raises:
        BadCursor: the cursor is of another list.
    """
    order = "everybody" if everybody else "own"
    place = _read(cursor, order) if cursor is not None else None
    rows = Delegation.objects.using(using)
    if not everybody:
        rows = rows.filter(Q(giver_id=user.pk) | Q(taker_id=user.pk))
    found = _newest(rows, place, limit + 1)
    last = found[limit - 1] if len(found) > limit else None
    return Page(found[:limit], _Place(order, last.pk).written() if last is not None else None)


def _newest(rows: QuerySet[Row], place: _Place | None, most: int) -> list[Row]:
    if place is not None:
        rows = rows.filter(pk__lt=place.id)
    return list(rows.order_by("-pk")[:most])


def _soonest(rows: QuerySet[Request], place: _Place | None, most: int) -> list[Request]:
    """Those with an end first, by the index of the inbox from the place on; then those without, which are few."""
    found: list[Request] = []
    if place is None or place.expires is not None:
        ending = rows.filter(expires_at__isnull=False)
        if place is not None:
            later = Q(expires_at__gt=place.expires) | Q(expires_at=place.expires, pk__gt=place.id)
            ending = ending.filter(later, expires_at__gte=place.expires)
        found = list(ending.order_by(F("expires_at").asc(), "pk")[:most])
    if len(found) < most:
        endless = rows.filter(expires_at__isnull=True)
        if place is not None and place.expires is None:
            endless = endless.filter(pk__gt=place.id)
        found += endless.order_by("pk")[: most - len(found)]
    return found
