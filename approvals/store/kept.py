"""The answers that are kept under a key: claimed before anything is done, written in the same transaction.

The key's row is locked before workflow, wait and request. Nobody locks a key while they hold one of those, so the order stands.
"""

from __future__ import annotations

from typing import Any

from flows.store.sql import run

#: How long an answer is kept, as PostgreSQL reads it.
KEPT = "24 hours"

#: So many old rows are deleted by each new one at most: more than come in, so that the table follows the rate of a day.
OLD = 20

CLAIM = f"""
INSERT INTO outlast_api_answer AS a (user_id, key, asked, status, body, at)
VALUES (%(user)s, %(key)s, %(asked)s, 0, '', flows_now())
ON CONFLICT (user_id, key) DO UPDATE SET asked = excluded.asked, status = 0, body = '', at = excluded.at
WHERE a.at <= flows_now() - interval '{KEPT}'
RETURNING id
"""


def claim(user: Any, key: str, asked: str, using: str) -> int | None:
    """Take the key for this transaction; None: an answer is kept under it. Who else wants it waits until this transaction has ended."""
    rows = run("claim key", CLAIM, {"user": user, "key": key, "asked": asked}, using)
    return rows[0][0] if rows else None


FIND = "SELECT asked, status, body FROM outlast_api_answer WHERE user_id = %(user)s AND key = %(key)s"


def find(user: Any, key: str, using: str) -> tuple[str, int, str] | None:
    """(what was asked, status, body as JSON text) of the answer that is kept; read in a statement of its own, after whoever held the key."""
    rows = run("find kept answer", FIND, {"user": user, "key": key}, using)
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


KEEP = "UPDATE outlast_api_answer SET status = %(status)s::int, body = %(body)s WHERE id = %(id)s::bigint RETURNING id"


def keep(row: int, status: int, body: str, using: str) -> bool:
    """Write the answer to a key that this transaction has claimed; `body` is JSON text."""
    return bool(run("keep answer", KEEP, {"id": row, "status": status, "body": body}, using))


FORGET = f"""
DELETE FROM outlast_api_answer WHERE id = ANY (ARRAY(
    SELECT id FROM outlast_api_answer WHERE at <= flows_now() - interval '{KEPT}' ORDER BY at LIMIT {OLD} FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id
"""


def forget(using: str) -> int:
    """Delete some of those that are older than they are kept; how many."""
    return len(run("forget answers", FORGET, {}, using))
