"""Settling an operation, by whoever knows: its own attempt, a probe, a person. And what follows for its workflow.

Every answer is kept as a Resolution; the first that finds the operation unsettled counts. The workflow is locked first, then acted on in new
statements, so two answers, or an answer and a cancel, happen one after the other.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from flows import registry
from flows.core import payload
from flows.core.effects import OperationKind, OperationStatus
from flows.core.protocol import Outcome
from flows.dispatch import service_after_commit
from flows.models import Notice, Workflow
from flows.services import commitments, notices, obligations
from flows.store import locks, resolutions
from flows.store import operations as store
from flows.store.sql import committing

logger = logging.getLogger("outlast.effects")

#: What an answer says, in the words of a Resolution.
ANSWERS = {
    OperationStatus.SUCCEEDED: "happened",
    OperationStatus.FAILED: "did_not_happen",
    OperationStatus.PLANNED: "did_not_happen",
    OperationStatus.ABANDONED: "did_not_happen",
}
DID_NOT_HAPPEN = frozenset(status for status, answer in ANSWERS.items() if answer == "did_not_happen")
#: An attempt came back and says that its effect happened, long after it was settled that it had not (only in notices).
LATE_EFFECT = "LATE_EFFECT"


def _begin_commitments(operation: str, using: str) -> None:
    """The effect has happened after all: what it begins is owed from now on."""
    row = store.get(operation, using)
    if row is None or row.kind != OperationKind.EFFECT or row.name:
        return
    node = registry.activity(row.flow_name, row.flow_version, row.node)
    if node is not None:
        commitments.begin(operation, row.workflow_id, node, payload.decode(row.evidence), using)


def _tell_contradiction(operation: str, workflow: UUID, using: str) -> None:
    """The call says that it happened, and somebody was sure that it had not: nothing is undone by it; the accountable user is told once."""
    row = store.get(operation, using)
    if row is None or row.status not in DID_NOT_HAPPEN:
        return
    logger.error("%s happened, after it was settled that it had not (%s)", operation, row.status)
    user_id = Workflow.objects.using(using).get(pk=workflow).user_id
    told = Notice.objects.using(using).filter(workflow_id=workflow, code=LATE_EFFECT).exists()
    if user_id is not None and not told:
        notices.owe(workflow, user_id, Outcome.HUMAN_REQUIRED, LATE_EFFECT, using)


def _follow(operation: str, workflow: UUID, status: OperationStatus, using: str, *, by_person: bool) -> None:
    """What a settlement that counted makes true: the commitments of the effect, and the next step of its workflow."""
    if status is OperationStatus.SUCCEEDED:
        _begin_commitments(operation, using)
    obligations.resumed(workflow, using)  # whoever knew: it is no longer a person's turn
    obligations.go_on(workflow, using, by_person=by_person)


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
        if counted:
            if due is not None:
                service_after_commit(using)
            _follow(operation, workflow, status, using, by_person=source == "person")
        elif status is OperationStatus.SUCCEEDED and source == "attempt":
            _tell_contradiction(operation, workflow, using)
    return counted
