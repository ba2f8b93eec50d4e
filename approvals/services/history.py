"""The admin's own history (LogEntry), beside the audit: people look for it there. It has no digest, and a superuser may delete it."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.utils.translation import gettext as _

from approvals.models import Request


def log(request: Request, user: Any, did: str, using: str) -> None:
    """Note what a person did to a request, where the admin is installed. `did`: an answer, or one of the words of `_message`."""
    if not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import CHANGE, LogEntry
    from django.contrib.contenttypes.models import ContentType

    kind = ContentType.objects.db_manager(using).get_for_model(Request)
    LogEntry.objects.using(using).create(
        user_id=user.pk,
        content_type_id=kind.pk,
        object_id=str(request.pk),
        object_repr=str(request)[:200],
        action_flag=CHANGE,
        change_message=_message(did),
    )


def _message(did: str) -> str:
    return {
        "approved": _("Approved this exact candidate."),
        "changes": _("Requested changes."),
        "denied": _("Denied."),
        "narrowed": _("Kept a part of it, which is asked about anew."),
        "answered": _("Answered what was asked."),
        "revoked": _("Took the approval back."),
        "claimed": _("Says that they are looking at it."),
        "released": _("Is not looking at it any more."),
        "assigned": _("Said who looks at it."),
    }[did]
