"""Holds: what no worker takes up, who said so and why. Made on a page of its own, lifted on the page of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import OfferedFilter
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.core import payload, visible
from flows.core.errors import OutlastError
from flows.core.holds import Scope
from flows.models import Hold
from flows.models.hold import SCOPES
from flows.services import holds
from flows.store.holds import Row


class StateFilter(OfferedFilter):
    """What is held now, unless one asks for what was."""

    title, parameter_name = _("state"), "state"
    default = ("open", _("Held now"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("all", _("Lifted, too"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Hold]) -> QuerySet[Hold]:
        return queryset if self.value() == "all" else queryset.filter(lifted_at__isnull=True)


class LiftForm(ReasonedForm):
    """Why it may be taken up again."""

    purpose = "lift"


class HoldForm(ReasonedForm):
    """What is not to be taken up, and why."""

    purpose = "hold"
    scope = forms.ChoiceField(label=_("What is held"), choices=SCOPES, initial=Scope.FLOW.value)
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=payload.MAX_NAME,
        help_text=_("Of the flow, the key, the dependency or the tenant; nothing where everything is held."),
    )
    field_order = ("scope", "name", "reason")


@admin.register(Hold)
class HoldAdmin(DecidingAdmin):
    """What is held now first; nothing is deleted, so that it stays known who stopped what."""

    list_display = ("title", "chip", "since", "shown_by", "shown_reason")
    list_display_links = ("title",)
    list_filter = (StateFilter,)
    ordering = ("-pk",)
    fields = (
        "title",
        "chip",
        "since",
        "shown_by",
        "whole_reason",
        "stops",
        "lifted_at",
        "shown_lifted_by",
        "shown_lifted_reason",
    )
    readonly_fields = fields
    decide_permission = holds.PERMISSION
    decide_section = "outlast_flows/includes/lift.html"

    @admin.display(description=_("hold"))
    def title(self, obj: Hold) -> SafeString:
        return rendering.inline(str(obj))

    @admin.display(description=_("state"))
    def chip(self, obj: Hold) -> SafeString:
        return (
            rendering.chip("human", gettext("held")) if obj.lifted_at is None else rendering.chip("complete", gettext("lifted"))
        )

    @admin.display(description=_("by"))
    def shown_by(self, obj: Hold) -> SafeString | str:
        return rendering.inline(obj.by_label) if obj.by_label else "–"

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Hold) -> SafeString:
        return rendering.inline(obj.reason)

    @admin.display(description=_("reason"))
    def whole_reason(self, obj: Hold) -> SafeString:
        return rendering.block(obj.reason)

    @admin.display(description=_("ready runs that it stops"))
    def stops(self, obj: Hold) -> str:
        if obj.lifted_at is not None:
            return "–"
        found = holds.ready(row_of(obj), self.alias)
        return gettext("%(count)s or more") % {"count": found} if found >= holds.MOST else str(found)

    @admin.display(description=_("lifted by"))
    def shown_lifted_by(self, obj: Hold) -> SafeString | str:
        return rendering.inline(obj.lifted_by) if obj.lifted_by else "–"

    @admin.display(description=_("reason of the lift"))
    def shown_lifted_reason(self, obj: Hold) -> SafeString | str:
        return rendering.block(obj.lifted_reason) if obj.lifted_reason else "–"

    # ------------------------------------------------------------------ lifted

    def is_offered(self, obj: Hold) -> bool:
        return obj.lifted_at is None

    def form_of(self, obj: Hold, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return LiftForm(data)

    def decide(self, obj: Hold, by: Any, given: Mapping[str, Any]) -> Took:
        """Only the one that is shown: what somebody has held again since is another one."""
        found = holds.lift(obj.scope, obj.name, reason=given["reason"], by=by, seen=obj.pk, using=self.alias)
        if found:
            return Took(True, gettext("It is lifted; workers take it up again."), messages.SUCCESS, "Lifted.")
        return Took(False, gettext("It was lifted already. Nothing was changed."), messages.INFO)

    # ------------------------------------------------------------------ made

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_decide_permission(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Hold something, by POST only."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = HoldForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid() and (made := self._hold(request, form)) is not None:
            return HttpResponseRedirect(self.url("outlast_flows_hold_change", made.id))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": gettext("Hold work"),
            "decide_form": form,
            "decide_section": "outlast_flows/includes/hold.html",
            "decide_errors": form.errors,
            "list_url": self.url("outlast_flows_hold_changelist"),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/outlast_flows/decided/add.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _hold(self, request: HttpRequest, form: HoldForm) -> Row | None:
        given = form.cleaned_data
        try:
            found = holds.hold(given["scope"], given["name"], reason=given["reason"], by=request.user, using=self.alias)
        except OutlastError as error:
            form.add_error("reason" if given["scope"] == Scope.ALL and not given["name"] else "name", visible.plain(str(error)))
            return None
        assert found.hold is not None
        if found:
            self.log_addition(request, Hold.objects.using(self.alias).get(pk=found.hold.id), "Held.")
            self.message_user(
                request, gettext("It is held: what runs now ends its step, and nothing more is taken up."), messages.SUCCESS
            )
        else:
            self.message_user(request, gettext("It was held already. Nothing was changed."), messages.INFO)
        return found.hold


def row_of(obj: Hold) -> Row:
    """The hold as the services take it."""
    return Row(obj.pk, obj.scope, obj.name, obj.by_label, obj.reason, obj.since, obj.lifted_at)
