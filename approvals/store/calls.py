"""The guarded statements of requests about calls of tools. A call is known by its activity, its digest, and its number among equal ones.

    open      none → pending                   behind the wait beside the activity, in the transaction that opens it
    use       approved → consumed              by the activity that asked, under its owner; in the transaction that puts the call in flight
    expire    pending → expired                its own time is over; the wait goes on while others are pending
    retire    pending → cancelled, approved → invalidated     the workflow goes on under another definition

Everybody who writes here holds the workflow's row lock already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.store.sql import loads, run

OF_CALL = "workflow_id = %(workflow)s::uuid AND activity_seq = %(activity)s::int AND digest = %(digest)s AND call = %(call)s::int AND tool <> ''"

FIND = f"""
SELECT r.id, r.status, r.answer, coalesce(r.expires_at <= flows_now(), false), r.used_by, r.candidate, r.ladder, r.self_approval, coalesce((
    SELECT v.comment FROM outlast_review v
    WHERE v.request_id = r.id AND v.refused = '' AND v.verdict <> 'revoke' ORDER BY v.id DESC LIMIT 1), '')
FROM outlast_approval_request r WHERE {OF_CALL} ORDER BY r.id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The newest request about a call. `late`: its time is over, whatever its status says. `ladder`, `self_approval`: whom it was put to.

    `comment`: of the answer.
    """

    id: int
    status: str
    answer: str
    late: bool
    used_by: int | None
    candidate: Any
    ladder: str
    self_approval: bool
    comment: str


def find(workflow: UUID, activity: int, digest: str, call: int, using: str) -> Found | None:
    """The newest request about this call."""
    rows = run("find call", FIND, {"workflow": workflow, "activity": activity, "digest": digest, "call": call}, using)
    if not rows:
        return None
    row = list(rows[0])
    row[5] = loads(row[5])
    return Found(*row)


COUNT = """
SELECT count(*)::int FROM outlast_approval_request
WHERE workflow_id = %(workflow)s::uuid AND activity_seq = %(activity)s::int AND tool <> ''
"""


def count(workflow: UUID, activity: int, using: str) -> int:
    """How often this activity has asked people."""
    found: int = run("count calls", COUNT, {"workflow": workflow, "activity": activity}, using)[0][0]
    return found


REPLACE = f"""
UPDATE outlast_approval_request
SET status = CASE WHEN status = 'changes_requested' THEN 'superseded' WHEN status = 'approved' AND expires_at <= flows_now() THEN 'expired'
    ELSE 'invalidated' END
WHERE {OF_CALL} AND status IN ('pending', 'approved', 'changes_requested')
RETURNING id
"""

OPEN = """
INSERT INTO outlast_approval_request (
    workflow_id, kind, wait_id, node, visit, tool, activity_seq, call, steps, escalation, ladder, bulk, subset, answers, self_approval,
    candidate_node, candidate, digest, revision, intent_id, intent_version, epoch, policy_version, state_versions, requester_id,
    requester_label, asked_at, expires_at, on_expiry, status, answer, step, given, escalated, audiences, claimed_label)
SELECT w.id, 'approval', o.id, o.node, %(visit)s::int, %(tool)s, %(activity)s::int, %(call)s::int, %(steps)s::jsonb,
    %(escalation)s::jsonb, %(ladder)s, false, '', %(answers)s::text[], %(self_approval)s::bool, o.node, %(candidate)s::jsonb, %(digest)s,
    %(call)s::int, w.intent_id, w.intent_version, w.epoch, w.policy_version, o.state_versions, w.user_id, w.user_label, flows_now(),
    flows_now() + %(expires)s::float8 * interval '1 second', 'node:' || o.node, 'pending', '', 0, 0, 0, %(audiences)s::text[], ''
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.id = %(wait)s::bigint AND o.status = 'open' AND o.epoch = w.epoch AND w.active_seq = %(activity)s::int
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of whom about one call; steps, escalation and candidate as JSON text. `expires`: seconds from now."""

    workflow: UUID
    wait: int
    visit: int
    activity: int
    tool: str
    call: int
    digest: str
    candidate: str
    steps: str
    escalation: str
    ladder: str
    answers: Sequence[str]
    self_approval: bool
    audiences: Sequence[str]
    expires: float


def open_call(question: Question, using: str) -> int | None:
    """Write a request behind the open wait; what was asked about the same call before counts no longer."""
    params: dict[str, Any] = {name: getattr(question, name) for name in Question.__slots__}
    params |= {"answers": list(question.answers), "audiences": list(question.audiences)}
    run("replace calls", REPLACE, params, using)
    rows = run("open call", OPEN, params, using)
    return rows[0][0] if rows else None


USE = """
UPDATE outlast_approval_request r SET status = 'consumed', used_by = r.activity_seq, used_at = flows_now()
FROM outlast_workflow w
WHERE r.id = %(id)s::bigint AND r.status = 'approved' AND (r.expires_at > flows_now()) IS NOT FALSE AND r.digest = %(digest)s
  AND w.id = r.workflow_id AND w.status = 'running' AND w.active_seq = r.activity_seq AND w.intent_version = r.intent_version
  AND w.epoch = r.epoch
RETURNING r.candidate
"""


def use(request_id: int, digest: str, using: str) -> Any:
    """Use an approval up for the running activity that asked, once and in its time: the candidate as it is recorded.

    None: it is not to be had (any more).
    """
    rows = run("use call", USE, {"id": request_id, "digest": digest}, using)
    return loads(rows[0][0]) if rows else None


EXPIRE = """
UPDATE outlast_approval_request SET status = 'expired'
WHERE wait_id = ANY (%(waits)s::bigint[]) AND status = 'pending' AND expires_at <= flows_now() AND tool <> ''
RETURNING id, wait_id
"""


def expire(waits: Sequence[int], using: str) -> list[tuple[int, int]]:
    """Those behind these waits whose time is over: (request, wait)."""
    return [(row[0], row[1]) for row in run("expire calls", EXPIRE, {"waits": list(waits)}, using)]


LEFT = """
SELECT count(*) FILTER (WHERE status = 'pending')::int, array_agg(id ORDER BY id) FROM outlast_approval_request
WHERE wait_id = %(wait)s::bigint AND tool <> ''
"""


def left(wait_id: int, using: str) -> tuple[int, list[int]]:
    """How many requests behind a wait are still pending, and which there are."""
    rows = run("calls of wait", LEFT, {"wait": wait_id}, using)
    return rows[0][0], list(rows[0][1] or [])


RETIRE = """
UPDATE outlast_approval_request SET status = CASE status WHEN 'approved' THEN 'invalidated' ELSE 'cancelled' END
WHERE workflow_id = %(workflow)s::uuid AND tool <> '' AND status IN ('pending', 'approved')
RETURNING id, status
"""


def retire(workflow: Any, using: str) -> list[tuple[int, str]]:
    """No approval of a tool outlives the definition under which it was asked for: (request, its status now)."""
    return [(row[0], row[1]) for row in run("retire calls", RETIRE, {"workflow": workflow}, using)]
