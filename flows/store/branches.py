"""Branches. Their fan is locked by whoever writes them, except for the end of their run, which its own arrow writes (migration 0009).

taken    planned → running        the run is started in the same transaction
refused  running → ended          it cannot be started
stopped  planned → skipped; running: to be cancelled
again    failed, cancelled → planned, for another run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.store.fans import TO_STOP
from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Taken:
    """A branch that is to be started; `input` as it is stored."""

    number: int
    name: str
    key: str | None
    input: Any
    child: UUID


TAKE = """
WITH taken AS (
    UPDATE outlast_branch b SET status = 'running', started_at = flows_now()
    WHERE b.fan_id = %(fan)s::bigint AND b.number = ANY (ARRAY (
        SELECT p.number FROM outlast_branch p WHERE p.fan_id = %(fan)s::bigint AND p.status = 'planned' ORDER BY p.number LIMIT %(limit)s::int))
    RETURNING b.number, b.name, b.key, b.input, b.workflow_id
), moved AS (
    UPDATE outlast_fan f SET running = f.running + (SELECT count(*)::int FROM taken) WHERE f.id = %(fan)s::bigint
)
SELECT number, name, key, input, workflow_id FROM taken ORDER BY number
"""


def take(fan: int, limit: int, using: str) -> list[Taken]:
    """The next planned ones; they run from now on."""
    return [Taken(*row) for row in run("take branches", TAKE, {"fan": fan, "limit": limit}, using)]


REFUSE = """
UPDATE outlast_branch SET ended_at = flows_now(), outcome = 'FAILED', error_code = %(code)s
WHERE fan_id = %(fan)s::bigint AND number = ANY (%(numbers)s::int[]) AND ended_at IS NULL RETURNING number
"""


def refuse(fan: int, numbers: Sequence[int], code: str, using: str) -> int:
    """These cannot be started: they have failed with that code. How many."""
    return len(run("refuse branches", REFUSE, {"fan": fan, "numbers": list(numbers), "code": code}, using))


STOP = """
WITH skipped AS (
    UPDATE outlast_branch b SET status = 'skipped', ended_at = flows_now(), counted_at = flows_now()
    WHERE b.fan_id = %(fan)s::bigint AND b.status = 'planned' RETURNING b.number
), stopped AS (
    UPDATE outlast_branch b SET stop_at = flows_now()
    WHERE %(running)s::bool AND b.fan_id = %(fan)s::bigint AND b.status = 'running' AND b.ended_at IS NULL AND b.stop_at IS NULL
    RETURNING b.number
), moved AS (
    UPDATE outlast_fan f SET skipped = f.skipped + (SELECT count(*)::int FROM skipped) WHERE f.id = %(fan)s::bigint
)
SELECT (SELECT count(*)::int FROM stopped)
"""


def stop(fan: int, using: str, *, running: bool) -> int:
    """Start no more of a locked fan, and have those that run cancelled too (`running`); how many those are."""
    found: int = run("stop branches", STOP, {"fan": fan, "running": running}, using)[0][0]
    return found


STOPPING = f"SELECT workflow_id FROM outlast_branch WHERE {TO_STOP} ORDER BY stop_at LIMIT %(limit)s::int"


def stopping(limit: int, using: str) -> list[UUID]:
    """The runs that are to be cancelled."""
    return [row[0] for row in run("children to stop", STOPPING, {"limit": limit}, using)]


STOPPED = "UPDATE outlast_branch SET stopped_at = flows_now() WHERE workflow_id = %(child)s::uuid AND stopped_at IS NULL RETURNING number"


def stopped(child: UUID, using: str) -> bool:
    """That run was asked to end."""
    return bool(run("child stopped", STOPPED, {"child": child}, using))


@dataclass(frozen=True, slots=True)
class Row:
    """How a branch stands; `result` as it is stored."""

    number: int
    name: str
    child: UUID
    status: str
    outcome: str
    error_code: str | None
    result: Any
    input: Any


_ROW = "number, name, workflow_id, status, outcome, error_code, result, input"

PAGE = f"""
SELECT {_ROW} FROM outlast_branch
WHERE fan_id = %(fan)s::bigint AND number > %(after)s::int AND (%(statuses)s::text[] IS NULL OR status = ANY (%(statuses)s::text[]))
ORDER BY number LIMIT %(limit)s::int
"""


def page(fan: int, after: int, limit: int, using: str, statuses: Sequence[str] | None = None) -> list[Row]:
    """The branches of a fan after that number, in order."""
    params = {"fan": fan, "after": after, "limit": limit, "statuses": list(statuses) if statuses is not None else None}
    return [Row(*row) for row in run("branches", PAGE, params, using)]


#: Ended, and counted as it ended; the run of the next try has another id.
AGAIN = """
WITH again AS (
    UPDATE outlast_branch b
    SET status = 'planned', workflow_id = g.child, outcome = '', error_code = NULL, result = NULL, key = NULL, started_at = NULL,
        ended_at = NULL, counted_at = NULL, stop_at = NULL, stopped_at = NULL
    FROM unnest(%(numbers)s::int[], %(children)s::uuid[]) AS g(number, child)
    WHERE b.fan_id = %(fan)s::bigint AND b.number = g.number AND b.counted_at IS NOT NULL AND b.status IN ('failed', 'cancelled')
    RETURNING (SELECT o.status FROM outlast_branch o WHERE o.fan_id = b.fan_id AND o.number = b.number) AS was
), summed AS (
    SELECT (count(*) FILTER (WHERE was = 'failed'))::int AS failed, (count(*) FILTER (WHERE was = 'cancelled'))::int AS cancelled FROM again
)
UPDATE outlast_fan f SET failed = f.failed - s.failed, cancelled = f.cancelled - s.cancelled
FROM summed s WHERE f.id = %(fan)s::bigint AND f.status = 'open' RETURNING s.failed + s.cancelled
"""


def again(fan: int, anew: Sequence[tuple[int, UUID]], using: str) -> int:
    """Plan these (number, id of the new run) of a locked, open fan anew; how many of them had failed."""
    params = {"fan": fan, "numbers": [number for number, _ in anew], "children": [child for _, child in anew]}
    rows = run("branches again", AGAIN, params, using)
    return rows[0][0] if rows else 0
