"""What a person asks of releases, as a browser posts it: make one current, move runs; and the one call of the service behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin.read_only import as_uuid
from flows.admin.reasoned import ReasonedForm
from flows.core.releases import differences
from flows.models import Release, Workflow
from flows.services import identify, releases
from flows.services.releases import Moved

#: So many runs are moved by one request: each is a transaction of its own.
MAX_AT_ONCE = 200


def flow_choices() -> list[tuple[str, Any]]:
    """The flows that this process knows."""
    return [(name, name) for name in sorted({name for name, _version in registry.known()})]


class CurrentForm(ReasonedForm):
    """Make this release current: for all flows that have none of their own, or for one."""

    prefix = "current"
    flow = forms.ChoiceField(label=_("For"), required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["flow"].choices = [("", _("every flow that has no current release of its own")), *flow_choices()]  # type: ignore[attr-defined]


class WhichForm(forms.Form):
    """Which runs of this release go where. It changes nothing, so it is asked for by GET."""

    to = forms.ChoiceField(label=_("To release"))
    flow = forms.ChoiceField(label=_("Runs of"), required=False)
    run = forms.CharField(
        label=_("Only this run"),
        required=False,
        max_length=40,
        help_text=_("Its whole id. Leave it empty for all live runs of the release."),
    )

    def __init__(self, *args: Any, source: Release, names: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.source = source
        keep = [(source.name, gettext("%(name)s: they keep it beside the current one") % {"name": source.name})]
        self.fields["to"].choices = [*((name, name) for name in names if name != source.name), *keep]  # type: ignore[attr-defined]
        self.fields["flow"].choices = [("", _("every flow")), *flow_choices()]  # type: ignore[attr-defined]

    def clean_run(self) -> UUID | None:
        """The id of a run that is pinned to this release."""
        text = self.cleaned_data["run"]
        if not text:
            return None
        number = as_uuid(text)
        runs = Workflow.objects.using(identify.alias(None))
        if number is None or not runs.filter(pk=number, release=self.source.name).exists():
            raise forms.ValidationError(gettext("No run with this id is pinned to %(name)s.") % {"name": self.source.name})
        return number


class MoveForm(WhichForm, ReasonedForm):
    """The same, and why. What it is about was shown before it is posted, and is not asked for again."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("to", "flow", "run"):
            self.fields[name].widget = forms.HiddenInput()


@dataclass(frozen=True, slots=True)
class Asked:
    """What became (or would become) of each run, and how many there are beyond what one request moves."""

    moved: list[Moved]
    more: int

    @property
    def changed(self) -> int:
        """How many were moved, or would be."""
        return sum(map(bool, self.moved))


def preview(source: Release, given: dict[str, Any], using: str) -> Asked:
    """What would become of the runs that are meant.

    Raises:
        OutlastError: something in it cannot be.
    """
    ids, more = _meant(source, given, using)
    return Asked([releases.would_move(one, to=given["to"], source=source.name, using=using) for one in ids], more)


def move(source: Release, given: dict[str, Any], by: Any, using: str) -> Asked:
    """Move them, each by itself. Errors as `preview`."""
    ids, more = _meant(source, given, using)
    told = {"to": given["to"], "by": by, "reason": given["reason"], "source": source.name, "using": using}
    return Asked([releases.move(one, **told) for one in ids], more)


def _meant(source: Release, given: dict[str, Any], using: str) -> tuple[list[UUID], int]:
    ids = [given["run"]] if given["run"] else releases.runs_of(source.name, flow=given["flow"] or None, using=using)
    return ids[:MAX_AT_ONCE], max(0, len(ids) - MAX_AT_ONCE)


def diff(one: Release, other: Release) -> list[dict[str, str]]:
    """What differs in `one` from `other`, line by line."""
    rows = differences(releases.parts_of(other), releases.parts_of(one))
    return [{"part": part, "name": name, "before": before, "now": now} for part, name, before, now in rows]
