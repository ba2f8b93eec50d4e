"""The words of the pages about operations: a row becomes what the templates print. Whatever came from outside goes through `rendering`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.admin.utils import quote
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.admin.verdicts import LABELS, Took
from flows.core.effects import OperationKind, OperationStatus
from flows.models import Operation, Resolution
from flows.services import redacting, undoing
from flows.services.verdicts import Verdict, offered

MAX_ROWS = 300
#: Answers that can end a doubt; the others are about what to do next.
SETTLING = (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN)
Url = Callable[..., str]


def needs_person(operation: Operation) -> bool:
    """Whether nobody else will settle it; the same as the list's filter, of one row."""
    if operation.due_at is not None or operation.worker_id is not None:
        return False
    failed = operation.status == OperationStatus.FAILED and operation.kind != OperationKind.EFFECT
    return operation.status == OperationStatus.UNCERTAIN or failed


def chip(operation: Operation) -> SafeString:
    """The status, and whether it waits for a person."""
    if needs_person(operation):
        return rendering.chip("human", _("%(status)s: needs a person") % {"status": operation.status})
    return rendering.chip(operation.status)


def name_of(operation: Operation) -> str:
    """FLOW.NODE, and the effect's own name where it has one."""
    named = f" ({operation.name})" if operation.name else ""
    return f"{operation.workflow.flow_name}.{operation.node}{named}"


def effect_of(operation: Operation) -> SafeString:
    """NODE, and the effect's own name, for a list that names the flow beside it."""
    return rendering.inline(operation.node + (f" ({operation.name})" if operation.name else ""))


def said(operation: Any) -> SafeString:
    """The last answer of a probe in one line."""
    if not operation.said_last:
        return rendering.inline("–")
    last = operation.said_last[0]
    return format_html(
        "{}{}", _words(last, operation.kind), format_html(": {}", rendering.inline(last.reason)) if last.reason else ""
    )


def context(operation: Operation, using: str, url: Url) -> dict[str, Any]:
    """Everything that the page of one operation prints besides the form."""
    rows = list(Resolution.objects.using(using).filter(operation_id=operation.pk).order_by("pk")[:MAX_ROWS])
    others = Operation.objects.using(using).filter(workflow_id=operation.workflow_id)
    intent = operation.workflow.intent
    return {
        "operation": operation,
        "chip": chip(operation),
        "waits_for_person": needs_person(operation),
        "what": rendering.inline(name_of(operation)),
        "run": rendering.inline(str(operation.workflow)),
        "workflow_url": url("outlast_flows_workflow_change", operation.workflow_id),
        "intent_url": url("outlast_flows_intent_change", operation.workflow.intent_id),
        "goal": rendering.inline(intent.goal or str(intent.pk)),
        "error_code": rendering.inline(operation.error_code or ""),
        "settled_by": rendering.inline(operation.settled_by),
        "external_id": rendering.inline(operation.external_id) if operation.external_id else "",
        "request_data": _value("request", operation.request),
        "evidence_data": _value("evidence", operation.evidence),
        "mitigates": [line(one, url) for one in others.filter(pk=operation.of_id)] if operation.of_id else [],
        "mitigations": [line(one, url) for one in others.filter(of_id=operation.pk).order_by("pk")[:MAX_ROWS]],
        "holds_back": [_held(one, url) for one in undoing.held_back(operation.workflow_id, using) if operation.pk in one.until],
        "commitment_url": url("outlast_flows_commitment_change", operation.commitment_id) if operation.commitment_id else "",
        "resolutions": [_resolution(row, operation.kind) for row in rows],
        "resolutions_more": len(rows) == MAX_ROWS,
        **_second_person(operation, rows),
    }


def line(operation: Operation, url: Url) -> dict[str, Any]:
    """One operation in a list of a workflow's."""
    return {
        "row": operation,
        "id": rendering.inline(operation.pk),
        "url": url("outlast_flows_operation_change", quote(operation.pk)),
        "chip": chip(operation),
        "code": rendering.inline(operation.error_code or ""),
        "external_id": rendering.inline(operation.external_id) if operation.external_id else "",
    }


def _held(held: undoing.Held, url: Url) -> dict[str, Any]:
    """A commitment that is kept because of an operation."""
    return {"name": rendering.inline(held.name), "url": url("outlast_flows_commitment_change", held.commitment)}


def item(operation: Any, seen: str, url: Url) -> dict[str, Any]:
    """One operation of the preview before a verdict for several."""
    return {
        **line(operation, url),
        "seen": seen,
        "what": rendering.inline(name_of(operation)),
        "workflow_url": url("outlast_flows_workflow_change", operation.workflow_id),
        "said": said(operation),
        "offered": [LABELS[verdict] for verdict in offered(operation)],
    }


def result(took: Took, url: Url) -> dict[str, Any]:
    """What became of the verdict about one of several."""
    words = {"accepted": _("accepted"), "needs_second": _("needs a second person"), "kept": _("recorded")}
    return {
        "id": rendering.inline(took.operation),
        "url": url("outlast_flows_operation_change", quote(took.operation)),
        "chip": rendering.chip(took.code if took.recorded else "refused", words.get(took.code, _("refused"))),
        "said": took.said,
    }


def _second_person(operation: Operation, rows: Sequence[Resolution]) -> dict[str, Any]:
    """Whether two people must say the same, and who has said what since the doubt began."""
    since = operation.doubt_since
    if not operation.two_people or operation.status != OperationStatus.UNCERTAIN or since is None:
        return {"two_needed": False, "first_said": []}
    first = [row for row in rows if row.source == "person" and row.answer in SETTLING and row.at >= since]
    return {"two_needed": True, "first_said": [_resolution(row, operation.kind) for row in first]}


def _resolution(row: Resolution, kind: str) -> dict[str, Any]:
    sources = {"attempt": _("its own attempt, late"), "probe": _("a probe"), "person": _("a person")}
    return {
        "row": row,
        "source": sources.get(row.source, row.source),
        "answer": _words(row, kind),
        "about_doubt": row.answer not in (Verdict.RETRY, Verdict.GIVE_UP),
        "by": rendering.inline(row.by_label) if row.by_label else "",
        "reason": rendering.block(row.reason) if row.reason else "",
        "external_id": rendering.inline(row.external_id) if row.external_id else "",
        "evidence": _value("evidence", row.evidence),
    }


def _words(row: Resolution, kind: str) -> str:
    """Of an effect only the question can be wanted once more; the call is its activity's."""
    answers = {
        "happened": _("it happened"),
        "did_not_happen": _("it did not happen"),
        "unknown": _("cannot tell"),
        "retry": _("ask again") if kind == OperationKind.EFFECT else _("try again"),
        "give_up": _("give up"),
    }
    return answers.get(row.answer, row.answer)


def _value(kind: str, data: Any) -> SafeString | str:
    return rendering.value(redacting.shown(kind, data)) if data is not None else ""
