"""Policies and competence envelopes: under what workflows may act. A closed envelope is opened again here, with a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import ReadOnlyAdmin
from flows.models import Competence, Policy
from flows.services import competence


@admin.register(Policy)
class PolicyAdmin(ReadOnlyAdmin):
    """Every version, the newest first; a policy changes by its next version (`flows.policies`, `manage.py flows policy`)."""

    list_display = ("name", "version", "blocks", "by_label", "at")
    list_display_links = ("name",)
    search_fields = ("name",)
    search_help_text = _("A part of the policy's name")
    ordering = ("name", "-version")
    fields = ("name", "version", "says", "blocks", "digest", "note", "by_label", "at")
    readonly_fields = fields

    @admin.display(description=_("body"))
    def says(self, obj: Policy) -> SafeString:
        return rendering.value(obj.body)


class ReasonForm(ActionForm):
    """Why it is done: kept with the envelope, and in the history."""

    reason = forms.CharField(label=_("reason"), required=False, max_length=500)


@admin.register(Competence)
class CompetenceAdmin(ReadOnlyAdmin):
    """The closed ones first. Opening one again needs a permission and a reason."""

    list_display = ("flow_name", "node", "release", "errors", "chip", "note", "by_label", "updated_at")
    list_display_links = None
    ordering = ("closed_at", "flow_name", "node")
    actions = ("open_again",)  # type: ignore[assignment]
    action_form = ReasonForm

    @admin.display(description=_("errors"))
    def errors(self, obj: Competence) -> str:
        return gettext("%(burned)s of %(allowed)s") % {"burned": obj.burned, "allowed": obj.allowed}

    @admin.display(description=_("envelope"))
    def chip(self, obj: Competence) -> SafeString:
        return rendering.chip("human", gettext("closed")) if obj.closed_at else rendering.chip("complete", gettext("open"))

    def has_open_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("outlast_flows.open_competence")

    @admin.action(description=_("Open again: errors are counted anew"), permissions=["open"])
    def open_again(self, request: HttpRequest, queryset: QuerySet[Competence]) -> None:
        reason = str(request.POST.get("reason", "")).strip()
        if not reason:
            self.message_user(request, gettext("Say why: the reason is kept."), messages.ERROR)
            return
        for row in queryset:
            done = competence.open_again(
                row.flow_name, row.node, release=row.release, reason=reason, by=request.user, using=self.alias
            )
            if done:
                self.log_change(request, row, [{"changed": {"fields": ["closed_at"], "reason": reason[:500]}}])
            said = gettext("%s is open again; resume the runs that it stopped.") if done else gettext("%s is open already.")
            self.message_user(request, said % row, messages.SUCCESS if done else messages.WARNING)


__all__: list[Any] = ["CompetenceAdmin", "PolicyAdmin", "ReasonForm"]
