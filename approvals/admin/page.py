"""The decision page's words: a packet of data becomes what the templates print. Whatever a model made goes through `rendering`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from django.utils.translation import gettext as _

from approvals.admin import ladder
from approvals.admin.forms import MAX_PARTS, AnswerForm, placed
from approvals.core.diff import Change, Line
from approvals.core.evidence import Row
from approvals.core.seats import Place
from approvals.core.status import RequestStatus
from approvals.models import Request
from approvals.services.packet import Packet, Since
from flows.admin import rendering
from flows.core import visible

MAX_SUBJECT = 120
#: So much of a member of a list is shown where it can be ticked; the candidate above shows all of it.
MAX_PART = 200


def subject(request: Request) -> str:
    """What a request is about, in one short line: the goal, or the workflow's own name."""
    text = request.intent.goal or f"{request.workflow.flow_name} {request.workflow.key or ''}".strip()
    return shortened(text, MAX_SUBJECT)


def asked(request: Request) -> str:
    """Who is asked now, and how many of them have approved already: "Legal 1/2"."""
    step = request.steps[request.step]
    return request.asked if step["need"] == 1 else f"{request.asked} {request.given}/{step['need']}"


def shortened(text: str, most: int) -> str:
    """The beginning of a text that is too long for a list."""
    return text if len(text) <= most else f"{text[:most]}…"


def time_left(expires_at: datetime | None, now: datetime) -> SafeString | str:
    """How long an answer is still possible, with the moment itself beside it."""
    if expires_at is None:
        return _("no limit")
    moment = expires_at.isoformat(timespec="seconds")
    if expires_at <= now:
        return format_html('<time datetime="{}" title="{}">{}</time>', moment, moment, _("expired"))
    hurry = "oa-soon" if (expires_at - now).total_seconds() < 3600 else "oa-calm"
    return format_html('<time class="{}" datetime="{}" title="{}">{}</time>', hurry, moment, moment, timeuntil(expires_at, now))


def context(packet: Packet, form: AnswerForm) -> dict[str, Any]:
    """Everything that the templates print of a packet."""
    request = packet.request
    return {
        "title": visible.plain(subject(request)),
        "subtitle": str(request),
        "request_row": request,
        "packet": packet,
        "form": form,
        "placed": fixed(placed(request, packet.place)),
        "chip": rendering.chip(request.status, request.get_status_display()),
        "pending": request.status == RequestStatus.PENDING,
        "asked": rendering.inline(asked(request)),
        "left": time_left(request.expires_at, packet.now),
        "goal": rendering.inline(request.intent.goal or "–"),
        "run": rendering.inline(f"{request.workflow.flow_name} {request.workflow.key or request.workflow_id}"),
        "about": rendering.inline(request.workflow.subject) if request.workflow.subject else "",
        "stands_on": [
            (rendering.inline(name), rendering.inline(version))
            for name, version in sorted((request.state_versions or {}).items())
        ],
        "accountable": rendering.inline(request.requester_label or "–"),
        "action": rendering.inline(packet.choice) if packet.choice else "",
        "value": [_row(row) for row in packet.value],
        "evidence": [_row(row) for row in packet.evidence],
        "words": [(rendering.inline(place), rendering.block(text)) for place, text in packet.words],
        "since": _since(packet.since) if packet.since else None,
        "silence": silence(request),
        "refusal": rendering.inline(_(packet.refusal.template) % packet.refusal.params) if packet.refusal else "",
        "buttons": _buttons(packet),
        "parts": _parts(packet, form),
        "reviews": [ladder.review(review, request.steps) for review in packet.reviews],
        "in_name_of": in_name_of(packet.place),
        **ladder.context(packet),
    }


def fixed(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The hidden fields of a form, with what is so now and not with what was sent; as text, which no language writes otherwise."""
    return [(name, str(value)) for name, value in values.items() if value is not None]


def in_name_of(place: Place | None) -> SafeString | str:
    """In whose name an answer would count, if not in the own."""
    return rendering.inline(place.label) if place is not None and place.delegation is not None else ""


def silence(request: Request) -> str:
    """What happens if nobody answers; never an approval."""
    kind, _colon, node = request.on_expiry.partition(":")
    return {
        "": _("The request stays open until somebody answers or the workflow ends."),
        "escalate": _("Nothing is approved. The workflow stops until a person looks at it, and the accountable user is told."),
        "cancel": _("Nothing is approved. The workflow is cancelled."),
        "fail": _("Nothing is approved. The workflow ends as failed."),
        "node": _("Nothing is approved. The workflow goes on at its step “%(node)s”.") % {"node": node},
    }.get(kind, _("Nothing is approved."))


def _buttons(packet: Packet) -> list[dict[str, str]]:
    """The answers on offer, each with where it leads."""
    words = {
        "approve": _("Approve this exact candidate"),
        "changes": _("Request changes"),
        "deny": _("Deny"),
        "narrow": _("Keep only what is ticked"),
    }
    needs = {"approve": packet.sound, "narrow": packet.sound and 1 < len(packet.parts) <= MAX_PARTS}
    return [
        {"verdict": verdict, "label": words[verdict], "leads": target}
        for verdict, target in packet.routes.items()
        if needs.get(verdict, True)
    ]


def _parts(packet: Packet, form: AnswerForm) -> list[dict[str, Any]]:
    """The members of the list of which a part may be kept, each with its number; ticked as they were posted."""
    if not 1 < len(packet.parts) <= MAX_PARTS:
        return []
    ticked = {str(one) for one in form["keep"].value() or ()}
    return [
        {"number": number, "html": rendering.inline(shortened(text, MAX_PART)), "ticked": str(number) in ticked}
        for number, text in enumerate(packet.parts)
    ]


def _row(row: Row) -> dict[str, Any]:
    shown = rendering.block(row.text) if row.block else rendering.inline(row.text)
    return {"path": rendering.inline(row.path) if row.path else "", "html": shown}


def _since(since: Since) -> dict[str, Any]:
    told = {"revision": since.revision}
    if since.seen:
        heading = _("What changed since revision %(revision)s, which you answered") % told
    else:
        heading = _("What changed since revision %(revision)s, the one asked about before") % told
    return {
        "heading": heading,
        "changes": [_change(change) for change in since.diff.changes],
        "more": since.diff.more,
        "reviews": [ladder.review(review, []) for review in since.reviews],
        "others": [{"pk": str(pk), "revision": revision} for pk, revision in since.others],
    }


def _change(change: Change) -> dict[str, Any]:
    kinds = {"added": _("added"), "removed": _("removed"), "changed": _("changed")}
    return {
        "path": rendering.inline(change.path or _("the whole value")),
        "kind": kinds[change.kind],
        "before": rendering.block(change.before) if change.kind != "added" and not change.lines else "",
        "after": rendering.block(change.after) if change.kind != "removed" and not change.lines else "",
        "lines": [_line(line) for line in change.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    name = {"+": "new", "-": "gone", " ": "same", "@": "skip"}[line.sign]
    words = {"+": _("new line:"), "-": _("line that is gone:"), " ": "", "@": _("unchanged lines left out")}
    return {"name": name, "sign": line.sign, "word": words[line.sign], "html": rendering.marked(line.text)}
