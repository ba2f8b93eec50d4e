"""How far retention is, and rows that go by their own age (`flows.core.belonging.Span`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from flows.core.belonging import Span
from flows.store.retention import SWITCH
from flows.store.sql import dumps, loads, run

#: Retention is due.
DUE = "EXISTS (SELECT FROM outlast_retention WHERE next_at <= statement_timestamp())"

#: Whoever claims a look has it: the next one is due only after its pause, also where this one dies.
CLAIM = """
UPDATE outlast_retention SET next_at = statement_timestamp() + %(pause)s::float8 * interval '1 second'
WHERE id = 1 AND next_at <= statement_timestamp() RETURNING after_at, after_id, spans
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the last look ended: the run (None: begin anew), and the id of each span's table."""

    after: tuple[datetime, UUID] | None
    spans: Mapping[str, int]


def claim(pause: float, using: str) -> Progress | None:
    """Take the look that is due; None: it is not, or somebody else has it."""
    rows = run("claim retention", CLAIM, {"pause": pause}, using)
    if not rows:
        return None
    after_at, after_id, spans = rows[0]
    return Progress((after_at, after_id) if after_at is not None else None, loads(spans))


DONE = """
UPDATE outlast_retention
SET next_at = statement_timestamp() + %(pause)s::float8 * interval '1 second', after_at = %(after_at)s, after_id = %(after_id)s,
    spans = %(spans)s::jsonb, deleted = deleted + %(count)s::int
WHERE id = 1
"""


def done(progress: Progress, count: int, pause: float, using: str) -> None:
    """So far it is, and in so many seconds it is due again."""
    after_at, after_id = progress.after or (None, None)
    spans = dumps(dict(progress.spans))
    params = {"pause": pause, "after_at": after_at, "after_id": after_id, "spans": spans, "count": count}
    run("retention done", DONE, params, using)


SPAN = """
SELECT t.id, t.{grows} <= flows_now() - %(days)s::float8 * interval '1 day',
    t.{at} <= flows_now() - %(days)s::float8 * interval '1 day' AND {done}
FROM {table} t WHERE t.id > %(after)s::bigint ORDER BY t.id LIMIT %(limit)s::int
"""
LOCK_SPAN = "SELECT t.id FROM {table} t WHERE t.id = ANY(%(ids)s::bigint[]) AND {done} ORDER BY t.id FOR UPDATE SKIP LOCKED"
HANGING = "DELETE FROM {table} WHERE {column} = ANY(%(ids)s::bigint[])"
OLD_ROWS = "DELETE FROM {table} WHERE id = ANY(%(ids)s::bigint[])"


def aged(span: Span, days: float, after: int, limit: int, using: str) -> list[tuple[int, bool, bool]]:
    """The next so many rows after that id: (id, old enough, may go)."""
    statement = SPAN.format(at=span.at, grows=span.grows or span.at, done=span.done, table=span.table)
    return [
        (row[0], row[1], row[2]) for row in run("aged rows", statement, {"days": days, "after": after, "limit": limit}, using)
    ]


def delete_aged(span: Span, ids: Sequence[int], using: str) -> int:
    """Delete those of these rows that nobody holds and that may still go; how many. In the caller's transaction."""
    held = [row[0] for row in run("lock aged", LOCK_SPAN.format(table=span.table, done=span.done), {"ids": list(ids)}, using)]
    run("retention on", SWITCH, {"to": "on"}, using)
    for table, column in span.hanging:
        run("delete hanging", HANGING.format(table=table, column=column), {"ids": held}, using)
    run("delete aged", OLD_ROWS.format(table=span.table), {"ids": held}, using)
    run("retention off", SWITCH, {"to": ""}, using)
    return len(held)
