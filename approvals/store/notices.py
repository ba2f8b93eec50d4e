"""What has happened to a request, noted for those who are to be told: one row an event, in the transaction in which it happened. Twice is once.

Whoever writes here holds the workflow's lock, as with the request's own statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from approvals.core.notices import NoticeKind
from flows.store.sql import literals, run

OWE = """
INSERT INTO outlast_approval_notice (request_id, channel, user_label, kind, number, created_at, tries, why)
VALUES (%(request)s::bigint, '', '', %(kind)s, %(number)s::int, flows_now(), 0, '')
ON CONFLICT DO NOTHING
RETURNING id
"""


def owe(request_id: int, kind: NoticeKind, number: int, using: str) -> bool:
    """Note what has happened; False: it was noted before."""
    return bool(run("owe notice", OWE, {"request": request_id, "kind": kind.value, "number": number}, using))


OWE_ASSIGNED = f"""
INSERT INTO outlast_approval_notice (request_id, channel, user_id, user_label, kind, number, created_at, tries, why)
VALUES (%(request)s::bigint, '', %(user)s, '', {literals([NoticeKind.ASSIGNED])}, (
    SELECT coalesce(max(number), 0) + 1 FROM outlast_approval_notice
    WHERE request_id = %(request)s::bigint AND kind = {literals([NoticeKind.ASSIGNED])} AND channel = ''
), flows_now(), 0, '')
RETURNING id
"""


def owe_assigned(request_id: int, user: Any, using: str) -> bool:
    """Note that somebody was marked as the one who looks at it; each time is an event of its own."""
    return bool(run("owe assigned", OWE_ASSIGNED, {"request": request_id, "user": user}, using))


OWE_WITHDRAWN = f"""
INSERT INTO outlast_approval_notice (request_id, channel, user_label, kind, number, created_at, tries, why)
SELECT r.id, '', '', {literals([NoticeKind.WITHDRAWN])}, 0, flows_now(), 0, ''
FROM outlast_approval_request r
WHERE r.id = ANY (%(ids)s::bigint[]) AND r.status IN ('expired', 'cancelled', 'invalidated')
  AND EXISTS (SELECT FROM outlast_approval_notice n WHERE n.request_id = r.id)
ORDER BY r.id
ON CONFLICT DO NOTHING
RETURNING request_id
"""


def owe_withdrawn(ids: Sequence[int], using: str) -> list[int]:
    """Note of those of these requests that ended without an answer, or whose approval counts no longer, that people are to be told."""
    return [row[0] for row in run("owe withdrawn", OWE_WITHDRAWN, {"ids": list(ids)}, using)] if ids else []
