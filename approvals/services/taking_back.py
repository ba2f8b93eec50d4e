"""Taking an approval back before it is used. Guard: approved, and nothing has used it; the gate's pass and this meet at the workflow's lock."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from approvals.core.status import REVOKE, RequestStatus
from approvals.models import Review
from approvals.services import history, people
from approvals.services.decide import ACCEPTED, ALREADY, MAX_COMMENT, Decided, NobodyAnswers, clean
from approvals.services.locked import locked, request_id_of
from approvals.services.notices import owing
from approvals.store import requests as store
from approvals.store import reviews
from flows.core.misuse import NotPermitted
from flows.services import identify, warrant
from flows.store.sql import committing

TOO_LATE = "TOO_LATE"


def revoke(request: Any, *, reason: str, by: Any, using: str | None = None) -> Decided:
    """Take an approval back that nothing has used; the workflow has to ask anew before the step that it was for. Twice is once.

    Args:
        request: the request or its id. reason: kept with it. by: somebody who approved it, or who may take back any (`revoke_request`).
    Returns:
        "accepted", "already", or TOO_LATE: it is used up, or was never approved.
    Raises:
        UnknownRequest, NobodyAnswers, ReasonMissing: the call makes no sense. NotPermitted: `by` may not.
    """
    alias = identify.alias(using)
    identify.user(by, NobodyAnswers)
    why = clean("the reason", warrant.reason(reason, "why the approval is taken back", most=MAX_COMMENT), MAX_COMMENT)
    with committing("revoke approval", alias):
        row = locked(request_id_of(request), alias)
        _check(row.pk, by, alias)
        if row.status == RequestStatus.REVOKED:
            return Decided(ALREADY, _("It was taken back before."), row.pk)
        if not store.revoke(row.pk, alias):
            return Decided(TOO_LATE, _("Too late: the request is %(status)s.") % {"status": row.get_status_display()}, row.pk)
        said = reviews.Said(REVOKE, row.digest, by.pk, identify.label(by), why, step=row.step)
        reviews.record(row.pk, said, alias)
        history.log(row, by, "revoked", alias)
        owing.revoked(row.pk, alias)
    return Decided(
        ACCEPTED, _("The approval is taken back. Nothing is done with it, and the workflow asks anew if it needs one."), row.pk
    )


def may_revoke(request_id: int, user: Any, using: str) -> bool:
    """Whether this user may take it back: they approved it, or may take back any."""
    if warrant.is_permitted(user, people.REVOKE, using):
        return True
    approved = Review.objects.using(using).filter(request_id=request_id, refused="", verdict="approve", by_id=user.pk)
    return approved.exists() and warrant.is_permitted(user, people.ANSWER, using)


def _check(request_id: int, user: Any, using: str) -> None:
    if not may_revoke(request_id, user, using):
        raise NotPermitted(identify.label(user), people.REVOKE)
