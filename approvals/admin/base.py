"""What the pages about requests have in common: who may look, the request behind an address, and a page that no cache keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from approvals.admin import page
from approvals.models import Request
from approvals.services import inbox, people
from approvals.services.decide import ACCEPTED, ALREADY
from flows.admin.read_only import CSS, ReadOnlyAdmin
from flows.core import visible

LEVELS: Mapping[str, int] = {ACCEPTED: messages.SUCCESS, ALREADY: messages.INFO}


class RequestPages(ReadOnlyAdmin):
    """Requests are read here; what changes them is a service, which takes or refuses it."""

    class Media:
        css = {"all": (*CSS["all"], "outlast_approvals/approvals.css")}

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may view, and who may answer: nobody answers blindly."""
        given = obj if isinstance(obj, Request) else None
        return any(people.has_permission(request.user, name, given) for name in (people.VIEW, people.ANSWER))

    def get_model_perms(self, request: HttpRequest) -> dict[str, Any]:
        """Also how many requests wait for this user: every theme hands this on to its templates, and it is counted only where one prints it."""
        given: dict[str, Any] = super().get_model_perms(request)
        if not given["view"]:
            return given
        return {**given, "waiting": SimpleLazyObject(lambda: inbox.waiting(request.user, self.alias))}

    def of_request(self, name: str, *args: Any) -> str:
        """The address of one of the pages about requests, on this admin site."""
        return reverse(f"admin:outlast_approvals_request_{name}", args=args, current_app=self.admin_site.name)

    def decide_url(self, pk: int) -> str:
        return self.of_request("decide", pk)

    def found(self, request: HttpRequest, pk: int) -> Request:
        """The request, for somebody who may see it."""
        obj = Request.objects.using(self.alias).select_related("workflow", "intent", "requester").filter(pk=pk).first()
        if obj is None:
            raise Http404
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        return obj

    def onwards(self, request: HttpRequest, obj: Request) -> HttpResponse:
        """Where somebody goes who has answered a request: to the next that they should look at, else to the list, if they may see it."""
        following = inbox.next_for(request.user, other_than=obj.pk, using=self.alias)
        if following is None and self.has_view_permission(request):
            return HttpResponseRedirect(self.of_request("changelist"))
        return HttpResponseRedirect(self.decide_url(following or obj.pk))

    def tell(self, request: HttpRequest, obj: Request, code: str, sentence: str) -> bool:
        """Say what became of something that was asked of a request; whether it was done (or had been)."""
        said = f"{visible.plain(page.subject(obj))}: {visible.plain(sentence)}"
        self.message_user(request, said, LEVELS.get(code, messages.ERROR))
        return code in LEVELS

    def page(self, request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
        """One of our pages. Never cached: an old page shows an old candidate."""
        request.current_app = self.admin_site.name
        listed = self.has_view_permission(request)
        always = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "has_view_permission": listed,
            "inbox_url": self.url("outlast_approvals_request_changelist") if listed else "",
        }
        response = TemplateResponse(request, f"admin/outlast_approvals/request/{template}.html", {**always, **context})
        response.headers["Cache-Control"] = "no-store"
        return response
