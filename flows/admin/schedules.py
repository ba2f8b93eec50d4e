"""Schedules and their occurrences: when each comes next, and by which policy; what became of each moment; and what people do about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering, schedule_forms
from flows.admin.read_only import ReadOnlyAdmin
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.admin.records import FixedFilter
from flows.core import payload, visible
from flows.core.errors import DefinitionError, OutlastError
from flows.core.schedules.words import CODES, OccurrenceOrigin, OccurrenceStatus
from flows.models import Occurrence, Schedule
from flows.services import redacting
from flows.services.schedules import acting
from flows.services.schedules.acting import PERMISSION

#: A status → the class of its chip.
CHIPS = {"started": "running", "done": "complete", "failed": "failed", "cancelled": "cancelled"}
NEXT, NEWEST = 10, 20


class OccurrenceStatusFilter(FixedFilter):
    title, parameter_name, words = _("status"), "status", tuple(status.value for status in OccurrenceStatus)


class OccurrenceOriginFilter(FixedFilter):
    title, parameter_name, words = _("origin"), "origin", tuple(origin.value for origin in OccurrenceOrigin)


class OccurrenceCodeFilter(FixedFilter):
    title, parameter_name, words = _("code"), "code", tuple(CODES)


@admin.register(Schedule)
class ScheduleAdmin(DecidingAdmin):
    """Those of code and those that people made here."""

    list_display = ("title", "shown_flow", "when", "chip", "next_at", "last_at", "shown_user", "origin")
    list_display_links = ("title",)
    search_fields = ("name",)
    search_help_text = _("A part of the schedule's name")
    ordering = ("name",)
    fields = (
        "title", "shown_flow", "chip", "when", "shown_zone", "coming", "newest", "shown_user", "says", "policies", "origin", "revision",
        "planned_until", "last_at", "shown_reason", "paused_by", "updated_at",
    )  # fmt: skip
    readonly_fields = fields
    decide_permission = PERMISSION
    decide_section = "outlast_flows/includes/schedule_act.html"

    @admin.display(description=_("schedule"))
    def title(self, obj: Schedule) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("flow"))
    def shown_flow(self, obj: Schedule) -> SafeString:
        return rendering.inline(obj.flow_name)

    @admin.display(description=_("when"))
    def when(self, obj: Schedule) -> SafeString:
        return rendering.inline(f"{obj.kind}: {obj.expression}")

    @admin.display(description=_("time zone"))
    def shown_zone(self, obj: Schedule) -> SafeString:
        return rendering.inline(obj.time_zone)

    @admin.display(description=_("state"))
    def chip(self, obj: Schedule) -> SafeString:
        if obj.paused_at is not None:
            return rendering.chip("human", gettext("paused"))
        return rendering.chip("alive", gettext("live")) if obj.next_at else rendering.chip("pending", gettext("nothing comes"))

    @admin.display(description=_("accountable user"))
    def shown_user(self, obj: Schedule) -> SafeString | str:
        return rendering.inline(obj.user_label) if obj.user_label else "–"

    @admin.display(description=_("the next ten"))
    def coming(self, obj: Schedule) -> SafeString | str:
        try:
            found = acting.coming(obj, NEXT, using=self.alias)
        except DefinitionError as error:
            return rendering.inline(str(error))
        lines = [
            format_html(
                '{} {}<div class="oa-quiet">{} UTC</div>',
                rendering.inline(one.local),
                rendering.chip("pending", one.by) if one.by else "",
                one.at.strftime("%Y-%m-%d %H:%M:%S"),
            )
            for one in found
        ]
        return rendering.lines(lines) if lines else gettext("Nothing comes any more.")

    @admin.display(description=_("the newest occurrences"))
    def newest(self, obj: Schedule) -> SafeString | str:
        rows = Occurrence.objects.using(self.alias).filter(schedule_id=obj.pk).order_by("-scheduled_for")[:NEWEST]
        lines = [
            format_html(
                '<a href="{}">{}</a> {} {}',
                self.url("outlast_flows_occurrence_change", row.pk),
                rendering.inline(row.local),
                chip_of(row),
                row.code,
            )
            for row in rows
        ]
        return rendering.lines(lines) if lines else "–"

    @admin.display(description=_("input"))
    def says(self, obj: Schedule) -> SafeString:
        return rendering.value(redacting.shown("input", obj.input))

    @admin.display(description=_("policies"))
    def policies(self, obj: Schedule) -> SafeString:
        named = (
            "repeated",
            "missing",
            "missed",
            "window",
            "cap",
            "overlap",
            "cooldown",
            "jitter",
            "compute",
            "calendar",
            "priority",
            "tenant",
        )
        return rendering.lines([rendering.inline(f"{name}: {value}") for name in named if (value := getattr(obj, name))])

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Schedule) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"

    def is_offered(self, obj: Schedule) -> bool:
        return True

    def form_of(self, obj: Schedule, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return schedule_forms.act_form(obj, data)

    def decide(self, obj: Schedule, by: Any, given: Mapping[str, Any]) -> Took:
        return schedule_forms.act(obj, by, given, self.alias)

    # ------------------------------------------------------------------ a new one

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_decide_permission(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Make one, by POST only."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = schedule_forms.NewScheduleForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            try:
                took = schedule_forms.make(form.cleaned_data, request.user, self.alias)
            except OutlastError as error:
                form.add_error(None, visible.plain(str(error)))
            else:
                made = acting.get(form.cleaned_data["name"], using=self.alias)
                self.log_addition(request, made, took.noted)
                self.message_user(request, took.said, took.level)
                return HttpResponseRedirect(self.url("outlast_flows_schedule_change", made.pk))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "decide_section": self.decide_section,
            "title": gettext("Make a schedule"),
            "decide_form": form,
            "decide_errors": form.errors,
            "list_url": self.url("outlast_flows_schedule_changelist"),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/outlast_flows/decided/add.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response


@admin.register(Occurrence)
class OccurrenceAdmin(ReadOnlyAdmin):
    """Each moment, the newest first, also those that were left away, with the reason."""

    list_display = ("shown_schedule", "shown_local", "chip", "code", "origin", "shown_run", "tries")
    list_display_links = ("shown_local",)
    list_filter = (OccurrenceStatusFilter, OccurrenceCodeFilter, OccurrenceOriginFilter)
    list_select_related = ("schedule",)
    search_fields = ("schedule__name",)
    search_help_text = _("The whole name of a schedule")
    ordering = ("-pk",)
    fields = (
        "shown_schedule", "shown_local", "scheduled_for", "chip", "code", "says", "origin", "revision", "shown_run", "tries", "due_at",
        "passed_to", "planned_at", "started_at", "ended_at", "by_label", "shown_reason",
    )  # fmt: skip
    readonly_fields = fields

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        term = search_term.strip()
        return (queryset.filter(schedule__name=term) if term and payload.is_text(term) else queryset), False

    @admin.display(description=_("schedule"))
    def shown_schedule(self, obj: Occurrence) -> SafeString:
        return rendering.inline(obj.schedule.name)

    @admin.display(description=_("local time"))
    def shown_local(self, obj: Occurrence) -> SafeString:
        return rendering.inline(obj.local)

    @admin.display(description=_("status"))
    def chip(self, obj: Occurrence) -> SafeString:
        return chip_of(obj)

    @admin.display(description=_("what the code says"))
    def says(self, obj: Occurrence) -> str:
        told = CODES.get(obj.code, "–") if obj.status != OccurrenceStatus.DONE else "–"
        moment = formats.localize(timezone.localtime(obj.passed_to)) if obj.passed_to else ""
        return f"{told} {moment}".strip()

    @admin.display(description=_("workflow"))
    def shown_run(self, obj: Occurrence) -> SafeString | str:
        if obj.workflow_id is None:
            return "–"
        return format_html('<a href="{}">{}</a>', self.url("outlast_flows_workflow_change", obj.workflow_id), obj.workflow_id)

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Occurrence) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"


def chip_of(obj: Occurrence) -> SafeString:
    """Its status."""
    return rendering.chip(CHIPS.get(obj.status, "pending"), obj.status)


__all__: list[Any] = ["OccurrenceAdmin", "ScheduleAdmin"]
