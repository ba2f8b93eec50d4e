"""Policies and competence envelopes: under what workflows may act. The next version is published here, and a closed envelope opened again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering, ruling
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.core import payload
from flows.models import Competence, CompetenceOpening, Policy, Workflow
from flows.services import competence, policies

MAX_ROWS = 100


@admin.register(Policy)
class PolicyAdmin(DecidingAdmin):
    """Every version, the newest first; a policy changes by its next version, and the runs that it stops adopt it on their own pages."""

    list_display = ("name", "version", "blocks", "by_label", "at")
    list_display_links = ("name",)
    search_fields = ("name",)
    search_help_text = _("A part of the policy's name")
    ordering = ("name", "-version")
    fields = ("name", "version", "says", "blocks", "digest", "shown_note", "by_label", "at", "stops")
    readonly_fields = fields
    decide_permission = policies.PERMISSION
    decide_section = "outlast_flows/includes/publish.html"

    @admin.display(description=_("body"))
    def says(self, obj: Policy) -> SafeString:
        return rendering.value(payload.decode(obj.body))

    @admin.display(description=_("note"))
    def shown_note(self, obj: Policy) -> SafeString | str:
        return rendering.block(obj.note) if obj.note else "–"

    @admin.display(description=_("runs that wait for it to be adopted"))
    def stops(self, obj: Policy) -> SafeString | str:
        return _linked(policies.stopped(obj.name, using=self.alias)[:MAX_ROWS], self, "oa-ways")

    def is_offered(self, obj: Policy) -> bool:
        return not Policy.objects.using(self.alias).filter(name=obj.name, version__gt=obj.version).exists()

    def form_of(self, obj: Policy, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return ruling.publish_form(obj, data)

    def decide(self, obj: Policy, by: Any, given: Mapping[str, Any]) -> Took:
        return ruling.publish(obj, by, given, self.alias)


@admin.register(Competence)
class CompetenceAdmin(DecidingAdmin):
    """The closed ones first. Opening one again needs a permission and a reason; each opening is kept."""

    list_display = ("named", "release", "errors", "chip", "updated_at")
    list_display_links = ("named",)
    ordering = ("closed_at", "flow_name", "node")
    fields = ("flow_name", "node", "release", "errors", "chip", "closed_at", "updated_at", "stops", "openings")
    readonly_fields = fields
    decide_permission = competence.PERMISSION
    decide_section = "outlast_flows/includes/open_envelope.html"

    @admin.display(description=_("node"))
    def named(self, obj: Competence) -> str:
        return f"{obj.flow_name}.{obj.node}"

    @admin.display(description=_("errors"))
    def errors(self, obj: Competence) -> str:
        return gettext("%(burned)s of %(allowed)s") % {"burned": obj.burned, "allowed": obj.allowed}

    @admin.display(description=_("envelope"))
    def chip(self, obj: Competence) -> SafeString:
        return rendering.chip("human", gettext("closed")) if obj.closed_at else rendering.chip("complete", gettext("open"))

    @admin.display(description=_("runs that it stopped"))
    def stops(self, obj: Competence) -> SafeString | str:
        return _linked(self._stopped(obj)[:MAX_ROWS], self, "oa-ways")

    @admin.display(description=_("opened again"))
    def openings(self, obj: Competence) -> SafeString | str:
        rows = CompetenceOpening.objects.using(self.alias).filter(flow_name=obj.flow_name, node=obj.node, release=obj.release)
        lines = [
            rendering.dated(
                format_html("{}: {}", rendering.inline(row.by_label or "–"), rendering.inline(row.reason)),
                gettext("%(moment)s, after {burned} of {allowed} errors").format(burned=row.burned, allowed=row.allowed),
                row.at,
            )
            for row in rows.order_by("-pk")[:MAX_ROWS]
        ]
        return rendering.lines(lines) if lines else "–"

    def is_offered(self, obj: Competence) -> bool:
        return obj.closed_at is not None or bool(self._stopped(obj))

    def form_of(self, obj: Competence, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return ruling.open_form(obj, data)

    def decide(self, obj: Competence, by: Any, given: Mapping[str, Any]) -> Took:
        return ruling.open_again(obj, by, given, self.alias)

    def _stopped(self, obj: Competence) -> list[Workflow]:
        return competence.stopped(obj.flow_name, obj.node, release=obj.release, using=self.alias)


def _linked(rows: Iterable[Workflow], page: DecidingAdmin, anchor: str) -> SafeString | str:
    """Links to the pages of runs."""
    links = [
        format_html(
            '<a href="{}#{}">{}</a>', page.url("outlast_flows_workflow_change", row.pk), anchor, rendering.inline(str(row))
        )
        for row in rows
    ]
    return rendering.lines(links) if links else "–"


__all__: list[Any] = ["CompetenceAdmin", "PolicyAdmin"]
