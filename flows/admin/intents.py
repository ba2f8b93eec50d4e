"""Intents: what is wanted, the runs that work for it, what a new goal would end, and the goals before."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import ReadOnlyAdmin, as_uuid
from flows.admin.records import LARGE, shortened
from flows.core.protocol import LIVE
from flows.models import Intent, Workflow
from flows.services.preview import Ending, preview

MAX_ROWS = 50


@admin.register(Intent)
class IntentAdmin(ReadOnlyAdmin):
    """What somebody wants, its version, its runs, and the versions before."""

    list_display = ("shown_goal", "version", "status", "live", "accountable", "updated_at")
    fields = (
        *("id", "shown_goal", "version", "shown_status", "runs", "would_end"),
        *("user", "accountable", "created_at", "updated_at", "revisions"),
    )
    readonly_fields = ("shown_goal", "shown_status", "runs", "would_end", "accountable", "revisions")
    search_fields = ("id",)
    search_help_text = _("The whole id of an intent")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        of_it = Workflow.objects.filter(intent_id=OuterRef("pk"), status__in=[status.value for status in LIVE]).order_by()
        counted = of_it.values("intent_id").annotate(number=Count("pk")).values("number")
        rows: QuerySet[Any] = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(live_runs=Coalesce(Subquery(counted, output_field=IntegerField()), 0))
        return found

    @admin.display(description=_("live runs"))
    def live(self, obj: Any) -> int:
        return int(obj.live_runs)

    @admin.display(description=_("accountable user"))
    def accountable(self, obj: Intent) -> SafeString:
        return rendering.inline(obj.user_label)

    @admin.display(description=_("goal"))
    def shown_goal(self, obj: Intent) -> SafeString:
        return rendering.inline(obj.goal or str(obj.pk))

    @admin.display(description=_("status"))
    def shown_status(self, obj: Any) -> SafeString:
        """Active means wanted; whether anything is under way for it is another matter."""
        if obj.status != "active":
            return rendering.chip(obj.status)
        at_work = ngettext("%(count)s live run", "%(count)s live runs", obj.live_runs) % {"count": obj.live_runs}
        return format_html("{} {}", rendering.chip(obj.status), at_work if obj.live_runs else gettext("and no live run"))

    @admin.display(description=_("runs"))
    def runs(self, obj: Intent) -> SafeString | str:
        rows = list(Workflow.objects.using(self.alias).filter(intent_id=obj.pk).defer(*LARGE).order_by("-id")[: MAX_ROWS + 1])
        told = [
            format_html("{} {} ({} {})", self._run(row), rendering.chip(row.status), gettext("for version"), row.intent_version)
            for row in rows[:MAX_ROWS]
        ]
        more = [format_html("{}", gettext("… and older ones"))] if len(rows) > MAX_ROWS else []
        return rendering.lines([*told, *more]) or "–"

    @admin.display(description=_("a new goal would end"))
    def would_end(self, obj: Intent) -> SafeString | str:
        """As `flows preview` has it."""
        return rendering.lines([line for one in preview(obj, using=self.alias)[:MAX_ROWS] for line in self._ending(one)]) or "–"

    @admin.display(description=_("earlier versions"))
    def revisions(self, obj: Intent) -> SafeString:
        rows = obj.revisions.order_by("-version")[:MAX_ROWS]
        return rendering.lines(
            [
                format_html(
                    "{}: {} ({}, {} {})", r.version, rendering.inline(r.goal), r.ended_as, r.by_label, rendering.inline(r.reason)
                )
                for r in rows
            ]
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Intent], search_term: str
    ) -> tuple[QuerySet[Intent], bool]:
        number = as_uuid(search_term)
        if not search_term.strip():
            return queryset, False
        return (queryset.filter(pk=number) if number else queryset.none()), False

    def _run(self, row: Workflow) -> SafeString:
        name, url = rendering.inline(shortened(str(row))), self.url("outlast_flows_workflow_change", row.pk)
        return format_html('<a class="oa-run" href="{}">{}</a>', url, name) if url else name

    def _ending(self, one: Ending) -> list[SafeString]:
        """What the end of one run means, each thing that there is on a line of its own."""
        parts = (
            (gettext("interrupted"), [one.running] if one.running else []),
            (gettext("withdrawn"), one.withdrawn),
            (gettext("undone"), one.undone),
            (gettext("stands"), one.stands),
            (gettext("asked about first"), one.in_doubt),
            (gettext("released"), one.released),
            (gettext("left to a person"), one.by_people),
        )
        named = rendering.inline(shortened(f"{one.flow} {one.key or one.workflow}"))
        told = [format_html("{}: {}", label, rendering.inline(", ".join(what))) for label, what in parts if what]
        return [format_html("{} ({})", named, one.status), *told]
