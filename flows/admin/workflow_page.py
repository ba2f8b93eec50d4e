"""What the page of one workflow prints: rows become words, and whatever came from outside goes through `rendering`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from flows.admin import candidates, operation_page, rendering, turns
from flows.core.deadlines import OF_WAITS
from flows.core.protocol import ASKING, TERMINAL
from flows.core.verdicts import Way
from flows.models import Activity, Operation, Release, Timer, Wait, Workflow
from flows.services import waits_shown
from flows.services.describe import Description, describe

MAX_ROWS = 300
Url = Callable[..., str]


def context(obj: Workflow, chip: SafeString, using: str, url: Url) -> dict[str, Any]:
    """What the templates of the page print."""
    told = describe(obj, using=using)
    activities = Activity.objects.using(using).filter(workflow_id=obj.pk).order_by("-seq")[:MAX_ROWS]
    rows = Operation.objects.using(using).filter(workflow_id=obj.pk).defer("request", "evidence")
    effects = list(rows.order_by("-activity_seq", "-pk")[: MAX_ROWS + 1])
    return {
        "told": told,
        "needed": rendering.inline(told.decision_needed),
        "accountable": rendering.inline(told.accountable or "–"),
        "sessions": rendering.lines([rendering.inline(session) for session in told.sessions]),
        "status_chip": chip,
        "release": _release(told, using, url),
        "goal": rendering.inline(told.intent["goal"] or "–"),
        "intent_url": url("outlast_flows_intent_change", obj.intent_id),
        "waits": _waits(obj, told, using, url),
        "timers": Timer.objects.using(using).filter(workflow_id=obj.pk, status="pending").order_by("due_at")[:20],
        "deadlines": [
            {**one, "shown_name": rendering.inline(one["name"]), "chip": rendering.chip(one["status"])}
            for one in told.deadlines[-MAX_ROWS:]
            if one["kind"] not in OF_WAITS
        ],
        "effects": [operation_page.line(one, url) for one in effects[:MAX_ROWS]],
        "effects_more": len(effects) > MAX_ROWS,
        **candidates.section(obj.pk, using),
        **turns.section(obj.pk, using),
        "timeline": _timeline(told),
        "timeline_more": len(told.timeline) > MAX_ROWS,
        "activities": list(activities),
        "verdicts": _verdicts(told),
        "attempts": told.attempts[-MAX_ROWS:][::-1],
        "values": _values(obj),
    }


def _release(told: Description, using: str, url: Url) -> dict[str, Any] | None:
    """The release that it is pinned to, with its page, and who offers it."""
    found = told.release
    row = Release.objects.using(using).filter(name=found.name).first() if found else None
    if found is None:
        return None
    return {
        "name": rendering.inline(found.name),
        "url": url("outlast_flows_release_change", row.pk) if row else "",
        "view": found,
        "ended": told.status in TERMINAL,
        "offered_by": [rendering.inline(worker) for worker in found.offered_by],
    }


def _waits(obj: Workflow, told: Description, using: str, url: Url) -> list[dict[str, Any]]:
    """Open waits first, each with its request where the human plane has a page for it."""
    found = sorted(
        Wait.objects.using(using).filter(workflow_id=obj.pk).order_by("-pk")[:MAX_ROWS],
        key=lambda wait: wait.status != "open",
    )
    return [
        {
            "row": wait,
            "reason": rendering.inline(waits_shown.reason(wait, obj, using)),
            "chip": rendering.chip(wait.status),
            "ends": waits_shown.ends(wait, [Way(way) for way in told.ways_on]) if wait.status == "open" else "",
            "url": url("outlast_approvals_request_of_wait", wait.pk) if wait.kind in ASKING else "",
        }
        for wait in found
    ]


def _timeline(told: Description) -> list[dict[str, Any]]:
    """Newest first, with what the arrow noted."""
    return [
        {**row, "chip": rendering.chip(row["to_status"]), "note_html": _note(row["note"])}
        for row in told.timeline[-MAX_ROWS:][::-1]
    ]


def _verdicts(told: Description) -> list[dict[str, Any]]:
    """Newest first, each check with what it answered."""
    return [
        {
            **row,
            "chip": rendering.chip("complete" if row["verdict"] == "ALLOWED" else "human", row["verdict"]),
            "reason": rendering.inline(row["reason"]),
            "checks": ", ".join(name if answer == "holds" else f"{name} ({answer})" for name, answer, _digest in row["checks"]),
        }
        for row in told.verdicts[-MAX_ROWS:][::-1]
    ]


def _note(note: Any) -> SafeString | str:
    if not isinstance(note, dict):
        return ""
    return rendering.lines([format_html("{}: {}", key, rendering.inline(str(item))) for key, item in note.items()])


def _values(obj: Workflow) -> list[tuple[str, SafeString]]:
    shown = ((gettext("Input"), obj.input), (gettext("Checkpoint"), obj.checkpoint), (gettext("Result"), obj.result))
    return [(name, rendering.value(data)) for name, data in shown if data is not None]
