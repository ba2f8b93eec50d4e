"""The commitment ledger. A live commitment that may not be deferred counts in `workflow.owed`; the workflow must be locked.

open            none → planned, with the effect that begins it in flight; → active when that is known to have happened, void when not
begin_release   active, breached → releasing      its release is planned in the same transaction
end             live → released, fulfilled, transferred, deferred
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Releasing:
    """A commitment whose release begins. `operation_id` is the operation that began the commitment."""

    id: int
    activity_seq: int
    node: str
    name: str
    operation_id: str


BEGIN_RELEASE = """
UPDATE outlast_commitment SET status = 'releasing'
WHERE workflow_id = %(workflow)s::uuid AND status IN ('active', 'breached') AND releasable
RETURNING id, activity_seq, node, name, coalesce(operation_id, workflow_id || '/' || name)
"""


def begin_release(workflow: UUID, using: str) -> list[Releasing]:
    """Begin to release what this workflow holds and can release."""
    return [Releasing(*row) for row in run("begin release", BEGIN_RELEASE, {"workflow": workflow}, using)]


DEFER = """
WITH deferred AS (
    UPDATE outlast_commitment c SET status = 'deferred', closed_at = flows_now(), closed_by = 'end'
    WHERE c.workflow_id = %(workflow)s::uuid AND c.status IN ('active', 'breached') AND c.may_defer
      AND (SELECT w.target FROM outlast_workflow w WHERE w.id = %(workflow)s::uuid) = 'complete'
    RETURNING c.id
)
SELECT id FROM deferred
"""


def defer(workflow: UUID, using: str) -> list[int]:
    """Let what may outlive a workflow that completes be somebody else's business."""
    return [row[0] for row in run("defer", DEFER, {"workflow": workflow}, using)]


VOID = """
WITH voided AS (
    UPDATE outlast_commitment c SET status = 'void', closed_at = flows_now(), closed_by = 'end'
    WHERE c.workflow_id = %(workflow)s::uuid AND c.status = 'planned' RETURNING c.may_defer
)
UPDATE outlast_workflow SET owed = owed - (SELECT count(*)::int FROM voided v WHERE NOT v.may_defer)
WHERE id = %(workflow)s::uuid AND EXISTS (SELECT FROM voided)
RETURNING id
"""


def void(workflow: UUID, using: str) -> None:
    """What was to begin with an effect that did not happen, of a workflow in which nothing is in doubt."""
    run("void commitments", VOID, {"workflow": workflow}, using)


HAS_DEFERRED = "SELECT EXISTS (SELECT FROM outlast_commitment WHERE workflow_id = %(workflow)s::uuid AND status = 'deferred')"


def has_deferred(workflow: UUID, using: str) -> bool:
    """Whether the workflow leaves commitments to others."""
    return bool(run("has deferred", HAS_DEFERRED, {"workflow": workflow}, using)[0][0])
