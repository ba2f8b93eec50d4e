"""Commitments: begun with the effect that they depend on, ended by an activity, a release or a person; and the query for other code."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.commitments import Commits
from flows.core.effects import OperationStatus
from flows.core.errors import DefinitionError, PayloadError
from flows.core.misuse import UsageError
from flows.core.nodes.activity import Activity
from flows.core.policies import Deadline
from flows.core.protocol import CommitmentStatus
from flows.models import Commitment
from flows.models.commitment import LIVE
from flows.services import calendars, identify, obligations, warrant
from flows.store import commitments as store
from flows.store import locks
from flows.store.commitments import OPEN, Planned
from flows.store.sql import committing

logger = logging.getLogger("outlast.commitments")


PERMISSION = "outlast_flows.service_commitment"


class UnknownCommitment(UsageError):
    """No commitment with that id."""

    code = "UNKNOWN_COMMITMENT"

    def __init__(self, commitment: object) -> None:
        live = "`flows.commitments.active()` and `manage.py flows commitments list` give those that are live."
        super().__init__(f"There is no commitment {commitment!s:.80}. {live}")


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


def get(commitment: Any, *, using: str | None = None) -> Commitment:
    """The row as it is now.

    Raises:
        UnknownCommitment: there is none.
    """
    number = str(getattr(commitment, "pk", commitment))
    rows = Commitment.objects.using(identify.alias(using)).select_related("workflow")
    row = rows.filter(pk=int(number)).first() if number.isascii() and number.isdigit() and len(number) < 19 else None
    if row is None:
        raise UnknownCommitment(commitment)
    return row


def refusal(commitment: Any, *, using: str | None = None) -> str:
    """Why one cannot be ended by somebody's word, as it is now."""
    row = get(commitment, using=using)
    if row.status in OPEN:
        return "Its release is under way, or nobody knows yet what became of it: settle its operation. Nothing was changed."
    if row.status == CommitmentStatus.PLANNED:
        return "It has not begun: nobody knows yet whether its call has happened. Nothing was changed."
    return f"It has ended: it is {row.status}. Nothing was changed."


def fulfil(commitment: Any, *, by: Any, reason: str, using: str | None = None) -> bool:
    """Say that it has been fulfilled. False: it had ended, or its release is under way.

    Args:
        commitment: the row, or its id. by: who says so; only recorded. reason: why, in words; kept with the commitment.
    Raises:
        UnknownCommitment: there is none. ReasonMissing: nobody says why.
    """
    return _end(commitment, CommitmentStatus.FULFILLED, by, reason, "", using)


def transfer(commitment: Any, *, to: str, by: Any, reason: str, using: str | None = None) -> bool:
    """Hand it over to somebody who services it from now on. Answers and errors as `fulfil`; PayloadError: `to` cannot be stored, or is empty."""
    payload.check_text(to, "the new holder")
    if not to.strip():
        raise PayloadError("the new holder", "is empty: say to whom it goes over")
    return _end(commitment, CommitmentStatus.TRANSFERRED, by, reason, to, using)


def defer(commitment: Any, *, by: Any, reason: str, using: str | None = None) -> bool:
    """Let the workflow end without it. Answers and errors as `fulfil`."""
    return _end(commitment, CommitmentStatus.DEFERRED, by, reason, "", using)


#: The words of the admin and of the command.
ENDINGS: dict[str, Callable[..., bool]] = {"fulfil": fulfil, "transfer": transfer, "defer": defer}


def _end(commitment: Any, status: CommitmentStatus, by: Any, reason: str, holder: str, using: str | None) -> bool:
    alias, who = identify.alias(using), identify.label(by)
    reason = warrant.reason(reason, "why the commitment ends")
    row = get(commitment, using=alias)
    with committing("end commitment", alias):
        locks.workflows([row.workflow_id], alias)
        ended = store.end(
            row.workflow_id,
            status=status,
            by=who,
            commitment=row.pk,
            holder=holder,
            reason=reason,
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
    lasts = calendars.lasting((one.deadline for one in node.commitments if one.deadline), using)
    for one in node.commitments:
        said, why = _described(one, result)
        span, unmeasured = _span(one, lasts)
        store.begin(
            operation,
            workflow,
            one.name,
            reference=str(said.get("reference", "")),
            terms=said.get("terms"),
            deadline=span,
            on_expiry=one.deadline.word if one.deadline else "",
            reason=" ".join(part for part in (why, unmeasured) if part),
            using=using,
        )


def _span(one: Commits, lasts: Callable[[Deadline], timedelta]) -> tuple[timedelta | None, str]:
    """How long it may be owed, and the code of why that cannot be told: then its span counts as elapsed time, which is over sooner."""
    if one.deadline is None:
        return None, ""
    try:
        return lasts(one.deadline), ""
    except DefinitionError:
        logger.exception("the deadline of the commitment %s cannot be measured; it counts elapsed time", one.name)
        return one.deadline.after, "DEADLINE_FAILED"


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
