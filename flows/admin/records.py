"""The other records, read-only: waits, timers, workers and notices."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import OfferedFilter, ReadOnlyAdmin
from flows.core.protocol import ASKING, WAIT_KINDS, WaitStatus
from flows.models import Notice, Timer, TimerStatus, Wait, Worker, WorkerStatus
from flows.services import redacting

#: Columns of a workflow that no list shows.
LARGE = ("input", "result", "checkpoint")


class FixedFilter(OfferedFilter):
    """By one column with a closed list of words: no query looks for the ones in use."""

    words: tuple[str, ...] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in self.words]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class WaitStatusFilter(FixedFilter):
    title, parameter_name, words = _("status"), "status", tuple(status.value for status in WaitStatus)


class WaitKindFilter(FixedFilter):
    """By one kind, or those in which people are asked."""

    title, parameter_name, words = _("kind"), "kind", tuple(WAIT_KINDS)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("people", gettext("people are asked")), *super().lookups(request, model_admin)]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "people":
            return queryset.filter(kind__in=sorted(ASKING))
        return super().narrowed(request, queryset)


class TimerStatusFilter(FixedFilter):
    title, parameter_name, words = _("status"), "status", tuple(TimerStatus.values)


class WorkerStatusFilter(FixedFilter):
    title, parameter_name, words = _("status"), "status", tuple(WorkerStatus.values)


class RecordAdmin(ReadOnlyAdmin):
    """A record of a workflow."""

    ordering = ("-pk",)

    @admin.display(description=_("workflow"))
    def of_workflow(self, obj: Any) -> SafeString | str:
        url = self.url("outlast_flows_workflow_change", obj.workflow_id) if obj.workflow_id else ""
        return format_html('<a href="{}">{}</a>', url, obj.workflow_id) if url else "–"

    @admin.display(description=_("status"))
    def chip(self, obj: Any) -> SafeString:
        return rendering.chip(obj.status)


class RunRecordAdmin(RecordAdmin):
    """A record of a workflow, which is named as people know it: by flow and key."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("workflow").defer(*(f"workflow__{name}" for name in LARGE))

    @admin.display(description=_("workflow"))
    def of_workflow(self, obj: Any) -> SafeString:
        url, name = self.url("outlast_flows_workflow_change", obj.workflow_id), rendering.inline(shortened(str(obj.workflow)))
        return format_html('<a class="oa-run" href="{}">{}</a>', url, name) if url else name


def shortened(text: str, most: int = 60) -> str:
    """A name in a list; a key may be long."""
    return text if len(text) <= most else text[: most - 1] + "…"


@admin.register(Wait)
class WaitAdmin(RunRecordAdmin):
    """Why workflows are not computing."""

    list_display = ("shown_reason", "kind", "chip", "of_workflow", "node", "deadline_at", "opened_at")
    list_filter = (WaitStatusFilter, WaitKindFilter)
    fields = (*list_display, "event_type", "shown_key", "on_expiry", "epoch", "intent_version", "closed_at", "shown_evidence")
    readonly_fields = ("shown_reason", "chip", "of_workflow", "shown_key", "shown_evidence")

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Wait) -> SafeString:
        return rendering.inline(obj.reason)

    @admin.display(description=_("key"))
    def shown_key(self, obj: Wait) -> SafeString:
        return rendering.inline(obj.key)

    @admin.display(description=_("evidence"))
    def shown_evidence(self, obj: Wait) -> SafeString:
        return rendering.value(redacting.shown("evidence", obj.evidence))


@admin.register(Timer)
class TimerAdmin(RunRecordAdmin):
    """The moments that must be looked at."""

    list_display = ("kind", "shown_name", "due_at", "on_expiry", "chip", "of_workflow", "fired_at")
    list_filter = (TimerStatusFilter,)
    fields = (*list_display, "wait_id", "epoch", "intent_version")
    readonly_fields = ("shown_name", "chip", "of_workflow")

    @admin.display(description=_("name"))
    def shown_name(self, obj: Timer) -> SafeString | str:
        return rendering.inline(obj.name) if obj.name else "–"


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Who may own work, and until when."""

    list_display = ("name", "chip", "host", "pid", "shown_queues", "concurrency", "lease_until", "started_at", "ended_at")
    list_filter = (WorkerStatusFilter,)
    ordering = ("-id",)

    @admin.display(description=_("status"))
    def chip(self, obj: Worker) -> SafeString:
        return rendering.chip(obj.status)

    @admin.display(description=_("queues"))
    def shown_queues(self, obj: Worker) -> str:
        return ", ".join(obj.queues)


@admin.register(Notice)
class NoticeAdmin(RunRecordAdmin):
    """Messages owed to accountable users."""

    list_display = ("code", "outcome", "of_workflow", "user", "created_at", "tries", "sent_at", "gave_up_at")
    fields = list_display
    readonly_fields = ("of_workflow",)
    list_select_related = ("user", "workflow")
