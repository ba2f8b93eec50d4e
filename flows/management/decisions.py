"""What `manage.py flows show` says of a run's decision artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flows.management import words
from flows.services import artifacts, identify

TITLES = ("decision", "revision", "attempt", "choice", "refused", "release", "model", "candidate", "context", "calls")


def of(workflow: UUID, using: str | None) -> Sequence[Mapping[str, Any]]:
    """The artifacts of a run, oldest first: what a program gets."""
    return artifacts.of(workflow, identify.alias(using))


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line an attempt; empty where no model decided."""
    names = ("node", "revision", "attempt", "choice", "refused", "release", "model")
    return words.table(
        TITLES,
        (
            [*(row[name] for name in names), _short(row["digest"]), _short(row["context_hash"]), row["usage"].get("count", "")]
            for row in rows
        ),
    )


def _short(value: str) -> str:
    return value.rpartition(":")[2][:12]
