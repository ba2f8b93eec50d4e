"""The journal of agent turns, for pages and commands: read, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flows.models import JournalEntry


def as_data(workflow_id: UUID, using: str) -> Sequence[dict[str, Any]]:
    """What a program is told of each, oldest first: numbers, words and hashes; no arguments and no answers."""
    names = ("activity_seq", "number", "within", "kind", "name", "status", "attempt", "code", "model", "release", "usage")
    more = ("request_hash", "answer_hash", "answer_bytes", "operation_id", "began_at", "ended_at")
    rows = JournalEntry.objects.using(using).filter(workflow_id=workflow_id).order_by("activity_seq", "number")
    return list(rows.values(*names, *more))
