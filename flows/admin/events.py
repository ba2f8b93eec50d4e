"""The inbox of events: where each stands that nobody has taken, and the form that has one delivered again. What it says is shown as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import OfferedFilter
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.admin.records import FixedFilter, RecordAdmin
from flows.core import payload
from flows.core.inbox import ALERTS, Place
from flows.models import Event, EventStatus
from flows.services import redacting, redelivering
from flows.services.events import Received, Reception

#: Places that a person looks for together → their heading. A row from before there were places has none, and was taken.
GROUPS: dict[str, tuple[Any, tuple[Place, ...]]] = {
    "alerts": (_("Somebody should look"), tuple(sorted(ALERTS))),
    "waiting": (_("Waiting for a run"), (Place.EARLY, Place.BETWEEN)),
    "unknown": (_("Unknown"), (Place.UNKNOWN,)),
    "unclaimed": (_("Unclaimed"), (Place.UNCLAIMED,)),
    "gap": (_("Held, or passed on after a gap"), (Place.GAP,)),
    "late": (_("Late"), (Place.ENDED, Place.SUPERSEDED, Place.EARLIER_WAIT, Place.EARLIER_EPOCH, Place.EARLIER_RUN)),
    "misdirected": (_("Misdirected"), (Place.MISDIRECTED,)),
    "out_of_order": (_("Out of order"), (Place.OUT_OF_ORDER,)),
    "conflict": (_("Conflicts"), (Place.CONFLICT,)),
    "redelivered": (_("Taken when delivered again"), (Place.REDELIVERED,)),
}

#: What a place means, for a person.
MEANS: dict[str, Any] = {
    Place.EARLY: _("Nobody waits for it yet."),
    Place.BETWEEN: _("The run that has waited there lives; its next wait takes it."),
    Place.UNKNOWN: _("No flow of this process waits for its type."),
    Place.UNCLAIMED: _("Nobody has taken it for long, or it was to begin a run and could not. Look at it."),
    Place.GAP: _("An earlier one of its stream is missing, or was not waited for any longer."),
    Place.TAKEN: _("A wait took it."),
    Place.REDELIVERED: _("A wait took it after somebody had it delivered again."),
    Place.STARTED: _("It has begun a run."),
    Place.CONFLICT: _("Its id is known with other content. It is never taken; a copy of it can be delivered."),
    Place.ENDED: _("The last run that waited there has ended."),
    Place.SUPERSEDED: _("It is for a goal that has been replaced."),
    Place.EARLIER_WAIT: _("It says that it is about a wait that is closed."),
    Place.EARLIER_EPOCH: _("It says that it is about an older generation of its run."),
    Place.EARLIER_RUN: _("It says that it is about a run that has ended; another one uses its channel."),
    Place.MISDIRECTED: _("It says that it is about a run that does not exist, or never waits for it."),
    Place.OUT_OF_ORDER: _("A later one of its stream was passed on."),
}

#: A place → the class of its chip; where none is named, that of a status that only waits.
CHIPS: dict[str, str] = {
    **dict.fromkeys((Place.TAKEN.value, Place.REDELIVERED.value, Place.STARTED.value), "complete"),
    **dict.fromkeys((place.value for place in ALERTS), "failed"),
    Place.GAP.value: "human",
}


class PlaceFilter(OfferedFilter):
    """By what is to be done about them; found by the index of places."""

    title = _("place")
    parameter_name = "place"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, label) for name, (label, _places) in GROUPS.items()]

    def narrowed(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        if self.value() is None:
            return queryset
        _label, places = GROUPS[str(self.value())]
        return queryset.filter(~Q(place="") & ~Q(place__in=[Place.TAKEN, Place.STARTED]), place__in=places)


class EventStatusFilter(FixedFilter):
    title, parameter_name, words = _("status"), "status", tuple(EventStatus.values)


class RedeliverForm(ReasonedForm):
    """To whoever waits on its channel, or to one wait; as it was seen."""

    purpose = "redeliver"
    to = forms.IntegerField(
        label=_("Only to the wait with this number"),
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text=_("Leave it empty to have it delivered by its type and key. The list of waits has the numbers."),
    )
    seen = forms.RegexField(regex=r"^[a-z]+:[0-9]{1,9}$", widget=forms.HiddenInput)
    field_order = ("to", "reason", "seen")


@admin.register(Event)
class EventAdmin(DecidingAdmin, RecordAdmin):
    """The inbox of evidence from outside."""

    list_display = ("shown_id", "shown_type", "shown_key", "chip", "placed", "deliveries", "of_workflow", "observed_at")
    list_filter = (PlaceFilter, EventStatusFilter)
    fields = (
        *("shown_id", "shown_type", "shown_key", "chip", "placed", "means", "deliveries", "woken", "observed_at", "shown_about"),
        *("position", "held_until", "history", "payload_hash", "shown_payload"),
    )
    readonly_fields = (
        *("shown_id", "shown_type", "shown_key", "chip", "placed", "means", "woken", "shown_about", "history", "shown_payload"),
    )
    search_fields = ("event_id",)
    search_help_text = _("The whole id of an event")
    decide_permission = redelivering.PERMISSION
    decide_section = "outlast_flows/includes/redeliver.html"

    # ------------------------------------------------------------------ what is decided

    def form_of(self, obj: Event, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return RedeliverForm(data, initial={"seen": f"{obj.status}:{obj.redelivered}"})

    def is_offered(self, obj: Event) -> bool:
        return obj.status != EventStatus.CONSUMED and not (obj.status == EventStatus.CONFLICT and obj.redelivered)

    def decide(self, obj: Event, by: Any, given: Mapping[str, Any]) -> Took:
        status, _colon, count = given["seen"].partition(":")
        found = redelivering.redeliver(
            obj.pk, by=by, reason=given["reason"], to=given["to"], seen=(status, int(count)), using=self.alias
        )
        said = self._said(found)
        done = found.answer in (Reception.ACCEPTED, Reception.KEPT)
        return Took(done, said, messages.SUCCESS if done else messages.WARNING, gettext("Delivered again."))

    def _said(self, found: Received) -> str:
        match found.answer:
            case Reception.ACCEPTED:
                return gettext("Delivered: it reached %(count)s runs.") % {"count": len(found.woken)}
            case Reception.KEPT:
                return gettext("Nobody waits for it now: the next wait of its type and key takes it.")
            case Reception.TOO_LATE:
                return gettext("That wait takes nothing any more: it is closed, or has been answered. Nothing was changed.")
        return gettext("It has been taken, or delivered again, since this page was opened. Nothing was changed.")

    # ------------------------------------------------------------------ what is shown

    @admin.display(description=_("event id"))
    def shown_id(self, obj: Event) -> SafeString:
        return rendering.inline(obj.event_id)

    @admin.display(description=_("type"))
    def shown_type(self, obj: Event) -> SafeString:
        return rendering.inline(obj.type)

    @admin.display(description=_("key"))
    def shown_key(self, obj: Event) -> SafeString:
        return rendering.inline(obj.key)

    @admin.display(description=_("place"))
    def placed(self, obj: Event) -> SafeString | str:
        return rendering.chip(CHIPS.get(obj.place, "pending"), rendering.inline(obj.place)) if obj.place else "–"

    @admin.display(description=_("that means"))
    def means(self, obj: Event) -> str:
        return str(MEANS.get(obj.place, "–"))

    @admin.display(description=_("says that it is about"))
    def shown_about(self, obj: Event) -> SafeString | str:
        named = {
            gettext("run"): obj.about_workflow,
            gettext("generation"): obj.about_epoch,
            gettext("version of the goal"): obj.about_intent,
            gettext("wait"): obj.about_wait,
        }
        said = [rendering.inline(f"{name} {value}") for name, value in named.items() if value is not None]
        return rendering.lines(said) if said else "–"

    @admin.display(description=_("delivered again"))
    def history(self, obj: Event) -> SafeString | str:
        """Who had it delivered again, and why; of a copy, where the conflict stands."""
        said = [
            format_html(
                '{} {}<div class="oa-quiet">{}</div>', rendering.inline(one.by_label or "–"), one.at, rendering.block(one.reason)
            )
            for one in obj.redeliveries.using(self.alias).order_by("-pk")[:20]
        ]
        if obj.copy_of is not None:
            url = self.url("outlast_flows_event_change", obj.copy_of)
            said.append(format_html('<a href="{}">{}</a>', url, gettext("The conflict of which this is a copy")))
        return rendering.lines(said) if said else "–"

    @admin.display(description=_("woken"))
    def woken(self, obj: Event) -> SafeString | str:
        """The row names the first one; the others are found by no index, so the page says where they are named."""
        if obj.workflow_id is None:
            return "–"
        told = gettext(
            "An event wakes all that wait for its type and key. This is the first of them; the timeline of each names the event."
        )
        return format_html('{}<div class="oa-quiet">{}</div>', self.of_workflow(obj), told)

    @admin.display(description=_("payload"))
    def shown_payload(self, obj: Event) -> SafeString:
        return rendering.value(redacting.shown("payload", obj.payload))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return (queryset.filter(event_id=term) if payload.is_text(term) else queryset.none()), False
