"""Who and which: from what a caller passes to the ids and labels that are stored."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core import payload
from flows.core.errors import UnknownIntent, UnknownWorkflow
from flows.models import Workflow


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


def label(user: Any) -> str:
    """A text for a user that stays when the user is deleted; works with any user model.

    Raises:
        PayloadError: it cannot be stored.
    """
    if user is None:
        return ""
    text = str(user.get_username()) if hasattr(user, "get_username") else str(user)
    payload.check_text(text, "the name of who asks")
    return text


def reason(text: object, what: str = "the reason") -> str:
    """A reason as it is kept: what PostgreSQL cannot store is replaced, what is too long is cut.

    Raises:
        PayloadError: it is no text.
    """
    return payload.as_text(text, what).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:2000]


def user_key(user: Any) -> Any:
    """The primary key of a user, or None."""
    return getattr(user, "pk", None)


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
