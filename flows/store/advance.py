"""The hot arrows: an activity is done or a wait was answered, and the next activity is running or the workflow is complete.

One statement, one commit: `advance` and `complete` for one workflow, `open_woken` for all those of a claim.
What moves less often goes through `flows/store/move.py`. Only the columns that a part needs are returned: wide rows cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections

from flows.core.errors import HalfMove
from flows.store.move import Move
from flows.store.sql import run

#: The guard as the owner saw it. `worker_id` is compared so that its index cannot be chosen: the row is found by its key.
GUARD = """
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
      AND w.wake_seq = %(wake_seq)s::int AND w.pause_requested_at IS NULL
"""

#: The activity that is done, and the history row of its attempt; both selected FROM the moved workflow.
DONE = """
done AS (
    UPDATE outlast_activity a SET status = 'done', result = %(result)s::jsonb, ended_at = flows_now()
    FROM moved m WHERE a.workflow_id = %(id)s::uuid AND a.seq = %(seq)s::int AND a.fence = %(fence)s::int
    RETURNING a.workflow_id, a.seq, a.attempt, a.node, a.worker_id, a.worker_pid, a.started_at
), tried AS (
    INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, worker_id, worker_pid, started_at, ended_at, outcome)
    SELECT d.workflow_id, d.seq, d.attempt, d.node, d.worker_id, d.worker_pid, d.started_at, flows_now(), 'succeeded' FROM done d
)
"""

LOGGED = """
logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, attempt, error_code, note, at
    )
    SELECT m.id, m.version, 'running', m.status, %(from_node)s, m.node, m.outcome, %(epoch)s::int, 'completed', d.seq::text,
        %(intent_version)s::int, m.policy_version, d.seq, d.attempt, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m LEFT JOIN done d ON true
)
"""

ADVANCE = f"""
WITH moved AS (
    UPDATE outlast_workflow w
    SET node = %(node)s, placement = %(placement)s, version = w.version + 1,
        activity_seq = w.activity_seq + 1, active_seq = w.activity_seq + 1,
        attempts = w.attempts + 1, error_code = NULL, updated_at = flows_now()
    {GUARD}
    RETURNING w.id, w.version, w.status, w.node, w.outcome, w.error_code, w.policy_version, w.active_seq, w.worker_id, w.worker_pid
), {DONE}, opened AS (
    INSERT INTO outlast_activity (
        workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, worker_id, worker_pid, timeout_s, started_at,
        timeout_at, opened_at
    )
    SELECT m.id, m.active_seq, m.node, %(step)s, %(visit)s::int, 'running', 1, 1, 0, 0, m.worker_id, m.worker_pid,
        %(timeout)s::float8, flows_now(), flows_now() + %(timeout)s::float8 * interval '1 second', flows_now()
    FROM moved m
), {LOGGED}
SELECT m.version, m.active_seq FROM moved m LEFT JOIN done d ON true
WHERE d.seq IS NOT NULL OR outlast_half_move('activity')
"""

COMPLETE = f"""
WITH moved AS (
    UPDATE outlast_workflow w
    SET status = 'complete', outcome = 'COMPLETE', node = %(node)s, version = w.version + 1, active_seq = NULL, error_code = NULL,
        worker_id = NULL, worker_pid = NULL, result = %(workflow_result)s::jsonb, updated_at = flows_now()
    {GUARD}
      AND w.owed = 0
    RETURNING w.id, w.version, w.status, w.node, w.outcome, w.error_code, w.policy_version
), {DONE}, {LOGGED}
SELECT m.version FROM moved m LEFT JOIN done d ON true
WHERE d.seq IS NOT NULL OR outlast_half_move('activity')
"""

#: A row that somebody else holds is left out, for holding many while waiting for one is how two such statements block each other for ever.
#: The commit need not be on disk before the code runs. If the server dies, it is as if the process had died before it: the workflow is
#: running under the same owner, with its wait open; whatever the owner commits later loses its guard, and the row is put back.
OPEN_WOKEN = """
WITH given AS (
    SELECT g.* FROM unnest(
        %(id)s::uuid[], %(version)s::int[], %(epoch)s::int[], %(intent_version)s::int[], %(wake_seq)s::int[], %(from_node)s::text[],
        %(node)s::text[], %(placement)s::text[], %(step)s::text[], %(visit)s::int[], %(timeout)s::float8[], %(close_wait)s::bigint[],
        %(wait_status)s::text[], %(wait_result)s::text[], %(trigger)s::text[], %(note)s::text[]
    ) AS g(id, version, epoch, intent_version, wake_seq, from_node, node, placement, step, visit, timeout, wait, wait_status, wait_result,
        trigger, note)
    CROSS JOIN (SELECT set_config('synchronous_commit',
        CASE WHEN %(alone)s::bool THEN 'off' ELSE current_setting('synchronous_commit') END, true)) AS later
), moved AS (
    UPDATE outlast_workflow w
    SET node = g.node, placement = g.placement, version = w.version + 1, activity_seq = w.activity_seq + 1,
        active_seq = w.activity_seq + 1, attempts = w.attempts + 1, error_code = NULL, updated_at = flows_now()
    FROM given g
    WHERE w.id = ANY (ARRAY (SELECT r.id FROM outlast_workflow r WHERE r.id = ANY (%(id)s::uuid[]) FOR NO KEY UPDATE SKIP LOCKED))
      AND w.id = g.id AND w.version = g.version AND w.status = 'running' AND w.epoch = g.epoch
      AND w.intent_version = g.intent_version AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
      AND w.wake_seq = g.wake_seq AND w.pause_requested_at IS NULL
    RETURNING w.id, w.version, w.policy_version, w.active_seq, w.worker_id, w.worker_pid, g.epoch, g.intent_version, g.from_node, g.node,
        g.step, g.visit, g.timeout, g.wait, g.wait_status, g.wait_result, g.trigger, g.note
), closed AS (
    UPDATE outlast_wait o SET status = m.wait_status, result = m.wait_result::jsonb, closed_at = flows_now()
    FROM moved m WHERE o.id = m.wait AND o.workflow_id = m.id AND o.closed_at IS NULL
    RETURNING o.workflow_id
), dropped AS (
    DELETE FROM outlast_timer t USING moved m WHERE t.workflow_id = m.id AND t.fired_at IS NULL AND t.wait_id = m.wait
), opened AS (
    INSERT INTO outlast_activity (
        workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, worker_id, worker_pid, timeout_s, started_at,
        timeout_at, opened_at
    )
    SELECT m.id, m.active_seq, m.node, m.step, m.visit, 'running', 1, 1, 0, 0, m.worker_id, m.worker_pid, m.timeout, flows_now(),
        flows_now() + m.timeout * interval '1 second', flows_now()
    FROM moved m
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, note, at
    )
    SELECT m.id, m.version, 'running', 'running', m.from_node, m.node, '', m.epoch, m.trigger, m.wait::text, m.intent_version,
        m.policy_version, m.note::jsonb, flows_now()
    FROM moved m
)
SELECT m.id, m.version, m.active_seq FROM moved m LEFT JOIN closed c ON c.workflow_id = m.id
WHERE c.workflow_id IS NOT NULL OR outlast_half_move('wait')
"""


@dataclass(frozen=True, slots=True)
class Done:
    """The guard as the owner saw it, the activity that is done, its encoded result, and the node to enter."""

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
    note: str | None


def advance(done: Done, *, step: str, visit: int, timeout: float, placement: str, using: str) -> tuple[int, int] | None:
    """Record the result and open the next activity under the same worker; (version, activity), or None (= lost)."""
    params = {**_params(done), "step": step, "visit": visit, "timeout": timeout, "placement": placement}
    rows = run("advance", ADVANCE, params, using)
    return (rows[0][0], rows[0][1]) if rows else None


def complete(done: Done, workflow_result: str | None, using: str) -> bool:
    """Record the result and complete the workflow, which has no timer and no wait; False if the guard was lost, or it owes something."""
    return bool(run("complete", COMPLETE, {**_params(done), "workflow_result": workflow_result}, using))


def _params(done: Done) -> dict[str, Any]:
    return {name: getattr(done, name) for name in Done.__dataclass_fields__}


_OPENED = (
    *("id", "version", "epoch", "intent_version", "wake_seq", "from_node", "node", "placement", "step", "visit", "timeout"),
    *("close_wait", "wait_status", "wait_result", "trigger", "note"),
)


def open_woken(arrows: Sequence[Move], using: str) -> list[tuple[UUID, int, int]]:
    """Close the answered waits and open the activities of these moves, all of one owner; (workflow, version, activity) of each that held.

    If one of them would be half a move, none is made: each is then asked for by itself, and says so.
    """
    params: dict[str, Any] = {name: [getattr(arrow, name) for arrow in arrows] for name in _OPENED}
    alone = not connections[using].in_atomic_block  # a caller's transaction is not ours to hurry
    try:
        rows = run("open", OPEN_WOKEN, {**params, "worker": arrows[0].worker, "alone": alone}, using)
    except HalfMove:
        return []
    return [(row[0], row[1], row[2]) for row in rows]
