"""The hot arrow: one activity of a workflow is done and the next one is running, in one statement and one commit."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from flows.store.sql import run

ADVANCE = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET node = %(node)s, version = w.version + 1, activity_seq = w.activity_seq + 1, active_seq = w.activity_seq + 1,
        attempts = w.attempts + 1, error_code = NULL, updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid AND w.wake_seq = %(wake_seq)s::int
      AND w.pause_requested_at IS NULL
    RETURNING w.*
), done AS (
    UPDATE outlast_activity a
    SET status = 'done', result = %(result)s::jsonb, ended_at = flows_now()
    FROM moved m WHERE a.workflow_id = m.id AND a.seq = %(seq)s::int AND a.fence = %(fence)s::int
    RETURNING a.workflow_id, a.seq, a.attempt, a.node, a.worker_id, a.worker_pid, a.started_at
), tried AS (
    INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, worker_id, worker_pid, started_at, ended_at, outcome)
    SELECT d.workflow_id, d.seq, d.attempt, d.node, d.worker_id, d.worker_pid, d.started_at, flows_now(), 'succeeded' FROM done d
), opened AS (
    INSERT INTO outlast_activity (
        workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, worker_id, worker_pid, timeout_s, started_at, timeout_at,
        opened_at
    )
    SELECT m.id, m.active_seq, m.node, %(step)s, %(visit)s::int, 'running', 1, 1, 0, 0, m.worker_id, m.worker_pid, %(timeout)s::float8,
        flows_now(), flows_now() + %(timeout)s::float8 * interval '1 second', flows_now()
    FROM moved m
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, attempt, note, at
    )
    SELECT m.id, m.version, 'running', 'running', %(from_node)s, m.node, '', m.epoch, 'completed', %(seq)s::text, m.intent_version,
        m.policy_version, d.seq, d.attempt, %(note)s::jsonb, flows_now()
    FROM moved m LEFT JOIN done d ON true
)
SELECT m.version, m.active_seq FROM moved m LEFT JOIN done d ON true
WHERE d.seq IS NOT NULL OR outlast_half_move('activity')
"""


@dataclass(frozen=True, slots=True)
class Advance:
    """The guard as the owner saw it, the result of the activity that is done, and the one to run next."""

    id: UUID
    version: int
    epoch: int
    intent_version: int
    worker: UUID
    wake_seq: int
    seq: int
    fence: int
    from_node: str
    result: str
    node: str
    step: str
    visit: int
    timeout: float
    note: str | None


def advance(a: Advance, using: str) -> tuple[int, int] | None:
    """Record the result and open the next activity under the same worker; (version, activity), or None (= lost)."""
    params = {
        "id": a.id,
        "version": a.version,
        "epoch": a.epoch,
        "intent_version": a.intent_version,
        "worker": a.worker,
        "wake_seq": a.wake_seq,
        "seq": a.seq,
        "fence": a.fence,
        "from_node": a.from_node,
        "result": a.result,
        "node": a.node,
        "step": a.step,
        "visit": a.visit,
        "timeout": a.timeout,
        "note": a.note,
    }
    rows = run("advance", ADVANCE, params, using)
    return (rows[0][0], rows[0][1]) if rows else None
