"""Orphans: what the scan for liveness has found, what it saw, and the form that has one repaired or dismissed. What it saw is shown as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import OfferedFilter
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.admin.records import FixedFilter, RecordAdmin
from flows.core.liveness import DOES, KINDS, FindingStatus
from flows.models import Finding
from flows.models.finding import LABELS
from flows.services.liveness import acting

DISMISS = "dismiss"

#: Status → the look of its chip.
CHIPS = {
    FindingStatus.OPEN.value: "failed",
    FindingStatus.REPAIRED.value: "complete",
    FindingStatus.GONE.value: "complete",
    FindingStatus.DISMISSED.value: "cancelled",
}

#: What a subject is about → the page of it, where there is one.
PAGES = {
    "event": "outlast_flows_event_change",
    "operation": "outlast_flows_operation_change",
    "commitment": "outlast_flows_commitment_change",
    "budget": "outlast_flows_budget_change",
    "request": "outlast_approvals_request_change",
}


class FindingStatusFilter(OfferedFilter):
    """What is open, unless one asks for more."""

    title, parameter_name = _("status"), "status"
    default = (FindingStatus.OPEN.value, LABELS[FindingStatus.OPEN])

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        others = [(status.value, label) for status, label in LABELS.items() if status is not FindingStatus.OPEN]
        return [*others, ("all", _("All"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Finding]) -> QuerySet[Finding]:
        wanted = self.value() or FindingStatus.OPEN.value
        return queryset if wanted == "all" else queryset.filter(status=wanted)


class FindingKindFilter(FixedFilter):
    title, parameter_name, words = _("kind"), "kind", tuple(KINDS)


class ActForm(ReasonedForm):
    """What is done about it, and why."""

    purpose = "orphan"
    what = forms.ChoiceField(label=_("What is done"), widget=forms.RadioSelect)
    field_order = ("what", "reason")

    def __init__(self, finding: Finding, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        offered = [(one.value, f"{one.value}: {DOES[one]}") for one in acting.repairs(finding)]
        self.fields["what"] = forms.ChoiceField(
            label=_("What is done"),
            choices=[*offered, (DISMISS, _("dismiss: nothing is to be done, for as long as it is there"))],
            widget=forms.RadioSelect,
            initial=offered[0][0] if offered else DISMISS,
        )


@admin.register(Finding)
class FindingAdmin(DecidingAdmin, RecordAdmin):
    """What is open first. Nothing here asks for SQL: what mends itself is mended, and for the rest there is the form, or what else is named."""

    list_display = ("title", "shown_subject", "chip", "of_workflow", "first_seen", "last_seen", "times", "before")
    list_display_links = ("title",)
    list_filter = (FindingStatusFilter, FindingKindFilter)
    fields = (
        *(
            "title",
            "broken",
            "breaks",
            "shown_subject",
            "chip",
            "of_workflow",
            "first",
            "first_seen",
            "last_seen",
            "times",
            "before",
        ),
        *("tries", "shown_facts", "otherwise", "code", "shown_by", "shown_reason", "closed_at"),
    )
    readonly_fields = fields
    decide_permission = acting.PERMISSION
    decide_section = "outlast_flows/includes/orphan.html"

    # ------------------------------------------------------------------ what is decided

    def form_of(self, obj: Finding, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return ActForm(obj, data)

    def is_offered(self, obj: Finding) -> bool:
        return obj.status == FindingStatus.OPEN

    def decide(self, obj: Finding, by: Any, given: Mapping[str, Any]) -> Took:
        said: dict[str, Any] = {"by": by, "reason": given["reason"], "using": self.alias}
        if given["what"] == DISMISS:
            done = acting.dismiss(obj.pk, **said)
        else:
            done = acting.repair(obj.pk, how=given["what"], **said)
        level = messages.SUCCESS if done else messages.WARNING
        return Took(bool(done), self._said(done.answer), level, f"{given['what']}: {given['reason']}")

    def _said(self, answer: acting.Answer) -> str:
        match answer:
            case acting.Answer.ACCEPTED:
                return gettext("Done.")
            case acting.Answer.ALREADY:
                return gettext("It is not there any more, or somebody is at it. Nothing was changed.")
        return gettext("There was nothing to repair, or this process cannot: the next scan says whether it is still there.")

    # ------------------------------------------------------------------ what is shown

    @admin.display(description=_("kind"))
    def title(self, obj: Finding) -> SafeString:
        return rendering.inline(obj.kind)

    @admin.display(description=_("what is broken"))
    def broken(self, obj: Finding) -> str:
        return acting.kind_of(obj).broken

    @admin.display(description=_("it breaks"))
    def breaks(self, obj: Finding) -> str:
        return acting.kind_of(obj).breaks or "–"

    @admin.display(description=_("who looks first"))
    def first(self, obj: Finding) -> str:
        return acting.kind_of(obj).first

    @admin.display(description=_("what else there is to do"))
    def otherwise(self, obj: Finding) -> str:
        return acting.kind_of(obj).otherwise or "–"

    @admin.display(description=_("about"))
    def shown_subject(self, obj: Finding) -> SafeString:
        about, _colon, key = obj.subject.partition(":")
        url = self.url(PAGES[about], key) if about in PAGES and key else ""
        shown = rendering.inline(obj.subject)
        return format_html('<a href="{}">{}</a>', url, shown) if url else shown

    @admin.display(description=_("status"))
    def chip(self, obj: Finding) -> SafeString:
        return rendering.chip(CHIPS[obj.status], obj.get_status_display())

    @admin.display(description=_("what the scan saw"))
    def shown_facts(self, obj: Finding) -> SafeString:
        return rendering.value(obj.facts)

    @admin.display(description=_("by"))
    def shown_by(self, obj: Finding) -> SafeString | str:
        return rendering.inline(obj.by_label) if obj.by_label else "–"

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Finding) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"
