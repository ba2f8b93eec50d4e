"""Schedules: the row that planning and starting lock, and what they write there.

    plan      locked with SKIP LOCKED: two clocks share the due ones, and neither waits; the mark `planned_until` only grows
    change    a person's verb, or what is declared in code, names the revision that was seen
Lock order: schedule, then occurrence, then what a start locks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from flows.store.sql import loads, run

#: What a change may set, in order, with the types.
FIELDS: dict[str, str] = {
    "flow_name": "text",
    "input": "jsonb",
    "kind": "text",
    "expression": "text",
    "time_zone": "text",
    "anchor": "timestamptz",
    "repeated": "text",
    "missing": "text",
    "missed": "text",
    "window": "interval",
    "cap": "int",
    "overlap": "text",
    "cooldown": "interval",
    "jitter": "interval",
    "compute": "text",
    "calendar": "text",
    "user_id": "text",
    "user_label": "text",
    "priority": "smallint",
    "tenant": "text",
    "digest": "text",
}


class ScheduleRow(NamedTuple):
    """A locked schedule. `now`: the durable clock as it was read."""

    id: int
    name: str
    origin: str
    revision: int
    flow_name: str
    input: Any
    kind: str
    expression: str
    time_zone: str
    anchor: datetime | None
    repeated: str
    missing: str
    missed: str
    window: timedelta | None
    cap: int
    overlap: str
    cooldown: timedelta | None
    jitter: timedelta | None
    compute: str
    calendar: str
    user_id: Any
    user_label: str
    priority: int
    tenant: str
    paused: bool
    held_until: datetime | None
    planned_until: datetime
    next_at: datetime | None
    last_at: datetime | None
    overlapped: int
    digest: str
    now: datetime


COLUMNS = """
id, name, origin, revision, flow_name, input, kind, expression, time_zone, anchor, repeated, missing, missed, "window", cap, overlap, cooldown,
jitter, compute, calendar, user_id, user_label, priority, tenant, paused_at IS NOT NULL, held_until, planned_until, next_at, last_at,
overlapped, digest, flows_now()
"""

#: Whether some schedule is to be planned, for the one statement of a tick.
DUE = "EXISTS (SELECT FROM outlast_schedule WHERE next_at <= flows_now() AND next_at IS NOT NULL AND paused_at IS NULL)"

LOCK_DUE = f"""
SELECT {COLUMNS} FROM outlast_schedule
WHERE next_at <= flows_now() AND next_at IS NOT NULL AND paused_at IS NULL AND id <> ALL (%(done)s::bigint[])
ORDER BY next_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""

LOCK_FREE = f"SELECT {COLUMNS} FROM outlast_schedule WHERE id = %(id)s::bigint FOR NO KEY UPDATE SKIP LOCKED"
LOCK = f"SELECT {COLUMNS} FROM outlast_schedule WHERE name = %(name)s FOR NO KEY UPDATE"


EXIST = "SELECT to_regclass('outlast_schedule') IS NOT NULL"


def exist(using: str) -> bool:
    """Whether the table is there: a database may be migrated to an older state."""
    found: bool = run("schedules exist", EXIST, {}, using)[0][0]
    return found


def lock_due(done: Sequence[int], using: str) -> ScheduleRow | None:
    """Lock a schedule that is to be planned, that nobody holds and that is none of `done`."""
    return _row(run("lock due schedule", LOCK_DUE, {"done": list(done)}, using))


def lock_free(schedule: int, using: str) -> ScheduleRow | None:
    """Lock that schedule if nobody holds it."""
    return _row(run("lock free schedule", LOCK_FREE, {"id": schedule}, using))


def lock(name: str, using: str) -> ScheduleRow | None:
    """Lock the schedule of that name, waiting for it; None if there is none."""
    return _row(run("lock schedule", LOCK, {"name": name}, using))


def _row(rows: list[tuple[Any, ...]]) -> ScheduleRow | None:
    return ScheduleRow._make((*rows[0][:5], loads(rows[0][5]), *rows[0][6:])) if rows else None


PLANNED = """
UPDATE outlast_schedule SET planned_until = greatest(planned_until, %(until)s::timestamptz), next_at = %(next)s::timestamptz
WHERE id = %(id)s::bigint
"""


def planned(schedule: int, until: datetime, next_at: datetime | None, using: str) -> None:
    """Say up to when a locked schedule is planned, and what comes next."""
    run("schedule planned", PLANNED, {"id": schedule, "until": until, "next": next_at}, using)


COMPLETED = """
UPDATE outlast_schedule
SET planned_until = greatest(planned_until, %(at)s::timestamptz), next_at = %(next)s::timestamptz,
    anchor = CASE WHEN kind = 'interval' THEN %(at)s::timestamptz ELSE anchor END
WHERE id = %(id)s::bigint AND next_at IS NULL
  AND NOT EXISTS (SELECT FROM outlast_occurrence o WHERE o.schedule_id = %(id)s::bigint AND o.status IN ('pending', 'queued', 'started'))
"""


def completed(schedule: int, at: datetime, next_at: datetime | None, using: str) -> None:
    """Of a locked schedule that is computed at completion: nothing of it is open any more, so the next moment counts from now."""
    run("schedule completed", COMPLETED, {"id": schedule, "at": at, "next": next_at}, using)


STARTED = "UPDATE outlast_schedule SET last_at = flows_now(), overlapped = 0 WHERE id = %(id)s::bigint"
OVERLAPPED = "UPDATE outlast_schedule SET overlapped = overlapped + 1 WHERE id = %(id)s::bigint"


def started(schedule: int, using: str) -> None:
    """A run of a locked schedule was started."""
    run("schedule started", STARTED, {"id": schedule}, using)


def overlapped(schedule: int, using: str) -> None:
    """An occurrence of a locked schedule was skipped because a run lived."""
    run("schedule overlapped", OVERLAPPED, {"id": schedule}, using)


ADD = f"""
INSERT INTO outlast_schedule (
    name, origin, revision, {", ".join(f'"{name}"' for name in FIELDS)}, paused_at, paused_by, reason, planned_until, next_at, updated_at)
SELECT %(name)s, %(origin)s, 1, {{values}}, NULL, %(by)s, %(reason)s, %(until)s::timestamptz, %(next)s::timestamptz, flows_now()
ON CONFLICT (name) DO NOTHING RETURNING id
"""

CHANGE = """
UPDATE outlast_schedule
SET {changes}, revision = revision + 1, paused_by = %(by)s, reason = %(reason)s, updated_at = flows_now(),
    planned_until = CASE WHEN %(anew)s::bool THEN greatest(planned_until, %(until)s::timestamptz) ELSE planned_until END,
    next_at = CASE WHEN %(anew)s::bool THEN %(next)s::timestamptz ELSE next_at END
WHERE id = %(id)s::bigint AND revision = %(revision)s::int
RETURNING revision
"""


def _values(user_type: str) -> dict[str, str]:
    types = {**FIELDS, "user_id": user_type}
    return {name: f"%({name})s::{kind}" for name, kind in types.items()}


def add(params: Mapping[str, Any], user_type: str, using: str) -> int | None:
    """Insert a schedule; None if the name is taken. `user_type`: how the database has users' keys."""
    rows = run("add schedule", ADD.replace("{values}", ", ".join(_values(user_type).values())), params, using)
    return int(rows[0][0]) if rows else None


def change(params: Mapping[str, Any], user_type: str, using: str) -> int | None:
    """Set what a locked schedule says, as of a revision; the new one, or None if it has another by now. `anew`: it is planned from now."""
    changes = ", ".join(f'"{name}" = {value}' for name, value in _values(user_type).items())
    rows = run("change schedule", CHANGE.replace("{changes}", changes), params, using)
    return int(rows[0][0]) if rows else None


PAUSE = """
UPDATE outlast_schedule SET paused_at = flows_now(), paused_by = %(by)s, reason = %(reason)s, updated_at = flows_now()
WHERE id = %(id)s::bigint AND paused_at IS NULL RETURNING id
"""

RESUME = """
UPDATE outlast_schedule
SET paused_at = NULL, held_until = flows_now(), paused_by = %(by)s, reason = %(reason)s, updated_at = flows_now()
WHERE id = %(id)s::bigint AND paused_at IS NOT NULL RETURNING id
"""


def pause(schedule: int, by: str, reason: str, using: str) -> bool:
    """Pause a locked schedule; False: it was paused."""
    return bool(run("pause schedule", PAUSE, {"id": schedule, "by": by, "reason": reason}, using))


def resume(schedule: int, by: str, reason: str, using: str) -> bool:
    """Let a locked schedule go on; False: it was not paused. What came in the pause is skipped as it is planned."""
    return bool(run("resume schedule", RESUME, {"id": schedule, "by": by, "reason": reason}, using))
