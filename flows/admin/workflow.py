"""Workflows: the list, and the page that answers where one is, what it waits for, who can end that, and what is legal next."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin import candidates, migrating, operation_page, rendering
from flows.admin.read_only import OfferedFilter, ReadOnlyAdmin, Shown, as_uuid
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.protocol import WAIT_KINDS, Status
from flows.models import Activity, Operation, Release, Timer, Wait, Workflow
from flows.services import releasing
from flows.services.describe import Description, describe

MAX_ROWS = 300
MAX_STUCK = 1000


class StatusFilter(OfferedFilter):
    """By status: fixed words, so that no query looks for the ones in use."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.value) for status in Status]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return queryset.filter(status=self.value()) if self.value() else queryset


class FlowFilter(OfferedFilter):
    """By flow: those that this process knows."""

    title = _("flow")
    parameter_name = "flow"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in sorted({name for name, _version in registry.known()})]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        return queryset.filter(flow_name=self.value()) if self.value() else queryset


class AlertFilter(OfferedFilter):
    """What nobody moves on: ready runs whose release no live worker offers."""

    title = _("alert")
    parameter_name = "alert"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("release", _("Nobody offers its release"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> QuerySet[Workflow]:
        if self.value() != "release":
            return queryset
        return queryset.filter(pk__in=[workflow for workflow, *_rest in releasing.stuck(queryset.db, MAX_STUCK)])


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin):
    """Read here; what changes a run is a verb, which the service takes or refuses."""

    list_display = ("title", "flow", "chip", "node", "error_code", "accountable", "updated_at")
    list_filter = (StatusFilter, FlowFilter, AlertFilter)
    list_display_links = ("title",)
    search_fields = ("key",)
    search_help_text = _("The whole id or the whole key of a workflow")
    ordering = ("-id",)
    change_form_template = "admin/outlast_flows/workflow/change_form.html"

    @admin.display(description=_("workflow"))
    def title(self, obj: Workflow) -> SafeString:
        return rendering.inline(obj.key or str(obj.pk))

    @admin.display(description=_("accountable user"))
    def accountable(self, obj: Workflow) -> SafeString:
        return rendering.inline(obj.user_label)

    @admin.display(description=_("flow"))
    def flow(self, obj: Workflow) -> str:
        return f"{obj.flow_name} {obj.flow_version}"

    @admin.display(description=_("status"))
    def chip(self, obj: Workflow) -> SafeString:
        suspended = obj.status in (Status.WAITING, Status.PAUSED) and obj.outcome not in ("", "WAITING")
        shown = f"{obj.status}: {obj.outcome}" if suspended else obj.status
        return rendering.chip("human" if suspended else obj.status, shown)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Workflow], search_term: str
    ) -> tuple[QuerySet[Workflow], bool]:
        """Exact, because that is what the indexes answer."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if number := as_uuid(term):
            return queryset.filter(pk=number), False
        names = {name for name, _version in registry.known()}
        return queryset.filter(flow_name__in=names, key=term), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one workflow; there is nothing to post to it."""
        try:
            obj = self.get_object(request, unquote(object_id))
        except ValidationError:
            obj = None
        if obj is None:
            raise Http404
        if request.method == "POST" or not self.has_view_permission(request, obj):
            raise PermissionDenied
        return self._show(request, obj, None, extra_context)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.migrate_view)
        return [path("<path:object_id>/migrate/", view, name="outlast_flows_workflow_migrate"), *super().get_urls()]

    def migrate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take a run to a newer version, by POST only; then back to its page, which says what became of it."""
        obj = self.get_object(request, unquote(object_id)) if as_uuid(unquote(object_id)) else None
        if obj is None:
            raise Http404
        if not (self.has_view_permission(request, obj) and request.user.has_perm(migrating.PERMISSION)):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = migrating.MigrateForm(request.POST)
        if not form.is_valid():
            return self._show(request, obj, form)
        try:
            found = migrating.take(obj, request.user, form.cleaned_data, self.alias)
        except OutlastError as error:
            self.message_user(request, visible.plain(str(error)), messages.ERROR)
        else:
            if found:
                self.log_change(request, obj, migrating.noted(found))
            self.message_user(request, *migrating.told(found))
        return HttpResponseRedirect(self.url("outlast_flows_workflow_change", obj.pk))

    def _show(
        self, request: HttpRequest, obj: Workflow, form: migrating.MigrateForm | None, extra: dict[str, Any] | None = None
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        may_migrate = request.user.has_perm(migrating.PERMISSION)
        context = {
            **self.admin_site.each_context(request),
            **self._page(obj),
            **(migrating.context(obj, form, self.alias) if may_migrate else {}),
            "may_migrate": may_migrate,
            "migrate_url": self.url("outlast_flows_workflow_migrate", obj.pk),
            "opts": self.opts,
            "original": Shown(obj),
            "change": True,
            "has_view_permission": True,
            "title": gettext("Workflow"),
            "subtitle": str(Shown(obj)),
            "media": self.media,
            **(extra or {}),
        }
        return TemplateResponse(request, self.change_form_template or "", context)

    def _page(self, obj: Workflow) -> dict[str, Any]:
        using = self.alias
        told = describe(obj, using=using)
        activities = Activity.objects.using(using).filter(workflow_id=obj.pk).order_by("-seq")[:MAX_ROWS]
        rows = Operation.objects.using(using).filter(workflow_id=obj.pk).defer("request", "evidence")
        effects = list(rows.order_by("-activity_seq", "-pk")[: MAX_ROWS + 1])
        return {
            "told": told,
            "accountable": rendering.inline(told.accountable or "–"),
            "sessions": rendering.lines([rendering.inline(session) for session in told.sessions]),
            "status_chip": self.chip(obj),
            "release": self._release(told),
            "goal": rendering.inline(told.intent["goal"] or "–"),
            "intent_url": self.url("outlast_flows_intent_change", obj.intent_id),
            "waits": self._waits(obj, using),
            "timers": Timer.objects.using(using).filter(workflow_id=obj.pk, status="pending").order_by("due_at")[:20],
            "deadlines": [
                {**one, "shown_name": rendering.inline(one["name"]), "chip": rendering.chip(one["status"])}
                for one in told.deadlines[-MAX_ROWS:]
                if one["kind"] != "wait"
            ],
            "effects": [operation_page.line(one, self.url) for one in effects[:MAX_ROWS]],
            "effects_more": len(effects) > MAX_ROWS,
            **candidates.section(obj.pk, using),
            "timeline": _timeline(told),
            "timeline_more": len(told.timeline) > MAX_ROWS,
            "activities": list(activities),
            "verdicts": _verdicts(told),
            "attempts": told.attempts[-MAX_ROWS:][::-1],
            "values": _values(obj),
        }

    def _release(self, told: Description) -> dict[str, Any] | None:
        """The release that it is pinned to, with its page, and who offers it."""
        found = told.release
        row = Release.objects.using(self.alias).filter(name=found.name).first() if found else None
        if found is None:
            return None
        return {
            "name": rendering.inline(found.name),
            "url": self.url("outlast_flows_release_change", row.pk) if row else "",
            "view": found,
            "offered_by": [rendering.inline(worker) for worker in found.offered_by],
        }

    def _waits(self, obj: Workflow, using: str) -> list[dict[str, Any]]:
        """Open waits first, each with its request for approval where the human plane has a page for it."""
        found = sorted(
            Wait.objects.using(using).filter(workflow_id=obj.pk).order_by("-pk")[:MAX_ROWS],
            key=lambda wait: wait.status != "open",
        )
        return [
            {
                "row": wait,
                "reason": rendering.inline(wait.reason),
                "chip": rendering.chip(wait.status),
                "ends": WAIT_KINDS[wait.kind].ends if wait.status == "open" else "",
                "url": self.url("outlast_approvals_request_of_wait", wait.pk) if wait.kind == "approval" else "",
            }
            for wait in found
        ]


def _timeline(told: Description) -> list[dict[str, Any]]:
    """Newest first, with what the arrow noted."""
    return [
        {**row, "chip": rendering.chip(row["to_status"]), "note_html": _note(row["note"])}
        for row in told.timeline[-MAX_ROWS:][::-1]
    ]


def _verdicts(told: Description) -> list[dict[str, Any]]:
    """Newest first, each check with what it answered."""
    return [
        {
            **row,
            "chip": rendering.chip("complete" if row["verdict"] == "ALLOWED" else "human", row["verdict"]),
            "reason": rendering.inline(row["reason"]),
            "checks": ", ".join(name if answer == "holds" else f"{name} ({answer})" for name, answer, _digest in row["checks"]),
        }
        for row in told.verdicts[-MAX_ROWS:][::-1]
    ]


def _note(note: Any) -> SafeString | str:
    if not isinstance(note, dict):
        return ""
    return rendering.lines([format_html("{}: {}", key, rendering.inline(str(item))) for key, item in note.items()])


def _values(obj: Workflow) -> list[tuple[str, SafeString]]:
    shown = ((gettext("Input"), obj.input), (gettext("Checkpoint"), obj.checkpoint), (gettext("Result"), obj.result))
    return [(name, rendering.value(data)) for name, data in shown if data is not None]
