"""Dependencies: one row each, locked by whoever changes it; what becomes of it is `flows.core.capacity`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.core.capacity import Health
from flows.store import holds
from flows.store.sql import run

COLUMNS = (
    "status, since, fails, failed_at, code, delay, allowed, ramped_at, probe_at, trial_workflow, trial_seq, rate, ceiling, "
    "version, flows_now()"
)
GET = f"SELECT {COLUMNS} FROM outlast_dependency WHERE name = %(name)s"
LOCK = f"{GET} FOR NO KEY UPDATE"
ADD = """
INSERT INTO outlast_dependency (name, since, probe_at)
VALUES (%(name)s, flows_now(), flows_now() + %(probe_in)s::float8 * interval '1 second') ON CONFLICT (name) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One dependency, and the record's clock when it was read."""

    name: str
    health: Health
    version: int
    now: datetime


def get(name: str, using: str) -> Row | None:
    """How a dependency is; None: nobody has asked for it yet."""
    rows = run("dependency", GET, {"name": name}, using)
    return _row(name, rows[0]) if rows else None


def add(name: str, probe_in: float | None, using: str) -> None:
    """Make its row where there is none: it is healthy."""
    run("add dependency", ADD, {"name": name, "probe_in": probe_in}, using)


def lock(name: str, using: str) -> Row | None:
    """Lock its row, to change it."""
    rows = run("lock dependency", LOCK, {"name": name}, using)
    return _row(name, rows[0]) if rows else None


def _row(name: str, row: tuple[Any, ...]) -> Row:
    trial = (row[9], row[10]) if row[9] is not None and row[10] is not None else None
    return Row(name, Health(*(*row[:9], trial, *row[11:13])), row[13], row[14])


WRITE = """
UPDATE outlast_dependency
SET status = %(status)s, since = %(since)s::timestamptz, fails = %(fails)s::int, failed_at = %(failed_at)s::timestamptz, code = %(code)s,
    delay = %(delay)s::float8, allowed = %(allowed)s::float8, ramped_at = %(ramped_at)s::timestamptz, probe_at = %(probe_at)s::timestamptz,
    trial_workflow = %(trial_workflow)s::uuid, trial_seq = %(trial_seq)s::int, rate = %(rate)s::float8, ceiling = %(ceiling)s::int,
    by_label = coalesce(%(by)s, by_label), reason = coalesce(%(reason)s, reason), version = version + 1
WHERE name = %(name)s
"""


def write(name: str, health: Health, using: str, *, by: str | None = None, reason: str | None = None) -> None:
    """Write what has become of a locked row; `by`, `reason`: of a person."""
    trial = health.trial or (None, None)
    params = {
        **{one: getattr(health, one) for one in Health.__dataclass_fields__ if one != "trial"},
        "status": str(health.status),
        "trial_workflow": trial[0],
        "trial_seq": trial[1],
        "name": name,
        "by": by,
        "reason": reason,
    }
    run("write dependency", WRITE, params, using)


#: `status` of the run that is on trial, and of its activity; of one that is held before it began there is none, so that another one tries.
TRIED = f"""
SELECT w.status, CASE WHEN a.status = 'scheduled' AND {holds.held("w")} THEN NULL ELSE a.status END
FROM outlast_workflow w LEFT JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = %(seq)s::int
WHERE w.id = %(workflow)s::uuid
"""


def tried(workflow: UUID, seq: int, using: str) -> tuple[str, str | None]:
    """How the run and the activity stand that are let through to see."""
    rows = run("tried", TRIED, {"workflow": workflow, "seq": seq, "needing": holds.needing()}, using)
    return (rows[0][0], rows[0][1]) if rows else ("", None)


#: Those that may move by themselves, in the words of their index.
TOUCHED = "status IN ('recovering', 'trial') OR probe_at IS NOT NULL"
#: What moves by itself: a moment has come, one is on trial, more is let through.
MOVING = (
    f"""({TOUCHED}) AND (status = 'recovering' OR status = 'trial' AND trial_workflow IS NOT NULL OR probe_at <= flows_now())"""
)
UNDER_WAY = f"SELECT name FROM outlast_dependency WHERE {MOVING} ORDER BY name"


def under_way(using: str) -> list[str]:
    """The dependencies that are to be looked at without anybody who waits."""
    return [row[0] for row in run("moving dependencies", UNDER_WAY, {}, using)]


CLAIM = """
UPDATE outlast_dependency SET probe_at = flows_now() + %(lease)s::float8 * interval '1 second'
WHERE name = ANY (ARRAY (
    SELECT d.name FROM outlast_dependency d
    WHERE d.name = ANY (%(names)s::text[]) AND d.probe_at <= flows_now() ORDER BY d.probe_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED))
RETURNING name, version
"""


def claim_probe(names: list[str], lease: float, using: str) -> tuple[str, int] | None:
    """Take one of these whose moment has come, to ask how it is; (name, version). Nobody else takes it for `lease` seconds."""
    rows = run("claim probe", CLAIM, {"names": names, "lease": lease}, using)
    return (rows[0][0], rows[0][1]) if rows else None
