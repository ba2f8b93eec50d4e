"""Archived runs, read again: found by id or key, compared with their digest, opened as far as the codec can."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.files.storage import storages

from flows.core import payload
from flows.core.misuse import NotArchived
from flows.services import stored as records
from flows.services.retention.archiving import digest
from flows.services.retention.looking import rules
from flows.store import archive


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """A run that retention has deleted. `record`: table → rows as they were, opened; `file`: "" where the record is in the table."""

    id: UUID
    flow: str
    key: str | None
    status: str
    ended_at: datetime
    archived_at: datetime
    digest: str
    file: str
    record: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Listed:
    """One archived run, without its record."""

    id: UUID
    flow: str
    key: str | None
    status: str
    ended_at: datetime
    archived_at: datetime
    file: str


def newest(flow: str | None, limit: int, using: str) -> list[Listed]:
    """What was archived last."""
    return [Listed(*row) for row in archive.newest(flow, limit, using)]


def find(text: str, using: str) -> ArchivedRun:
    """The archived run with that id, or FLOW:KEY.

    Raises:
        NotArchived: there is none, its file is not there, or what is there is not what was archived.
        PayloadError: a value was sealed by a codec or with a key that is not configured here.
    """
    flow, colon, key = text.partition(":")
    found = archive.find(flow=flow, key=key, using=using) if colon else _by_id(text, using)
    if found is None:
        gone = archive.deleted(flow, key, using) if colon else None
        why = f"it was deleted on {gone[1]:%Y-%m-%d} and not archived" if gone else "there is none of that id or FLOW:KEY"
        raise NotArchived(text, why)
    file, record = found[7], found[8]
    stored = record if not file else _of_file(found[0], file)
    if stored is None or digest(stored) != found[6]:
        where = f"the file {file}" if file else "its row"
        raise NotArchived(text, f"{where} {'does not have it' if stored is None else 'is not what was archived'}")
    values = [*found[:8], records.record(stored, payload.decode)]
    return ArchivedRun(*values)


def _by_id(text: str, using: str) -> tuple[Any, ...] | None:
    try:
        return archive.find(workflow=UUID(text), using=using)
    except ValueError:
        return None


def _of_file(run: UUID, name: str) -> Any:
    """The record of that run in the file; None: it is not there."""
    storage = storages[rules().storage]
    wanted = f'"id":"{run}"'.encode()
    try:
        with storage.open(name) as lines:
            for line in lines:
                if wanted in line:
                    found = json.loads(line)
                    if found["id"] == str(run):
                        return found["record"]
    except (OSError, ValueError, KeyError) as fault:
        raise NotArchived(run, f"the file {name} cannot be read ({fault})") from fault
    return None
