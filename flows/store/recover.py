"""Finding work whose owner is gone or whose time is over. Recovery only puts work back; it never runs it.

`worker_id IS NOT NULL` says what `status = 'running'` says (a constraint ties them) and names the index of owned rows, which the hot arrows
must not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from flows.store.sql import run

LOST = """
SELECT w.id FROM outlast_workflow w LEFT JOIN outlast_worker k ON k.id = w.worker_id
WHERE w.status = 'running' AND w.worker_id IS NOT NULL AND (k.id IS NULL OR k.status <> 'alive')
ORDER BY w.id LIMIT %(limit)s::int
"""


def lost(limit: int, using: str) -> list[UUID]:
    """Workflows that run under a worker which is not alive; asked at every sweep, so a claim that raced with a burial is found too."""
    return [row[0] for row in run("lost work", LOST, {"limit": limit}, using)]


CHILD = """
SELECT id FROM outlast_workflow WHERE status = 'running' AND worker_id = %(worker)s::uuid AND worker_pid = ANY (%(pids)s::int[])
ORDER BY id
"""


def of_children(worker: UUID, pids: Sequence[int], using: str) -> list[UUID]:
    """Workflows that run in those child processes of a worker."""
    return [row[0] for row in run("work of children", CHILD, {"worker": worker, "pids": list(pids)}, using)]


UNSTARTED = """
SELECT id, version, updated_at FROM outlast_workflow
WHERE status = 'running' AND worker_id = %(worker)s::uuid AND worker_pid = %(pid)s::int AND id <> %(current)s::uuid ORDER BY id
"""


def unstarted_of_child(worker: UUID, pid: int, current: UUID | None, using: str) -> list[tuple[UUID, int, datetime]]:
    """What a child has claimed beside the workflow that it works on, as (id, version, last touched)."""
    rows = run("unstarted", UNSTARTED, {"worker": worker, "pid": pid, "current": current or UUID(int=0)}, using)
    return [(row[0], row[1], row[2]) for row in rows]


OVERDUE = """
SELECT w.id FROM outlast_workflow w JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
WHERE w.status = 'running' AND w.worker_id IS NOT NULL AND a.status = 'running'
  AND a.timeout_at + %(grace)s::float8 * interval '1 second' <= flows_now()
ORDER BY w.id LIMIT %(limit)s::int
"""


def overdue(limit: int, grace: float, using: str) -> list[UUID]:
    """Workflows whose running attempt is over its timeout by more than `grace` seconds."""
    return [row[0] for row in run("overdue attempts", OVERDUE, {"limit": limit, "grace": grace}, using)]


STILL = """
SELECT (k.id IS NULL OR k.status <> 'alive') FROM outlast_workflow w LEFT JOIN outlast_worker k ON k.id = w.worker_id
WHERE w.id = %(id)s::uuid AND w.status = 'running'
"""


def owner_gone(workflow_id: UUID, using: str) -> bool:
    """Whether the owner of a locked workflow is not alive."""
    rows = run("owner gone", STILL, {"id": workflow_id}, using)
    return bool(rows and rows[0][0])
