"""What `manage.py flows show` says of a run's agent turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flows.management import words
from flows.services import identify, turns_shown

TITLES = ("call", "kind", "name", "status", "attempt", "code", "model", "tokens", "cost", "bytes")


def of(workflow: UUID, using: str | None) -> Sequence[Mapping[str, Any]]:
    """The entries of a run's journals, oldest first: what a program gets."""
    return turns_shown.as_data(workflow, identify.alias(using))


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a call; empty where there is no agent turn."""
    return words.table(TITLES, ([_number(row), *_facts(row)] for row in rows)) if rows else ""


def _number(row: Mapping[str, Any]) -> str:
    inside = f" in {row['within']}" if row["within"] else ""
    return f"{row['activity_seq']}/{row['number']}{inside}"


def _facts(row: Mapping[str, Any]) -> list[Any]:
    usage = row["usage"]
    tokens = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    names = ("kind", "name", "status", "attempt", "code", "model")
    return [*(row[name] for name in names), tokens or "", usage.get("cost", ""), row["answer_bytes"] or ""]
