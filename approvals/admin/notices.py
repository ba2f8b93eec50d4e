"""Who was told of which request, read-only: what was sent, what still waits, and why the rest never was."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.core.notices import NoticeKind
from approvals.models import Notice
from approvals.models.notice import KINDS
from flows.admin import rendering
from flows.admin.read_only import OfferedFilter, ReadOnlyAdmin
from flows.models.notice import OWED


class FateFilter(OfferedFilter):
    """Those for people and channels, unless the events behind them are asked for."""

    title = _("state")
    parameter_name = "state"
    default = ("told", _("For people and channels"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("waiting", _("Not sent yet")), ("unsent", _("Never sent")), ("events", _("What happened"))]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Notice]) -> QuerySet[Notice]:
        match self.value():
            case "events":
                return queryset.filter(channel="")
            case "waiting":
                return queryset.filter(OWED).exclude(channel="")
            case "unsent":
                return queryset.filter(gave_up_at__isnull=False).exclude(channel="")
        return queryset.exclude(channel="")


class KindFilter(OfferedFilter):
    """By kind."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.value, str(KINDS[kind])) for kind in NoticeKind]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Notice]) -> QuerySet[Notice]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """Notices of requests."""

    list_display = ("shown_kind", "of_request", "to", "shown_channel", "fate", "tries", "created_at", "due_at")
    list_display_links = ("shown_kind",)
    list_filter = (FateFilter, KindFilter)
    list_select_related = ("request",)
    fields = (
        "shown_kind",
        "number",
        "of_request",
        "to",
        "shown_channel",
        "fate",
        "tries",
        "created_at",
        "due_at",
        "sent_at",
        "gave_up_at",
    )
    readonly_fields = ("shown_kind", "of_request", "to", "shown_channel", "fate")
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("request").defer("request__candidate", "request__evidence")

    @admin.display(description=_("kind"))
    def shown_kind(self, obj: Notice) -> SafeString:
        return rendering.chip(obj.kind, str(KINDS[NoticeKind(obj.kind)]))

    @admin.display(description=_("request"))
    def of_request(self, obj: Notice) -> SafeString:
        url, name = self.url("outlast_approvals_request_decide", obj.request_id), rendering.inline(str(obj.request))
        return format_html('<a href="{}">{}</a>', url, name) if url else name

    @admin.display(description=_("to"))
    def to(self, obj: Notice) -> SafeString | str:
        return rendering.inline(obj.user_label) if obj.user_label else "–"

    @admin.display(description=_("channel"))
    def shown_channel(self, obj: Notice) -> SafeString | str:
        return rendering.inline(obj.channel) if obj.channel else "–"

    @admin.display(description=_("state"))
    def fate(self, obj: Notice) -> SafeString | str:
        if obj.sent_at:
            return gettext("sent") if obj.channel else gettext("written out")
        if obj.gave_up_at:
            return rendering.inline(gettext("never sent: %(why)s") % {"why": obj.why})
        return rendering.inline(gettext("waits: %(why)s") % {"why": obj.why}) if obj.why else gettext("waits")
