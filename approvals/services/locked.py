"""A request with everything locked that an arrow of it needs, in the one order: workflow, wait, request."""

from __future__ import annotations

from typing import Any

from approvals.models import Request
from approvals.store import requests as store
from flows.core.misuse import UsageError
from flows.store import locks

#: The largest id of a row.
MAX_ID = 2**63 - 1


class UnknownRequest(UsageError):
    """No approval request with that id."""

    code = "UNKNOWN_REQUEST"

    def __init__(self, request: object) -> None:
        super().__init__(f"There is no approval request {request!s:.80}. The inbox in the admin lists those that exist.")


def request_id_of(request: Any) -> int:
    """The id of a request, or of what is passed as one.

    Raises:
        UnknownRequest: it is none.
    """
    number = request.pk if isinstance(request, Request) else request
    found = row_id(number)
    if found is None:
        raise UnknownRequest(request)
    return found


def row_id(number: Any) -> int | None:
    """What is passed as the id of a row, as a number that an id can be; None: none is. What would have to be rounded is none."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    try:
        found = int(number)
    except ValueError:
        return None
    return found if 0 < found <= MAX_ID else None


def locked(request_id: int, using: str) -> Request:
    """The request's row, with workflow, wait and request locked in this order. In a transaction.

    Raises:
        UnknownRequest: there is none.
    """
    found = store.of(request_id, using)
    if found is None:
        raise UnknownRequest(request_id)
    workflow_id, wait_id = found
    locks.workflows([workflow_id], using)
    if not store.lock(request_id, wait_id, using):
        raise UnknownRequest(request_id)
    return Request.objects.using(using).select_related("workflow").get(pk=request_id)
