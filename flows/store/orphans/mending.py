"""What repairs write that no other arrow does. The workflow is locked; each names again what the scan has found, so that it hits nothing where
somebody has mended it meanwhile.

timer     none → pending       at the moment on record
woken     waiting → runnable   its wait has its evidence
end       the end of a run → its branch, as the trigger of that end writes it
owe       the live commitments of a run that has ended are owed until they end
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from flows.store.sql import run
from flows.store.waking import LOGGED, MOVED

_INTO = """
INSERT INTO outlast_timer (workflow_id, wait_id, commitment_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
"""

#: `anyway`: where no moment is on record, now. A sleep ends then, so that is a person's word.
OF_WAIT = f"""
{_INTO}
SELECT w.id, o.id, NULL, %(kind)s, CASE WHEN %(kind)s = 'wait_deadline' THEN o.on_expiry ELSE '' END, m.at, w.epoch, w.intent_version,
    w.policy_version, 'pending'
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
CROSS JOIN LATERAL (SELECT coalesce(CASE WHEN %(kind)s = 'wait_deadline' THEN o.deadline_at ELSE w.due_at END,
                                    CASE WHEN %(anyway)s::bool THEN flows_now() END) AS at) m
WHERE o.id = %(wait)s::bigint AND o.status = 'open' AND o.epoch = w.epoch AND o.due_since IS NULL AND w.status IN ('waiting', 'paused')
  AND m.at IS NOT NULL
  AND NOT EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND t.wait_id = o.id AND t.kind = %(kind)s AND t.status = 'pending')
RETURNING due_at
"""


def timer_of_wait(wait: int, kind: str, using: str, *, anyway: bool) -> datetime | None:
    """The timer of that kind of an open wait, at its moment; None: it has one, or there is no moment."""
    rows = run("timer again", OF_WAIT, {"wait": wait, "kind": kind, "anyway": anyway}, using)
    return rows[0][0] if rows else None


OF_RUN = f"""
{_INTO}
SELECT w.id, NULL, NULL, 'workflow_deadline', %(word)s, w.deadline_at, w.epoch, w.intent_version, w.policy_version, 'pending'
FROM outlast_workflow w
WHERE w.id = %(id)s::uuid AND w.deadline_at IS NOT NULL AND w.status IN ('waiting', 'paused', 'runnable', 'running')
  AND NOT EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND t.kind = 'workflow_deadline')
RETURNING due_at
"""


def timer_of_run(workflow: UUID, word: str, using: str) -> datetime | None:
    """The timer of the deadline of a run, with its policy; None: it has one, or has ended."""
    rows = run("timer again", OF_RUN, {"id": workflow, "word": word}, using)
    return rows[0][0] if rows else None


OF_COMMITMENT = f"""
{_INTO}
SELECT w.id, NULL, c.id, 'commitment_deadline', %(word)s, c.deadline_at, w.epoch, w.intent_version, w.policy_version, 'pending'
FROM outlast_commitment c JOIN outlast_workflow w ON w.id = c.workflow_id
WHERE c.id = %(id)s::bigint AND c.status = 'active' AND c.deadline_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND t.commitment_id = c.id AND t.status = 'pending')
RETURNING due_at
"""


def timer_of_commitment(commitment: int, word: str, using: str) -> datetime | None:
    """The timer of the deadline of a commitment; None: it has one, or has ended."""
    rows = run("timer again", OF_COMMITMENT, {"id": commitment, "word": word}, using)
    return rows[0][0] if rows else None


WAKE = f"""
WITH old AS (
    SELECT w.id, w.status, o.id AS wait_id FROM outlast_workflow w JOIN outlast_wait o ON o.workflow_id = w.id
    WHERE w.id = %(id)s::uuid AND w.status = 'waiting' AND w.outcome = 'WAITING' AND o.status = 'open' AND o.epoch = w.epoch
      AND o.evidence IS NOT NULL
    ORDER BY o.id LIMIT 1
), {MOVED}, {LOGGED}
SELECT m.id, m.queue, m.flow_name, m.node FROM moved m WHERE m.was = 'waiting'
"""


def wake(workflow: UUID, priority_seconds: int, using: str) -> tuple[UUID, str, str, str] | None:
    """A run whose wait has its evidence is ready; (id, queue, flow, node), or None: that is not so any more."""
    params = {"id": workflow, "priority_seconds": priority_seconds, "trigger": "event", "ref": "liveness"}
    rows = run("woken after all", WAKE, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None


END = """
UPDATE outlast_branch b SET ended_at = flows_now(), outcome = w.outcome, error_code = w.error_code, result = w.result
FROM outlast_workflow w
WHERE b.fan_id = %(fan)s::bigint AND b.number = %(number)s::int AND w.id = b.workflow_id AND b.status = 'running' AND b.ended_at IS NULL
  AND w.status IN ('complete', 'failed', 'cancelled', 'superseded') AND w.outcome <> 'CONTINUED'
RETURNING b.number
"""


def end_branch(fan: int, number: int, using: str) -> bool:
    """The end of its run was not written to the branch; False: it was, or the run lives."""
    return bool(run("branch ends after all", END, {"fan": fan, "number": number}, using))


OWE = """
UPDATE outlast_workflow w SET owed = n.live
FROM (SELECT x.workflow_id, count(*)::int AS live FROM outlast_commitment x
      WHERE x.workflow_id = (SELECT c.workflow_id FROM outlast_commitment c WHERE c.id = %(id)s::bigint)
        AND x.status IN ('active', 'breached', 'releasing') AND NOT x.may_defer GROUP BY 1) n
WHERE w.id = n.workflow_id AND w.owed < n.live AND w.status IN ('complete', 'failed', 'cancelled', 'superseded')
RETURNING w.id
"""


def owe(commitment: int, using: str) -> None:
    """What its run has ended without is owed again; each that ends takes itself off. Nothing where it is."""
    run("owed after all", OWE, {"id": commitment}, using)


COUNTED = "SELECT counted_at IS NOT NULL FROM outlast_branch WHERE fan_id = %(fan)s::bigint AND number = %(number)s::int"


def is_counted(fan: int, number: int, using: str) -> bool:
    """Whether a branch is counted."""
    rows = run("branch counted", COUNTED, {"fan": fan, "number": number}, using)
    return bool(rows and rows[0][0])


PASSED = "SELECT next_at IS NULL OR next_at > flows_now() FROM outlast_schedule WHERE name = %(name)s"


def is_planned(schedule: str, using: str) -> bool:
    """Whether the next moment of a schedule is ahead."""
    rows = run("schedule planned", PASSED, {"name": schedule}, using)
    return bool(rows and rows[0][0])


FREE = """
SELECT workflow_id IS NULL FROM outlast_slot WHERE limit_id = %(limit)s::bigint AND number = %(number)s::int
"""


def is_free(limit: int, number: int, using: str) -> bool:
    """Whether a slot is free."""
    rows = run("slot free", FREE, {"limit": limit, "number": number}, using)
    return bool(rows and rows[0][0])
