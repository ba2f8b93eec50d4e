"""Who and which: from what a caller passes to the ids and labels that are stored."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model

from flows.conf import conf
from flows.core import payload
from flows.core.misuse import NotAUser, UnknownIntent, UnknownWorkflow, UsageError
from flows.models import Workflow

#: So much of a reason is kept.
MAX_REASON = 2000


def workflow_id(workflow: Any) -> UUID:
    """The id behind a workflow, a start's answer, a UUID or its text.

    Raises:
        UnknownWorkflow: it is none of these.
    """
    return _uuid(getattr(workflow, "id", workflow), UnknownWorkflow)


def intent_id(intent: Any) -> UUID:
    """The id behind an intent, something that has an `intent_id`, a UUID or its text.

    Raises:
        UnknownIntent: it is none of these.
    """
    found = getattr(intent, "intent_id", None) or getattr(intent, "id", intent)
    return _uuid(found, UnknownIntent)


def _uuid(value: Any, error: type[UnknownWorkflow | UnknownIntent]) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        return uuid.UUID(str(value))
    except ValueError:
        raise error(value) from None


def user(by: Any, needed: Callable[[], UsageError] | None = None) -> Any:
    """Who asks, as every verb takes it: a stored user of the project's user model, or None where nobody is `needed`.

    A name or an unsaved user would be kept as a label only: two people could then not be told apart where four eyes are wanted, and
    nobody would be told of anything. Nobody is logged in where it is an AnonymousUser: a view has then to ask for a login, so that is
    not taken for None.

    Raises:
        NotAUser: it is something else; or what `needed` makes, of whatever is no such user.
    """
    model: Any = get_user_model()
    stored = isinstance(by, model) and by.pk is not None and not by._state.adding  # noqa: SLF001 - Django's documented way to ask
    if stored or (by is None and needed is None):
        return by
    if needed is not None:
        raise needed()
    if isinstance(by, model):
        why = "a user that is not stored (not saved yet, or deleted)"
    elif getattr(by, "is_anonymous", False) is True:
        why = "which means that nobody is logged in"
    else:
        why = f"which is no user but of the type {type(by).__name__}"
    raise NotAUser(by, model._meta.label, why)  # noqa: SLF001 - Django's documented way to look at a model


def label(by: Any) -> str:
    """A text for a user that stays when the user is deleted; works with any user model.

    Raises:
        NotAUser: it is none. PayloadError: it cannot be stored.
    """
    if user(by) is None:
        return ""
    text = str(by.get_username()) if hasattr(by, "get_username") else str(by)
    payload.check_text(text, "the name of who asks")
    return text


def reason(text: object, most: int = MAX_REASON) -> str:
    """A reason as it is kept: what PostgreSQL cannot store is replaced, what is too long is cut.

    Raises:
        PayloadError: it is no text.
    """
    return payload.as_text(text, "the reason").replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:most]


def subject_text(subject: Any) -> str:
    """The object that a run is about, as text.

    Raises:
        PayloadError: it cannot be stored.
    """
    meta = getattr(subject, "_meta", None)
    text = f"{meta.label_lower}:{subject.pk}" if meta is not None else str(subject or "")
    payload.check_text(text, "the subject", payload.MAX_TEXT)
    return text


def user_key(by: Any) -> Any:
    """The primary key of a user, or None.

    Raises:
        NotAUser: it is none.
    """
    return None if user(by) is None else by.pk


def alias(using: str | None) -> str:
    """The database alias of the record."""
    return using or str(conf.DATABASE)


def get(workflow: Any, using: str | None = None) -> Workflow:
    """The workflow's row.

    Raises:
        UnknownWorkflow: there is none.
    """
    row_id = workflow_id(workflow)
    found = Workflow.objects.using(alias(using)).filter(pk=row_id).first()
    if found is None:
        raise UnknownWorkflow(workflow)
    return found
