"""Budgets: how each ledger stands, the entries behind it, and the form that allows more."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import F, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import OfferedFilter, Shown, as_uuid
from flows.admin.reasoned import ReasonedForm
from flows.admin.records import FixedFilter, RecordAdmin
from flows.core import payload, visible
from flows.core.budget import written
from flows.core.errors import OutlastError
from flows.core.protocol import BudgetKind
from flows.models import Budget, BudgetEntry
from flows.services.budgets import PERMISSION, Raised, left, raise_

MAX_ROWS = 300
#: Nothing can be set aside any more.
USED_UP = Q(allowance__isnull=False, spent__gte=F("allowance") - F("reserved") - F("kept"))


class KindFilter(FixedFilter):
    title, parameter_name, words = _("kind"), "kind", tuple(kind.value for kind in BudgetKind)


class StateFilter(OfferedFilter):
    """All, unless something else is asked for."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("used_up", _("Used up")), ("warned", _("Over the soft limit"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Budget]) -> QuerySet[Budget]:
        match self.value():
            case "used_up":
                return queryset.filter(USED_UP)
            case "warned":
                return queryset.filter(warned_at__isnull=False)
        return queryset


class RaiseForm(ReasonedForm):
    """A new limit and why. It names the limit itself, not the difference: sent twice, it is the same."""

    to = forms.CharField(
        label=_("New limit"),
        max_length=40,
        help_text=_("The whole limit, not how much more."),
        error_messages={"required": _("Say up to what.")},
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    field_order = ("to", "reason")


@admin.register(Budget)
class BudgetAdmin(RecordAdmin):
    """Read here; what changes a limit is a raise, which the service takes or refuses."""

    list_display = (
        "title",
        "kind",
        "bar",
        "shown_limit",
        "shown_spent",
        "shown_reserved",
        "shown_left",
        "shown_kept",
        "warned_at",
    )
    list_display_links = ("title",)
    list_filter = (StateFilter, KindFilter)
    list_select_related = ("workflow", "intent")
    search_fields = ("workflow_id",)
    search_help_text = _("The whole id of a workflow or of an intent")
    change_form_template = "admin/outlast_flows/budget/change_form.html"

    def has_raise_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(PERMISSION))

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may view, and who may raise: nobody does that blindly."""
        return super().has_view_permission(request, obj) or self.has_raise_permission(request)

    # ------------------------------------------------------------------ the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        large = ("workflow__input", "workflow__result", "workflow__checkpoint")
        return super().get_queryset(request).defer(*large)

    @admin.display(description=_("of"))
    def title(self, obj: Budget) -> SafeString:
        return format_html('<span class="oa-title">{}</span>', rendering.inline(name_of(obj)))

    @admin.display(description=_("used"))
    def bar(self, obj: Budget) -> SafeString | str:
        return bar(obj)

    @admin.display(description=_("limit"))
    def shown_limit(self, obj: Budget) -> str:
        return written(obj.kind, obj.allowance)

    @admin.display(description=_("spent"))
    def shown_spent(self, obj: Budget) -> str:
        return written(obj.kind, obj.spent)

    @admin.display(description=_("reserved"))
    def shown_reserved(self, obj: Budget) -> str:
        return written(obj.kind, obj.reserved)

    @admin.display(description=_("left"))
    def shown_left(self, obj: Budget) -> str:
        return written(obj.kind, left(obj))

    @admin.display(description=_("kept"))
    def shown_kept(self, obj: Budget) -> str:
        return written(obj.kind, obj.kept)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        number = as_uuid(search_term)
        if not search_term.strip():
            return queryset, False
        return (queryset.filter(Q(workflow_id=number) | Q(intent_id=number)) if number else queryset.none()), False

    # ------------------------------------------------------------------ one ledger

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a ledger, and take a raise by POST only. Never cached: an old page shows an old state."""
        obj = self._row(request, unquote(object_id))
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if request.method in ("GET", "HEAD"):
            return self._show(request, obj, RaiseForm(), extra_context)
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        if not self.has_raise_permission(request):
            raise PermissionDenied
        form = RaiseForm(request.POST)
        return self._take(request, obj, form) if form.is_valid() else self._show(request, obj, form)

    def _row(self, request: HttpRequest, object_id: str) -> Budget:
        try:
            obj = self.get_object(request, object_id) if payload.is_text(object_id) else None
        except ValidationError:
            obj = None
        if not isinstance(obj, Budget):
            raise Http404
        return obj

    def _take(self, request: HttpRequest, obj: Budget, form: RaiseForm) -> HttpResponse:
        """Hand the raise to the service; then back to the page, which says what became of it."""
        given = form.cleaned_data
        owner: dict[str, Any] = {"workflow": obj.workflow_id} if obj.workflow_id else {"intent": obj.intent_id}
        try:
            took = raise_(kind=obj.kind, to=given["to"], by=request.user, reason=given["reason"], using=self.alias, **owner)
        except OutlastError as error:
            form.add_error("to", visible.plain(str(error)))
            return self._show(request, obj, form)
        if not took:
            self.message_user(request, gettext(took.sentence), messages.ERROR)
        else:
            self.log_change(request, obj, gettext("Limit raised."))
            self.message_user(request, said(took), messages.WARNING if took.lacking else messages.SUCCESS)
        return HttpResponseRedirect(self.url("outlast_flows_budget_change", obj.pk))

    def _show(self, request: HttpRequest, obj: Budget, form: RaiseForm, extra: dict[str, Any] | None = None) -> HttpResponse:
        request.current_app = self.admin_site.name
        limited, may = obj.allowance is not None, self.has_raise_permission(request)
        rows = list(BudgetEntry.objects.using(self.alias).filter(budget_id=obj.pk).order_by("-pk")[: MAX_ROWS + 1])
        shown = Shown(obj)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "original": shown,
            "change": True,
            "has_view_permission": True,
            "title": gettext("Budget"),
            "subtitle": str(shown),
            "form": form,
            "errors": form.errors,
            "may_raise": limited and may,
            "needs": PERMISSION if limited and not may else "",
            "bar": bar(obj),
            "name": rendering.inline(name_of(obj)),
            "amounts": self._amounts(obj),
            "entries": [_line(one) for one in rows[:MAX_ROWS]],
            "entries_more": len(rows) > MAX_ROWS,
            "list_url": self.url("outlast_flows_budget_changelist"),
            "workflow_url": self.url("outlast_flows_workflow_change", obj.workflow_id) if obj.workflow_id else "",
            "intent_url": self.url("outlast_flows_intent_change", obj.intent_id) if obj.intent_id else "",
            "history_url": self.url("outlast_flows_budget_history", obj.pk),
            **(extra or {}),
        }
        response = TemplateResponse(request, self.change_form_template or "", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _amounts(self, obj: Budget) -> list[tuple[str, str]]:
        shown = (
            (gettext("Limit"), obj.allowance if obj.allowance is not None else None),
            (gettext("Spent"), obj.spent),
            (gettext("Reserved by running attempts"), obj.reserved),
            (gettext("Left"), left(obj)),
            (gettext("Kept for verification and reconciliation"), obj.kept),
            (gettext("Soft limit"), obj.soft),
        )
        return [(label, written(obj.kind, amount)) for label, amount in shown]


def name_of(obj: Budget) -> str:
    """Whose it is, in words."""
    if obj.workflow_id and obj.workflow is not None:
        return f"{obj.workflow.flow_name} {obj.workflow.key or obj.workflow_id}"
    goal = obj.intent.goal if obj.intent is not None else ""
    return gettext("intent: %(goal)s") % {"goal": goal or obj.intent_id}


def bar(obj: Budget) -> SafeString | str:
    """Spent, reserved and kept as parts of the limit: a picture whose text says the same. No style attributes: a strict policy stays."""
    if not obj.allowance:
        return "–"
    spent, reserved, kept = (min(float(one / obj.allowance) * 100, 100.0) for one in (obj.spent, obj.reserved, obj.kept))
    told = gettext("%(spent)s %% spent, %(reserved)s %% reserved, %(kept)s %% kept") % {
        "spent": round(spent), "reserved": round(reserved), "kept": round(kept),
    }  # fmt: skip
    return format_html(
        '<svg class="oa-bar" role="img" aria-label="{}" width="120" height="12" viewBox="0 0 100 10" preserveAspectRatio="none">'
        '<title>{}</title><rect class="oa-bar-all" width="100" height="10"/>'
        '<rect class="oa-bar-kept" x="{}" width="{}" height="10"/><rect class="oa-bar-spent" width="{}" height="10"/>'
        '<rect class="oa-bar-reserved" x="{}" width="{}" height="10"/></svg>',
        told, told, f"{100 - kept:.1f}", f"{kept:.1f}", f"{spent:.1f}", f"{spent:.1f}", f"{min(reserved, 100 - spent):.1f}",
    )  # fmt: skip


def said(took: Raised) -> str:
    """What followed from a raise, for the message at the top of the page."""
    text = ngettext(
        "The limit is %(limit)s now; %(count)s run goes on.",
        "The limit is %(limit)s now; %(count)s runs go on.",
        len(took.resumed),
    ) % {"limit": took.allowance, "count": len(took.resumed)}
    lacking = took.lacking or {}
    return " ".join(
        [text, *(gettext("%(run)s still lacks: %(what)s.") % {"run": run, "what": what} for run, what in lacking.items())]
    )


def _line(entry: BudgetEntry) -> dict[str, Any]:
    """One entry, with what came from outside made safe."""
    return {
        "row": entry,
        "amount": written("cost", entry.amount),
        "by": rendering.inline(entry.by_label) if entry.by_label else "",
        "reason": rendering.inline(entry.reason) if entry.reason else "",
    }
