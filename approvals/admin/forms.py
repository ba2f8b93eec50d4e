"""What a browser posts about requests: an answer with the digest that was on the page, who looks at one, why an approval is taken back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from approvals.core.binding import OWN_NAME, Shown
from approvals.core.seats import Place
from approvals.core.status import ANSWERS, NEEDS_COMMENT
from approvals.models import Request
from approvals.services.decide import MAX_COMMENT
from flows.admin.reasoned import LeadingForm, ReasonedForm, Words
from flows.core import visible
from flows.services import identify

#: So many members of a list are offered one by one, where a part of it may be kept.
MAX_PARTS = 200


class PlacedForm(LeadingForm):
    """An answer is sent with where it was shown to count: in which step, and in whose name."""

    digest = forms.CharField(max_length=200, widget=forms.HiddenInput)
    step = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    delegation = forms.IntegerField(required=False, min_value=OWN_NAME, widget=forms.HiddenInput)

    @property
    def shown(self) -> Shown:
        """As it was sent; whether it still does is the service's business."""
        return Shown(self.cleaned_data["step"], self.cleaned_data["delegation"])


def placed(request: Request, place: Place | None) -> dict[str, Any]:
    """What such a form begins with, on the page of a request that shows this place."""
    delegation = None if place is None else place.delegation or OWN_NAME
    return {"digest": request.digest, "step": request.step, "delegation": delegation}


class AnswerForm(PlacedForm):
    """Checks the form of an answer; whether it counts is the service's business."""

    verdict = forms.ChoiceField(
        choices=[(verdict, verdict) for verdict in ANSWERS],
        error_messages={"required": _("Choose one of the answers."), "invalid_choice": _("Choose one of the answers.")},
    )
    comment = Words(
        label=_("Comment"),
        required=False,
        max_length=MAX_COMMENT,
        help_text=_("Needed to request changes or to deny: the next step of the workflow reads it, as data."),
        widget=forms.Textarea(attrs={"rows": 4, "cols": False, "aria-describedby": "oa-comment-help oa-comment-errors"}),
    )

    keep = forms.TypedMultipleChoiceField(required=False, coerce=int, choices=[(str(n), n) for n in range(MAX_PARTS)])

    def clean(self) -> dict[str, Any]:
        """A no says why; what is kept is some of what there is."""
        data = super().clean() or self.cleaned_data
        if data.get("verdict") == "narrow" and not data.get("keep"):
            self.add_error("keep", _("Tick what is kept: some of it, and not all."))
        if data.get("verdict") in NEEDS_COMMENT and not data.get("comment", "").strip() and "comment" not in self.errors:
            self.add_error("comment", _("Say why: the next step reads your comment when you request changes or deny."))
        return data


class RevokeForm(ReasonedForm):
    """Why an approval is taken back."""

    purpose = "revoke"


class TogetherForm(LeadingForm):
    """What is said of several requests at once, and the selection as it was shown and signed."""

    selection = forms.CharField(widget=forms.HiddenInput)
    comment: Any


class DenyEachForm(TogetherForm):
    """Why."""

    comment = Words(
        label=_("Reason"),
        max_length=MAX_COMMENT,
        help_text=_("The next step of each workflow reads it, as data."),
        error_messages={"required": _("Say why: the next step reads your comment when you request changes or deny.")},
        widget=forms.Textarea(attrs={"rows": 3, "cols": False}),
    )


class ApproveEachForm(TogetherForm):
    """A remark, if there is one."""

    comment = Words(
        label=_("Comment"), required=False, max_length=MAX_COMMENT, widget=forms.Textarea(attrs={"rows": 3, "cols": False})
    )


class AssignForm(LeadingForm):
    """Who looks at it. Offered are people who may answer it; whether they still may is the service's business."""

    to = forms.ChoiceField(
        label=_("Who"),
        error_messages={
            "required": _("Choose somebody."),
            "invalid_choice": _("Choose one of the people on the list: they may answer."),
        },
    )

    selection = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, offered: Iterable[Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._offered = {str(user.pk): user for user in offered}
        names = [(key, name_of(user)) for key, user in self._offered.items()]
        self.fields["to"].choices = [("", _("Choose…")), *sorted(names, key=lambda one: one[1])]  # type: ignore[attr-defined]

    @property
    def chosen(self) -> Any:
        """The user."""
        return self._offered.get(self.cleaned_data["to"])


def name_of(user: Any) -> str:
    """A person for a list of choices: the account, and the full name where there is one."""
    label = identify.label(user)
    full = str(user.get_full_name()) if hasattr(user, "get_full_name") else ""
    return visible.plain(f"{full} ({label})" if full and full != label else label)
