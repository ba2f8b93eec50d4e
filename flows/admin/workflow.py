"""Workflows: the list, and the page that answers where one is, what it waits for, who can end that, and what is legal next."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin import children, controlling, migrating, rendering, ways, workflow_filters, workflow_more, workflow_page
from flows.admin.paging import Pages
from flows.admin.read_only import ReadOnlyAdmin, Shown, as_uuid
from flows.admin.reasoned import ReasonedForm
from flows.admin.records import LARGE
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.protocol import Status, WaitStatus
from flows.models import Wait, Workflow
from flows.services import bulk


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin):
    """Read here; what changes a run is a verb, which the service takes or refuses."""

    list_display = ("title", "chip", "flow", "node", "waits_for", "error_code", "accountable", "updated_at")
    list_filter = workflow_filters.FILTERS
    changelist_class = workflow_filters.Listed
    paginator = workflow_filters.FewPages
    change_list_template = "admin/outlast_flows/workflow/change_list.html"
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

    @admin.display(description=_("waits for"))
    def waits_for(self, obj: Workflow) -> str:
        return ", ".join(sorted({wait.kind for wait in obj.open_waits})) or "–"  # type: ignore[attr-defined]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        """Of the list without what may be large, and with what each run waits for."""
        rows = super().get_queryset(request)
        if request.resolver_match is None or request.resolver_match.url_name != "outlast_flows_workflow_changelist":
            return rows
        waits = Wait.objects.filter(status=WaitStatus.OPEN.value).only("workflow_id", "kind")
        return rows.defer(*LARGE).prefetch_related(Prefetch("waits", waits, to_attr="open_waits"))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with the counts over it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        bound = workflow_filters.looked_through(request.GET.dict())
        chips = workflow_filters.chips(request, self.alias)
        may = request.GET and request.user.has_perm(bulk.PERMISSION)
        extra = {
            "chips": chips,
            "looked_through": f"{bound:,}" if bound else "",
            "bulk_url": f"{self.url('outlast_flows_bulk_add')}?{request.GET.urlencode()}" if may else "",
        }
        return super().changelist_view(request, {**extra, **(extra_context or {})})

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
        more = [
            path("<path:object_id>/context/", view(self.context_view), name="outlast_flows_workflow_context"),
            path("<path:object_id>/raw/", view(self.raw_view), name="outlast_flows_workflow_raw"),
        ]
        migrate = path("<path:object_id>/migrate/", view(self.migrate_view), name="outlast_flows_workflow_migrate")
        return [migrate, *more, *verbs, *super().get_urls()]

    def context_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The context that its next attempt would get."""
        obj = self._seen(request, object_id)
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            **workflow_more.context(obj, self.alias),
            "opts": self.opts,
            "original": Shown(obj),
            "page_url": self.url("outlast_flows_workflow_change", obj.pk),
            "title": gettext("The context of its next attempt"),
            "subtitle": str(Shown(obj)),
            "media": self.media,
        }
        response = TemplateResponse(request, "admin/outlast_flows/workflow/context.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def raw_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """All that is known of it, as JSON."""
        return workflow_more.as_json(self._seen(request, object_id), self.alias)

    def _seen(self, request: HttpRequest, object_id: str) -> Workflow:
        """The row, for who may see it; these pages only show."""
        obj = self._row(request, object_id)
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request, obj):
            raise PermissionDenied
        return obj

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
        asked = request.GET.dict()
        page, found = workflow_page.context(obj, self.chip(obj), Pages(asked), self.alias, self.url)
        migration = migrating.context(obj, form, self.alias) if may_migrate else {}
        migrates = {"migrate"} if migration else set()
        waits_for = {one.kind for one in page["told"].waits}
        controls = controlling.controls(obj, waits_for, request.user, refused, self.alias, self.url)
        context = {
            **self.admin_site.each_context(request),
            **page,
            **children.section(obj, asked, found, self.alias, self.url),
            **migration,
            "controls": controls,
            "ways": ways.steps(obj, page["told"], {one["verb"] for one in controls} | migrates, self.alias, self.url),
            "may_migrate": may_migrate,
            "context_url": self.url("outlast_flows_workflow_context", obj.pk) if obj.active_seq is not None else "",
            "raw_url": self.url("outlast_flows_workflow_raw", obj.pk),
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
