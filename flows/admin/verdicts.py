"""What a person says of an operation, as a browser posts it: the words, the forms, and the one call of the service that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin.json_field import JsonField
from flows.admin.reasoned import LeadingForm
from flows.core import visible
from flows.core.errors import OutlastError
from flows.models import Operation
from flows.services.resolve import MAX_REASON, Code, Resolved, Verdict, offered, resolve

MAX_EXTERNAL_ID = 500
#: So many verdicts are taken by one request: each is a transaction of its own.
MAX_AT_ONCE = 100

LABELS: dict[Verdict, Any] = {
    Verdict.HAPPENED: _("It happened"),
    Verdict.DID_NOT_HAPPEN: _("It did not happen"),
    Verdict.CANNOT_TELL: _("Cannot tell: escalate"),
    Verdict.ASK_AGAIN: _("Ask the provider again"),
    Verdict.RETRY: _("Try again"),
    Verdict.GIVE_UP: _("Give up: it stays as it is"),
}
LEADS: dict[Verdict, Any] = {
    Verdict.HAPPENED: _(
        "It is not called again. For an effect, the evidence becomes the step's result; without evidence that is null. "
        "For a compensation or a release, also by hand: what it was for counts as undone, or as released."
    ),
    Verdict.DID_NOT_HAPPEN: _("The same operation is tried again with the same id, unless the workflow is on its way to an end."),
    Verdict.CANNOT_TELL: _("It stays in doubt, and the accountable user is told."),
    Verdict.ASK_AGAIN: _("The probe is asked again, with all its tries, on the cleanup queue; its answer settles the operation."),
    Verdict.RETRY: _("The call is made again, with all its tries."),
    Verdict.GIVE_UP: _("Nobody tries again. The workflow goes on to its end, whose log names what was not undone."),
}


class SaidForm(LeadingForm):
    """A verdict and how the person knows. Whether it counts is the service's business."""

    verdict = forms.ChoiceField(
        choices=[(verdict.value, label) for verdict, label in LABELS.items()],
        error_messages={"required": _("Choose one of the verdicts."), "invalid_choice": _("Choose one of the verdicts.")},
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON,
        help_text=_("How you know: whom you asked, what you looked at. It is kept with the operation for good."),
        error_messages={"required": _("Say how you know: the evidence is part of the record.")},
        widget=forms.Textarea(attrs={"rows": 3, "cols": False, "aria-describedby": "oa-reason-help oa-reason-errors"}),
    )


class VerdictForm(SaidForm):
    """A verdict about one operation, which names the state of it that was on the page."""

    seen = forms.CharField(max_length=200, widget=forms.HiddenInput)
    external_id = forms.CharField(
        label=_("The provider's id"),
        required=False,
        max_length=MAX_EXTERNAL_ID,
        help_text=_("Only with “It happened”: the provider's own name for it, such as the number of a receipt."),
        widget=forms.TextInput(attrs={"aria-describedby": "oa-external-help oa-external-errors", "autocomplete": "off"}),
    )
    evidence = JsonField(
        label=_("Evidence"),
        required=False,
        help_text=_('Optional, any JSON value, such as {"receipt": 4711}.'),
        widget=forms.Textarea(
            attrs={"rows": 4, "cols": False, "aria-describedby": "oa-evidence-help oa-evidence-errors", "spellcheck": "false"}
        ),
    )

    def clean(self) -> dict[str, Any]:
        """A provider's id is the id of something that happened."""
        data = super().clean() or self.cleaned_data
        if data.get("external_id") and data.get("verdict") not in (None, Verdict.HAPPENED):
            self.add_error("external_id", _("Only what happened has a provider's id: say “It happened”, or leave this empty."))
        return data


@dataclass(frozen=True, slots=True)
class Took:
    """What became of one verdict, for a person. `level`: success, warning (recorded, but nothing follows yet) or error (refused)."""

    operation: str
    code: str
    said: str
    level: str

    @property
    def recorded(self) -> bool:
        return self.level != "error"


def take(operation: str, by: Any, given: dict[str, Any], using: str) -> Took:
    """Hand a verdict to the service.

    Raises:
        OutlastError: something in it cannot be stored, or there is no such operation.
    """
    found: Resolved = resolve(
        operation,
        verdict=given["verdict"],
        by=by,
        reason=given["reason"],
        external_id=given.get("external_id", ""),
        evidence=given.get("evidence"),
        seen=given["seen"],
        using=using,
    )
    level = {Code.ACCEPTED: "success"}.get(found.code, "warning" if found else "error")
    return Took(operation, found.code.value, gettext(found.sentence), level)


def take_each(items: Sequence[tuple[str, str]], by: Any, given: dict[str, Any], using: str) -> list[Took]:
    """The same verdict about each of these (operation, seen), each by itself: a refusal of one leaves the others alone.

    In the order of their ids, so that two people who do this at once lock workflows in one order.
    """
    took = []
    for operation, seen in sorted(items):
        try:
            took.append(take(operation, by, {**given, "seen": seen}, using))
        except OutlastError as error:
            took.append(Took(operation, error.code, visible.plain(str(error)), "error"))
    return took


def on_offer(operations: Sequence[Operation]) -> list[dict[str, Any]]:
    """The verdicts that can be given on at least one of these, in one order, each with what follows from it."""
    found = {verdict for operation in operations for verdict in offered(operation)}
    return [
        {"value": verdict.value, "label": label, "leads": LEADS[verdict]} for verdict, label in LABELS.items() if verdict in found
    ]


def noted(verdict: str, took: Took) -> str:
    """The line for the admin's own history: fixed words only, for the reason is with the operation."""
    return f"{LABELS[Verdict(verdict)]}. {took.said}"
