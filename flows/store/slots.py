"""Slots: units of a limit as prepared rows, taken with SKIP LOCKED, so that two who want the last one never both get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from flows.store import holds
from flows.store.limits import WAITING
from flows.store.sql import run
from flows.store.waking import LOGGED, MOVED

TAKE = """
UPDATE outlast_slot s
SET workflow_id = %(workflow)s::uuid, activity_seq = %(seq)s::int, fence = %(fence)s::int, since = flows_now()
WHERE s.limit_id = %(limit)s::bigint AND s.number = coalesce(
    (SELECT o.number FROM outlast_slot o
     WHERE o.limit_id = %(limit)s::bigint AND o.workflow_id = %(workflow)s::uuid AND o.activity_seq IS NOT DISTINCT FROM %(seq)s::int
     LIMIT 1 FOR NO KEY UPDATE),
    (SELECT f.number FROM outlast_slot f
     WHERE f.limit_id = %(limit)s::bigint AND f.workflow_id IS NULL AND f.number <= %(size)s::int
     LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED))
RETURNING s.number
"""


def take(limit: int, size: int, workflow: UUID, seq: int | None, fence: int | None, using: str) -> bool:
    """Take one unit: the one that is reserved for it, else a free one; False: there is none."""
    params = {"limit": limit, "size": size, "workflow": workflow, "seq": seq, "fence": fence}
    return bool(run("take slot", TAKE, params, using))


FREE = """
UPDATE outlast_slot s
SET took = CASE WHEN s.fence IS NOT NULL THEN extract(epoch FROM flows_now() - s.since)::float8 ELSE s.took END,
    workflow_id = NULL, activity_seq = NULL, fence = NULL, since = flows_now()
WHERE s.workflow_id = %(workflow)s::uuid AND s.activity_seq = %(seq)s::int
RETURNING s.limit_id
"""


def free(workflow: UUID, seq: int, using: str) -> list[int]:
    """Free what an activity holds or has reserved; the limits of it."""
    return [row[0] for row in run("free slots", FREE, {"workflow": workflow, "seq": seq}, using)]


DONE = """
UPDATE outlast_slot s SET workflow_id = NULL, activity_seq = NULL, fence = NULL, since = flows_now()
WHERE s.limit_id = %(limit)s::bigint AND s.workflow_id = %(workflow)s::uuid AND s.activity_seq = %(seq)s::int
"""


def begun(limit: int, workflow: UUID, seq: int, using: str) -> None:
    """Free one unit of a limit whose units last only until the attempt begins."""
    run("begin slot", DONE, {"limit": limit, "workflow": workflow, "seq": seq}, using)


#: Seconds after which a reservation that nobody has claimed is free again.
UNCLAIMED_SECONDS = 30

#: Whoever ends an attempt may forget what it held, and a reservation may find nobody: the record says whether the holder is still there.
RECLAIM = f"""
UPDATE outlast_slot s SET workflow_id = NULL, activity_seq = NULL, fence = NULL, since = flows_now()
WHERE (s.limit_id, s.number) IN (
    SELECT x.limit_id, x.number FROM outlast_slot x
    LEFT JOIN outlast_workflow w ON w.id = x.workflow_id
    LEFT JOIN outlast_activity a ON a.workflow_id = x.workflow_id AND a.seq = x.activity_seq
    WHERE x.limit_id = %(limit)s::bigint AND x.workflow_id IS NOT NULL AND (
        w.id IS NULL OR w.status IN ('complete', 'failed', 'cancelled', 'superseded')
        OR x.activity_seq IS NOT NULL AND NOT coalesce(
            w.active_seq = x.activity_seq AND CASE a.status
                WHEN 'running' THEN x.fence IS NULL OR x.fence = a.fence
                WHEN 'scheduled' THEN x.fence IS NULL AND w.status IN ('runnable', 'running')
                    AND x.since > flows_now() - interval '{UNCLAIMED_SECONDS} seconds'
                ELSE false END, false))
    FOR NO KEY UPDATE OF x SKIP LOCKED)
RETURNING s.number
"""


def reclaim(limit: int, using: str) -> int:
    """Free what nobody holds any more; how many."""
    return len(run("reclaim slots", RECLAIM, {"limit": limit}, using))


LOCK_FREE = """
SELECT s.number FROM outlast_slot s
WHERE s.limit_id = %(limit)s::bigint AND s.workflow_id IS NULL AND s.number <= %(size)s::int
LIMIT %(count)s::int FOR NO KEY UPDATE SKIP LOCKED
"""


def lock_free(limit: int, size: int, count: int, using: str) -> list[int]:
    """Lock up to so many free units; their numbers."""
    return [row[0] for row in run("lock free slots", LOCK_FREE, {"limit": limit, "size": size, "count": count}, using)]


#: The status is only looked at (`|| ''`): read by its index, over tables of which nothing is known yet, each look would read whoever waits.
WAITERS = f"""
SELECT o.id, w.id, w.active_seq FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.key = %(label)s AND {WAITING} AND o.epoch = w.epoch AND w.status || '' = 'waiting' AND w.outcome = 'WAITING'
  AND NOT {holds.held("w")}
ORDER BY o.priority DESC, o.deadline_at, o.id LIMIT %(count)s::int
FOR NO KEY UPDATE OF w SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class Waiter:
    """Who waits, and is locked. `seq`: of the activity that waits; None: a run that is not admitted yet."""

    wait: int
    workflow: UUID
    seq: int | None


def waiters(label: str, count: int, using: str) -> list[Waiter]:
    """Lock up to so many who wait under this label: by priority, deadline, age. Who is locked by somebody else, or held, is passed over: a slot
    is for who uses it now.
    """
    params = {"label": label, "count": count, "needing": holds.needing()}
    return [Waiter(*row) for row in run("lock waiters", WAITERS, params, using)]


RESERVE = """
UPDATE outlast_slot s SET workflow_id = g.workflow, activity_seq = g.seq, fence = NULL, since = flows_now()
FROM unnest(%(numbers)s::int[], %(workflows)s::uuid[], %(seqs)s::int[]) AS g(number, workflow, seq)
WHERE s.limit_id = %(limit)s::bigint AND s.number = g.number
"""


def reserve(limit: int, numbers: Sequence[int], workflows: Sequence[UUID], seqs: Sequence[int | None], using: str) -> None:
    """Give these locked free units to these workflows; without an activity a unit is the run's, until it ends."""
    params = {"limit": limit, "numbers": list(numbers), "workflows": list(workflows), "seqs": list(seqs)}
    run("reserve slots", RESERVE, params, using)


READMIT = f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE o.id = ANY (%(waits)s::bigint[]) AND {WAITING} AND w.status = 'waiting'
), {MOVED}, closed AS (
    UPDATE outlast_wait o SET status = 'satisfied', closed_at = flows_now() FROM moved m WHERE o.id = m.wait_id
    RETURNING o.id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.fired_at IS NULL AND t.wait_id = m.wait_id
), {LOGGED}
SELECT m.id, m.queue, m.flow_name, m.node FROM moved m LEFT JOIN closed c ON c.id = m.wait_id
WHERE c.id IS NOT NULL OR outlast_half_move('wait')
"""


def readmit(waits: Sequence[int], label: str, priority_seconds: int, using: str) -> list[tuple[UUID, str, str, str]]:
    """Close these waits and make their locked workflows ready; (id, queue, flow, node) of each."""
    params = {"waits": list(waits), "priority_seconds": priority_seconds, "trigger": "readmit", "ref": label}
    return [(row[0], row[1], row[2], row[3]) for row in run("readmit", READMIT, params, using)]


MEAN = "SELECT avg(took) FROM outlast_slot WHERE limit_id = %(limit)s::bigint AND took IS NOT NULL"
USED = "SELECT count(*) FROM outlast_slot WHERE limit_id = %(limit)s::bigint AND workflow_id IS NOT NULL"
QUEUE = f"SELECT count(*) FROM outlast_wait o WHERE o.key = %(label)s AND {WAITING}"


def mean(limit: int, using: str) -> float | None:
    """How long a unit was held on the average, by the last use of each."""
    found = run("mean use", MEAN, {"limit": limit}, using)[0][0]
    return float(found) if found is not None else None


def used(limit: int, using: str) -> int:
    """How many units are held or reserved."""
    return int(run("used slots", USED, {"limit": limit}, using)[0][0])


def waiting(label: str, using: str) -> int:
    """How many wait under this label."""
    return int(run("count waiters", QUEUE, {"label": label}, using)[0][0])
