"""Bulk operations: made from the list of workflows as it is narrowed, with how far each is and what became of its runs; stopped on its page."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.core import payload, visible
from flows.core.errors import OutlastError
from flows.models import Bulk, Workflow
from flows.services import bulk
from flows.services.bulk import Shown

CHIPS = {"running": "running", "done": "complete", "stopped": "human"}
#: What of an address is no filter: the page, the order, what Django adds when it refuses.
NO_FILTER = ("p", "o", "e", "all")
#: So many runs are named of which something else became than was asked for.
MOST_SHOWN = 50


class StopForm(ReasonedForm):
    """Why no more of it is done."""

    purpose = "stop"


class BulkForm(ReasonedForm):
    """What is done to them, and why. `seen`: how many there were on the page; more are refused."""

    purpose = "bulk"
    verb = forms.ChoiceField(label=_("What is done to each"), choices=[("", "–"), *((name, name) for name in bulk.VERBS)])
    to = forms.IntegerField(label=_("To version"), required=False, min_value=1, help_text=_("Of migrate; empty: the newest."))
    at = forms.CharField(
        label=_("At node"),
        required=False,
        max_length=payload.MAX_NAME,
        help_text=_("Of resume, of runs that a gate has stopped; empty: where they stand."),
    )
    seen = forms.IntegerField(min_value=1, widget=forms.HiddenInput, error_messages={"required": _("Load the page again.")})
    field_order = ("verb", "to", "at", "reason", "seen")


@admin.register(Bulk)
class BulkAdmin(DecidingAdmin):
    """The newest first."""

    list_display = ("title", "chip", "shown_filter", "total", "shown_by", "made_at")
    list_display_links = ("title",)
    ordering = ("-pk",)
    fields = (
        "title", "chip", "shown_filter", "shown_arguments", "progress", "became", "others", "shown_by", "shown_reason", "made_at", "ended_at",
        "shown_stop",
    )  # fmt: skip
    readonly_fields = fields
    decide_permission = bulk.PERMISSION
    decide_section = "outlast_flows/includes/bulk_stop.html"

    @admin.display(description=_("bulk operation"))
    def title(self, obj: Bulk) -> SafeString:
        return rendering.inline(str(obj))

    @admin.display(description=_("status"))
    def chip(self, obj: Bulk) -> SafeString:
        return rendering.chip(CHIPS.get(obj.status, "pending"), obj.get_status_display())

    @admin.display(description=_("runs of the list with"))
    def shown_filter(self, obj: Bulk) -> SafeString:
        return rendering.inline(_words(obj.filter))

    @admin.display(description=_("arguments"))
    def shown_arguments(self, obj: Bulk) -> SafeString | str:
        return rendering.inline(_words(obj.arguments)) if obj.arguments else "–"

    @admin.display(description=_("progress"))
    def progress(self, obj: Bulk) -> str:
        shown = self._shown(obj)
        return gettext("%(done)s of %(total)s are done") % {"done": shown.total - shown.left, "total": shown.total}

    @admin.display(description=_("what became of them"))
    def became(self, obj: Bulk) -> SafeString | str:
        counts = self._shown(obj).counts
        return (
            rendering.lines([format_html("{}: {}", rendering.inline(code), count) for code, count in counts.items()])
            if counts
            else "–"
        )

    @admin.display(description=_("not as asked"))
    def others(self, obj: Bulk) -> SafeString | str:
        """Runs of which something else became, each with the sentence."""
        items = obj.items.using(self.alias).filter(done_at__isnull=False).exclude(code__in=bulk.AS_ASKED)
        lines = [
            format_html(
                '<a href="{}">{}</a> {}: {}',
                self.url("outlast_flows_workflow_change", one.workflow_id), str(one.workflow_id), rendering.inline(one.code),
                rendering.inline(one.sentence),
            )
            for one in items.order_by("workflow_id")[:MOST_SHOWN]
        ]  # fmt: skip
        return rendering.lines(lines) if lines else "–"

    @admin.display(description=_("by"))
    def shown_by(self, obj: Bulk) -> SafeString | str:
        return rendering.inline(obj.by_label) if obj.by_label else "–"

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Bulk) -> SafeString:
        return rendering.block(obj.reason)

    @admin.display(description=_("stopped"))
    def shown_stop(self, obj: Bulk) -> SafeString | str:
        return rendering.inline(f"{obj.stopped_by}: {obj.stopped_reason}") if obj.status == "stopped" else "–"

    def _shown(self, obj: Bulk) -> Shown:
        known: dict[int, Shown] = obj.__dict__.setdefault("_far", {})
        if obj.pk not in known:
            known[obj.pk] = bulk.show(obj.pk, using=self.alias)
        return known[obj.pk]

    # ------------------------------------------------------------------ stopped

    def is_offered(self, obj: Bulk) -> bool:
        return obj.status == "running"

    def form_of(self, obj: Bulk, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return StopForm(data)

    def decide(self, obj: Bulk, by: Any, given: Mapping[str, Any]) -> Took:
        if bulk.stop(obj.pk, reason=given["reason"], by=by, using=self.alias):
            return Took(True, gettext("It is stopped; what is done is done."), messages.SUCCESS, "Stopped.")
        return Took(False, gettext("It was over already. Nothing was changed."), messages.INFO)

    # ------------------------------------------------------------------ made

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_decide_permission(request)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Do one thing to all that the list of workflows shows whose filters stand in the address; by POST only."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        given = {name: value for name, value in request.GET.dict().items() if name not in NO_FILTER and value}
        runs = self._listed(request) if given else None
        count = runs.order_by()[: bulk.MOST + 1].count() if runs is not None else 0
        form = BulkForm(request.POST) if request.method == "POST" else BulkForm(initial={"seen": count})
        if (
            form.is_bound
            and form.is_valid()
            and runs is not None
            and (made := self._make(request, form, runs, given)) is not None
        ):
            return HttpResponseRedirect(self.url("outlast_flows_bulk_change", made.id))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": gettext("Do this to all that the list shows"),
            "decide_form": form if count and count <= bulk.MOST else None,
            "decide_section": "outlast_flows/includes/bulk_make.html",
            "decide_errors": form.errors,
            "filter": rendering.inline(_words(given)) if given else "",
            "count": f"{count:,}" if count <= bulk.MOST else f"{bulk.MOST:,}+",
            "too_many": count > bulk.MOST,
            "workflows_url": self.url("outlast_flows_workflow_changelist"),
            "list_url": self.url("outlast_flows_bulk_changelist"),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/outlast_flows/decided/add.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _listed(self, request: HttpRequest) -> QuerySet[Any] | None:
        """What the list of workflows shows to this person, as its own filters and its search narrow it; None: it shows nothing like that."""
        shown = self.admin_site._registry[Workflow]  # noqa: SLF001 - `get_model_admin` is new in Django 5.0, and says the same
        asking: Any = copy.copy(request)
        narrowed = request.GET.copy()
        for name in NO_FILTER:
            narrowed.pop(name, None)
        asking.GET, asking.method = narrowed, "GET"
        if not shown.has_view_permission(asking):
            raise PermissionDenied
        try:
            return shown.get_changelist_instance(asking).get_queryset(asking)
        except IncorrectLookupParameters:
            return None

    def _make(self, request: HttpRequest, form: BulkForm, runs: QuerySet[Any], given: Mapping[str, Any]) -> Shown | None:
        said = form.cleaned_data
        arguments = {name: said[name] for name in ("to", "at") if said[name] not in (None, "")}
        asked: dict[str, Any] = {
            "filter": given,
            "reason": said["reason"],
            "arguments": arguments,
            "by": request.user,
            "seen": said["seen"],
        }
        try:
            made = bulk.make(said["verb"], runs, using=self.alias, **asked)
        except OutlastError as error:
            form.add_error("verb", visible.plain(str(error)))
            return None
        self.log_addition(request, Bulk.objects.using(self.alias).get(pk=made.id), "Made.")
        self.message_user(request, gettext("%(count)s runs are worked off now.") % {"count": made.total}, messages.SUCCESS)
        return made


def _words(given: Any) -> str:
    """A filter, or arguments, as it was."""
    return ", ".join(f"{name} = {value}" for name, value in given.items()) if isinstance(given, dict) else str(given)
