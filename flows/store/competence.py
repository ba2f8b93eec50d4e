"""Competence envelopes that a person opens again; they are looked at and counted in `flows.store.gate`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flows.store.sql import run

#: The row is locked before it is read: of two who open it at once, one finds it open.
OPEN_ENVELOPE = """
WITH closed AS (
    SELECT id, burned, closed_at FROM outlast_competence
    WHERE flow_name = %(flow)s AND node = %(node)s AND release = %(release)s AND closed_at IS NOT NULL
      AND (%(closed_at)s::timestamptz IS NULL OR closed_at = %(closed_at)s::timestamptz)
    FOR NO KEY UPDATE
), opened AS (
    UPDATE outlast_competence c
    SET burned = 0, closed_at = NULL, note = %(reason)s, by_label = %(by_label)s, updated_at = flows_now()
    FROM closed WHERE c.id = closed.id
    RETURNING c.flow_name, c.node, c.release, c.allowed, closed.burned AS had_burned, closed.closed_at AS was_closed_at
)
INSERT INTO outlast_competence_opening (flow_name, node, release, burned, allowed, closed_at, reason, by_id, by_label, at)
SELECT o.flow_name, o.node, o.release, o.had_burned, o.allowed, o.was_closed_at, %(reason)s, %(by)s, %(by_label)s, flows_now()
FROM opened o
RETURNING id
"""


def open_envelope(
    flow: str, node: str, release: str, closed_at: datetime | None, *, reason: str, by: Any, by_label: str, using: str
) -> bool:
    """Open a closed envelope, count its errors anew, and keep who opened it and why; False if none is closed, or not since then."""
    params = {
        "flow": flow,
        "node": node,
        "release": release,
        "closed_at": closed_at,
        "reason": reason,
        "by": by,
        "by_label": by_label,
    }
    return bool(run("open envelope", OPEN_ENVELOPE, params, using))
