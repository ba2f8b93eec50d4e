"""A JSON value that a person types."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext

from flows.core import visible


def editable(value: Any) -> str:
    """The value as JSON for a person to change; a character that hides is written as JSON's own escape, so it can be seen and stays the same."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return "".join(json.dumps(one)[1:-1] if visible.is_hidden(one) else one for one in text)


class JsonField(forms.CharField):
    """The value behind the text; None for no text."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            told = {"why": visible.plain(str(error))}
            raise forms.ValidationError(gettext("This is not JSON: %(why)s. A text needs its quotation marks.") % told) from error
