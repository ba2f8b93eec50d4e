"""Operations: those that need a person first, the page of one with the verdict form, and one verdict for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import operation_page as page
from flows.admin import rendering, verdicts
from flows.admin.read_only import OfferedFilter, Shown, as_uuid
from flows.admin.records import RunRecordAdmin
from flows.core import payload, visible
from flows.core.effects import OperationStatus
from flows.core.errors import OutlastError
from flows.models import Operation, Resolution
from flows.services.verdicts import NEEDS_PERSON, PERMISSION, Verdict, offered, seen_of

RESULTS = "outlast_resolved"


class NeedFilter(OfferedFilter):
    """Those that need a person, unless something else is asked for."""

    title = _("queue")
    parameter_name = "queue"
    default = ("person", _("Needs a person"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("doubt", _("In doubt")), ("all", _("All"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Operation]) -> QuerySet[Operation]:
        match self.value():
            case "doubt":
                return queryset.filter(status=OperationStatus.UNCERTAIN)
            case "all":
                return queryset
        return queryset.filter(NEEDS_PERSON)


@admin.register(Operation)
class OperationAdmin(RunRecordAdmin):
    """Read here; what changes an operation is a verdict, which the service takes or refuses."""

    actions = ("resolve_selected",)  # type: ignore[assignment]
    list_display = ("what", "of_workflow", "stands", "why")
    list_display_links = ("what",)
    list_filter = (NeedFilter,)
    search_fields = ("id",)
    search_help_text = _("The whole id of an operation or of a workflow")
    change_form_template = "admin/outlast_flows/operation/change_form.html"

    # ------------------------------------------------------------------ permissions

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(PERMISSION))

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may view, and who may say what became of one: nobody does that blindly."""
        return super().has_view_permission(request, obj) or self.has_resolve_permission(request)

    # ------------------------------------------------------------------ the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        said = Resolution.objects.using(self.alias).filter(source="probe").order_by("-pk")[:1]
        rows = super().get_queryset(request).defer("request", "evidence")
        return rows.prefetch_related(Prefetch("resolutions", said, to_attr="said_last"))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return super().get_object(request, object_id, from_field) if payload.is_text(object_id) else None

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The longest in doubt first; of all there are, those of the newest workflow."""
        return ("-pk",) if request.GET.get("queue") == "all" else ("doubt_since", "flown_at")

    @admin.display(description=_("operation"))
    def what(self, obj: Operation) -> SafeString:
        return format_html('{}<div class="oa-quiet">{}</div>', page.effect_of(obj), obj.kind)

    @admin.display(description=_("status"))
    def stands(self, obj: Operation) -> SafeString:
        """And since when one is in doubt; of all others, when they were called last."""
        if obj.status == OperationStatus.UNCERTAIN:
            return rendering.dated(page.chip(obj), _("since %(moment)s"), obj.doubt_since)
        return rendering.dated(page.chip(obj), _("called %(moment)s"), obj.flown_at)

    @admin.display(description=_("why"))
    def why(self, obj: Any) -> SafeString | str:
        """The code, and what a probe said last."""
        code = [rendering.inline(obj.error_code)] if obj.error_code else []
        told = rendering.lines([*code, *([page.said(obj)] if obj.said_last else [])])
        return format_html('<div class="oa-why">{}</div>', told) if told else "–"

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if number := as_uuid(term):
            return queryset.filter(workflow_id=number), False
        if not payload.is_text(term):
            return queryset.none(), False
        return (queryset.filter(pk=term) if term else queryset), False

    # ------------------------------------------------------------------ one operation

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show an operation, and take a verdict by POST only. Never cached: an old page shows an old state."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if request.method in ("GET", "HEAD"):
            return self._show(request, obj, verdicts.VerdictForm(), extra_context)
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        if not self.has_resolve_permission(request):
            raise PermissionDenied
        form = verdicts.VerdictForm(request.POST)
        return self._take(request, obj, form) if form.is_valid() else self._show(request, obj, form)

    def _take(self, request: HttpRequest, obj: Operation, form: verdicts.VerdictForm) -> HttpResponse:
        """Hand the verdict to the service; then back to the page, which says what became of it."""
        try:
            took = verdicts.take(obj.pk, request.user, form.cleaned_data, self.alias)
        except OutlastError as error:
            form.add_error(None, visible.plain(str(error)))
            return self._show(request, obj, form)
        if took.recorded:
            self.log_change(request, obj, verdicts.noted(form.cleaned_data["verdict"], took))
        self.message_user(request, took.said, messages.DEFAULT_LEVELS[took.level.upper()])
        return HttpResponseRedirect(self.url("outlast_flows_operation_change", quote(obj.pk)))

    def _show(
        self, request: HttpRequest, obj: Operation, form: verdicts.VerdictForm, extra: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = self.has_resolve_permission(request)
        context = {
            **page.context(obj, self.alias, self.url),
            "original": Shown(obj),
            "change": True,
            "has_view_permission": True,
            "title": gettext("Operation"),
            "subtitle": str(Shown(obj)),
            "form": form,
            "errors": form.errors,
            "seen": form["seen"].value() or seen_of(obj),
            "verdicts": verdicts.on_offer([obj]) if may else [],
            "may_have_id": Verdict.HAPPENED in offered(obj),
            "may_resolve": may,
            "needs": PERMISSION if not may and offered(obj) else "",
            "list_url": self.url("outlast_flows_operation_changelist"),
            "history_url": self.url("outlast_flows_operation_history", quote(obj.pk)),
            **(extra or {}),
        }
        return self._page(request, self.change_form_template or "", context)

    # ------------------------------------------------------------------ several

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("resolve/", view(self.resolve_view), name="outlast_flows_operation_resolve"),
            path("resolved/", view(self.resolved_view), name="outlast_flows_operation_resolved"),
            *super().get_urls(),
        ]

    @admin.action(description=_("Resolve selected operations…"), permissions=["resolve"])
    def resolve_selected(self, request: HttpRequest, queryset: QuerySet[Operation]) -> HttpResponse | None:
        """Show what was selected, each with its state; nothing is changed yet."""
        rows = list(queryset[: verdicts.MAX_AT_ONCE + 1])
        if len(rows) > verdicts.MAX_AT_ONCE:
            told = {"most": verdicts.MAX_AT_ONCE}
            self.message_user(
                request,
                gettext("At most %(most)s operations can be resolved at a time. Nothing was changed; select fewer.") % told,
                messages.ERROR,
            )
            return None
        if not verdicts.on_offer(rows):
            self.message_user(request, gettext("None of these operations needs a verdict."), messages.WARNING)
            return None
        return self._preview(request, [(row, seen_of(row)) for row in rows], verdicts.SaidForm())

    def resolve_view(self, request: HttpRequest) -> HttpResponse:
        """Take one verdict for the operations of the preview, each in the state that was shown there."""
        if not self.has_resolve_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        ids, seen = request.POST.getlist("operation"), request.POST.getlist("seen")
        form = verdicts.SaidForm(request.POST)
        if not ids or len(ids) != len(seen) or len(ids) > verdicts.MAX_AT_ONCE or not all(map(payload.is_text, ids)):
            raise Http404
        rows = self.get_queryset(request).in_bulk(ids)
        if not form.is_valid():
            shown = zip(ids, seen, strict=True)
            return self._preview(request, [(rows[one], state) for one, state in shown if one in rows], form)
        took = verdicts.take_each(list(zip(ids, seen, strict=True)), request.user, form.cleaned_data, self.alias)
        for one in took:
            if one.recorded:
                self.log_change(request, rows[one.operation], verdicts.noted(form.cleaned_data["verdict"], one))
        request.session[RESULTS] = [[one.operation, one.code, one.said, one.level] for one in took]
        return HttpResponseRedirect(self.url("outlast_flows_operation_resolved"))

    def resolved_view(self, request: HttpRequest) -> HttpResponse:
        """What became of each of the last verdict for several."""
        if not self.has_resolve_permission(request):
            raise PermissionDenied
        took = [verdicts.Took(*one) for one in request.session.get(RESULTS, [])]
        context = {
            "title": gettext("What became of your verdict"),
            "results": [page.result(one, self.url) for one in took],
            "recorded": sum(one.recorded for one in took),
            "refused": sum(not one.recorded for one in took),
        }
        return self._page(request, "admin/outlast_flows/operation/resolved.html", context)

    def _preview(self, request: HttpRequest, items: Sequence[tuple[Any, str]], form: verdicts.SaidForm) -> HttpResponse:
        context = {
            "title": gettext("Resolve selected operations"),
            "items": [page.item(row, state, self.url) for row, state in items],
            "form": form,
            "errors": form.errors,
            "verdicts": verdicts.on_offer([row for row, _state in items]),
            "most": verdicts.MAX_AT_ONCE,
            "post_url": self.url("outlast_flows_operation_resolve"),
            "list_url": self.url("outlast_flows_operation_changelist"),
        }
        return self._page(request, "admin/outlast_flows/operation/resolve_selected.html", context)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        always = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media}
        response = TemplateResponse(request, template, {**always, **context})
        response.headers["Cache-Control"] = "no-store"
        return response
