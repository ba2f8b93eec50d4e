"""Calendars: every version, and when the newest opens next; the next version is published here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.json_field import JsonField, editable
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.core import payload, visible
from flows.core.calendars import parse
from flows.core.errors import DefinitionError
from flows.core.schedules.zones import shown
from flows.models import Calendar
from flows.services import calendars
from flows.services.clock import now


class CalendarForm(ReasonedForm):
    """The next version, after the one that was on the page."""

    purpose = "publish"
    after = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    body = JsonField(
        label=_("What it says"),
        strip=False,
        help_text=_("A JSON object: zone, week, holidays, closed, extra."),
        error_messages={"required": _("Say what the calendar says: a JSON object.")},
        widget=forms.Textarea(attrs={"rows": 14, "cols": False, "spellcheck": "false"}),
    )
    field_order = ("body", "reason")


@admin.register(Calendar)
class CalendarAdmin(DecidingAdmin):
    """Every version, the newest first; a calendar changes by its next version, and no wait that is open moves."""

    list_display = ("title", "version", "shown_zone", "by_label", "at")
    list_display_links = ("title",)
    search_fields = ("name",)
    search_help_text = _("A part of the calendar's name")
    ordering = ("name", "-version")
    fields = ("title", "version", "says", "opens", "digest", "shown_reason", "by_label", "at")
    readonly_fields = fields
    decide_permission = calendars.PERMISSION
    decide_section = "outlast_flows/includes/publish_calendar.html"

    @admin.display(description=_("calendar"))
    def title(self, obj: Calendar) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("time zone"))
    def shown_zone(self, obj: Calendar) -> SafeString | str:
        body = payload.decode(obj.body)
        return rendering.inline(str(body.get("zone", "–"))) if isinstance(body, dict) else "–"

    @admin.display(description=_("body"))
    def says(self, obj: Calendar) -> SafeString:
        return rendering.value(payload.decode(obj.body))

    @admin.display(description=_("open"))
    def opens(self, obj: Calendar) -> SafeString | str:
        try:
            read = parse(payload.decode(obj.body), obj.name, obj.version)
        except DefinitionError as error:
            return rendering.inline(str(error))
        moment = now(self.alias)
        found = next(read.spans(moment), None)
        if found is None:
            return gettext("never, within two years")
        first, last = (rendering.inline(shown(one, read.where)) for one in found)
        return rendering.lines([rendering.chip("alive", gettext("open now")) if found[0] <= moment else first, last])

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Calendar) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"

    def is_offered(self, obj: Calendar) -> bool:
        return not Calendar.objects.using(self.alias).filter(name=obj.name, version__gt=obj.version).exists()

    def form_of(self, obj: Calendar, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        return CalendarForm(data, initial={"after": obj.version, "body": editable(payload.decode(obj.body))})

    def decide(self, obj: Calendar, by: Any, given: Mapping[str, Any]) -> Took:
        made = calendars.publish(obj.name, given["body"], reason=given["reason"], by=by, after=given["after"], using=self.alias)
        facts = {"calendar": f"{visible.plain(made.name)}@{made.version}"}
        if not made.created:
            return Took(False, gettext("%(calendar)s says the same already: nothing was changed.") % facts, messages.INFO)
        return Took(True, gettext("%(calendar)s is published.") % facts, messages.SUCCESS, f"Published version {made.version}.")


__all__: list[Any] = ["CalendarAdmin"]
