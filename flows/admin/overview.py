"""Overview: one page that says how everything is, each figure the way to its list. It changes nothing, and is never cached."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering, workflow_filters
from flows.admin.read_only import ReadOnlyAdmin
from flows.core.protocol import Status
from flows.core.stillness import CLOCK_STOPPED, in_words
from flows.models import Overview
from flows.services.overview import Promised, overview
from flows.store import counts
from flows.store.overview import Seen

#: Name → its words, the list behind it, and whether any of it is something that somebody should look at.
TILES: dict[str, tuple[Any, str, bool]] = {
    "ready": (_("Ready, and not taken yet"), "workflow_changelist?status=runnable", False),
    "requests": (_("Open requests to people"), "wait_changelist?status=open&kind=people", False),
    "doubts": (_("Effects in doubt"), "operation_changelist?queue=doubt", True),
    "mitigations": (_("Compensations and releases that failed"), "operation_changelist", True),
    "breached": (_("Commitments over their deadline"), "commitment_changelist?status=breached", True),
    "events": (_("Events that nobody took"), "event_changelist?place=unclaimed", True),
    "dependencies": (_("Dependencies that are not healthy"), "dependency_changelist", True),
    "findings": (_("Orphans"), "finding_changelist", True),
    "holds": (_("Holds"), "hold_changelist", True),
    "workers": (_("Live workers"), "worker_changelist?status=alive", False),
}
VIEW = "outlast_flows.view_workflow"


@admin.register(Overview)
class OverviewAdmin(ReadOnlyAdmin):
    """Its list is the page; there is no row."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.has_perm(VIEW))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Nothing has a page here: a run has its own."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self.url("outlast_flows_workflow_change", object_id))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        found = overview(self.alias)
        runs = self.url("outlast_flows_workflow_changelist")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Overview"),
            "media": self.media,
            "chips": [
                {**one, "query": f"{runs}{one['query']}"} for one in workflow_filters.chips_of(found.statuses, found.waits, {})
            ],
            "alarms": _alarms(found.seen, found.statuses),
            "tiles": [self._tile(name, found.seen[name]) for name in TILES],
            "since": found.since,
            "until": found.until,
            "buckets": _buckets(found.buckets),
            "objectives": [_objective(one) for one in found.objectives],
            **(extra_context or {}),
        }
        response = TemplateResponse(request, "admin/outlast_flows/overview/change_list.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _tile(self, name: str, seen: Seen) -> dict[str, Any]:
        label, target, alarming = TILES[name]
        page, _mark, query = target.partition("?")
        url = self.url(f"outlast_flows_{page}")
        return {
            "label": label,
            "count": workflow_filters.amount(seen.count),
            "oldest": in_words(seen.oldest)
            if seen.oldest is not None and seen.count <= counts.MOST and name != "workers"
            else "",
            "url": f"{url}?{query}" if url and query else url,
            "alarming": alarming and bool(seen.count),
        }


def _alarms(seen: dict[str, Seen], statuses: dict[str, int]) -> list[str]:
    """What keeps everything from going on."""
    found = []
    ticked = seen["tick"].oldest
    if ticked is None or ticked > CLOCK_STOPPED.total_seconds():
        found.append(gettext("Nobody looks at the clock: start a worker of the control queue, and Beat."))
    if not seen["workers"].count and statuses[Status.RUNNABLE]:
        found.append(gettext("Work is ready, and no worker lives."))
    return found


def _buckets(spent: dict[str, float]) -> list[dict[str, Any]]:
    """Where the time went, each with its share as a bar."""
    total = sum(spent.values())
    return [{"name": name, "spent": in_words(seconds), "bar": _bar(seconds / total)} for name, seconds in spent.items() if total]


def _bar(share: float) -> SafeString:
    """A share as a picture whose text says the same; no style attribute, so a strict policy stays."""
    told = f"{share:.1%}"
    return format_html(
        '<svg class="oa-bar" role="img" aria-label="{}" width="120" height="12" viewBox="0 0 100 10" preserveAspectRatio="none">'
        '<rect class="oa-bar-all" width="100" height="10"/><rect class="oa-bar-reserved" width="{}" height="10"/></svg> {}',
        told, f"{100 * share:.1f}", told,
    )  # fmt: skip


def _objective(one: Promised) -> dict[str, Any]:
    kept = one.kept
    word = "waiting" if kept.kept is None else "failed" if kept.breached else "complete"
    label = gettext("nothing so far") if kept.kept is None else gettext("missed") if kept.breached else gettext("kept")
    return {
        "flow": f"{one.flow} {one.version}",
        "objective": kept.objective,
        "within": in_words(kept.within),
        "promised": f"{kept.share:.1%}",
        "kept": f"{kept.kept:.1%}" if kept.kept is not None else "–",
        "of": kept.of,
        "chip": rendering.chip(word, label),
        "blame": ", ".join(f"{name} ({count})" for name, count in kept.blame.items()) or "–",
    }
