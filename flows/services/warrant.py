"""What a decision of a person needs: a reason, and the right to decide. One rule for all that people decide about what runs may do.

The reason is kept with what was decided, so it is asked for everywhere. Whoever is named as `by` decides as a person: the right is looked up
anew, whatever page or process asks. Code that names no user decides for itself, and is trusted.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from flows.core.misuse import NotPermitted, ReasonMissing
from flows.services import identify


def reason(text: Any, what: str, *, most: int = identify.MAX_REASON) -> str:
    """The reason as it is kept: at most so much of it.

    Args:
        what: completes "Say …": "why the run is moved".
    Raises:
        ReasonMissing: there is none.
    """
    if not isinstance(text, str) or not text.strip():
        raise ReasonMissing(what)
    return identify.reason(text.strip(), most)


def check(by: Any, permission: str, using: str) -> None:
    """Let nobody pass who is a user without that right, and no anonymous one: a view that hands on its request's user is no code that decides.

    Raises:
        NotAUser: `by` is neither a stored user nor None. NotPermitted: `by` is a user who has it not, is not active, or is gone.
    """
    if identify.user(by) is not None and not is_permitted(by, permission, using):
        raise NotPermitted(identify.label(by), permission)


def is_permitted(by: Any, permission: str, using: str) -> bool:
    """Whether the user has that right, and is active, as the database says now: the object may be an hour old, with its rights in it."""
    users = get_user_model()._default_manager.using(using)  # noqa: SLF001 - does not assume `objects`
    found: Any = users.filter(pk=by.pk).first()
    return found is not None and found.is_active and found.has_perm(permission)
