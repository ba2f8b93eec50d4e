"""What is there now, for figures: live runs, open waits, what is in doubt, owed and orphaned, workers, the clock. Live rows only are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flows.models.commitment import LIVE as OWED
from flows.store import holds
from flows.store.sql import literals, run

_AGE = "extract(epoch FROM flows_now() - {moment})::float8"

#: Live rows by the partial indexes of their statuses; of those that reconcile, by what they owe.
LIVE_RUNS = f"""
SELECT x.flow_name, x.flow_version, x.status, count(*)::int, {_AGE.format(moment="min(x.created_at)")}, {_AGE.format(moment="min(x.updated_at)")}
FROM (
    SELECT flow_name, flow_version, status, created_at, updated_at FROM outlast_workflow WHERE status IN ('waiting', 'paused', 'cancelling')
    UNION ALL
    SELECT flow_name, flow_version, status, created_at, updated_at FROM outlast_workflow WHERE status = 'runnable'
    UNION ALL
    SELECT flow_name, flow_version, status, created_at, updated_at FROM outlast_workflow WHERE worker_id IS NOT NULL AND status = 'running'
    UNION ALL
    SELECT flow_name, flow_version, status, created_at, updated_at FROM outlast_workflow WHERE status = 'reconciling' AND id IN (
        SELECT workflow_id FROM outlast_commitment WHERE status IN ({literals(OWED)})
        UNION SELECT workflow_id FROM outlast_operation WHERE status = 'uncertain'
        UNION SELECT workflow_id FROM outlast_operation WHERE worker_id IS NOT NULL
        UNION SELECT workflow_id FROM outlast_operation WHERE due_at IS NOT NULL AND worker_id IS NULL)
) x GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

OPEN_WAITS = f"""
SELECT w.flow_name, w.flow_version, o.kind, count(*)::int, {_AGE.format(moment="min(o.opened_at)")},
    count(*) FILTER (WHERE o.deadline_at < flows_now())::int
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id WHERE o.status = 'open' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

#: (what, flow, version, how many, age of the oldest in seconds)
OWING = f"""
SELECT 'doubt', w.flow_name, w.flow_version, count(*)::int, {_AGE.format(moment="min(o.doubt_since)")}
FROM outlast_operation o JOIN outlast_workflow w ON w.id = o.workflow_id WHERE o.status = 'uncertain' GROUP BY 2, 3
UNION ALL
SELECT 'owed', w.flow_name, w.flow_version, count(*)::int, {_AGE.format(moment="min(c.opened_at)")}
FROM outlast_commitment c JOIN outlast_workflow w ON w.id = c.workflow_id WHERE c.status IN ({literals(OWED)}) GROUP BY 2, 3
UNION ALL
SELECT 'breached', w.flow_name, w.flow_version, count(*)::int, {_AGE.format(moment="min(c.breached_at)")}
FROM outlast_commitment c JOIN outlast_workflow w ON w.id = c.workflow_id
WHERE c.status IN ({literals(OWED)}) AND c.breached_at IS NOT NULL GROUP BY 2, 3
UNION ALL
SELECT 'orphan:' || f.kind, coalesce(w.flow_name, ''), coalesce(w.flow_version, 0), count(*)::int, {_AGE.format(moment="min(f.first_seen)")}
FROM outlast_finding f LEFT JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.closed_at IS NULL AND f.status = 'open' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

#: (what, name, how many, age in seconds): ready runs and live workers by queue, and the last tick. Both of these count in real time.
RUNNING = f"""
SELECT 'ready', queue, count(*)::int, {_AGE.format(moment="min(updated_at)")} FROM outlast_workflow w
WHERE status = 'runnable' AND {holds.free("w")} GROUP BY 2
UNION ALL
SELECT 'workers', q.queue, count(*)::int, NULL FROM outlast_worker k CROSS JOIN LATERAL unnest(k.queues) AS q(queue)
WHERE k.status = 'alive' AND k.lease_until > statement_timestamp() GROUP BY 2
UNION ALL
SELECT 'tick', '', 1, extract(epoch FROM statement_timestamp() - ticked_at)::float8 FROM outlast_tick
ORDER BY 1, 2
"""


#: How many orphans were found between two moments, by flow and version; those that are about no run are in nobody's figures.
FOUND = """
SELECT w.flow_name, w.flow_version, count(*)::int FROM outlast_finding f JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.first_seen >= %(start)s::timestamptz AND f.first_seen < %(end)s::timestamptz GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """Live runs of a flow, version and status: how many, seconds since the oldest began, and since the one that moved last of all."""

    flow: str
    version: int
    status: str
    count: int
    oldest: float
    unmoved: float


@dataclass(frozen=True, slots=True)
class OpenWaits:
    """Open waits of a flow, version and kind: how many, seconds since the oldest was opened, and how many are over their deadline."""

    flow: str
    version: int
    kind: str
    count: int
    oldest: float
    overdue: int


@dataclass(frozen=True, slots=True)
class Owing:
    """`what`: doubt (operations of which nobody knows whether they happened), owed, breached (commitments), orphan:KIND (open findings; those
    that are about no run have no flow). How many, age of the oldest.
    """

    what: str
    flow: str
    version: int
    count: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Running:
    """`what`: ready (runs, by queue), workers (live ones, by queue), tick (of the clock). How many; age in seconds, if it has one."""

    what: str
    name: str
    count: int
    age: float | None


def live_runs(using: str) -> list[LiveRuns]:
    """Live runs now."""
    return [LiveRuns(*row) for row in run("live runs", LIVE_RUNS, {}, using)]


def open_waits(using: str) -> list[OpenWaits]:
    """Open waits now."""
    return [OpenWaits(*row) for row in run("open waits", OPEN_WAITS, {}, using)]


def owing(using: str) -> list[Owing]:
    """What is in doubt, and what is owed, now."""
    return [Owing(*row) for row in run("owing", OWING, {}, using)]


def found(start: datetime, end: datetime, using: str) -> dict[tuple[str, int], int]:
    """(flow, version) → how many orphans were found then."""
    return {(row[0], row[1]): row[2] for row in run("orphans found", FOUND, {"start": start, "end": end}, using)}


def running(using: str) -> list[Running]:
    """What is ready, who may take it, and how old the last tick is."""
    return [Running(*row) for row in run("running", RUNNING, {"needing": holds.needing()}, using)]
