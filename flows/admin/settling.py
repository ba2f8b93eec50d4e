"""What becomes of a commitment, as a browser posts it: fulfilled, handed over, deferred; and the one call of the service behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows.admin.reasoned import ReasonedForm, Took
from flows.core import visible
from flows.models import Commitment
from flows.services import commitments
from flows.store.commitments import OPEN

MAX_HOLDER = 200
#: What can be said, and what follows from it; the names are those of `flows.commitments`.
WORDS: dict[str, Any] = {
    "fulfil": _("It has been fulfilled"),
    "transfer": _("Somebody else services it from now on"),
    "defer": _("The workflow may end without it"),
}
DONE: dict[str, str] = {"fulfil": "Fulfilled.", "transfer": "Transferred.", "defer": "Deferred."}


class SettleForm(ReasonedForm):
    """What became of it, and why. What has ended meanwhile is not ended again: the service says so."""

    purpose = "settle"
    what = forms.ChoiceField(
        label=_("What becomes of it?"),
        choices=[("", _("Choose…")), *WORDS.items()],
        error_messages={"required": _("Choose what becomes of it."), "invalid_choice": _("Choose what becomes of it.")},
    )
    to = forms.CharField(
        label=_("Handed over to"),
        required=False,
        max_length=MAX_HOLDER,
        help_text=_("Only where somebody else services it: who."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    field_order = ("what", "to", "reason")

    def clean(self) -> dict[str, Any]:
        """Who services it is said exactly where somebody else does."""
        data = super().clean() or self.cleaned_data
        handed = data.get("what") == "transfer"
        if handed and not data.get("to") and "to" not in self.errors:
            self.add_error("to", _("Say to whom it goes over."))
        elif data.get("what") and not handed and data.get("to"):
            self.add_error("to", _("Only what is handed over has a new holder: choose that, or leave this empty."))
        return data


def is_offered(obj: Commitment) -> bool:
    """Whether somebody's word can end it, as far as the row says."""
    return obj.status in OPEN


def take(obj: Commitment, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Say it.

    Raises:
        OutlastError: something in it cannot be stored.
    """
    what = given["what"]
    more = {"to": given["to"]} if what == "transfer" else {}
    if not commitments.ENDINGS[what](obj, by=by, reason=given["reason"], using=using, **more):
        return Took(False, visible.plain(commitments.refusal(obj, using=using)), messages.WARNING)
    row = commitments.get(obj, using=using)
    facts = {"name": visible.plain(row.name), "status": row.status, "run": row.workflow.status}
    said = gettext("%(name)s is %(status)s; the status of its workflow is %(run)s.") % facts
    return Took(True, said, messages.SUCCESS, DONE[what])
