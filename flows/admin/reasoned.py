"""The form behind everything that a person decides in the admin: it asks why."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from flows.services.identify import MAX_REASON


class ReasonedForm(forms.Form):
    """Why, in words. `purpose` tells the ids of several such forms on one page apart."""

    purpose = ""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON,
        help_text=_("It is kept for good; people read it later."),
        error_messages={"required": _("Say why: the reason is part of the record.")},
        widget=forms.Textarea(attrs={"rows": 3, "cols": False}),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        if self.purpose:
            options.setdefault("auto_id", f"id_{self.purpose}_%s")
        super().__init__(*args, **options)
