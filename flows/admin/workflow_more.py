"""Beside the page of a workflow: the context that its next attempt would get, and all that is known as JSON. Both only show."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.core import redaction
from flows.core.context import Item
from flows.core.errors import PayloadError
from flows.models import Workflow
from flows.services import next_context, redacting
from flows.services.describe import describe


def context(obj: Workflow, using: str) -> dict[str, Any]:
    """What the template prints of the context; `why_none` where there is none."""
    try:
        found = next_context.of(obj, using)
    except PayloadError as error:
        return {"why_none": rendering.inline(str(error))}
    if found is None:
        return {"why_none": _("It has no activity open, or its flow is not loaded here: no code would get a context now.")}
    hides = any(redacting.hides(kind) for kind in redaction.KINDS)
    return {
        "sections": [
            {"name": section.name, "rows": [_item(one, hides=hides) for one in section.items]}
            for section in found.sections
            if section.items
        ],
        "tokens": found.tokens,
        "most": next_context.TOKENS,
        "hash": found.hash,
        "left_out": [f"{one.section}: {one.items}" for one in found.left_out],
    }


def _item(one: Item, *, hides: bool) -> dict[str, Any]:
    """A fact of the record, or text that somebody else wrote: that is data, and said to be. Text has no fields: it is hidden whole where
    anything is redacted.
    """
    return {
        "name": rendering.inline(one.name),
        "text": rendering.block(redaction.HIDDEN if hides and one.untrusted else one.text),
        "of": rendering.inline(one.source) if one.source else "",
    }


def as_json(obj: Workflow, using: str) -> HttpResponse:
    """What `flows.describe` says of it, as a file.

    Raises:
        UnknownWorkflow: it is not there any more.
    """
    try:
        found = describe(obj.pk, using=using)
    except PayloadError as error:  # its result cannot be opened here
        return JsonResponse({"error": str(error)}, status=409)
    found = dataclasses.replace(found, result=redacting.shown("result", found.result))
    response = JsonResponse(dataclasses.asdict(found), json_dumps_params={"indent": 2})
    response.headers["Content-Disposition"] = f'attachment; filename="workflow-{obj.pk}.json"'
    response.headers["Cache-Control"] = "no-store"
    return response
