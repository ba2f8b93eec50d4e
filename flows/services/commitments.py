"""Commitments: begun with the effect that they depend on, ended by an activity, a release or a person; and the query for other code."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.commitments import Commits
from flows.core.effects import OperationStatus
from flows.core.errors import UsageError
from flows.core.nodes.activity import Activity
from flows.core.protocol import CommitmentStatus
from flows.models import Commitment
from flows.models.commitment import LIVE
from flows.services import identify, obligations
from flows.store import commitments as store
from flows.store import locks
from flows.store.commitments import Planned
from flows.store.sql import committing

logger = logging.getLogger("outlast.commitments")


class UnknownCommitment(UsageError):
    """No commitment with that id."""

    code = "UNKNOWN_COMMITMENT"

    def __init__(self, commitment: object) -> None:
        super().__init__(f"There is no commitment {commitment!s:.80}. `flows.commitments.active()` gives those that are live.")


def active(
    *, kind: str | None = None, workflow: Any = None, name: str | None = None, using: str | None = None
) -> list[Commitment]:
    """The live commitments, oldest first: what is (or may be) owed to somebody outside now. For monitoring, admission, allocation and
    other agents. One whose call has certainly not been made is not among them.

    For code of this project: it asks for no user and checks no permission. Whoever shows the answer to a person checks
    `outlast_flows.view_commitment` first, as the admin's pages do.

    Args:
        kind, name: only these. workflow: only those of this run.
    """
    found = Commitment.objects.using(identify.alias(using)).filter(status__in=LIVE).order_by("opened_at", "pk")
    found = found.exclude(
        status=CommitmentStatus.PLANNED, operation__status__in=[OperationStatus.PLANNED, OperationStatus.FAILED]
    )
    if kind is not None:
        found = found.filter(kind=kind)
    if name is not None:
        found = found.filter(name=name)
    if workflow is not None:
        found = found.filter(workflow_id=identify.workflow_id(workflow))
    return list(found)


def fulfil(commitment: Any, *, by: Any, reason: str, using: str | None = None) -> bool:
    """Say that it has been fulfilled. False: it had ended, or its release is under way.

    Raises:
        UnknownCommitment: there is none. PayloadError: the reason cannot be stored.
    """
    return _end(commitment, CommitmentStatus.FULFILLED, by, reason, "", using)


def transfer(commitment: Any, *, to: str, by: Any, reason: str, using: str | None = None) -> bool:
    """Hand it over to somebody who services it from now on. Answers and errors as `fulfil`."""
    payload.check_text(to, "the new holder")
    return _end(commitment, CommitmentStatus.TRANSFERRED, by, reason, to, using)


def defer(commitment: Any, *, by: Any, reason: str, using: str | None = None) -> bool:
    """Let the workflow end without it. Answers and errors as `fulfil`."""
    return _end(commitment, CommitmentStatus.DEFERRED, by, reason, "", using)


def _end(commitment: Any, status: CommitmentStatus, by: Any, reason: str, holder: str, using: str | None) -> bool:
    alias, who = identify.alias(using), identify.label(by)
    payload.check_text(reason, "the reason")
    number = getattr(commitment, "pk", commitment)
    row = Commitment.objects.using(alias).filter(pk=number).first() if str(number).isdigit() else None
    if row is None:
        raise UnknownCommitment(commitment)
    with committing("end commitment", alias):
        locks.workflows([row.workflow_id], alias)
        ended = store.end(
            row.workflow_id,
            status=status,
            by=who,
            commitment=row.pk,
            holder=holder,
            reason=identify.reason(reason),
            using=alias,
        )
        if ended:
            obligations.go_on(row.workflow_id, alias)
    return bool(ended)


def planned(node: Activity) -> list[Planned]:
    """What a node begins to owe, as it is written down before its call."""
    return [Planned(one.name, one.kind or one.name, one.release is not None, one.deferrable) for one in node.commitments]


def begin(operation: str, workflow: UUID, node: Activity, result: Any, using: str) -> None:
    """The call of a node has happened with this result: what it begins is owed from now on. The workflow must be locked."""
    for one in node.commitments:
        said, why = _described(one, result)
        store.begin(
            operation,
            workflow,
            one.name,
            reference=str(said.get("reference", "")),
            terms=said.get("terms"),
            deadline=one.deadline.after if one.deadline else None,
            on_expiry=one.deadline.word if one.deadline else "",
            reason=why,
            using=using,
        )


def _described(one: Commits, result: Any) -> tuple[dict[str, Any], str]:
    """Its reference and terms, and the codes of those that cannot be read from the result.

    A function of the author that raises must not make the commitment invisible: what it should say stays empty, and the row says why.
    """
    said: dict[str, Any] = {}
    failed: list[str] = []
    for what, read in (("reference", _reference), ("terms", _terms)):
        try:
            said[what] = read(one, result)
        except Exception as error:
            logger.exception("the %s of the commitment %s cannot be read from the result; it stays empty", what, one.name)
            failed.append(f"{what.upper()}_FAILED:{type(error).__name__}")
    return said, " ".join(failed)


def _reference(one: Commits, result: Any) -> str:
    text = str(one.reference(result))[:500] if one.reference else ""
    payload.check_text(text, f"the reference of {one.name}")
    return text


def _terms(one: Commits, result: Any) -> str | None:
    value = one.terms(result) if one.terms else None
    return None if value is None else payload.encode(value, f"the terms of {one.name}", conf.MAX_RESULT_BYTES)


def declared(row: Commitment) -> Commits | None:
    """What the flow declares about it; None where this process does not know the flow."""
    node = registry.activity(row.workflow.flow_name, row.workflow.flow_version, row.node)
    return next((one for one in node.commitments if one.name == row.name), None) if node is not None else None
