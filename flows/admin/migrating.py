"""Taking one run to a newer version from its page: what would be done, the form, and the one call of the service."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext

from flows import registry
from flows.admin import rendering
from flows.admin.reasoned import ReasonedForm
from flows.core import visible
from flows.core.protocol import TERMINAL
from flows.models import Workflow
from flows.services.migrate import Answer, Migration, migrate

PERMISSION = "outlast_flows.operate_workflow"


class MigrateForm(ReasonedForm):
    """Why, and to which version: the one that was on the page."""

    purpose = "migrate"
    to = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


def context(obj: Workflow, form: MigrateForm | None, using: str) -> dict[str, Any]:
    """What the page says about a migration; empty where no version that is loaded here has a way from the run's."""
    steps = registry.steps(obj.flow_name, obj.flow_version)
    if not steps or obj.status in TERMINAL:
        return {}
    target = steps[-1]
    tried = migrate(obj.pk, to=target.version, dry_run=True, using=using)
    shown = form if form is not None else MigrateForm(initial={"to": target.version})
    return {
        "migration": {
            "to": target.version,
            "node": tried.to_node,
            "same": tried.to_node == tried.from_node,
            "reason": rendering.inline(tried.reason),
            "possible": tried.answer is Answer.WOULD_MIGRATE,
            "form": shown,
            "errors": shown.errors if form is not None else {},
        }
    }


def take(obj: Workflow, by: Any, given: dict[str, Any], using: str) -> Migration:
    """Migrate the run.

    Raises:
        OutlastError: there is no such version or run any more.
    """
    return migrate(obj.pk, by=by, reason=given["reason"], to=given["to"], using=using)


def told(found: Migration) -> tuple[str, int]:
    """What became of it, for a person, with the level of the message."""
    facts = {"to": found.to_version, "node": found.to_node, "reason": visible.plain(found.reason)}
    match found.answer:
        case Answer.MIGRATED:
            return gettext("Migrated: it goes on under version %(to)s, at %(node)s.") % facts, messages.SUCCESS
        case Answer.ALREADY:
            return gettext("It is of that version already."), messages.INFO
        case Answer.BUSY:
            return gettext("Not now: %(reason)s.") % facts, messages.WARNING
    return gettext("It was not migrated: %(reason)s.") % facts, messages.ERROR


def noted(found: Migration) -> str:
    """What the audit keeps."""
    return f"migrated from version {found.from_version} ({found.from_node}) to {found.to_version} ({found.to_node})"
