"""Bulk operations: made in one statement with their items, worked off item by item, stopped or done by guard.

The lock order: bulk (shared) → item → whatever the verb locks. Nobody who holds a workflow locks one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from flows.store.sql import dumps, loads, run

#: Somebody is to be worked on.
EXISTS = "EXISTS (SELECT FROM outlast_bulk WHERE status = 'running')"

#: `{chosen}` is the statement of a query set, with its own parameters; one row more than allowed says that there are too many.
MAKE = """
WITH chosen AS MATERIALIZED (SELECT c.id FROM ({chosen}) c LIMIT %s), made AS (
    INSERT INTO outlast_bulk (verb, filter, arguments, user_id, by_label, reason, total, made_at)
    SELECT %s, %s::jsonb, %s::jsonb, %s, %s, %s, (SELECT count(*) FROM chosen), flows_now()
    RETURNING id, total
), items AS (
    INSERT INTO outlast_bulk_item (bulk_id, workflow_id) SELECT m.id, c.id FROM made m CROSS JOIN chosen c
)
SELECT id, total FROM made
"""


@dataclass(frozen=True, slots=True)
class New:
    """A bulk that is to be made."""

    verb: str
    filter: Any
    arguments: Any
    user: Any
    by: str
    reason: str


def make(chosen: str, params: Sequence[Any], new: New, most: int, using: str) -> tuple[int, int]:
    """Write the bulk and its items in one statement; (id, how many), one more than `most` where there are more.

    `chosen`: a statement that gives the column `id`, in Django's own parameter style.
    """
    given = [*params, most + 1, new.verb, dumps(new.filter), dumps(new.arguments), new.user, new.by, new.reason]
    with connections[using].cursor() as cursor:
        cursor.execute(MAKE.replace("{chosen}", chosen), given)
        row = cursor.fetchone()
    return row[0], row[1]


@dataclass(frozen=True, slots=True)
class Row:
    """A bulk under way."""

    id: int
    verb: str
    arguments: Any
    user: Any
    by: str
    reason: str


RUNNING = """
SELECT b.id, b.verb, b.arguments, b.user_id, b.by_label, b.reason FROM outlast_bulk b WHERE b.status = 'running' ORDER BY b.id
LIMIT %(limit)s::int
"""


def running(limit: int, using: str) -> list[Row]:
    """Bulks under way, the oldest first."""
    return [Row(row[0], row[1], loads(row[2]), *row[3:]) for row in run("running bulks", RUNNING, {"limit": limit}, using)]


LEFT = """
SELECT i.workflow_id FROM outlast_bulk_item i WHERE i.bulk_id = %(bulk)s::bigint AND i.done_at IS NULL
ORDER BY i.workflow_id LIMIT %(limit)s::int
"""


def left(bulk: int, limit: int, using: str) -> list[UUID]:
    """The next runs of a bulk that nothing was done to."""
    return [row[0] for row in run("bulk items left", LEFT, {"bulk": bulk, "limit": limit}, using)]


TAKE = """
SELECT i.workflow_id FROM outlast_bulk b JOIN outlast_bulk_item i ON i.bulk_id = b.id
WHERE b.id = %(bulk)s::bigint AND b.status = 'running' AND i.workflow_id = %(workflow)s::uuid AND i.done_at IS NULL
FOR SHARE OF b SKIP LOCKED FOR NO KEY UPDATE OF i SKIP LOCKED
"""


def take(bulk: int, workflow: UUID, using: str) -> bool:
    """Lock an item that is to be done, and its bulk as running until the end of the transaction; False: somebody else does it, or stops."""
    return bool(run("take bulk item", TAKE, {"bulk": bulk, "workflow": workflow}, using))


DONE = """
UPDATE outlast_bulk_item SET code = %(code)s, sentence = %(sentence)s, done_at = flows_now()
WHERE bulk_id = %(bulk)s::bigint AND workflow_id = %(workflow)s::uuid AND done_at IS NULL RETURNING workflow_id
"""


def done(bulk: int, workflow: UUID, code: str, sentence: str, using: str) -> bool:
    """Say what became of an item."""
    params = {"bulk": bulk, "workflow": workflow, "code": code, "sentence": sentence}
    return bool(run("bulk item", DONE, params, using))


END = """
UPDATE outlast_bulk b SET status = 'done', ended_at = flows_now()
WHERE b.id = %(bulk)s::bigint AND b.status = 'running'
  AND NOT EXISTS (SELECT FROM outlast_bulk_item i WHERE i.bulk_id = b.id AND i.done_at IS NULL)
RETURNING b.id
"""


def end(bulk: int, using: str) -> bool:
    """It is done where nothing is left of it."""
    return bool(run("end bulk", END, {"bulk": bulk}, using))


STOP = """
UPDATE outlast_bulk SET status = 'stopped', ended_at = flows_now(), stopped_by = %(by)s, stopped_reason = %(reason)s
WHERE id = %(bulk)s::bigint AND status = 'running' RETURNING id
"""


def stop(bulk: int, by: str, reason: str, using: str) -> bool:
    """Do no more of it; after this nothing of it is done. False: it is over already."""
    return bool(run("stop bulk", STOP, {"bulk": bulk, "by": by, "reason": reason}, using))


COUNTS = (
    "SELECT i.code, count(*)::int FROM outlast_bulk_item i WHERE i.bulk_id = %(bulk)s::bigint GROUP BY i.code ORDER BY i.code"
)


def counts(bulk: int, using: str) -> dict[str, int]:
    """Code → how many items; "" stands for those that nothing was done to."""
    return {row[0]: row[1] for row in run("bulk counts", COUNTS, {"bulk": bulk}, using)}
