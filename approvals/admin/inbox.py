"""The inbox, and the decision page behind each of its links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.admin import asking, page
from approvals.admin.forms import AnswerForm
from approvals.core.status import RequestKind, RequestStatus
from approvals.models import Request
from approvals.services import inbox, people
from approvals.services.decide import ACCEPTED, ALREADY, decide
from approvals.services.packet import packet
from flows.admin import rendering
from flows.admin.read_only import CSS, OfferedFilter, ReadOnlyAdmin, as_uuid
from flows.core import visible


class QueueFilter(OfferedFilter):
    """Mine unless something else is asked for: pending, in time, and this user may answer it."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("pending", _("All pending")), ("answered", _("Answered")), ("all", _("All"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        chosen = self.value()
        for value, label in [(None, _("For me to answer")), *self.lookup_choices]:
            query = changelist.get_query_string({self.parameter_name: value} if value else {}, [self.parameter_name])
            yield {"selected": chosen == value, "query_string": query, "display": label}

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Request]) -> QuerySet[Request]:
        match self.value():
            case "pending":
                return queryset.filter(status=RequestStatus.PENDING)
            case "answered":
                return queryset.exclude(answer="")
            case "all":
                return queryset
        return inbox.eligible(queryset, request.user)


@admin.register(Request)
class RequestAdmin(ReadOnlyAdmin):
    """Requests are read here and answered on their own page; nothing else changes them."""

    list_display = ("title", "expires", "chip", "asks", "run", "revision")
    list_display_links = None
    list_filter = (QueueFilter,)
    list_select_related = ("workflow", "intent")
    search_fields = ("workflow__key",)
    search_help_text = _("The whole id or the whole key of a workflow")
    ordering = inbox.SOONEST

    class Media:
        css = {"all": (*CSS["all"], "outlast_approvals/approvals.css")}

    # ------------------------------------------------------------------ the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return cast("QuerySet[Any]", rows.annotate(now=inbox.FlowsNow()).defer("candidate", "evidence"))

    @admin.display(description=_("request"))
    def title(self, obj: Request) -> SafeString:
        return format_html('<a class="oa-title" href="{}">{}</a>', self.decide_url(obj.pk), rendering.inline(page.subject(obj)))

    @admin.display(description=_("expires in"))
    def expires(self, obj: Any) -> SafeString | str:
        return page.time_left(obj.expires_at, obj.now) if obj.status == RequestStatus.PENDING else "–"

    @admin.display(description=_("asks"))
    def asks(self, obj: Request) -> SafeString:
        return rendering.inline(page.shortened(page.asked(obj), 60))

    @admin.display(description=_("status"))
    def chip(self, obj: Request) -> SafeString:
        return rendering.chip(obj.status, obj.get_status_display())

    @admin.display(description=_("workflow"))
    def run(self, obj: Request) -> SafeString:
        return rendering.inline(page.shortened(f"{obj.workflow.flow_name} {obj.workflow.key or obj.workflow_id}", 60))

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if number := as_uuid(term):
            return queryset.filter(workflow_id=number), False
        return (queryset.filter(workflow__key=term) if term else queryset), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"title": gettext("Approval requests"), **(extra_context or {})})

    # ------------------------------------------------------------------ permissions

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may view, and who may answer: nobody answers blindly."""
        given = obj if isinstance(obj, Request) else None
        return any(people.has_permission(request.user, name, given) for name in (people.VIEW, people.ANSWER))

    # ------------------------------------------------------------------ the page

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/decide/", view(self.decide_view), name="outlast_approvals_request_decide"),
            path("<int:pk>/file/<slug:field>/", view(self.file_view), name="outlast_approvals_request_file"),
            path("of-wait/<int:wait_id>/", view(self.of_wait_view), name="outlast_approvals_request_of_wait"),
            *super().get_urls(),
        ]

    def decide_url(self, pk: int) -> str:
        return reverse("admin:outlast_approvals_request_decide", args=[pk], current_app=self.admin_site.name)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The admin's own link to a request leads to its decision page."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        if not object_id.isdecimal():
            raise Http404
        return HttpResponseRedirect(self.decide_url(int(object_id)))

    def of_wait_view(self, request: HttpRequest, wait_id: int) -> HttpResponse:
        """From a wait of a workflow to the request behind it."""
        found = self.get_queryset(request).filter(wait_id=wait_id).values_list("pk", flat=True).first()
        if found is None:
            raise Http404
        return HttpResponseRedirect(self.decide_url(found))

    def file_view(self, request: HttpRequest, pk: int, field: str) -> HttpResponse | FileResponse:
        """A file that was given as an answer."""
        return asking.download(self, request, pk, field)

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show a request, and take an answer by POST only. Never cached: an old page shows an old candidate."""
        obj = Request.objects.using(self.alias).select_related("workflow", "intent", "requester").filter(pk=pk).first()
        if obj is None:
            raise Http404
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if obj.kind == RequestKind.ASK:
            return asking.view(self, request, obj)
        if request.method in ("GET", "HEAD"):
            return self._show(request, obj, AnswerForm(initial={"digest": obj.digest}))
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = AnswerForm(request.POST)
        return self._take(request, obj, form) if form.is_valid() else self._show(request, obj, form)

    def _take(self, request: HttpRequest, obj: Request, form: AnswerForm) -> HttpResponse:
        """Hand the answer to the service; then on to the next request, or back to this one if it was refused."""
        given = form.cleaned_data
        decided = decide(
            obj,
            verdict=given["verdict"],
            digest=given["digest"],
            comment=given["comment"],
            by=request.user,
            using=self.alias,
        )
        said = f"{visible.plain(page.subject(obj))}: {visible.plain(decided.sentence)}"
        level = {ACCEPTED: messages.SUCCESS, ALREADY: messages.INFO}.get(decided.code, messages.ERROR)
        self.message_user(request, said, level)
        if decided.code not in (ACCEPTED, ALREADY):
            return HttpResponseRedirect(self.decide_url(obj.pk))
        following = inbox.next_for(request.user, other_than=obj.pk, using=self.alias)
        return HttpResponseRedirect(self.decide_url(following) if following else self.url("outlast_approvals_request_changelist"))

    def _show(self, request: HttpRequest, obj: Request, form: AnswerForm) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            **page.context(packet(obj, request.user, self.alias), form),
            "opts": self.opts,
            "original": obj,
            "has_view_permission": True,
            "errors": form.errors,
            "media": self.media,
            "inbox_url": self.url("outlast_approvals_request_changelist"),
            "history_url": self.url("outlast_approvals_request_history", obj.pk),
            "workflow_url": request.user.has_perm("outlast_flows.view_workflow")
            and self.url("outlast_flows_workflow_change", obj.workflow_id),
        }
        response = TemplateResponse(request, "admin/outlast_approvals/request/decide.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response
