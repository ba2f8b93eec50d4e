"""Delegations: seen by those whom they concern, made by a form that the service takes or refuses, and revoked from their page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.urls.resolvers import URLPattern
from django.utils import formats, timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.admin.delegating import DelegateForm, make
from approvals.admin.page import shortened
from approvals.models import Delegation
from approvals.services import people
from approvals.services.delegating import ANY, OWN, end_delegation
from flows.admin import rendering
from flows.admin.read_only import CSS, OfferedFilter, ReadOnlyAdmin
from flows.core import visible
from flows.core.errors import OutlastError
from flows.core.misuse import NotPermitted
from flows.services import warrant

VIEW = "outlast_approvals.view_delegation"


class WhoseFilter(OfferedFilter):
    """Given by me, or to me."""

    title = _("whose")
    parameter_name = "whose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("given", _("Given by me")), ("taken", _("To me"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Delegation]) -> QuerySet[Delegation]:
        column = {"given": "giver_id", "taken": "taker_id"}.get(self.value() or "")
        return queryset.filter(**{column: request.user.pk}) if column else queryset


class HoldsFilter(OfferedFilter):
    """Those that hold now, unless something else is asked for."""

    title = _("holds")
    parameter_name = "holds"
    default = ("now", _("Now"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("later", _("Later")), ("over", _("Over")), ("all", _("All"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Delegation]) -> QuerySet[Delegation]:
        moment = people.FlowsNow()
        match self.value():
            case "later":
                return queryset.filter(revoked_at=None, starts_at__gt=moment)
            case "over":
                return queryset.filter(Q(revoked_at__isnull=False) | Q(ends_at__lte=moment))
            case "all":
                return queryset
        return queryset.filter(revoked_at=None, starts_at__lte=moment, ends_at__gt=moment)


@admin.register(Delegation)
class DelegationAdmin(ReadOnlyAdmin):
    """What is made or revoked here goes through the service; a row never changes otherwise."""

    list_display = ("who", "to_whom", "state", "starts_at", "ends_at", "only")
    list_display_links = ("who",)
    list_filter = (WhoseFilter, HoldsFilter)
    fields = ("who", "to_whom", "state", "starts_at", "ends_at", "only", "why", "maker", "made_at", "revoker", "revoked_at")
    readonly_fields = fields
    ordering = ("-pk",)
    change_form_template = "admin/outlast_approvals/delegation/change_form.html"

    class Media:
        css = {"all": (*CSS["all"], "outlast_approvals/approvals.css")}

    # ------------------------------------------------------------------ permissions

    def sees_all(self, request: HttpRequest) -> bool:
        """Everybody else sees what concerns them."""
        return any(request.user.has_perm(name) for name in (VIEW, ANY))

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if self.sees_all(request):
            return True
        if isinstance(obj, Delegation):
            return request.user.pk in (obj.giver_id, obj.taker_id)
        return any(request.user.has_perm(name) for name in (OWN, people.ANSWER))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return any(request.user.has_perm(name) for name in (OWN, ANY))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(now=people.FlowsNow())
        return rows if self.sees_all(request) else rows.filter(Q(giver_id=request.user.pk) | Q(taker_id=request.user.pk))

    def may_revoke(self, request: HttpRequest, obj: Any) -> bool:
        """Whether it can still be revoked, by this user."""
        concerned = request.user.pk in (obj.giver_id, obj.taker_id)
        over = obj.revoked_at is not None or obj.ends_at <= obj.now
        return not over and (concerned or warrant.is_permitted(request.user, ANY, self.alias))

    # ------------------------------------------------------------------ words

    @admin.display(description=_("from"))
    def who(self, obj: Delegation) -> SafeString:
        return rendering.inline(obj.giver_label)

    @admin.display(description=_("to"))
    def to_whom(self, obj: Delegation) -> SafeString:
        return rendering.inline(obj.taker_label)

    @admin.display(description=_("holds"))
    def state(self, obj: Any) -> SafeString:
        if obj.revoked_at is not None:
            return rendering.chip("refused", _("revoked"))
        if obj.ends_at <= obj.now:
            return rendering.chip("later", _("over"))
        return rendering.chip("pending", _("later")) if obj.starts_at > obj.now else rendering.chip("accepted", _("now"))

    @admin.display(description=_("only for"))
    def only(self, obj: Delegation) -> SafeString | str:
        """What it is limited to."""
        named = ((_("role"), obj.role), (_("pool"), obj.pool), (_("flow"), obj.flow))
        told = [rendering.inline(f"{what} {shortened(name, 60)}") for what, name in named if name]
        return rendering.lines(told) if told else gettext("everything that they are asked")

    @admin.display(description=_("reason"))
    def why(self, obj: Delegation) -> SafeString:
        return rendering.block(obj.reason)

    @admin.display(description=_("made by"))
    def maker(self, obj: Delegation) -> SafeString:
        return rendering.inline(obj.made_by_label)

    @admin.display(description=_("revoked by"))
    def revoker(self, obj: Delegation) -> SafeString | str:
        return rendering.inline(obj.revoked_by_label) if obj.revoked_by_label else "–"

    # ------------------------------------------------------------------ pages

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:pk>/revoke/", view, name="outlast_approvals_delegation_revoke"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        obj = self.get_object(request, object_id) if object_id.isdecimal() else None
        may = obj is not None and self.may_revoke(request, obj)
        extra = {"revoke_url": self.url("outlast_approvals_delegation_revoke", obj.pk) if obj is not None and may else ""}
        return super().change_view(request, object_id, form_url, {**extra, **(extra_context or {})})

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Revoke it from this moment on."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        obj = self.get_queryset(request).filter(pk=pk).first()
        if obj is None:
            raise PermissionDenied
        try:
            done = end_delegation(pk, by=request.user, using=self.alias)
        except NotPermitted:
            raise PermissionDenied from None
        if done:
            self.log_change(request, obj, "Revoked.")
        said = gettext("Revoked: it holds no longer.") if done else gettext("It was over already. Nothing was changed.")
        self.message_user(request, said, messages.SUCCESS if done else messages.INFO)
        return HttpResponseRedirect(self.url("outlast_approvals_delegation_change", pk))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """A form of our own: the service makes it, or says why it could never hold."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        others = request.user.has_perm(ANY)
        form = DelegateForm(
            request.POST if request.method == "POST" else None, user=request.user, others=others, using=self.alias
        )
        if request.method == "POST" and form.is_valid():
            try:
                made = make(form, request.user, self.alias)
            except OutlastError as error:
                form.add_error(None, visible.plain(str(error)))
            else:
                self.log_addition(request, made, "Made.")
                said = gettext("%(to)s stands in for %(giver)s until %(until)s.")
                told = {"to": visible.plain(made.taker_label), "giver": visible.plain(made.giver_label)}
                until = formats.localize(timezone.localtime(made.ends_at))
                self.message_user(request, said % {**told, "until": until}, messages.SUCCESS)
                return HttpResponseRedirect(self.url("outlast_approvals_delegation_changelist"))
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": gettext("Have somebody stand in"),
            "form": form,
            "errors": form.errors,
            "list_url": self.url("outlast_approvals_delegation_changelist"),
            "people": form.suggested,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/outlast_approvals/delegation/add.html", context)
