"""Webhooks: who may send, what was sent and what became of it, and how much was refused. All that was sent is shown as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering, webhook_forms
from flows.admin.read_only import ReadOnlyAdmin
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.admin.records import FixedFilter
from flows.core import redaction, visible
from flows.core.errors import OutlastError, PayloadError
from flows.core.hooks import Refused
from flows.models import Event, WebhookDelivery, WebhookRefusal, WebhookSource, WebhookVerdict
from flows.services import redacting
from flows.services.webhooks import bodies, sources
from flows.services.webhooks.mapping import PERMISSION

#: A verdict → the class of its chip.
CHIPS = {"accepted": "complete", "ignored": "pending", "unmapped": "human", "conflict": "failed"}

#: Bytes of a body that a page shows.
MOST_BODY = 20_000


class VerdictFilter(FixedFilter):
    title, parameter_name, words = _("verdict"), "verdict", tuple(WebhookVerdict.values)


class CodeFilter(FixedFilter):
    title, parameter_name, words = _("why"), "code", tuple(code.value for code in Refused)


@admin.register(WebhookSource)
class WebhookSourceAdmin(DecidingAdmin):
    """Sources that people described here, and beside them those of the setting, which win."""

    list_display = ("title", "scheme", "on", "secrets_set", "shown_type", "shown_key", "by_label", "updated_at")
    list_display_links = ("title",)
    ordering = ("name",)
    fields = (
        "title",
        "address",
        "scheme",
        "on",
        "secrets_set",
        "shown_type",
        "shown_key",
        "by_label",
        "shown_reason",
        "updated_at",
    )
    readonly_fields = fields
    change_list_template = "admin/outlast_flows/webhooksource/change_list.html"
    decide_permission = PERMISSION
    decide_section = "outlast_flows/includes/webhook_source.html"

    # ------------------------------------------------------------------ what is shown

    @admin.display(description=_("source"))
    def title(self, obj: WebhookSource) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("address"))
    def address(self, obj: WebhookSource) -> SafeString:
        return rendering.inline(f"…/hooks/{obj.name}")

    @admin.display(description=_("state"))
    def on(self, obj: WebhookSource) -> SafeString:
        if sources.is_of_setting(obj.name):
            return rendering.chip("pending", gettext("the setting wins"))
        return rendering.chip("alive", gettext("enabled")) if obj.enabled else rendering.chip("pending", gettext("disabled"))

    @admin.display(description=_("secrets that are set"))
    def secrets_set(self, obj: WebhookSource) -> str:
        return _set(list(obj.secrets))

    @admin.display(description=_("event type"))
    def shown_type(self, obj: WebhookSource) -> SafeString:
        return rendering.inline(obj.event_type)

    @admin.display(description=_("event key"))
    def shown_key(self, obj: WebhookSource) -> SafeString:
        return rendering.inline(obj.event_key)

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: WebhookSource) -> SafeString:
        return rendering.block(obj.reason)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        shown = [_of_setting(name, one) for name, one in sources.all_sources(self.alias) if sources.is_of_setting(name)]
        return super().changelist_view(request, {"of_setting": shown, **(extra_context or {})})

    # ------------------------------------------------------------------ described anew

    def is_offered(self, obj: WebhookSource) -> bool:
        return not sources.is_of_setting(obj.name)

    def form_of(self, obj: WebhookSource, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return webhook_forms.source_form(obj, data)

    def decide(self, obj: WebhookSource, by: Any, given: Mapping[str, Any]) -> Took:
        return webhook_forms.save(obj.name, by, given, self.alias)[1]

    # ------------------------------------------------------------------ a new one

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_decide_permission(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Describe one, by POST only."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = webhook_forms.NewSourceForm(request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            try:
                saved, took = webhook_forms.save(form.cleaned_data["name"], request.user, form.cleaned_data, self.alias)
            except OutlastError as error:
                form.add_error(None, visible.plain(str(error)))
            else:
                self.log_addition(request, WebhookSource.objects.using(self.alias).get(pk=saved.id), took.noted)
                self.message_user(request, took.said, took.level)
                return HttpResponseRedirect(self.url("outlast_flows_webhooksource_change", saved.id))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "decide_section": self.decide_section,
            "title": gettext("Describe a source"),
            "decide_form": form,
            "decide_errors": form.errors,
            "list_url": self.url("outlast_flows_webhooksource_changelist"),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/outlast_flows/decided/add.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response


def _set(references: list[str]) -> str:
    count = sum(1 for reference in references if sources.secret(reference).strip())
    return gettext("%(count)s of %(all)s") % {"count": count, "all": len(references)}


def _of_setting(name: str, one: Any) -> dict[str, Any]:
    if not isinstance(one, sources.Source):
        state = rendering.chip("failed", gettext("cannot be"))
        return {
            "name": rendering.inline(str(name)),
            "scheme": "–",
            "state": state,
            "secrets": "–",
            "wrong": rendering.inline(str(one)),
        }
    state = rendering.chip("alive", gettext("enabled")) if one.enabled else rendering.chip("pending", gettext("disabled"))
    return {
        "name": rendering.inline(name),
        "scheme": one.scheme.name,
        "state": state,
        "secrets": _set(list(one.secrets)),
        "wrong": "",
    }


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(DecidingAdmin):
    """Every verified request, the newest first; one of which nothing could be made is mapped anew here."""

    list_display = ("title", "shown_source", "chip", "code", "event", "times", "conflicts", "secret", "received_at")
    list_display_links = ("title",)
    list_filter = (VerdictFilter,)
    search_fields = ("delivery_id",)
    search_help_text = _("SOURCE:ID, the whole id of a delivery and its source")
    ordering = ("-pk",)
    fields = (
        "title", "shown_source", "chip", "code", "event", "events", "times", "conflicts", "secret", "body_digest", "sent_at", "received_at",
        "seen_at", "shown_headers", "shown_body", "shown_mapped",
    )  # fmt: skip
    readonly_fields = fields
    decide_permission = PERMISSION
    decide_section = "outlast_flows/includes/map_anew.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("body", "headers")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        source, colon, known_by = search_term.strip().partition(":")
        if not colon:
            return (queryset.none() if source else queryset), False
        return queryset.filter(source=source, delivery_id=known_by), False

    @admin.display(description=_("delivery"))
    def title(self, obj: WebhookDelivery) -> SafeString:
        return rendering.inline(obj.delivery_id)

    @admin.display(description=_("source"))
    def shown_source(self, obj: WebhookDelivery) -> SafeString:
        return rendering.inline(obj.source)

    @admin.display(description=_("verdict"))
    def chip(self, obj: WebhookDelivery) -> SafeString:
        return rendering.chip(CHIPS.get(obj.verdict, "pending"), obj.verdict)

    @admin.display(description=_("event"))
    def event(self, obj: WebhookDelivery) -> SafeString | str:
        """The list names it; the page leads to it."""
        return rendering.inline(obj.event_id) if obj.event_id else "–"

    @admin.display(description=_("headers"))
    def shown_headers(self, obj: WebhookDelivery) -> SafeString:
        return rendering.value(obj.headers)

    @admin.display(description=_("body"))
    def shown_body(self, obj: WebhookDelivery) -> SafeString | str:
        if obj.body is None:
            found = Event.objects.using(self.alias).filter(event_id=obj.event_id).values_list("pk", flat=True).first()
            url = self.url("outlast_flows_event_change", found) if found is not None else ""
            return format_html('<a href="{}">{}</a>', url, gettext("It is in the inbox.")) if url else gettext("It is not kept.")
        try:
            body = bodies.unpacked(obj.body)
        except PayloadError as error:
            return rendering.inline(str(error))
        if redacting.hides("body"):
            return rendering.inline(redaction.HIDDEN)
        text = body[:MOST_BODY].decode("utf-8", "backslashreplace")
        return rendering.block(text if len(body) <= MOST_BODY else f"{text}\n… ({len(body):,} bytes in all)")

    @admin.display(description=_("mapped anew"))
    def shown_mapped(self, obj: WebhookDelivery) -> SafeString | str:
        if not obj.reason:
            return "–"
        return format_html("{}: {}", rendering.inline(obj.mapped_by or "–"), rendering.block(obj.reason))

    def is_offered(self, obj: WebhookDelivery) -> bool:
        return obj.verdict == WebhookVerdict.UNMAPPED

    def form_of(self, obj: WebhookDelivery, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return webhook_forms.MapForm(data)

    def decide(self, obj: WebhookDelivery, by: Any, given: Mapping[str, Any]) -> Took:
        return webhook_forms.map_anew(obj, by, given, self.alias)


@admin.register(WebhookRefusal)
class WebhookRefusalAdmin(ReadOnlyAdmin):
    """Sums: who sent them is not kept."""

    list_display = ("hour", "shown_source", "code", "count")
    fields = list_display
    readonly_fields = fields
    list_filter = (CodeFilter,)
    ordering = ("-hour", "source", "code")

    @admin.display(description=_("source"))
    def shown_source(self, obj: WebhookRefusal) -> SafeString | str:
        return rendering.inline(obj.source) if obj.source else gettext("none that there is")


__all__: list[Any] = ["WebhookDeliveryAdmin", "WebhookRefusalAdmin", "WebhookSourceAdmin"]
