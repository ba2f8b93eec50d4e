"""The calls of agent turns, as the page of a workflow prints them: arguments and answers are data, labelled and escaped."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.core.turns import EntryStatus
from flows.models import JournalEntry
from flows.services import redacting

_CHIPS = {EntryStatus.DONE: "complete", EntryStatus.BEGUN: "running", EntryStatus.WAITING: "waiting"}


def line(one: JournalEntry) -> dict[str, Any]:
    """One entry in a list of a workflow's."""
    chip = rendering.chip(_CHIPS.get(EntryStatus(one.status), "failed"), _label(one.status))
    data = _data("request", _("Arguments"), one.request), _data("answer", _("Answer"), one.answer)
    return {
        "row": one,
        "name": rendering.inline(one.name),
        "chip": rendering.lines([chip, rendering.inline(one.code)]) if one.code else chip,
        "model": rendering.inline(one.model) if one.model else "–",
        "used": rendering.lines([format_html("{} {}", str(name).replace("_", " "), value) for name, value in one.usage.items()]),
        "data": rendering.lines([part for part in data if part]),
    }


def _label(status: str) -> str:
    return {
        "done": _("done"),
        "failed": _("failed"),
        "begun": _("begun"),
        "waiting": _("waiting for people"),
        "lost": _("lost: charged, and made anew"),
        "stale": _("set aside"),
    }[status]


def _data(kind: str, label: str, stored: Any) -> SafeString | None:
    """A value, folded; the label says that it is data which a model, a tool or somebody outside has made."""
    if stored is None:
        return None
    value = rendering.value(redacting.shown(kind, stored))
    return format_html("<details><summary>{} {}</summary>{}</details>", label, _("(data)"), value)
