"""The answer as a browser posts it: one of the buttons, the digest that was on the page, and a comment."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from approvals.core.status import ANSWERS, NEEDS_COMMENT
from approvals.services.decide import MAX_COMMENT
from flows.admin.reasoned import LeadingForm


class AnswerForm(LeadingForm):
    """Checks the form of an answer; whether it counts is the service's business."""

    verdict = forms.ChoiceField(
        choices=[(verdict, verdict) for verdict in ANSWERS],
        error_messages={"required": _("Choose one of the answers."), "invalid_choice": _("Choose one of the answers.")},
    )
    digest = forms.CharField(max_length=200, widget=forms.HiddenInput)
    comment = forms.CharField(
        label=_("Comment"),
        required=False,
        max_length=MAX_COMMENT,
        help_text=_("Needed to request changes or to deny: the next step of the workflow reads it, as data."),
        widget=forms.Textarea(attrs={"rows": 4, "cols": False, "aria-describedby": "oa-comment-help oa-comment-errors"}),
    )

    def clean(self) -> dict[str, Any]:
        """A no says why."""
        data = super().clean() or self.cleaned_data
        if data.get("verdict") in NEEDS_COMMENT and not data.get("comment", "").strip() and "comment" not in self.errors:
            self.add_error("comment", _("Say why: the next step reads your comment when you request changes or deny."))
        return data
