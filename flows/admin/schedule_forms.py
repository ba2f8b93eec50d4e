"""What a person decides about schedules, as a browser posts it; and the one call of the service behind each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from flows.admin.json_field import JsonField, editable
from flows.admin.reasoned import ReasonedForm, Took
from flows.core import payload, visible
from flows.core.errors import DefinitionError
from flows.core.schedules.declared import Schedule as Declared
from flows.core.schedules.words import Timing
from flows.models import Schedule
from flows.services.schedules import acting
from flows.services.schedules.acting import Acted
from flows.services.schedules.reading import options_of

#: Options that are spans; in a form, seconds.
SPANS = ("window", "cooldown", "jitter")
#: Options that a form gives as JSON.
FURTHER = (*SPANS, "missed", "cap", "overlap", "compute", "calendar", "repeated", "missing", "priority", "tenant", "user")

#: What is not said has its default.
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Declared) if field.name in FURTHER}

PAUSE, RESUME, RUN, BACKFILL, CHANGE = "pause", "resume", "run", "backfill", "change"
ACTS = {
    PAUSE: _("Pause it: plan and start nothing"),
    RESUME: _("Let it go on; what came in the pause is skipped"),
    RUN: _("Run it now, once"),
    BACKFILL: _("Make up for a time that is over"),
    CHANGE: _("Change it: what stands below is what it is from now on"),
}


def _text(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "cols": False, "spellcheck": "false"})


class WhenForm(ReasonedForm):
    """When, with what input, and by which policies."""

    kind = forms.ChoiceField(label=_("Kind"), required=False, choices=[(kind.value, kind.value) for kind in Timing])
    expression = forms.CharField(
        label=_("When"),
        required=False,
        max_length=2000,
        help_text=_("Five or six fields of cron; seconds of an interval; a moment; or lines of a rule."),
        widget=_text(2),
    )
    zone = forms.CharField(
        label=_("Time zone"), required=False, max_length=100, help_text=_("A name such as Europe/Vienna, or UTC.")
    )
    input = JsonField(label=_("Input"), required=False, strip=False, help_text=_("A JSON object."), widget=_text(4))
    options = JsonField(
        label=_("Further options"),
        required=False,
        strip=False,
        help_text=_('A JSON object, such as {"missed": "every", "window": 3600}: the options of a schedule; spans are seconds.'),
        widget=_text(6),
    )

    def clean_input(self) -> Any:
        """An object; nothing is an empty one."""
        return _object(self.cleaned_data["input"])

    def clean_options(self) -> Any:
        """An object of options that there are."""
        found = _object(self.cleaned_data["options"])
        unknown = sorted(str(name) for name in set(found) - set(FURTHER))
        if unknown:
            raise forms.ValidationError(gettext("There is no option %(name)s.") % {"name": visible.plain(unknown[0][:60])})
        return found


class NewScheduleForm(WhenForm):
    """A schedule that is new, with its name and its flow."""

    purpose = "new"
    name = forms.CharField(
        label=_("Name"), max_length=120, widget=forms.TextInput(attrs={"autofocus": True, "spellcheck": "false"})
    )
    flow = forms.CharField(label=_("Flow"), max_length=200, help_text=_("The name of the flow that it starts."))
    field_order = ("name", "flow", "kind", "expression", "zone", "input", "options", "reason")


class ActForm(WhenForm):
    """What is to become of a schedule, as it was on the page."""

    purpose = "act"
    seen = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    act = forms.ChoiceField(label=_("What is to be done"))
    since = forms.DateTimeField(label=_("From (to make up for)"), required=False)
    until = forms.DateTimeField(label=_("To (to make up for)"), required=False)
    field_order = ("act", "since", "until", "kind", "expression", "zone", "input", "options", "reason")

    def __init__(self, *args: Any, acts: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["act"].choices = [(name, ACTS[name]) for name in acts]  # type: ignore[attr-defined]
        if CHANGE not in acts:
            for name in ("kind", "expression", "zone", "input", "options"):
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """To make up for a time, one has to say which."""
        found = super().clean() or self.cleaned_data
        if found.get("act") == BACKFILL:
            for name in ("since", "until"):
                if found.get(name) is None and name not in self.errors:
                    self.add_error(name, gettext("Say which time is to be made up for."))
        return found


def act_form(obj: Schedule, data: Mapping[str, Any] | None) -> ActForm:
    """It begins with what the schedule is."""
    acts = (RESUME if obj.paused_at else PAUSE, RUN, BACKFILL, *((CHANGE,) if obj.origin != "code" else ()))
    further = {name: getattr(obj, name) for name in FURTHER if name != "user"}
    further = {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in further.items() if value}
    initial = {
        "seen": obj.revision,
        "kind": obj.kind,
        "expression": obj.expression,
        "zone": obj.time_zone,
        "input": editable(payload.decode(obj.input)),
        "options": editable(further),
    }
    return ActForm(data, acts=acts, initial=initial)


def act(obj: Schedule, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Do it.

    Raises:
        OutlastError: it cannot be done, and why.
    """
    wish = {"by": by, "reason": given["reason"], "using": using}
    name = {"name": visible.plain(obj.name)}
    match given["act"]:
        case str(one) if one in (PAUSE, RESUME):
            done = (acting.pause if one == PAUSE else acting.resume)(obj.name, **wish)
            if not done:
                return Took(False, gettext("%(name)s was so already.") % name, messages.INFO)
            said = gettext("%(name)s is paused.") if one == PAUSE else gettext("%(name)s goes on.")
            return Took(True, said % name, messages.SUCCESS, f"{one.capitalize()}d: {given['reason']}")
        case str(one) if one in (RUN, BACKFILL):
            span = {"since": given["since"], "until": given["until"]} if one == BACKFILL else {}
            done = acting.backfill(obj.name, **span, **wish) if one == BACKFILL else acting.run_now(obj.name, **wish)
            return _added(done, name, given["reason"])
    done = acting.change(obj.name, seen=given["seen"], **_options(given), **wish)
    said = gettext("%(name)s is changed; it has revision %(revision)s now.")
    return Took(True, said % {**name, "revision": done.revision}, messages.SUCCESS, f"Changed, revision {done.revision}.")


def make(given: Mapping[str, Any], by: Any, using: str) -> Took:
    """Make a new one.

    Raises:
        OutlastError: it cannot be made, and why.
    """
    acting.create(given["name"], given["flow"], by=by, reason=given["reason"], using=using, **_options(given))
    said = gettext("%(name)s is made.") % {"name": visible.plain(given["name"])}
    return Took(True, said, messages.SUCCESS, f"Made: {given['reason']}")


def _added(done: Acted, name: dict[str, str], reason: str) -> Took:
    count = len(done.moments)
    if not count:
        return Took(False, gettext("There is an occurrence of each moment already: nothing was changed."), messages.INFO)
    said = ngettext("%(count)s occurrence of %(name)s is added.", "%(count)s occurrences of %(name)s are added.", count)
    return Took(True, said % {**name, "count": count}, messages.SUCCESS, f"Added {count}: {reason}")


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as `flows.Schedule` has them.

    Raises:
        DefinitionError: something of them is none.
    """
    found = {**DEFAULTS, **given["options"]}
    for name in SPANS:
        value = found.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise DefinitionError(f"{name} is {value!r:.40}: seconds, as a number.")
            found[name] = timedelta(seconds=value)
    return {**found, **options_of(given["kind"], given["expression"]), "zone": given["zone"] or "UTC", "input": given["input"]}


def _object(value: Any) -> Any:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise forms.ValidationError(gettext("This is no JSON object."))
    return value
