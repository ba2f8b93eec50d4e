"""Calendars: versions are only added, one after the other; whoever counts by one reads the newest.

publish   the name is locked (advisory), then the next version is inserted: two publishers make two versions, in order
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flows.store.sql import loads, run


class Version(NamedTuple):
    """One version, with its body as it is stored."""

    name: str
    version: int
    digest: str
    body: Any


LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('outlast calendar ' || %(name)s, 0))"

NEWEST = """
SELECT DISTINCT ON (name) name, version, digest, body FROM outlast_calendar
WHERE %(names)s::text[] IS NULL OR name = ANY (%(names)s::text[]) ORDER BY name, version DESC
"""

VERSIONS = "SELECT name, version, digest, body FROM outlast_calendar ORDER BY name, version"

PUBLISH = """
INSERT INTO outlast_calendar (name, version, body, digest, reason, by_id, by_label, at)
VALUES (%(name)s, %(version)s::int, %(body)s::jsonb, %(digest)s, %(reason)s, %(by)s, %(by_label)s, flows_now())
"""


def lock(name: str, using: str) -> None:
    """Serialise publishers of one calendar until the end of the transaction."""
    run("lock calendar", LOCK, {"name": name}, using)


def newest(names: Sequence[str] | None, using: str) -> list[Version]:
    """The newest version of each of these; of all, if none are given."""
    rows = run("newest calendars", NEWEST, {"names": list(names) if names is not None else None}, using)
    return [Version(row[0], row[1], row[2], loads(row[3])) for row in rows]


def versions(using: str) -> list[Version]:
    """Every version of every calendar."""
    return [Version(row[0], row[1], row[2], loads(row[3])) for row in run("calendar versions", VERSIONS, {}, using)]


def publish(params: Mapping[str, Any], using: str) -> None:
    """Insert the next version; the name is locked."""
    run("publish calendar", PUBLISH, params, using)
