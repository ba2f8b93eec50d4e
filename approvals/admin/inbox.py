"""The inbox: what waits, soonest to expire first. Behind each of its links is the decision page; several can be answered together."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.admin import page
from approvals.admin.filters import AudienceFilter, FlowFilter, QueueFilter, SoonFilter, is_past, queue_of
from approvals.admin.several import SeveralPages
from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.services import inbox, people
from flows.admin import rendering
from flows.admin.read_only import as_uuid
from flows.admin.records import LARGE
from flows.core import payload


@admin.register(Request)
class RequestAdmin(SeveralPages):
    """Requests are read here and answered on their own page, or together with others; nothing else changes them."""

    list_display = ("title", "expires", "chip", "asks", "looks", "run")
    list_display_links = None
    list_filter = (QueueFilter, SoonFilter, FlowFilter, AudienceFilter)
    show_facets = admin.ShowFacets.ALLOW
    search_fields = ("workflow__key",)
    search_help_text = _("The whole id or the whole key of a workflow")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).select_related("workflow", "intent").annotate(now=people.FlowsNow())
        return cast("QuerySet[Any]", rows.defer("candidate", "evidence", *(f"workflow__{name}" for name in LARGE)))

    def get_ordering(self, request: HttpRequest) -> Any:
        """The soonest to expire first; of what is over, the newest."""
        return ("-pk",) if is_past(request) else inbox.SOONEST

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Of what waits not that it does; of what was decided nothing that only matters while something waits."""
        queue = queue_of(request)
        without = {"answered": ("expires", "looks"), "all": ("looks",)}.get(queue or "", ("chip",))
        return tuple(name for name in self.list_display if name not in without)

    @admin.display(description=_("request"))
    def title(self, obj: Request) -> SafeString:
        link = format_html('<a class="oa-title" href="{}">{}</a>', self.decide_url(obj.pk), rendering.inline(page.subject(obj)))
        if obj.revision == 1:
            return link
        told = gettext("revision %(revision)s") % {"revision": obj.revision}
        return format_html('{}<div class="oa-quiet">{}</div>', link, told)

    @admin.display(description=_("expires in"))
    def expires(self, obj: Any) -> SafeString | str:
        return page.time_left(obj.expires_at, obj.now) if obj.status == RequestStatus.PENDING else "–"

    @admin.display(description=_("status"))
    def chip(self, obj: Request) -> SafeString:
        return rendering.chip(obj.status, obj.get_status_display())

    @admin.display(description=_("asked"))
    def asks(self, obj: Request) -> SafeString:
        return format_html('<div class="oa-asked">{}</div>', rendering.inline(page.shortened(page.asked(obj), 60)))

    @admin.display(description=_("looked at by"))
    def looks(self, obj: Request) -> SafeString | str:
        pending = obj.status == RequestStatus.PENDING
        return rendering.inline(page.shortened(obj.claimed_label, 60)) if obj.claimed_label and pending else "–"

    @admin.display(description=_("workflow"))
    def run(self, obj: Request) -> SafeString:
        """Flow and key; of a run without a key enough of its id to tell it apart."""
        named = f"{obj.workflow.flow_name} {obj.workflow.key or str(obj.workflow_id)[:13]}"
        return format_html('<div class="oa-asked">{}</div>', rendering.inline(page.shortened(named, 60)))

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if number := as_uuid(term):
            return queryset.filter(workflow_id=number), False
        if not payload.is_text(term):
            return queryset.none(), False
        return (queryset.filter(workflow__key=term) if term else queryset), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"title": gettext("Approval requests"), **(extra_context or {})})
