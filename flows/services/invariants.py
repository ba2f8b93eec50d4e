"""The scan for the five invariants (P1): what in the record nobody owns, wakes, ends, may reconcile or will service."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from flows.services import identify
from flows.store import invariants as store


@dataclass(frozen=True, slots=True)
class Broken:
    """One workflow that breaks an invariant, and how."""

    invariant: str
    workflow: UUID
    what: str


def scan(*, using: str | None = None) -> list[Broken]:
    """Everything that breaks an invariant now; an empty list for a sound record with live workers."""
    return [Broken(*row) for row in store.broken(identify.alias(using))]
