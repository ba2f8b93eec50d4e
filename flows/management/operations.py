"""manage.py flows operations, resolve: what runs did outside, and what a person says of it. The part of the command that is these verbs'."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db.models import QuerySet

from flows.core.effects import OperationStatus
from flows.management import given, words
from flows.models import Operation
from flows.services import identify, redacting
from flows.services.resolve import Resolved, Verdict, resolve, seen_of

WRONG_USAGE = 2
TITLES = ("id", "status", "kind", "flow", "code", "in doubt since", "looked at again", "tries", "seen")
OWN_TITLES = ("operation", "status", "kind", "code", "in doubt since", "external id")


def add_operations(parser: ArgumentParser) -> None:
    """The arguments of `flows operations`, but for --limit."""
    parser.add_argument("--uncertain", action="store_true", help="only those of which nobody knows whether they happened")
    parser.add_argument("--workflow", metavar="ID", help="only those of this run: id, beginning of an id, or FLOW:KEY")


def add_resolve(parser: ArgumentParser) -> None:
    """The arguments of `flows resolve`."""
    parser.add_argument("operation", metavar="OPERATION", help="the whole id of the operation")
    parser.add_argument("--verdict", required=True, choices=[verdict.value for verdict in Verdict])
    parser.add_argument("--reason", required=True, metavar="TEXT", help="how you know; it is kept with the operation")
    parser.add_argument("--by", required=True, metavar="USERNAME", help="who says so: needs outlast_flows.resolve_operation")
    parser.add_argument("--external-id", default="", metavar="X", help="the provider's own name for what happened")
    parser.add_argument(
        "--evidence", metavar="JSON", help="of an effect that happened: becomes the step's result; - reads it from stdin"
    )
    parser.add_argument("--seen", metavar="STATE", help="refuse if it has moved since `flows operations` printed this")


def of(workflow: UUID | None, using: str | None, *, uncertain: bool = False) -> QuerySet[Operation]:
    """Operations: the longest in doubt first, or those of the newest run."""
    rows = Operation.objects.using(identify.alias(using)).select_related("workflow").defer("workflow__input", "workflow__result")
    if workflow is not None:
        rows = rows.filter(workflow_id=workflow)
    if uncertain:
        return rows.filter(status=OperationStatus.UNCERTAIN).order_by("doubt_since", "pk")
    return rows.order_by("-pk") if workflow is None else rows.order_by("activity_seq", "pk")


def as_data(rows: Sequence[Operation]) -> list[dict[str, Any]]:
    """What a program gets of them."""
    return [
        {
            "id": row.pk,
            "workflow": row.workflow_id,
            "flow": row.workflow.flow_name,
            "node": row.node,
            "name": row.name,
            "kind": row.kind,
            "status": row.status,
            "code": row.error_code,
            "request": redacting.shown("request", row.request),
            "request_digest": row.request_digest,
            "external_id": row.external_id,
            "evidence": redacting.shown("evidence", row.evidence),
            "attempt": row.attempt,
            "tries": row.tries,
            "in_flight_since": row.flown_at,
            "in_doubt_since": row.doubt_since,
            "looked_at_again": row.due_at,
            "settled_by": row.settled_by,
            "seen": seen_of(row),
        }
        for row in rows
    ]


def as_table(rows: Sequence[Operation]) -> str:
    """One line an operation; ids whole, for they are what `flows resolve` takes."""
    cells = [
        (
            row.pk,
            row.status,
            row.kind,
            f"{row.workflow.flow_name}@{row.workflow.flow_version}",
            row.error_code,
            row.doubt_since,
            row.due_at,
            row.tries,
            seen_of(row),
        )
        for row in rows
    ]
    return words.table(TITLES, cells, whole=("id",))


def of_run(rows: Sequence[Operation]) -> str:
    """The operations of one run, under its description."""
    return words.table(
        OWN_TITLES,
        [(row.pk, row.status, row.kind, row.error_code, row.doubt_since, row.external_id) for row in rows],
        whole=("operation",),
    )


def give(
    *,
    operation: str,
    verdict: str,
    reason: str,
    user: Any,
    external_id: str,
    evidence: str | None,
    seen: str | None,
    using: str | None,
) -> Resolved:
    """Say what became of an operation.

    Raises:
        CommandError: the evidence is not JSON. OutlastError: the call makes no sense, or something cannot be stored.
    """
    if external_id and verdict != Verdict.HAPPENED:
        raise CommandError("--external-id is the name of something that happened: --verdict happened.", returncode=WRONG_USAGE)
    return resolve(
        operation,
        verdict=verdict,
        by=user,
        reason=reason,
        external_id=external_id,
        evidence=_value(evidence),
        seen=seen,
        using=using,
    )


def _value(text: str | None) -> Any:
    return given.parsed(text, "--evidence") if text is not None else None
