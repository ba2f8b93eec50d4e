"""The page of one request: what is asked, of whom, what changed, the answer; and beside it who looks at it, and taking an approval back."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.urls.resolvers import URLPattern
from django.utils.translation import gettext

from approvals.admin import asking, page
from approvals.admin.base import RequestPages
from approvals.admin.forms import AnswerForm, AssignForm, RevokeForm
from approvals.core.narrow import BadPart
from approvals.core.status import RequestKind
from approvals.models import Request
from approvals.services import acts, people
from approvals.services.claiming import assign
from approvals.services.decide import decide
from approvals.services.facts import request_facts
from approvals.services.packet import packet
from approvals.services.taking_back import may_revoke, revoke
from flows.admin import rendering
from flows.admin.read_only import as_id
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.misuse import NotPermitted
from flows.services import warrant
from flows.services.clock import now


class DecisionPages(RequestPages):
    """By GET they only show. Everything else is a POST with the token, and back to a page of this site: no address comes from the browser."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        name = "outlast_approvals_request"
        return [
            path("<int:pk>/decide/", view(self.decide_view), name=f"{name}_decide"),
            path("<int:pk>/file/<slug:field>/", view(self.file_view), name=f"{name}_file"),
            path("<int:pk>/claim/", view(self.claim_view), name=f"{name}_claim"),
            path("<int:pk>/release/", view(self.release_view), name=f"{name}_release"),
            path("<int:pk>/assign/", view(self.assign_view), name=f"{name}_assign"),
            path("<int:pk>/revoke/", view(self.revoke_view), name=f"{name}_revoke"),
            path("of-wait/<int:wait_id>/", view(self.of_wait_view), name=f"{name}_of_wait"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The admin's own link to a request leads to its decision page."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        number = as_id(object_id)
        if number is None:
            raise Http404
        return HttpResponseRedirect(self.decide_url(number))

    def of_wait_view(self, request: HttpRequest, wait_id: int) -> HttpResponse:
        """From a wait of a workflow to the request behind it."""
        found = self.get_queryset(request).filter(wait_id=wait_id).values_list("pk", flat=True).first()
        if found is None:
            raise Http404
        return HttpResponseRedirect(self.decide_url(self.found(request, found).pk))

    def file_view(self, request: HttpRequest, pk: int, field: str) -> HttpResponse | FileResponse:
        """A file that was given as an answer."""
        return asking.download(self, request, self.found(request, pk), field)

    # ------------------------------------------------------------------ the answer

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show a request, and take an answer by POST only."""
        obj = self.found(request, pk)
        if obj.kind == RequestKind.ASK:
            return asking.view(self, request, obj)
        if request.method in ("GET", "HEAD"):
            return self._show(request, obj)
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = AnswerForm(request.POST)
        return self._take(request, obj, form) if form.is_valid() else self._show(request, obj, answer=form)

    def _take(self, request: HttpRequest, obj: Request, form: AnswerForm) -> HttpResponse:
        """Hand the answer to the service; then on to the next request, or back to this one if it was refused."""
        given = form.cleaned_data
        keep = given["keep"] if given["verdict"] == "narrow" else None
        try:
            decided = decide(
                obj,
                verdict=given["verdict"],
                digest=given["digest"],
                comment=given["comment"],
                keep=keep,
                shown=form.shown,
                by=request.user,
                using=self.alias,
            )
        except BadPart:
            form.add_error("keep", gettext("Tick what is kept: some of it, and not all."))
            return self._show(request, obj, answer=form)
        if not self.tell(request, obj, decided.code, decided.sentence):
            return HttpResponseRedirect(self.decide_url(obj.pk))
        return self.onwards(request, obj)

    def _show(
        self, request: HttpRequest, obj: Request, *, answer: AnswerForm | None = None, back: RevokeForm | None = None
    ) -> HttpResponse:
        shown = packet(obj, request.user, self.alias, since=as_id(request.GET.get("since", "")))
        form = answer or AnswerForm()
        context = {
            **page.context(shown, form),
            "original": obj,
            "errors": form.errors or (back.errors if back is not None else {}),
            "revoke_form": (back or RevokeForm()) if shown.acts.revoke else None,
            "history_url": self.url("outlast_approvals_request_history", obj.pk),
            "workflow_url": request.user.has_perm("outlast_flows.view_workflow")
            and self.url("outlast_flows_workflow_change", obj.workflow_id),
            "decide_url": self.decide_url(obj.pk),
            "act_urls": {name: self.of_request(name, obj.pk) for name in ("claim", "release", "assign", "revoke")},
        }
        return self.page(request, "decide", context)

    # ------------------------------------------------------------------ who looks at it

    def claim_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Say “I am looking at this”."""
        return self._mark(request, pk, request.user)

    def release_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Nobody is marked as looking at it any more."""
        return self._mark(request, pk, None)

    def _mark(self, request: HttpRequest, pk: int, to: Any) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        obj = self.found(request, pk)
        try:
            done = assign(obj, to=to, by=request.user, using=self.alias)
        except NotPermitted:
            raise PermissionDenied from None
        self.tell(request, obj, done.code, done.sentence)
        return HttpResponseRedirect(self.decide_url(obj.pk))

    def assign_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Choose who looks at it, among those who may answer it."""
        obj = self.found(request, pk)
        if not warrant.is_permitted(request.user, people.ASSIGN, self.alias):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        known = request_facts(obj.pk, self.alias)
        may = acts.acts(obj, request.user, now(self.alias), self.alias, answers=False)
        offered = acts.assignable(obj, known, self.alias) if known is not None and may.assign else []
        form = AssignForm(request.POST if request.method == "POST" else None, offered=offered)
        if request.method == "POST" and form.is_valid():
            return self._mark(request, pk, form.chosen)
        context = {
            "title": gettext("Who looks at it?"),
            "subtitle": visible.plain(page.subject(obj)),
            "subject": rendering.inline(page.subject(obj)),
            "asked": rendering.inline(page.asked(obj)),
            "open": may.assign,
            "form": form,
            "errors": form.errors,
            "decide_url": self.decide_url(obj.pk),
            "most": acts.MAX_OFFERED if len(offered) >= acts.MAX_OFFERED else 0,
        }
        return self.page(request, "assign", context)

    # ------------------------------------------------------------------ taking back

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take an approval back that nothing has used, and say why."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        obj = self.found(request, pk)
        if not may_revoke(obj.pk, request.user, self.alias):
            raise PermissionDenied
        form = RevokeForm(request.POST)
        if form.is_valid():
            try:
                done = revoke(obj, reason=form.cleaned_data["reason"], by=request.user, using=self.alias)
            except NotPermitted:
                raise PermissionDenied from None
            except OutlastError as error:
                form.add_error("reason", visible.plain(str(error)))
            else:
                self.tell(request, obj, done.code, done.sentence)
                return HttpResponseRedirect(self.decide_url(obj.pk))
        return self._show(request, obj, back=form)
