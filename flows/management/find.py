"""From what a person types to a row: a workflow by its id, a unique beginning of the id, or FLOW:KEY; a user by name."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from flows.core import visible
from flows.core.misuse import UnknownWorkflow
from flows.models import Workflow
from flows.services import identify, warrant

SHORT = re.compile(r"[0-9a-f]{1,3}")
BEGINNING = re.compile(r"[0-9a-f]{4,32}")


def workflow(text: str, using: str | None) -> UUID:
    """The id of the one workflow that is meant.

    Raises:
        UnknownWorkflow: there is none. CommandError: there are several, or the beginning is too short to tell.
    """
    rows = Workflow.objects.using(identify.alias(using)).order_by("id")
    flow, colon, key = text.partition(":")
    digits = text.replace("-", "").lower()
    if colon:
        rows = rows.filter(flow_name=flow, key=key)
    elif BEGINNING.fullmatch(digits):
        rows = rows.filter(id__gte=UUID(digits.ljust(32, "0")), id__lte=UUID(digits.ljust(32, "f")))
    elif SHORT.fullmatch(digits):
        raise CommandError(f"{text!r} is too short for the beginning of an id: 4 characters or more are needed, or FLOW:KEY.")
    else:
        raise UnknownWorkflow(visible.plain(text))
    found = list(rows[:4])
    if not found:
        raise UnknownWorkflow(visible.plain(text))
    if len(found) > 1:
        named = ", ".join(visible.plain(f"{row.pk} ({row})") for row in found[:3])
        raise CommandError(f"{text!r} is the beginning of several ids: {named}{', …' if len(found) > 3 else ''}.")
    return found[0].pk


def user(name: str | None, using: str | None) -> Any:
    """The user of that name, or None for no name.

    Raises:
        CommandError: there is none.
    """
    if not name:
        return None
    model = get_user_model()
    found = model._default_manager.using(identify.alias(using)).filter(**{model.USERNAME_FIELD: name}).first()  # noqa: SLF001
    if found is None:
        raise CommandError(f"There is no user {name!r}.")
    return found


def permitted(name: str, permission: str, using: str | None) -> Any:
    """The user of that name, who has that permission and is active.

    Raises:
        CommandError: there is none, or they may not.
    """
    found = user(name, using)
    if found is None or not warrant.is_permitted(found, permission, identify.alias(using)):
        raise CommandError(f"{name!r} may not do this: it needs the permission {permission}, and an active account.")
    return found
