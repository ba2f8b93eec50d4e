"""Occurrences: planned once each, started in one transaction with their run, and ended after it.

    –                  ──► pending, skipped    unique (schedule, moment): whoever plans it again plans nothing
    pending            ──► started, queued, skipped, failed
    queued             ──► started, skipped, failed
    started            ──► done, failed, cancelled
Every arrow here is made under the lock of the schedule and names the status that it leaves; the database refuses any other move.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from flows.store.sql import run


class NewOccurrence(NamedTuple):
    """One row to write."""

    scheduled_for: datetime
    local: str
    status: str
    code: str
    due_at: datetime
    passed_to: datetime | None


class OccurrenceRow(NamedTuple):
    """A locked occurrence."""

    id: int
    schedule_id: int
    scheduled_for: datetime
    origin: str
    status: str
    tries: int


PLAN = """
INSERT INTO outlast_occurrence (
    schedule_id, scheduled_for, local, origin, status, code, due_at, tries, passed_to, revision, planned_at, ended_at, by_label, reason)
SELECT s.id, g.scheduled_for, g.local, %(origin)s, g.status, g.code, g.due_at, 0, g.passed_to, s.revision, flows_now(),
    CASE WHEN g.status = 'skipped' THEN flows_now() END, %(by)s, %(reason)s
FROM outlast_schedule s CROSS JOIN unnest(
    %(moments)s::timestamptz[], %(locals)s::text[], %(statuses)s::text[], %(codes)s::text[], %(dues)s::timestamptz[],
    %(passed)s::timestamptz[]) AS g(scheduled_for, local, status, code, due_at, passed_to)
WHERE s.id = %(schedule)s::bigint
ON CONFLICT (schedule_id, scheduled_for) DO NOTHING
RETURNING scheduled_for
"""


def plan(
    schedule: int, rows: Sequence[NewOccurrence], using: str, *, origin: str = "planned", by: str = "", reason: str = ""
) -> list[datetime]:
    """Write occurrences of a locked schedule; the moments of those that were new."""
    if not rows:
        return []
    names = ("moments", "locals", "statuses", "codes", "dues", "passed")
    columns: dict[str, Any] = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    found = run("plan occurrences", PLAN, {"schedule": schedule, "origin": origin, "by": by, "reason": reason, **columns}, using)
    return [row[0] for row in found]


#: A pause holds all but what somebody wants to run now; what is queued waits for the run before it.
_STARTABLE = """
FROM outlast_occurrence o JOIN outlast_schedule s ON s.id = o.schedule_id
WHERE o.status IN ('pending', 'queued') AND o.due_at <= flows_now() AND (s.paused_at IS NULL OR o.origin = 'manual')
  AND (o.status = 'pending' OR NOT EXISTS (
      SELECT FROM outlast_occurrence r WHERE r.schedule_id = o.schedule_id AND r.status = 'started'))
"""

STARTABLE = f"EXISTS (SELECT {_STARTABLE})"

STARTABLES = f"""
SELECT o.id, o.schedule_id {_STARTABLE} AND s.flow_name = ANY (%(flows)s::text[]) ORDER BY o.due_at, o.id LIMIT %(limit)s::int
"""


def startable(flows: Sequence[str], limit: int, using: str) -> list[tuple[int, int]]:
    """(occurrence, schedule) of what is due of these flows, in order; not locked yet."""
    found = run("startable occurrences", STARTABLES, {"flows": list(flows), "limit": limit}, using)
    return [(row[0], row[1]) for row in found]


_OFFERED = "left(d.offered, length(s.flow_name) + 1) = s.flow_name || '@'"

#: For so long nobody has offered it: neither is it planned since, nor has a worker ended since that did.
_GIVEN_UP = f"""(o.planned_at <= flows_now() - %(patience)s::interval AND NOT EXISTS (
    SELECT FROM outlast_worker w CROSS JOIN unnest(w.definitions) AS d(offered)
    WHERE w.ended_at > flows_now() - %(patience)s::interval AND {_OFFERED}))"""

#: No living worker offers the flow either. What says so already is looked at again when it has waited for long enough.
FOREIGN = f"""
SELECT o.id, o.schedule_id, {_GIVEN_UP} {_STARTABLE}
  AND s.flow_name <> ALL (%(flows)s::text[]) AND (o.code <> %(code)s OR {_GIVEN_UP})
  AND NOT EXISTS (SELECT FROM outlast_worker w CROSS JOIN unnest(w.definitions) AS d(offered)
                  WHERE w.status = 'alive' AND {_OFFERED})
ORDER BY o.due_at, o.id LIMIT %(limit)s::int
"""


def foreign(flows: Sequence[str], code: str, patience: timedelta, limit: int, using: str) -> list[tuple[int, int, bool]]:
    """(occurrence, schedule, whether nobody has offered it for so long) of what is due of other flows than these, which no worker offers."""
    params = {"flows": list(flows), "code": code, "patience": patience, "limit": limit}
    return [(row[0], row[1], row[2]) for row in run("foreign occurrences", FOREIGN, params, using)]


NOTE = "UPDATE outlast_occurrence SET code = %(code)s WHERE id = %(id)s::bigint AND status IN ('pending', 'queued')"


def note(occurrence: int, code: str, using: str) -> None:
    """Say why a locked occurrence waits; it is tried as before."""
    run("note occurrence", NOTE, {"id": occurrence, "code": code}, using)


LOCK = """
SELECT id, schedule_id, scheduled_for, origin, status, tries FROM outlast_occurrence
WHERE id = %(id)s::bigint AND status = ANY (%(statuses)s::text[]) AND due_at <= flows_now() FOR NO KEY UPDATE
"""


def lock(occurrence: int, statuses: Sequence[str], using: str) -> OccurrenceRow | None:
    """Lock an occurrence that is due and has one of these statuses; its schedule is locked."""
    rows = run("lock occurrence", LOCK, {"id": occurrence, "statuses": list(statuses)}, using)
    return OccurrenceRow(*rows[0]) if rows else None


LIVING = """
SELECT o.workflow_id FROM outlast_occurrence o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.schedule_id = %(schedule)s::bigint AND o.status = 'started' AND w.status NOT IN ('complete', 'failed', 'cancelled', 'superseded')
ORDER BY o.scheduled_for DESC
"""

QUEUED = (
    "SELECT id FROM outlast_occurrence WHERE schedule_id = %(schedule)s::bigint AND status = 'queued' AND id <> %(but)s::bigint"
)


def living(schedule: int, using: str) -> list[UUID]:
    """The runs of a locked schedule that live, the newest first."""
    return [row[0] for row in run("living runs of schedule", LIVING, {"schedule": schedule}, using)]


def queued(schedule: int, but: int, using: str) -> int | None:
    """The occurrence of a locked schedule that is queued, if it is another one than `but`."""
    rows = run("queued occurrence", QUEUED, {"schedule": schedule, "but": but}, using)
    return int(rows[0][0]) if rows else None


MOVE = """
UPDATE outlast_occurrence
SET status = %(status)s, code = %(code)s, ended_at = CASE WHEN %(status)s IN ('skipped', 'failed') THEN flows_now() END
WHERE id = %(id)s::bigint AND status IN ('pending', 'queued') RETURNING id
"""

START = """
UPDATE outlast_occurrence
SET status = 'started', code = '', workflow_id = %(workflow)s::uuid, started_at = flows_now(),
    revision = (SELECT revision FROM outlast_schedule s WHERE s.id = schedule_id)
WHERE id = %(id)s::bigint AND status IN ('pending', 'queued') RETURNING id
"""

LATER = """
UPDATE outlast_occurrence SET tries = tries + 1, code = %(code)s, due_at = flows_now() + %(after)s::interval
WHERE id = %(id)s::bigint AND status IN ('pending', 'queued') RETURNING id
"""


def move(occurrence: int, status: str, code: str, using: str) -> bool:
    """Queue, skip or fail an occurrence; False if it is not open any more."""
    return bool(run("move occurrence", MOVE, {"id": occurrence, "status": status, "code": code}, using))


def start(occurrence: int, workflow: UUID, using: str) -> bool:
    """Its run was started, in the same transaction; False if it is not open any more."""
    return bool(run("start occurrence", START, {"id": occurrence, "workflow": workflow}, using))


def later(occurrence: int, code: str, after: timedelta, using: str) -> bool:
    """It could not be started: again after a while."""
    return bool(run("occurrence later", LATER, {"id": occurrence, "code": code, "after": after}, using))


#: A start that was put off and never made has no run, and its start key does not promise one any more.
_OVER = """
FROM outlast_occurrence o JOIN outlast_schedule s ON s.id = o.schedule_id LEFT JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.status = 'started' AND (w.status IN ('complete', 'failed', 'cancelled', 'superseded') OR w.id IS NULL AND NOT EXISTS (
    SELECT FROM outlast_start_key k WHERE k.flow = s.flow_name AND k.workflow_id = o.workflow_id AND k.due_at IS NOT NULL))
"""

OVER = f"EXISTS (SELECT {_OVER})"

OVERS = f"SELECT o.id, o.schedule_id {_OVER} ORDER BY o.id LIMIT %(limit)s::int"

#: A run that was continued as new goes on under another id.
END = """
UPDATE outlast_occurrence o
SET status = CASE WHEN w.outcome = 'CONTINUED' AND w.continued_to IS NOT NULL THEN 'started' WHEN w.status = 'complete' THEN 'done'
                  WHEN w.status = 'failed' THEN 'failed' ELSE 'cancelled' END,
    workflow_id = CASE WHEN w.outcome = 'CONTINUED' AND w.continued_to IS NOT NULL THEN w.continued_to ELSE o.workflow_id END,
    code = CASE WHEN w.status = 'complete' THEN '' ELSE coalesce(w.error_code, w.outcome) END,
    ended_at = CASE WHEN w.outcome = 'CONTINUED' AND w.continued_to IS NOT NULL THEN NULL ELSE flows_now() END
FROM outlast_workflow w
WHERE o.id = %(id)s::bigint AND o.status = 'started' AND w.id = o.workflow_id
  AND w.status IN ('complete', 'failed', 'cancelled', 'superseded')
RETURNING o.status
"""

NEVER = """
UPDATE outlast_occurrence o SET status = 'failed', code = 'NEVER_STARTED', ended_at = flows_now()
WHERE o.id = %(id)s::bigint AND o.status = 'started' AND NOT EXISTS (SELECT FROM outlast_workflow w WHERE w.id = o.workflow_id)
  AND NOT EXISTS (SELECT FROM outlast_start_key k JOIN outlast_schedule s ON s.flow_name = k.flow
                  WHERE s.id = o.schedule_id AND k.workflow_id = o.workflow_id AND k.due_at IS NOT NULL)
RETURNING o.status
"""


def over(limit: int, using: str) -> list[tuple[int, int]]:
    """(occurrence, schedule) of those whose run has ended, or will never be; not locked yet."""
    return [(row[0], row[1]) for row in run("occurrences over", OVERS, {"limit": limit}, using)]


def end(occurrence: int, using: str) -> str | None:
    """Say how the run of an occurrence has ended, or that its start, which was put off, is never made; its status, or None if that was said
    before. Its schedule is locked.
    """
    rows = run("end occurrence", END, {"id": occurrence}, using) or run("never started", NEVER, {"id": occurrence}, using)
    return str(rows[0][0]) if rows else None
