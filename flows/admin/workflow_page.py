"""What the page of one workflow prints: rows become words, and whatever came from outside goes through `rendering`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from flows.admin import budgets, candidates, operation_page, rendering, turns, workflow_drawings, workflow_rows
from flows.admin.paging import Pages
from flows.core.deadlines import kind_of
from flows.core.protocol import ASKING, TERMINAL
from flows.core.verdicts import Way
from flows.models import Timer, Wait, Workflow
from flows.services import redacting, waits_shown
from flows.services.describe import Description, state
from flows.store.batch import Batch

Url = Callable[..., str]


def context(obj: Workflow, chip: SafeString, pages: Pages, using: str, url: Url) -> tuple[dict[str, Any], Batch]:
    """What the templates of the page print, and the rows behind it."""
    told = state(obj, using)
    found = workflow_rows.read(obj, pages, using)
    rows = {name: pages.shown(found[name]) for name in found.rows}
    return {
        "told": told,
        "needed": rendering.inline(told.decision_needed),
        "why": [{"code": one.code, "says": rendering.inline(one.says), "out": rendering.inline(one.out)} for one in told.why],
        "accountable": rendering.inline(told.accountable or "–"),
        "sessions": rendering.lines([rendering.inline(session) for session in told.sessions]),
        "status_chip": chip,
        "release": _release(told, found, url),
        "goal": rendering.inline(told.intent["goal"] or "–"),
        "intent_url": url("outlast_flows_intent_change", obj.intent_id),
        "pages": {name: pages.links(name, found[name]) for name in found.rows},
        "waits": _waits(obj, told, rows["waits"], using, url),
        "timers": rows["timers"],
        "deadlines": [_deadline(one) for one in rows["deadlines"]],
        "effects": [operation_page.line(one, url) for one in rows["effects"]],
        "commitments": [_commitment(one, url) for one in rows["commitments"]],
        "events": [_event(one, url) for one in rows["events"]],
        "budgets": [_budget(one, obj, url) for one in rows["budgets"]],
        "candidates": [candidates.line(one) for one in rows["candidates"]],
        "turn_entries": [turns.line(one) for one in rows["turns"]],
        "timeline": [_arrow(one) for one in rows["timeline"]],
        "activities": rows["activities"],
        "verdicts": [_verdict(one) for one in rows["verdicts"]],
        "attempts": rows["attempts"],
        "values": _values(obj),
        **workflow_drawings.section(obj, using),
    }, found


def _release(told: Description, found: Batch, url: Url) -> dict[str, Any] | None:
    """The release that it is pinned to, with its page, and who offers it."""
    view, row = told.release, found.first("releases")
    if view is None:
        return None
    return {
        "name": rendering.inline(view.name),
        "url": url("outlast_flows_release_change", row.pk) if row else "",
        "view": view,
        "ended": told.status in TERMINAL,
        "offered_by": [rendering.inline(worker) for worker in view.offered_by],
    }


def _waits(obj: Workflow, told: Description, rows: list[Wait], using: str, url: Url) -> list[dict[str, Any]]:
    """Open waits first, each with its request where the human plane has a page for it."""
    return [
        {
            "row": wait,
            "reason": rendering.inline(waits_shown.reason(wait, obj, using)),
            "chip": rendering.chip(wait.status),
            "ends": waits_shown.ends(wait, [Way(way) for way in told.ways_on]) if wait.status == "open" else "",
            "url": url("outlast_approvals_request_of_wait", wait.pk) if wait.kind in ASKING else "",
        }
        for wait in rows
    ]


def _deadline(row: Timer) -> dict[str, Any]:
    """A deadline of the run itself, of an SLA, of a commitment or of freshness."""
    kind = kind_of(row.kind, None).name
    return {"row": row, "kind": kind, "shown_name": rendering.inline(row.name), "chip": rendering.chip(row.status)}


def _commitment(row: Any, url: Url) -> dict[str, Any]:
    return {
        "row": row,
        "name": rendering.inline(row.name),
        "kind": rendering.inline(row.kind),
        "reference": rendering.inline(row.reference) if row.reference else "–",
        "chip": rendering.chip(row.status),
        "url": url("outlast_flows_commitment_change", row.pk),
    }


def _event(row: Any, url: Url) -> dict[str, Any]:
    return {
        "row": row,
        "id": rendering.inline(row.event_id),
        "what": rendering.inline(f"{row.type} {row.key}".strip()),
        "url": url("outlast_flows_event_change", row.pk),
    }


def _budget(row: Any, obj: Workflow, url: Url) -> dict[str, Any]:
    """A ledger that it draws on, and whose."""
    of = (
        gettext("this run")
        if row.workflow_id == obj.pk
        else gettext("its intent")
        if row.intent_id
        else gettext("a run above it")
    )
    return {
        "kind": row.kind,
        "of": of,
        "bar": budgets.bar(row),
        "told": str(row),
        "url": url("outlast_flows_budget_change", row.pk),
    }


def _arrow(row: Any) -> dict[str, Any]:
    return {"row": row, "chip": rendering.chip(row.to_status), "note": _note(row.note)}


def _verdict(row: Any) -> dict[str, Any]:
    """A verdict, with what each check answered."""
    return {
        "row": row,
        "chip": rendering.chip("complete" if row.verdict == "ALLOWED" else "human", row.verdict),
        "reason": rendering.inline(row.reason),
        "checks": ", ".join(name if answer == "holds" else f"{name} ({answer})" for name, answer, _digest in row.checks),
    }


def _note(note: Any) -> SafeString | str:
    if not isinstance(note, dict):
        return ""
    return rendering.lines([format_html("{}: {}", key, rendering.inline(str(item))) for key, item in note.items()])


def _values(obj: Workflow) -> list[tuple[str, SafeString]]:
    values = ((gettext("Input"), "input"), (gettext("Checkpoint"), "checkpoint"), (gettext("Result"), "result"))
    shown = ((name, redacting.shown(kind, getattr(obj, kind))) for name, kind in values)
    return [(name, rendering.value(data)) for name, data in shown if data is not None]
