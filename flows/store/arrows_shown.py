"""The arrows of a run as a picture needs them: when, to which status, at which node; of very many the newest."""

from __future__ import annotations

from uuid import UUID

from flows.store.sql import run

MOST = 20_000

ARROWS = """
SELECT extract(epoch FROM at)::float8, to_status, to_node, extract(epoch FROM flows_now())::float8
FROM outlast_transition WHERE workflow_id = %(id)s::uuid ORDER BY seq DESC LIMIT %(limit)s::int
"""


def arrows(workflow: UUID, using: str) -> tuple[list[tuple[float, str, str]], float]:
    """(moment, status, node) of the newest `MOST` arrows, oldest first, in seconds; and the moment of the look."""
    rows = run("arrows", ARROWS, {"id": workflow, "limit": MOST}, using)
    return [(at, status, node) for at, status, node, _now in reversed(rows)], rows[0][3] if rows else 0.0
