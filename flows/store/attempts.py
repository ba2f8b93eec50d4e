"""What a running attempt may write besides its result: heartbeat with notes, checkpoint, and evidence that came too late."""

from __future__ import annotations

from uuid import UUID

from flows.store.sql import run

HEARTBEAT = """
WITH mine AS (
    SELECT w.id, w.active_seq, w.pause_requested_at FROM outlast_workflow w
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
), beat AS (
    UPDATE outlast_activity a
    SET timeout_at = flows_now() + a.timeout_s * interval '1 second', notes = coalesce(%(notes)s::jsonb, a.notes)
    FROM mine WHERE a.workflow_id = mine.id AND a.seq = %(seq)s::int AND a.fence = %(fence)s::int AND a.status = 'running'
    RETURNING a.seq
)
SELECT (SELECT status FROM outlast_workflow WHERE id = %(id)s::uuid), EXISTS (SELECT FROM beat)
"""


def heartbeat(
    workflow_id: UUID, version: int, epoch: int, worker: UUID, seq: int, fence: int, notes: str | None, using: str
) -> tuple[str, bool]:
    """Extend the attempt's timeout and save its notes; (the workflow's status, whether this attempt still owns it)."""
    params = {
        "id": workflow_id,
        "version": version,
        "epoch": epoch,
        "worker": worker,
        "seq": seq,
        "fence": fence,
        "notes": notes,
    }
    rows = run("heartbeat", HEARTBEAT, params, using)
    return rows[0][0] or "", rows[0][1]


CHECKPOINT = """
UPDATE outlast_workflow SET checkpoint = %(checkpoint)s::jsonb, updated_at = flows_now()
WHERE id = %(id)s::uuid AND version = %(version)s::int AND status = 'running' AND epoch = %(epoch)s::int
  AND worker_id IS NOT DISTINCT FROM %(worker)s::uuid
RETURNING id
"""


def save_checkpoint(workflow_id: UUID, version: int, epoch: int, worker: UUID, checkpoint: str, using: str) -> bool:
    """Replace the checkpoint; False if this worker no longer owns the workflow."""
    params = {"id": workflow_id, "version": version, "epoch": epoch, "worker": worker, "checkpoint": checkpoint}
    return bool(run("checkpoint", CHECKPOINT, params, using))


LATE = """
UPDATE outlast_attempt SET late_result = %(result)s::jsonb
WHERE workflow_id = %(id)s::uuid AND activity_seq = %(seq)s::int AND number = %(number)s::int AND late_result IS NULL
RETURNING number
"""


def keep_late(workflow_id: UUID, seq: int, number: int, result: str, using: str) -> bool:
    """Keep the result of an attempt that was ended by somebody else meanwhile: evidence, it moves nothing."""
    return bool(run("late result", LATE, {"id": workflow_id, "seq": seq, "number": number, "result": result}, using))
