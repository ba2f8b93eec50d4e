"""A run goes on as another one: what the older one gives up, what hangs on it and goes to the next. The older run must be locked.

handed over   running → running    key and slots are given up, `continued_to` names the next run, once
moved         – → –                its branch, its slots and its sessions are the next run's
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from flows.store.sql import run

OPEN = """
SELECT
    w.owed > 0
    OR EXISTS (SELECT FROM outlast_commitment c
               WHERE c.workflow_id = w.id AND c.status IN ('planned', 'active', 'breached', 'releasing', 'deferred'))
    OR EXISTS (SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND o.status IN ('planned', 'in_flight', 'uncertain')),
    EXISTS (SELECT FROM outlast_fan f JOIN outlast_branch b ON b.fan_id = f.id
            WHERE f.workflow_id = w.id AND (f.status <> 'closed' OR f.on_cancel = 'wait')
              AND b.status IN ('planned', 'running') AND (b.ended_at IS NULL OR f.on_cancel = 'wait'))
FROM outlast_workflow w WHERE w.id = %(id)s::uuid
"""


def still_open(workflow: UUID, using: str) -> tuple[bool, bool]:
    """Whether it owes something, and whether it has children that have not ended."""
    rows = run("open of workflow", OPEN, {"id": workflow}, using)
    return rows[0][0], rows[0][1]


class Older(NamedTuple):
    """What the next run has of the one before it; `slots`: how many it held until its end."""

    key: str | None
    digest: str
    chain: UUID | None
    parent: UUID | None
    depth: int
    ledgers: list[UUID] | None
    tenant: str
    started_by: str
    user: Any
    user_label: str
    subject: str
    priority: int
    slots: int


HAND_OVER = """
WITH old AS (
    SELECT w.id, w.key, w.input_digest, w.chain, w.parent_id, w.depth, w.ledgers, w.tenant, w.started_by, w.user_id, w.user_label,
        w.subject, w.priority, w.slots
    FROM outlast_workflow w WHERE w.id = %(id)s::uuid AND w.status = 'running' AND w.continued_to IS NULL
), given AS (
    UPDATE outlast_workflow w SET key = NULL, slots = 0, continued_to = %(next)s::uuid FROM old WHERE w.id = old.id
    RETURNING w.id
)
SELECT o.key, o.input_digest, o.chain, o.parent_id, o.depth, o.ledgers, o.tenant, o.started_by, o.user_id, o.user_label,
    o.subject, o.priority, o.slots
FROM old o JOIN given g ON g.id = o.id
"""


def hand_over(workflow: UUID, following: UUID, using: str) -> Older | None:
    """Give up key and slots for the next run, whose id is `following`; None: there is one already."""
    rows = run("hand over", HAND_OVER, {"id": workflow, "next": following}, using)
    return Older(*rows[0]) if rows else None


MOVED = """
WITH branch AS (
    UPDATE outlast_branch SET workflow_id = %(next)s::uuid WHERE workflow_id = %(id)s::uuid AND ended_at IS NULL RETURNING number
), slots AS (
    UPDATE outlast_slot SET workflow_id = %(next)s::uuid
    WHERE %(slots)s::int > 0 AND workflow_id = %(id)s::uuid AND activity_seq IS NULL RETURNING number
), held AS (
    UPDATE outlast_workflow SET slots = %(slots)s::smallint WHERE %(slots)s::int > 0 AND id = %(next)s::uuid RETURNING id
), sessions AS (
    INSERT INTO outlast_session_link (workflow_id, session, linked_at)
    SELECT %(next)s::uuid, l.session, flows_now() FROM outlast_session_link l WHERE l.workflow_id = %(id)s::uuid
    RETURNING id
)
SELECT (SELECT count(*)::int FROM branch), (SELECT count(*)::int FROM slots)
"""


def move_on(workflow: UUID, following: UUID, slots: int, using: str) -> None:
    """What hangs on the older run is the next one's: the branch of its parent, the slots that it held until its end, its sessions."""
    run("move on", MOVED, {"id": workflow, "next": following, "slots": slots}, using)


FIRST = "SELECT coalesce(w.chain, w.id) FROM outlast_workflow w WHERE w.id = %(id)s::uuid"


def first_of(workflow: UUID, using: str) -> UUID:
    """The first run of those that continued as this one; itself, if it is the first (or is not there yet)."""
    rows = run("first of chain", FIRST, {"id": workflow}, using)
    return rows[0][0] if rows else workflow
