"""In which order a workflow on its way to a bad end undoes what it did, and gives back what it holds. Reads only.

    effects        one compensation after another, the newest first: a later step may build on an earlier one, never the other way round
    commitments    each as soon as no effect is left to compensate that was begun with it or after it; all that are free at once

A commitment that is older than such an effect may be needed by its compensation (the window that a rollback runs in), so it is held back, also
while that compensation waits for its next try or for a person: the way out is that compensation's verdict. A newer one cannot be needed by what
was there before it, and is not held back by it. The release of a commitment whose own effect is compensated, too, comes after that. No
compensation waits for a release. On the way to `complete` nothing is compensated and everything is released at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from flows.core.effects import OperationKind, OperationStatus
from flows.core.protocol import Status
from flows.models import Commitment, Workflow
from flows.store import operations
from flows.store.operations import Row

#: Ends on the way to which effects are compensated.
COMPENSATES = frozenset({Status.CANCELLED, Status.SUPERSEDED, Status.FAILED})
#: A mitigation of an operation is still to come, or under way, or nobody but a person can say what became of it.
PENDING = frozenset(
    {OperationStatus.PLANNED, OperationStatus.IN_FLIGHT, OperationStatus.UNCERTAIN, OperationStatus.FAILED},
)


def left(known: Sequence[Row]) -> list[Row]:
    """The completed effects that are still to be compensated, or are being compensated; the oldest first."""
    over = {row.of_id for row in known if row.kind == OperationKind.COMPENSATION and row.status not in PENDING}
    return [row for row in known if _can_be(row) and row.id not in over]


def under_way(known: Sequence[Row]) -> dict[str, Row]:
    """The compensations that have begun and are not settled, by the effect that they are for; there is one at most."""
    found = [row for row in known if row.kind == OperationKind.COMPENSATION and row.status in PENDING]
    return {row.of_id: row for row in found if row.of_id}


def _can_be(row: Row) -> bool:
    return row.kind == OperationKind.EFFECT and row.compensable and row.status == OperationStatus.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Held:
    """A commitment that is not released yet, and what must be settled before: compensations, or effects whose compensation is still to begin."""

    commitment: int
    name: str
    until: tuple[str, ...]


def held_back(workflow: UUID, using: str) -> list[Held]:
    """What a workflow on its way to a bad end could release, and holds back; the oldest first. Nothing is locked."""
    row = Workflow.objects.using(using).only("target").filter(pk=workflow).first()
    if row is None or row.target not in COMPENSATES:
        return []
    known = operations.of_workflow(workflow, using)
    begun, remaining = under_way(known), left(known)
    live = Commitment.objects.using(using).filter(workflow_id=workflow, status__in=("active", "breached"), releasable=True)
    found = []
    for one in live.order_by("activity_seq", "pk"):
        needs = [effect for effect in reversed(remaining) if effect.activity_seq >= one.activity_seq]
        if needs:
            until = tuple(begun[effect.id].id if effect.id in begun else effect.id for effect in needs)
            found.append(Held(one.pk, one.name, until))
    return found
