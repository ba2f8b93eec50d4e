"""Dependencies and limits: how what is scarce stands, who waits for it, and what a person says of a dependency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin import rendering
from flows.admin.read_only import ReadOnlyAdmin
from flows.admin.reasoned import DecidingAdmin, ReasonedForm, Took
from flows.core import payload
from flows.core.capacity import DependencyStatus
from flows.models import Dependency, Limit
from flows.services.capacity import health
from flows.store import slots

#: Status → the look of its chip.
CHIPS = {
    DependencyStatus.HEALTHY.value: "complete",
    DependencyStatus.DOWN.value: "failed",
    DependencyStatus.TRIAL.value: "waiting",
    DependencyStatus.RECOVERING.value: "running",
}
DOWN, UP, RATE = "down", "up", "rate"


class OperateForm(ReasonedForm):
    """What a person says of a dependency, and why."""

    purpose = "operate"
    what = forms.ChoiceField(
        label=_("What you say"),
        choices=[
            (DOWN, _("It is down: nothing is let through until somebody says that it is up")),
            (UP, _("It is back: it recovers along its ramp")),
            (RATE, _("Use this rate and ceiling (empty: as they are declared)")),
        ],
        widget=forms.RadioSelect,
    )
    rate = forms.FloatField(label=_("Rate, in runs a second"), required=False, min_value=0.001, max_value=health.MOST)
    ceiling = forms.IntegerField(label=_("Ceiling, in attempts at once"), required=False, min_value=1, max_value=health.MOST)
    field_order = ("what", "rate", "ceiling", "reason")


@admin.register(Dependency)
class DependencyAdmin(DecidingAdmin):
    """Each with who waits for it, and how long that takes at its full rate."""

    list_display = ("shown_name", "chip", "since", "waiting", "in_use", "drained")
    list_display_links = ("shown_name",)
    search_fields = ("name",)
    search_help_text = _("A part of the dependency's name")
    ordering = ("name",)
    fields = (
        "shown_name", "chip", "since", "code", "waiting", "in_use", "lets_through", "drained", "probe_at", "by_label", "shown_reason",
    )  # fmt: skip
    readonly_fields = fields
    decide_permission = health.PERMISSION
    decide_section = "outlast_flows/includes/operate_dependency.html"

    def is_key(self, text: str) -> bool:
        return payload.is_name(text)

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, obj: Dependency) -> SafeString:
        return rendering.inline(obj.name)

    @admin.display(description=_("status"))
    def chip(self, obj: Dependency) -> SafeString:
        return rendering.chip(CHIPS.get(obj.status, "waiting"), obj.get_status_display())

    @admin.display(description=_("waiting"))
    def waiting(self, obj: Dependency) -> int:
        return self._of(obj).waiting

    @admin.display(description=_("in use"))
    def in_use(self, obj: Dependency) -> str:
        one = self._of(obj)
        return gettext("%(used)s of %(ceiling)s") % {"used": one.in_use, "ceiling": one.ceiling}

    @admin.display(description=_("lets through"))
    def lets_through(self, obj: Dependency) -> str:
        one = self._of(obj)
        facts = {"rate": f"{one.rate:g}", "now": f"{one.allowed:g}"}
        if one.allowed:
            return gettext("%(now)s a second now, %(rate)s at its full rate") % facts
        return gettext("%(rate)s a second when it is back") % facts

    @admin.display(description=_("nobody waits in"))
    def drained(self, obj: Dependency) -> str:
        one = self._of(obj)
        return gettext("%(seconds)s s at its full rate") % {"seconds": round(one.drain_seconds)} if one.waiting else "–"

    @admin.display(description=_("reason"))
    def shown_reason(self, obj: Dependency) -> SafeString | str:
        return rendering.block(obj.reason) if obj.reason else "–"

    def _of(self, obj: Dependency) -> health.Shown:
        known: dict[str, health.Shown] = obj.__dict__.setdefault("_shown", {})
        if not known:
            known[obj.name] = health.show(obj.name, using=self.alias)
        return known[obj.name]

    def is_offered(self, obj: Dependency) -> bool:
        return True

    def form_of(self, obj: Dependency, data: Mapping[str, Any] | None = None) -> ReasonedForm:
        begin = UP if obj.status == DependencyStatus.DOWN else DOWN
        return OperateForm(data, initial={"what": begin, "rate": obj.rate, "ceiling": obj.ceiling})

    def decide(self, obj: Dependency, by: Any, given: Mapping[str, Any]) -> Took:
        said: dict[str, Any] = {"by": by, "reason": given["reason"], "using": self.alias}
        if given["what"] == RATE:
            status = health.set_rate(obj.name, rate=given["rate"], ceiling=given["ceiling"], **said)
        else:
            status = (health.down if given["what"] == DOWN else health.up)(obj.name, **said)
        told = gettext("It is %(status)s now.") % {"status": Dependency(status=status).get_status_display()}
        return Took(True, told, messages.SUCCESS, f"{given['what']}: {given['reason']}")


@admin.register(Limit)
class LimitAdmin(ReadOnlyAdmin):
    """What may run at once, or begin in a second, by name and key; those of live runs, and the ceilings of dependencies, too."""

    list_display = ("shown_label", "in_use", "rate", "waiting")
    list_display_links = ("shown_label",)
    search_fields = ("label",)
    search_help_text = _("A part of the limit's name or key")
    ordering = ("label",)
    fields = list_display
    readonly_fields = fields

    @admin.display(description=_("limit"), ordering="label")
    def shown_label(self, obj: Limit) -> SafeString:
        return rendering.inline(obj.label)

    @admin.display(description=_("in use"))
    def in_use(self, obj: Limit) -> str:
        return gettext("%(used)s of %(ceiling)s") % {"used": slots.used(obj.pk, self.alias), "ceiling": obj.size}

    @admin.display(description=_("waiting"))
    def waiting(self, obj: Limit) -> int:
        return slots.waiting(obj.label, self.alias)


__all__: list[Any] = ["DependencyAdmin", "LimitAdmin"]
