"""Settling an operation, by whoever knows: its own attempt, a probe, a person. And what follows for its workflow.

Every answer is kept as a Resolution; the first that finds the operation unsettled counts. The workflow is locked first, then acted on in new
statements, so two answers, or an answer and a cancel, happen one after the other.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from flows import registry
from flows.core import payload
from flows.core.effects import OperationKind, OperationStatus
from flows.core.nodes.activity import Activity
from flows.dispatch import service_after_commit
from flows.services import commitments, obligations
from flows.store import locks, resolutions
from flows.store import operations as store
from flows.store.sql import committing

#: What an answer says, in the words of a Resolution.
ANSWERS = {
    OperationStatus.SUCCEEDED: "happened",
    OperationStatus.FAILED: "did_not_happen",
    OperationStatus.PLANNED: "did_not_happen",
    OperationStatus.ABANDONED: "did_not_happen",
}


def _begin_commitments(operation: str, using: str) -> None:
    """The effect has happened after all: what it begins is owed from now on."""
    row = store.get(operation, using)
    definition = registry.definition(row.flow_name, row.flow_version) if row is not None else None
    node = definition.nodes.get(row.node) if definition is not None and row is not None else None
    if row is not None and row.kind == OperationKind.EFFECT and not row.name and isinstance(node, Activity):
        commitments.begin(operation, row.workflow_id, node, payload.decode(row.evidence), using)


def settle(
    operation: str,
    workflow: UUID,
    *,
    status: OperationStatus,
    source: str,
    evidence: str | None = None,
    external_id: str = "",
    code: str | None = None,
    reason: str = "",
    by: Any = None,
    by_label: str = "",
    looks: int | None = None,
    attempt: int | None = None,
    due: timedelta | None = None,
    ordinary: bool = False,
    using: str,
) -> bool:
    """Record what became of an operation, and let its workflow go on if it waited for that; False: it had been settled (or is asked anew).

    Args:
        evidence: encoded JSON. source: "attempt", "probe" or "person". looks, attempt: fences, see `flows.store.operations.settle`.
        ordinary: nothing was in doubt; kept as an answer only if it did not count.
    """
    with committing("settle", using):
        locks.workflows([workflow], using)
        counted = store.settle(
            operation,
            status=status,
            by=by_label or source,
            evidence=evidence,
            external_id=external_id,
            code=code,
            looks=looks,
            attempt=attempt,
            due=due,
            afresh=source == "person",
            using=using,
        )
        if not (ordinary and counted):
            resolutions.add(
                operation,
                source=source,
                answer=ANSWERS[status],
                evidence=evidence,
                external_id=external_id,
                reason=reason,
                by=by,
                by_label=by_label,
                counted=counted,
                using=using,
            )
        if counted and status is OperationStatus.SUCCEEDED:
            _begin_commitments(operation, using)
        if counted and due is not None:
            service_after_commit(using)
        if counted:
            obligations.resumed(workflow, using)  # whoever knew: it is no longer a person's turn
            obligations.go_on(workflow, using, by_person=source == "person")
    return counted
