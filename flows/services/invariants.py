"""The scan for the five invariants (P1): what in the record nobody owns, wakes, ends, may reconcile or will service."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from flows.services import identify, releasing
from flows.store import invariants as store

#: Beside the five: a run that is pinned to a release needs somebody who works under it.
OFFERED = "no ready workflow whose release nobody offers"


@dataclass(frozen=True, slots=True)
class Broken:
    """One workflow that breaks an invariant, and how."""

    invariant: str
    workflow: UUID
    what: str


def scan(*, using: str | None = None) -> list[Broken]:
    """Everything that breaks an invariant now, and every ready run whose release nobody offers; an empty list for a sound record with live
    workers.
    """
    alias = identify.alias(using)
    unoffered = [Broken(OFFERED, workflow, what) for workflow, what in releasing.not_offered(alias)]
    return [*(Broken(*row) for row in store.broken(alias)), *unoffered]
