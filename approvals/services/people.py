"""Who somebody is at this moment: read anew for every decision, with any user model."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from approvals.core.binding import ReviewFacts
from approvals.models import Request

ANSWER = "outlast_approvals.answer_request"
VIEW = "outlast_approvals.view_request"


def current(user: Any, using: str) -> Any:
    """The user's row as it is now, not as the session remembers it; None if there is none any more."""
    users = get_user_model()._default_manager  # noqa: SLF001 - the documented way that does not assume `objects`
    return users.using(using).filter(pk=user.pk).first()


def has_permission(user: Any, permission: str, request: Request | None = None) -> bool:
    """Everywhere, or for this object: Django's own backend knows only the first, others (guardian, rules) the second."""
    if user.has_perm(permission):
        return True
    return request is not None and bool(user.has_perm(permission, request))


def groups(user: Any) -> frozenset[str]:
    """The names of the user's Django groups; empty for a user model without groups."""
    manager = getattr(user, "groups", None)
    return frozenset(manager.values_list("name", flat=True)) if manager is not None else frozenset()


def facts(
    user: Any, request: Request, *, verdict: str = "", digest: str = "", comment: str = "", permitted: bool | None = None
) -> ReviewFacts:
    """What the judge must know of a person. `user` is a current row, or None."""
    if user is None:
        return ReviewFacts(None, active=False, permitted=False, groups=frozenset(), verdict=verdict, digest=digest)
    return ReviewFacts(
        by=user.pk,
        active=bool(user.is_active),
        permitted=has_permission(user, ANSWER, request) if permitted is None else permitted,
        groups=groups(user),
        verdict=verdict,
        digest=digest,
        comment=comment,
    )
