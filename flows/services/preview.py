"""What a cancel or a supersede would do, before it is done: what becomes invalid, what is undone, what is owed and serviced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from flows.core.effects import OperationKind, OperationStatus
from flows.core.protocol import LIVE, WAIT_KINDS, OnCancel, WaitStatus
from flows.models import Commitment, Operation, Timer, TimerStatus, Wait, Workflow
from flows.models.commitment import LIVE as OWED
from flows.services import identify


@dataclass(frozen=True, slots=True)
class Ending:
    """One live run, and what the end of its goal means for it.

    Attributes:
        running: the node whose attempt is fenced. withdrawn: open waits (kind and node, and what it means to them). timers: how many die.
        undone: effects that are compensated, in that order. stands: completed effects that nothing undoes.
        in_doubt: effects that are asked about first. released: commitments that are given back. by_people: those that only a person can end.
    """

    workflow: UUID
    flow: str
    key: str | None
    status: str
    node: str
    running: str = ""
    withdrawn: list[str] = field(default_factory=list)
    timers: int = 0
    undone: list[str] = field(default_factory=list)
    stands: list[str] = field(default_factory=list)
    in_doubt: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    by_people: list[str] = field(default_factory=list)


def preview(target: Any, *, using: str | None = None) -> list[Ending]:
    """What `supersede` or `cancel_intent` of an intent would end now. Nothing is changed, and nothing is locked: it may differ a moment later.

    Args:
        target: the intent, or a workflow of it.
    Raises:
        UnknownIntent: there is none.
    """
    alias = identify.alias(using)
    rows = Workflow.objects.using(alias).filter(
        intent_id=identify.intent_id(target), status__in=[status.value for status in LIVE]
    )
    return [_ending(row, alias) for row in rows.order_by("pk")]


def _ending(row: Workflow, using: str) -> Ending:
    waits = Wait.objects.using(using).filter(workflow_id=row.pk, status=WaitStatus.OPEN).order_by("pk")
    timers = Timer.objects.using(using).filter(workflow_id=row.pk, status=TimerStatus.PENDING, commitment_id__isnull=True)
    operations = list(
        Operation.objects.using(using).filter(workflow_id=row.pk, kind=OperationKind.EFFECT).order_by("flown_at", "pk")
    )
    held = Commitment.objects.using(using).filter(workflow_id=row.pk, status__in=OWED).order_by("pk")
    return Ending(
        workflow=row.pk,
        flow=row.flow_name,
        key=row.key,
        status=row.status,
        node=row.node,
        running=row.node if row.status == "running" and row.active_seq is not None else "",
        withdrawn=[_withdrawn(wait) for wait in waits],
        timers=timers.count(),
        undone=_named(operations, compensable=True)[::-1],
        stands=_named(operations, compensable=False),
        in_doubt=[one.pk for one in operations if one.status in (OperationStatus.IN_FLIGHT, OperationStatus.UNCERTAIN)],
        released=[f"{one.name} {one.reference}".strip() for one in held if one.releasable],
        by_people=[f"{one.name} {one.reference}".strip() for one in held if not one.releasable and not one.may_defer],
    )


def _withdrawn(wait: Wait) -> str:
    means = WAIT_KINDS[wait.kind].on_cancel
    return f"{wait.kind} at {wait.node}" + ("" if means is OnCancel.WITHDRAWN else f": {means}")


def _named(operations: Sequence[Operation], *, compensable: bool) -> list[str]:
    return [one.pk for one in operations if one.status == OperationStatus.SUCCEEDED and one.compensable == compensable]
