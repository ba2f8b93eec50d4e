"""Workflows: the list, and the page that answers where one is, what it waits for, who can end that, and what is legal next."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin import children, controlling, migrating, rendering, ways, workflow_page
from flows.admin.read_only import OfferedFilter, ReadOnlyAdmin, Shown, as_uuid
from flows.admin.reasoned import ReasonedForm
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.protocol import Status
from flows.models import Workflow
from flows.services import releasing

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
        """The page of one workflow; what is posted goes to the address of its verb."""
        obj = self._row(request, object_id)
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request, obj):
            raise PermissionDenied
        return self._show(request, obj, extra=extra_context)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        verbs = [
            path(f"<path:object_id>/{verb}/", view(self.control_view), {"verb": verb}, name=f"outlast_flows_workflow_{verb}")
            for verb in controlling.VERBS
        ]
        migrate = path("<path:object_id>/migrate/", view(self.migrate_view), name="outlast_flows_workflow_migrate")
        return [migrate, *verbs, *super().get_urls()]

    def control_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Resume, pause, cancel a run, or adopt its policy, by POST only; then back to its page, which says what became of it."""
        obj = self._row(request, object_id)
        self._may_post(request, obj, controlling.VERBS[verb].permission)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = controlling.form_of(verb, obj, request.POST)
        if not form.is_valid():
            return self._show(request, obj, refused=(verb, form))
        try:
            took = controlling.take(verb, obj, request.user, form.cleaned_data, self.alias)
        except OutlastError as error:
            self.message_user(request, visible.plain(str(error)), messages.ERROR)
        else:
            if took.done:
                self.log_change(request, obj, took.noted)
            self.message_user(request, took.said, took.level)
        return HttpResponseRedirect(self.url("outlast_flows_workflow_change", obj.pk))

    def migrate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take a run to a newer version, by POST only; then back to its page, which says what became of it."""
        obj = self._row(request, object_id)
        self._may_post(request, obj, migrating.PERMISSION)
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

    def _row(self, request: HttpRequest, object_id: str) -> Workflow:
        found = self.get_object(request, unquote(object_id)) if as_uuid(unquote(object_id)) else None
        if not isinstance(found, Workflow):
            raise Http404
        return found

    def _may_post(self, request: HttpRequest, obj: Workflow, permission: str) -> None:
        """Nobody acts on what they may not see."""
        if not (self.has_view_permission(request, obj) and request.user.has_perm(permission)):
            raise PermissionDenied

    def _show(
        self,
        request: HttpRequest,
        obj: Workflow,
        form: migrating.MigrateForm | None = None,
        *,
        refused: tuple[str, ReasonedForm] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page, as it is now; with a form that was sent and refused. Never cached: its forms carry the state that was seen."""
        request.current_app = self.admin_site.name
        may_migrate = request.user.has_perm(migrating.PERMISSION)
        page = workflow_page.context(obj, self.chip(obj), self.alias, self.url)
        migration = migrating.context(obj, form, self.alias) if may_migrate else {}
        migrates = {"migrate"} if migration else set()
        controls = controlling.controls(obj, request.user, refused, self.alias, self.url)
        context = {
            **self.admin_site.each_context(request),
            **page,
            **children.section(obj, request.GET.dict(), self.alias, self.url),
            **migration,
            "controls": controls,
            "ways": ways.steps(obj, page["told"], {one["verb"] for one in controls} | migrates, self.alias, self.url),
            "may_migrate": may_migrate,
            "migrate_url": self.url("outlast_flows_workflow_migrate", obj.pk),
            "opts": self.opts,
            "original": Shown(obj),
            "change": True,
            "has_view_permission": True,
            "title": gettext("Workflow"),
            "subtitle": str(Shown(obj)),
            "media": self.media,
            "errors": refused is not None or (form is not None and form.errors),
            **(extra or {}),
        }
        response = TemplateResponse(request, self.change_form_template or "", context)
        response.headers["Cache-Control"] = "no-store"
        return response
