"""One word about several requests: a page that shows what was selected, and one that says what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.urls.resolvers import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.admin import page
from approvals.admin.decision import DecisionPages
from approvals.admin.forms import ApproveEachForm, AssignForm, DenyEachForm, TogetherForm
from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.services import acts, people, several
from approvals.services.several import Item, SelectionRefused, Took
from flows.admin import rendering
from flows.core import visible
from flows.services import warrant

RESULTS = "outlast_answered"

TITLES: dict[str, Any] = {
    "deny": _("Deny selected requests"),
    "approve": _("Approve selected requests"),
    "assign": _("Say who looks at selected requests"),
}
BUTTONS: dict[str, Any] = {
    "deny": _("Deny each of them"),
    "approve": _("Approve each of these exact candidates"),
    "assign": _("Mark each of them"),
}


class SeveralPages(DecisionPages):
    """What is selected is shown first, and signed; then each request is judged by itself, as if it had been answered on its own page."""

    actions = ("deny_selected", "approve_selected", "assign_selected")  # type: ignore[assignment]

    def has_answer_permission(self, request: HttpRequest) -> bool:
        return people.has_permission(request.user, people.ANSWER)

    def has_assign_permission(self, request: HttpRequest) -> bool:
        return people.has_permission(request.user, people.ASSIGN)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("together/<slug:verb>/", view(self.together_view), name="outlast_approvals_request_together"),
            path("together/", view(self.became_view), name="outlast_approvals_request_became"),
            *super().get_urls(),
        ]

    @admin.action(description=_("Deny selected requests…"), permissions=["answer"])
    def deny_selected(self, request: HttpRequest, queryset: QuerySet[Request]) -> HttpResponse | None:
        return self._select(request, queryset, "deny")

    @admin.action(description=_("Approve selected requests…"), permissions=["answer"])
    def approve_selected(self, request: HttpRequest, queryset: QuerySet[Request]) -> HttpResponse | None:
        return self._select(request, queryset, "approve")

    @admin.action(description=_("Say who looks at selected requests…"), permissions=["assign"])
    def assign_selected(self, request: HttpRequest, queryset: QuerySet[Request]) -> HttpResponse | None:
        return self._select(request, queryset, "assign")

    # ------------------------------------------------------------------ shown

    def _select(self, request: HttpRequest, queryset: QuerySet[Request], verb: str) -> HttpResponse | None:
        """Show what was selected; nothing is changed yet."""
        rows = list(self._rows(queryset)[: several.MAX_AT_ONCE + 1])
        if len(rows) > several.MAX_AT_ONCE:
            most = {"most": several.MAX_AT_ONCE}
            told = gettext("At most %(most)s requests at a time. Nothing was changed; select fewer.") % most
            self.message_user(request, told, messages.ERROR)
            return None
        taken = [row for row in rows if row.status == RequestStatus.PENDING and (verb != "approve" or row.bulk)]
        if not taken:
            none = (
                _("None of these waits for an answer.")
                if verb != "approve"
                else _("None of these can be approved together: their flows want each to be read on its own page.")
            )
            self.message_user(request, none, messages.WARNING)
            return None
        frozen = several.freeze([Item(row.pk, row.digest, row.revision, row.step) for row in taken], verb=verb, user=request.user)
        left = [row for row in rows if row not in taken]
        return self._preview(request, verb, taken, self._form(verb, taken, initial={"selection": frozen}), left)

    def _rows(self, queryset: QuerySet[Request]) -> QuerySet[Any]:
        """With what the page says of each; of a candidate only its choice."""
        return queryset.annotate(choice=KeyTextTransform("choice", "candidate"))

    def _form(self, verb: str, rows: Sequence[Request], **given: Any) -> TogetherForm | AssignForm:
        if verb == "assign":
            return AssignForm(offered=self._offered(rows), **given)
        return {"deny": DenyEachForm, "approve": ApproveEachForm}[verb](**given)

    def _offered(self, rows: Sequence[Request]) -> list[Any]:
        """Who may answer one of these; whether they may answer each is judged for each."""
        keys = sorted({key for row in rows for key in row.audiences})
        return list(islice(people.asked(keys, self.alias), acts.MAX_OFFERED))

    def _preview(
        self,
        request: HttpRequest,
        verb: str,
        rows: Sequence[Any],
        form: TogetherForm | AssignForm,
        left: Sequence[Request] = (),
    ) -> HttpResponse:
        context = {
            "title": TITLES[verb],
            "verb": verb,
            "items": [self._shown(row) for row in rows],
            "left": [self._shown(row) for row in left],
            "form": form,
            "errors": form.errors,
            "button": BUTTONS[verb],
            "most": several.MAX_AT_ONCE,
            "for_others": [] if verb == "assign" else self._for_others(request),
            "post_url": self.of_request("together", verb),
        }
        return self.page(request, "together", context)

    def _for_others(self, request: HttpRequest) -> list[SafeString]:
        """In whose name this user answers what they are not asked themselves."""
        labels = people.held(self.alias).filter(taker_id=request.user.pk).values_list("giver_label", flat=True)
        return [rendering.inline(label) for label in sorted(set(labels))]

    def _shown(self, row: Any) -> dict[str, Any]:
        return {
            "row": row,
            "subject": rendering.inline(page.subject(row)),
            "url": self.decide_url(row.pk),
            "choice": rendering.inline(page.shortened(row.choice, 200)) if row.choice else "–",
            "asked": rendering.inline(page.asked(row)),
            "chip": rendering.chip(row.status, row.get_status_display()),
        }

    # ------------------------------------------------------------------ given

    def together_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Take one word for the requests of the preview, each with the digest that was shown there."""
        if request.method != "POST" or verb not in TITLES:
            return HttpResponseNotAllowed(["POST"])
        needed = people.ASSIGN if verb == "assign" else people.ANSWER
        if not (self.has_view_permission(request) and warrant.is_permitted(request.user, needed, self.alias)):
            raise PermissionDenied
        try:
            items = several.thaw(request.POST.get("selection", ""), verb=verb, user=request.user)
        except SelectionRefused as refused:
            self.message_user(request, visible.plain(str(refused)), messages.ERROR)
            return HttpResponseRedirect(self.of_request("changelist"))
        rows = list(self._rows(self.get_queryset(request).filter(pk__in=[one.request_id for one in items])))
        form = self._form(verb, rows, data=request.POST)
        if not form.is_valid():
            return self._preview(request, verb, rows, form)
        took = self._given(verb, items, request.user)(form)
        request.session[RESULTS] = [[one.request_id, one.code, one.said] for one in took]
        return HttpResponseRedirect(self.of_request("became"))

    def _given(self, verb: str, items: Sequence[Item], by: Any) -> Callable[[Any], list[Took]]:
        if verb == "assign":
            return lambda form: several.assign_each(items, to=form.chosen, by=by, using=self.alias)
        return lambda form: several.answer_each(
            items, verdict=verb, by=by, comment=form.cleaned_data["comment"], using=self.alias
        )

    def became_view(self, request: HttpRequest) -> HttpResponse:
        """What became of each."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        took = [Took(*one) for one in request.session.get(RESULTS, [])]
        done = {"accepted": "accepted", "already": "pending"}
        words = {"accepted": gettext("done"), "already": gettext("already so")}
        rows = self.get_queryset(request).in_bulk([one.request_id for one in took])
        context = {
            "title": gettext("What became of them"),
            "results": [
                {
                    "url": self.decide_url(one.request_id),
                    "subject": rendering.inline(page.subject(rows[one.request_id])) if one.request_id in rows else "–",
                    "chip": rendering.chip(done.get(one.code, "refused"), words.get(one.code, one.code)),
                    "said": rendering.inline(one.said),
                }
                for one in took
            ],
            "done": sum(one.code in done for one in took),
            "refused": sum(one.code not in done for one in took),
        }
        return self.page(request, "became", context)
