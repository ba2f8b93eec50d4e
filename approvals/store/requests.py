"""The guarded statements of a request: one function each, which returns the row or None (= lost).

A request is of the generation that its wait is of: `epoch` says in which it was asked, and a migration may take the wait over into the next.

Everybody who writes here holds the workflow's row lock already (the arrow's own UPDATE, or `flows.store.locks.workflows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.store.sql import loads, run

LIVE_WORKFLOW_OF = "SELECT workflow_id, wait_id FROM outlast_approval_request WHERE id = %(id)s::bigint"


def of(request_id: int, using: str) -> tuple[UUID, int] | None:
    """(workflow, wait) of a request; neither ever changes, so this may be read before anything is locked."""
    rows = run("find request", LIVE_WORKFLOW_OF, {"id": request_id}, using)
    return (rows[0][0], rows[0][1]) if rows else None


LOCK_WAIT = "SELECT id FROM outlast_wait WHERE id = %(id)s::bigint FOR NO KEY UPDATE"
LOCK = "SELECT id FROM outlast_approval_request WHERE id = %(id)s::bigint FOR NO KEY UPDATE"


def lock(request_id: int, wait_id: int, using: str) -> bool:
    """Lock the wait, then the request: the order of `flows/store/locks.py`. The workflow must be locked."""
    run("lock wait", LOCK_WAIT, {"id": wait_id}, using)
    return bool(run("lock request", LOCK, {"id": request_id}, using))


FACTS = """
SELECT r.kind, r.status, r.steps, r.step, r.given, r.escalation, r.escalated, r.audiences, r.answers, r.self_approval, r.requester_id,
    r.requester_label, r.digest, r.candidate, w.flow_name, r.intent_version, i.version, i.status, w.status, coalesce(o.epoch, r.epoch), w.epoch,
    coalesce(o.status = 'open' AND o.evidence IS NULL AND o.epoch = w.epoch, false), coalesce(r.expires_at <= flows_now(), false)
FROM outlast_approval_request r
JOIN outlast_workflow w ON w.id = r.workflow_id
JOIN outlast_intent i ON i.id = r.intent_id
LEFT JOIN outlast_wait o ON o.id = r.wait_id
WHERE r.id = %(id)s::bigint
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request and what it is bound to, as one snapshot shows them."""

    kind: str
    status: str
    steps: list[dict[str, Any]]
    step: int
    given: int
    escalation: list[dict[str, Any]]
    escalated: int
    audiences: list[str]
    answers: list[str]
    self_approval: bool
    requester: Any
    requester_label: str
    digest: str
    candidate: Any
    flow_name: str
    intent_version: int
    intent_version_now: int
    intent_status: str
    workflow_status: str
    epoch: int
    epoch_now: int
    waiting: bool
    expired: bool

    @property
    def need(self) -> int:
        """How many must approve in the step that is asked now."""
        return int(self.steps[self.step]["need"])


def facts(request_id: int, using: str) -> Recorded | None:
    """What is recorded of a request now; under its locks it stays true."""
    rows = run("facts of request", FACTS, {"id": request_id}, using)
    if not rows:
        return None
    row = list(rows[0])
    for column in (2, 5, 13):
        row[column] = loads(row[column])
    return Recorded(*row)


REPLACE = """
UPDATE outlast_approval_request
SET status = CASE WHEN status = 'changes_requested' THEN 'superseded' WHEN status = 'approved' AND expires_at <= flows_now() THEN 'expired'
    ELSE 'invalidated' END
WHERE workflow_id = %(workflow)s::uuid AND node = %(node)s AND tool = '' AND status IN ('pending', 'approved', 'changes_requested')
RETURNING id
"""


def replace(workflow_id: Any, node: str, using: str) -> list[int]:
    """A new question is asked at this node: what was open or unused there counts no longer, and what changes were asked for is superseded."""
    return [row[0] for row in run("replace requests", REPLACE, {"workflow": workflow_id, "node": node}, using)]


OPEN = """
INSERT INTO outlast_approval_request (
    workflow_id, kind, wait_id, node, visit, steps, escalation, ladder, bulk, subset, answers, self_approval, candidate_node, candidate,
    evidence, digest, revision, intent_id, intent_version, epoch, policy_version, state_versions, requester_id, requester_label, asked_at,
    expires_at, on_expiry, status, answer, step, given, escalated, audiences, claimed_label)
SELECT w.id, o.kind, o.id, o.node, o.visit, %(steps)s::jsonb, %(escalation)s::jsonb, %(ladder)s, %(bulk)s::bool, %(subset)s,
    %(answers)s::text[],
    %(self_approval)s::bool, %(candidate_node)s, %(candidate)s::jsonb, %(evidence)s::jsonb, %(digest)s, %(revision)s::int, w.intent_id,
    w.intent_version, w.epoch, w.policy_version, o.state_versions, w.user_id, w.user_label, flows_now(), o.deadline_at, %(on_expiry)s,
    'pending', '', 0, 0, 0, %(audiences)s::text[], ''
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.id = %(wait)s::bigint AND o.status = 'open' AND o.epoch = w.epoch
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of whom; the candidate and its evidence, steps and escalation as JSON text. `audiences`: who may answer at first."""

    wait: int
    steps: str
    escalation: str
    ladder: str
    bulk: bool
    subset: str
    audiences: Sequence[str]
    answers: Sequence[str]
    self_approval: bool
    candidate_node: str
    candidate: str
    evidence: str | None
    digest: str
    revision: int
    on_expiry: str


def open_request(question: Question, using: str) -> int | None:
    """Write the request behind an open wait; its binding is selected from the rows it is bound to."""
    params = {name: getattr(question, name) for name in Question.__slots__}
    params |= {"answers": list(question.answers), "audiences": list(question.audiences)}
    rows = run("open request", OPEN, params, using)
    return rows[0][0] if rows else None


ANSWER = """
UPDATE outlast_approval_request r
SET status = %(status)s, answer = %(answer)s, answered_at = flows_now(), given = given + CASE WHEN %(answer)s = 'approved' THEN 1 ELSE 0 END
FROM outlast_workflow w, outlast_wait o
WHERE r.id = %(id)s::bigint AND r.status = 'pending' AND r.digest = %(digest)s AND (r.expires_at > flows_now()) IS NOT FALSE
  AND w.id = r.workflow_id AND o.id = r.wait_id AND w.epoch = o.epoch AND w.intent_version = r.intent_version
RETURNING r.id
"""


def answer(request_id: int, *, status: str, answer: str, digest: str, using: str) -> bool:
    """Record the answer, if the request is pending, in time, and about exactly this digest."""
    params = {"id": request_id, "status": status, "answer": answer, "digest": digest}
    return bool(run("answer request", ANSWER, params, using))


COUNT = """
UPDATE outlast_approval_request r SET step = %(step)s::int, given = %(given)s::int, audiences = %(audiences)s::text[]
FROM outlast_workflow w, outlast_wait o
WHERE r.id = %(id)s::bigint AND r.status = 'pending' AND r.digest = %(digest)s AND (r.expires_at > flows_now()) IS NOT FALSE
  AND r.step = %(was_step)s::int AND r.given = %(was_given)s::int
  AND w.id = r.workflow_id AND o.id = r.wait_id AND w.epoch = o.epoch AND w.intent_version = r.intent_version
RETURNING r.id
"""


def count(
    request_id: int, *, digest: str, was: tuple[int, int], now: tuple[int, int], audiences: Sequence[str], using: str
) -> bool:
    """Count an approval that is not the last: `was` and `now` are (step, approvals given in it). The guard is that of an answer."""
    params = {"id": request_id, "digest": digest, "audiences": list(audiences)}
    params |= {"was_step": was[0], "was_given": was[1], "step": now[0], "given": now[1]}
    return bool(run("count approval", COUNT, params, using))


ESCALATE = """
UPDATE outlast_approval_request r SET escalated = %(escalated)s::int, audiences = %(audiences)s::text[]
WHERE r.id = %(id)s::bigint AND r.status = 'pending' AND r.escalated < %(escalated)s::int AND r.step = %(step)s::int
RETURNING r.id
"""


def escalate(request_id: int, *, escalated: int, step: int, audiences: Sequence[str], using: str) -> bool:
    """Let more people answer a pending request; its step is the one that was read under the lock."""
    params = {"id": request_id, "escalated": escalated, "step": step, "audiences": list(audiences)}
    return bool(run("escalate request", ESCALATE, params, using))


REVOKE = """
UPDATE outlast_approval_request SET status = 'revoked' WHERE id = %(id)s::bigint AND status = 'approved' RETURNING id
"""


def revoke(request_id: int, using: str) -> bool:
    """Take back an approval that nothing has used."""
    return bool(run("revoke approval", REVOKE, {"id": request_id}, using))


CLAIM = """
UPDATE outlast_approval_request
SET claimed_by_id = %(user)s, claimed_label = %(label)s, claimed_at = CASE WHEN %(label)s <> '' THEN flows_now() END
WHERE id = %(id)s::bigint AND status = 'pending'
RETURNING id
"""


def claim(request_id: int, user: Any, label: str, using: str) -> bool:
    """Note who looks at a pending request; nobody with an empty label."""
    return bool(run("claim request", CLAIM, {"id": request_id, "user": user, "label": label}, using))


BEHIND = """
SELECT wait_id, id FROM outlast_approval_request
WHERE wait_id = ANY (%(waits)s::bigint[]) AND status = 'pending' AND tool = '' ORDER BY id
"""


def behind(waits: Sequence[int], using: str) -> dict[int, int]:
    """The pending requests of approval nodes behind these waits, by wait."""
    return dict(run("requests behind waits", BEHIND, {"waits": list(waits)}, using))


CLOSE = """
UPDATE outlast_approval_request
SET status = CASE WHEN %(how)s = 'expired' AND expires_at <= flows_now() THEN 'expired' ELSE 'cancelled' END
WHERE wait_id = ANY (%(waits)s::bigint[]) AND status = 'pending'
RETURNING id, status
"""

END = """
UPDATE outlast_approval_request SET status = CASE status WHEN 'approved' THEN 'invalidated' ELSE 'cancelled' END
WHERE workflow_id = ANY (%(workflows)s::uuid[]) AND status IN ('pending', 'approved')
RETURNING id
"""


def close(waits: Sequence[int], how: str, using: str) -> list[tuple[int, str]]:
    """Close what is open behind closed waits; (request, status now). What was answered stays."""
    rows = run("close requests", CLOSE, {"waits": list(waits), "how": how}, using)
    return [(row[0], row[1]) for row in rows]


def end(workflows: Sequence[UUID], using: str) -> list[int]:
    """Close what is open of workflows that were cancelled or superseded: questions are withdrawn, approvals that nobody used are invalid."""
    return [row[0] for row in run("end requests", END, {"workflows": list(workflows)}, using)]


ASKED = """
SELECT id, wait_id, node, status, candidate_node, ladder, answers, self_approval, digest, on_expiry FROM outlast_approval_request
"""
ASKED_BY = ASKED + "WHERE wait_id = %(wait)s::bigint"
LIVE = ASKED + "WHERE workflow_id = %(workflow)s::uuid AND status IN ('pending', 'approved') AND tool = '' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks of whom."""

    id: int
    wait_id: int
    node: str
    status: str
    candidate_node: str
    ladder: str
    answers: list[str]
    self_approval: bool
    digest: str
    on_expiry: str


def asked(wait_id: int, using: str) -> Asked | None:
    """The request behind a wait."""
    rows = run("asked", ASKED_BY, {"wait": wait_id}, using)
    return Asked(*rows[0]) if rows else None


def live(workflow_id: Any, using: str) -> list[Asked]:
    """The requests of nodes of a (locked) workflow that are open, or approved and not used."""
    return [Asked(*row) for row in run("live requests", LIVE, {"workflow": workflow_id}, using)]


RETIRE = """
UPDATE outlast_approval_request SET status = CASE status WHEN 'approved' THEN 'invalidated' ELSE 'cancelled' END
WHERE id = ANY (%(ids)s::bigint[]) AND status IN ('pending', 'approved')
RETURNING id
"""


def retire(ids: Sequence[int], using: str) -> list[int]:
    """These requests of a (locked) workflow count no longer: questions are withdrawn, approvals that nobody used are invalid."""
    return [row[0] for row in run("retire requests", RETIRE, {"ids": list(ids)}, using)] if ids else []


USE = """
UPDATE outlast_approval_request SET status = 'consumed', used_by = %(activity)s::int, used_at = flows_now()
WHERE id = %(id)s::bigint AND status = 'approved' AND (expires_at > flows_now()) IS NOT FALSE
RETURNING id
"""
USED = """
SELECT id FROM outlast_approval_request WHERE id = %(id)s::bigint AND status = 'consumed' AND used_by = %(activity)s::int
"""


def use(request_id: int, activity_seq: int, using: str) -> bool:
    """Use an approval up for that activity; once, but asking twice for the same activity is the same use."""
    params = {"id": request_id, "activity": activity_seq}
    return bool(run("use approval", USE, params, using) or run("used approval", USED, params, using))


NEWEST = """
SELECT DISTINCT ON (r.node) r.node, r.id, r.status, r.digest, r.intent_version, r.candidate, coalesce(r.expires_at <= flows_now(), false),
    r.used_by, a.node, a.visit
FROM outlast_approval_request r LEFT JOIN outlast_activity a ON a.workflow_id = r.workflow_id AND a.seq = r.used_by
WHERE r.workflow_id = %(workflow)s::uuid AND r.node = ANY (%(nodes)s::text[]) AND r.kind = 'approval' AND r.tool = ''
ORDER BY r.node, r.id DESC
"""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest request of a node; the last two say at which node, and at which visit of it, it was used up."""

    node: str
    id: int
    status: str
    digest: str
    intent_version: int
    candidate: Any
    expired: bool
    used_by: int | None
    used_node: str | None
    used_visit: int | None


def newest(workflow_id: Any, nodes: Sequence[str], using: str) -> list[Newest]:
    """The newest request for approval of each of these nodes; what a form asks for is none."""
    rows = run("newest requests", NEWEST, {"workflow": workflow_id, "nodes": list(nodes)}, using)
    return [Newest(row[0], row[1], row[2], row[3], row[4], loads(row[5]), *row[6:]) for row in rows]


OF_WORKFLOWS = """
SELECT r.workflow_id, r.kind, r.wait_id, r.node, r.id, r.digest, r.intent_version, r.answer, r.expires_at, r.used_by, r.candidate_node, r.ladder,
    r.answers, r.self_approval,
    (SELECT min(v.at) FROM outlast_review v WHERE v.request_id = r.id AND v.verdict = 'revoke' AND v.refused = '') AS revoked_at
FROM outlast_approval_request r
WHERE r.workflow_id = ANY (%(workflows)s::uuid[]) AND r.tool = '' ORDER BY r.workflow_id, r.id
"""


@dataclass(frozen=True, slots=True)
class Past:
    """A request as replay needs it."""

    workflow: UUID
    kind: str
    wait: int
    node: str
    id: int
    digest: str
    intent_version: int
    answer: str
    expires_at: datetime | None
    used_by: int | None
    candidate_node: str
    ladder: str
    answers: list[str]
    self_approval: bool
    revoked_at: datetime | None


def of_workflows(workflows: Sequence[UUID], using: str) -> list[Past]:
    """Every request of nodes of these workflows, each workflow's in the order in which they were asked."""
    rows = run("requests of workflows", OF_WORKFLOWS, {"workflows": list(workflows)}, using)
    return [Past(*(*row[:12], loads(row[12]), *row[13:])) for row in rows]
