"""Commitments: what workflows owe to somebody outside, the live ones first; and the form that says what becomes of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering, settling
from flows.admin.read_only import OfferedFilter, as_uuid
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.admin.records import RunRecordAdmin, shortened
from flows.core import payload, visible
from flows.core.protocol import CommitmentStatus
from flows.models import Commitment
from flows.models.commitment import LIVE
from flows.services import redacting, undoing
from flows.services.commitments import PERMISSION

MAX_KINDS = 30


class StatusFilter(OfferedFilter):
    """The live ones, unless another status is asked for."""

    title = _("status")
    parameter_name = "status"
    default = ("live", _("Live"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("all", _("All")), *((status.value, status.value) for status in CommitmentStatus)]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Commitment]) -> QuerySet[Commitment]:
        match self.value():
            case None:
                return queryset.filter(status__in=LIVE)
            case "all":
                return queryset
            case status:
                return queryset.filter(status=status)


class KindFilter(OfferedFilter):
    """By kind: those of live commitments, found by one step in their index for each."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        kinds: list[str] = []
        live = Commitment.objects.using(model_admin.alias).filter(status__in=LIVE).order_by("kind").values_list("kind", flat=True)
        while len(kinds) < MAX_KINDS:
            following = (live.filter(kind__gt=kinds[-1]) if kinds else live).first()
            if following is None:
                break
            kinds.append(following)
        return [(kind, visible.plain(kind)) for kind in kinds]

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Commitment]) -> QuerySet[Commitment]:
        kind = self.value()
        if kind is None:
            return queryset
        return queryset.filter(kind=kind) if payload.is_text(kind) else queryset.none()  # there are more than it offers


@admin.register(Commitment)
class CommitmentAdmin(DecidingAdmin, RunRecordAdmin):
    """What is owed, until when, and how it ends."""

    list_display = ("named", "of_workflow", "stands", "deadline_at")
    list_display_links = ("named",)
    list_filter = (StatusFilter, KindFilter)
    fields = (
        *("title", "shown_reference", "chip", "shown_kind", "of_workflow", "of_operation", "node", "visit", "shown_terms"),
        *("releasable", "kept_until", "may_defer", "deadline_at", "breached_at", "shown_holder", "shown_reason"),
        *("opened_at", "closed_at", "shown_closed_by"),
    )
    readonly_fields = (
        *("title", "shown_reference", "chip", "shown_kind", "of_workflow", "of_operation", "shown_terms"),
        *("kept_until", "shown_holder", "shown_reason", "shown_closed_by"),
    )
    search_fields = ("workflow_id",)
    search_help_text = _("The whole id of a workflow")
    decide_permission = PERMISSION
    decide_section = "outlast_flows/includes/settle.html"

    def form_of(self, obj: Commitment, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return settling.SettleForm(data)

    def is_offered(self, obj: Commitment) -> bool:
        return settling.is_offered(obj)

    def decide(self, obj: Commitment, by: Any, given: Mapping[str, Any]) -> Took:
        return settling.take(obj, by, given, self.alias)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("terms")

    @admin.display(description=_("commitment"))
    def named(self, obj: Commitment) -> SafeString:
        """Its name; its kind where that is another word, and what it refers to."""
        kind = rendering.inline(obj.kind) if obj.kind != obj.name else ""
        reference = rendering.inline(shortened(obj.reference, 40)) if obj.reference else ""
        return format_html('{}<div class="oa-quiet">{} {}</div>', rendering.inline(obj.name), kind, reference)

    @admin.display(description=_("status"))
    def stands(self, obj: Commitment) -> SafeString:
        """And since when it is held, or when that ended; while it is held, what could not be said of it."""
        if obj.closed_at:
            return rendering.dated(self.chip(obj), _("closed %(moment)s"), obj.closed_at)
        held = rendering.dated(self.chip(obj), _("held since %(moment)s"), obj.opened_at)
        return rendering.lines([held, rendering.inline(shortened(obj.reason))]) if obj.reason else held

    @admin.display(description=_("commitment"))
    def title(self, obj: Commitment) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("kind"))
    def shown_kind(self, obj: Commitment) -> SafeString:
        return rendering.inline(obj.kind)

    @admin.display(description=_("reference"))
    def shown_reference(self, obj: Commitment) -> SafeString:
        return rendering.inline(obj.reference or "–")

    @admin.display(description=_("terms"))
    def shown_terms(self, obj: Commitment) -> SafeString | str:
        return rendering.value(redacting.shown("terms", obj.terms)) if obj.terms is not None else "–"

    @admin.display(description=_("held by"))
    def shown_holder(self, obj: Commitment) -> SafeString:
        return rendering.inline(obj.holder or "–")

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Commitment) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"

    @admin.display(description=_("closed by"))
    def shown_closed_by(self, obj: Commitment) -> SafeString:
        return rendering.inline(obj.closed_by or "–")

    @admin.display(description=_("release held back until"))
    def kept_until(self, obj: Commitment) -> SafeString | str:
        """What must be settled first: undoing that may need it."""
        found = [one for one in undoing.held_back(obj.workflow_id, self.alias) if one.commitment == obj.pk]
        links = [
            format_html(
                '<a href="{}">{}</a>', self.url("outlast_flows_operation_change", quote(operation)), rendering.inline(operation)
            )
            for one in found
            for operation in one.until
        ]
        return rendering.lines(links) if links else "–"

    @admin.display(description=_("begun by"))
    def of_operation(self, obj: Commitment) -> SafeString | str:
        url = self.url("outlast_flows_operation_change", quote(obj.operation_id)) if obj.operation_id else ""
        return format_html('<a href="{}">{}</a>', url, rendering.inline(obj.operation_id or "")) if url else "–"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Commitment], search_term: str
    ) -> tuple[QuerySet[Commitment], bool]:
        number = as_uuid(search_term)
        if not search_term.strip():
            return queryset, False
        return (queryset.filter(workflow_id=number) if number else queryset.none()), False
