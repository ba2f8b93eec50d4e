"""The decision artifacts of a workflow, as its page prints them: hashes, numbers and codes; every text goes through `rendering`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.models import Candidate
from flows.services import artifacts

#: Enough of a hash to tell two apart; the whole of it is in its title.
_SHOWN = 12


def line(row: Candidate) -> dict[str, Any]:
    """One artifact in a list of a workflow's."""
    one: Mapping[str, Any] = {name: getattr(row, name) for name in artifacts.FIELDS}
    refused = one["refused"]
    return {
        **one,
        "chip": rendering.chip("failed", refused) if refused else rendering.chip("complete", _("accepted")),
        "choice": rendering.inline(one["choice"]) if one["choice"] else "–",
        "release": rendering.inline(one["release"]) if one["release"] else "–",
        "model": rendering.inline(one["model"]) if one["model"] else "–",
        "hashes": rendering.lines(
            [_hash(label, one[name]) for name, label in _labels() if one[name]],
        ),
        "used": rendering.lines(_used(one["usage"])),
    }


def _labels() -> list[tuple[str, str]]:
    return [
        ("digest", _("candidate")),
        ("prompt_hash", _("prompt")),
        ("context_hash", _("context")),
        ("output_hash", _("output")),
        ("evidence_digest", _("evidence")),
    ]


def _hash(label: str, value: str) -> SafeString:
    short = value.rpartition(":")[2][:_SHOWN]
    return format_html('{} <code title="{}">{}</code>', label, value, short)


def _used(usage: Any) -> list[SafeString]:
    if not isinstance(usage, Mapping):
        return []
    totals = {str(name): value for name, value in usage.items() if not isinstance(value, list | dict)}
    return [format_html("{} {}", name.replace("_", " "), value) for name, value in totals.items()]
