"""The commitment ledger. A live commitment that may not be deferred counts in `workflow.owed`; the workflow must be locked.

plan            none → planned                     with the effect that begins it put in flight
begin           planned → active                   that effect is known to have happened; its deadline is a timer
void            planned → void                     it is known not to have happened, and the workflow ends
begin_release   active, breached → releasing       its release is planned in the same transaction
end             live → fulfilled, transferred, deferred      by an activity or a person; a release that is not under way is abandoned
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Planned:
    """A commitment as its node declares it."""

    name: str
    kind: str
    releasable: bool
    deferrable: bool


PLAN = """
WITH given AS (
    SELECT * FROM unnest(%(names)s::text[], %(kinds)s::text[], %(releasable)s::bool[], %(may_defer)s::bool[])
        AS g(name, kind, releasable, may_defer)
), planned AS (
    INSERT INTO outlast_commitment (
        workflow_id, operation_id, activity_seq, node, visit, name, kind, reference, status, releasable, may_defer, holder, reason, opened_at,
        closed_by)
    SELECT %(workflow)s::uuid, %(operation)s, %(seq)s::int, %(node)s, %(visit)s::int, g.name, g.kind, '', 'planned', g.releasable, g.may_defer,
        '', '', flows_now(), ''
    FROM given g
    ON CONFLICT (workflow_id, node, visit, name) DO NOTHING RETURNING may_defer
)
UPDATE outlast_workflow w SET owed = w.owed + (SELECT count(*)::int FROM planned p WHERE NOT p.may_defer)
WHERE w.id = %(workflow)s::uuid RETURNING w.owed
"""


def plan(operation: str, workflow: UUID, seq: int, node: str, visit: int, what: Sequence[Planned], using: str) -> int:
    """Write down what is going to be owed once the operation has happened; what the workflow owes now."""
    params = {
        "operation": operation,
        "workflow": workflow,
        "seq": seq,
        "node": node,
        "visit": visit,
        "names": [one.name for one in what],
        "kinds": [one.kind for one in what],
        "releasable": [one.releasable for one in what],
        "may_defer": [one.deferrable for one in what],
    }
    owed: int = run("plan commitments", PLAN, params, using)[0][0]
    return owed


BEGIN = """
WITH begun AS (
    UPDATE outlast_commitment c
    SET status = 'active', reference = %(reference)s, terms = %(terms)s::jsonb, reason = %(reason)s,
        deadline_at = flows_now() + %(deadline)s::interval
    WHERE c.operation_id = %(operation)s AND c.workflow_id = %(workflow)s::uuid AND c.name = %(name)s AND c.status = 'planned'
    RETURNING c.id, c.workflow_id, c.deadline_at
), timer AS (
    INSERT INTO outlast_timer (
        workflow_id, commitment_id, kind, name, on_expiry, due_at, epoch, intent_version, policy_version, status)
    SELECT b.workflow_id, b.id, 'commitment_deadline', %(name)s, %(on_expiry)s, b.deadline_at, w.epoch, w.intent_version, w.policy_version,
        'pending'
    FROM begun b JOIN outlast_workflow w ON w.id = b.workflow_id WHERE b.deadline_at IS NOT NULL
)
SELECT id FROM begun
"""


def begin(
    operation: str,
    workflow: UUID,
    name: str,
    *,
    reference: str,
    terms: str | None,
    deadline: timedelta | None,
    on_expiry: str,
    reason: str = "",
    using: str,
) -> bool:
    """It is owed from now on. `reason`: the code of what could not be said of it."""
    params = {
        "operation": operation,
        "workflow": workflow,
        "name": name,
        "reference": reference,
        "terms": terms,
        "deadline": deadline,
        "reason": reason,
        "on_expiry": on_expiry,
    }
    return bool(run("begin commitment", BEGIN, params, using))


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
  AND (%(after)s::int IS NULL OR activity_seq > %(after)s::int)
  AND (%(names)s::text[] IS NULL OR name = ANY (%(names)s::text[]))
RETURNING id, activity_seq, node, name, operation_id
"""


def begin_release(workflow: UUID, after: int | None, using: str, names: Sequence[str] | None = None) -> list[Releasing]:
    """Begin to release what this workflow holds and can release; with `after`, only what it began after that activity; or only these names."""
    params = {"workflow": workflow, "after": after, "names": None if names is None else list(names)}
    return [Releasing(*row) for row in run("begin release", BEGIN_RELEASE, params, using)]


DEFER = """
UPDATE outlast_commitment c SET status = 'deferred', closed_at = flows_now(), closed_by = 'end'
WHERE c.workflow_id = %(workflow)s::uuid AND c.status IN ('active', 'breached') AND c.may_defer
  AND (NOT c.releasable OR (SELECT w.target FROM outlast_workflow w WHERE w.id = %(workflow)s::uuid) = 'complete')
RETURNING c.id
"""


def defer(workflow: UUID, using: str) -> list[int]:
    """Let what may outlive the workflow be somebody else's business: all of it at a good end, else what cannot be released."""
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


END = """
WITH ended AS (
    UPDATE outlast_commitment c
    SET status = %(status)s, closed_at = flows_now(), closed_by = %(by)s, holder = %(holder)s,
        reason = coalesce(nullif(%(reason)s, ''), c.reason)
    WHERE c.workflow_id = %(workflow)s::uuid AND c.status = ANY (%(from)s::text[])
      AND (c.id = %(id)s::bigint OR %(id)s::bigint IS NULL AND c.name = %(name)s)
      AND (NOT %(newest)s::bool OR c.visit = (
          SELECT max(n.visit) FROM outlast_commitment n WHERE n.workflow_id = c.workflow_id AND n.name = c.name))
      AND NOT EXISTS (SELECT FROM outlast_operation o WHERE o.commitment_id = c.id AND o.status IN ('in_flight', 'uncertain'))
    RETURNING c.id, c.may_defer
), dropped AS (
    DELETE FROM outlast_timer t USING ended e WHERE t.commitment_id = e.id AND t.fired_at IS NULL
), abandoned AS (
    UPDATE outlast_operation o SET status = 'abandoned', settled_at = flows_now(), settled_by = %(by)s, due_at = NULL, looks = o.looks + 1
    FROM ended e WHERE o.commitment_id = e.id AND o.status IN ('planned', 'failed')
), paid AS (
    UPDATE outlast_workflow w SET owed = w.owed - (SELECT count(*)::int FROM ended e WHERE NOT e.may_defer)
    WHERE w.id = %(workflow)s::uuid AND EXISTS (SELECT FROM ended)
)
SELECT id, NOT may_defer FROM ended
"""

#: The claim of a look does not lock the workflow: what it takes at this moment is waited for, and seen by the statement after this one.
HOLD = """
SELECT o.id FROM outlast_operation o JOIN outlast_commitment c ON c.id = o.commitment_id
WHERE c.workflow_id = %(workflow)s::uuid AND (c.id = %(id)s::bigint OR %(id)s::bigint IS NULL AND c.name = %(name)s)
  AND o.status IN ('planned', 'failed', 'in_flight', 'uncertain')
ORDER BY o.id FOR NO KEY UPDATE OF o
"""

#: What can still be ended by somebody's word.
OPEN = ("active", "breached", "releasing")


def end(
    workflow: UUID,
    *,
    status: str,
    by: str,
    commitment: int | None = None,
    name: str = "",
    holder: str = "",
    reason: str = "",
    newest: bool = False,
    using: str,
) -> list[tuple[int, bool]]:
    """End live commitments, one by id or those of a name (`newest`: only that of its latest visit); not one whose release is under way or in
    doubt.

    (id, whether it was counted in `owed`) of each that ended.
    """
    params: dict[str, Any] = {
        "workflow": workflow,
        "status": status,
        "by": by,
        "id": commitment,
        "name": name,
        "holder": holder,
        "reason": reason,
        "from": list(OPEN),
        "newest": newest,
    }
    run("hold releases", HOLD, {name: params[name] for name in ("workflow", "id", "name")}, using)
    return [(row[0], row[1]) for row in run("end commitment", END, params, using)]


HAS_DEFERRED = "SELECT EXISTS (SELECT FROM outlast_commitment WHERE workflow_id = %(workflow)s::uuid AND status = 'deferred')"


def has_deferred(workflow: UUID, using: str) -> bool:
    """Whether the workflow leaves commitments to others."""
    return bool(run("has deferred", HAS_DEFERRED, {"workflow": workflow}, using)[0][0])


STUCK = """
SELECT EXISTS (SELECT FROM outlast_commitment c
               WHERE c.workflow_id = %(workflow)s::uuid AND c.status IN ('active', 'breached') AND NOT c.releasable AND NOT c.may_defer)
"""


def is_stuck(workflow: UUID, using: str) -> bool:
    """Whether it holds something that only a person can end."""
    return bool(run("stuck commitments", STUCK, {"workflow": workflow}, using)[0][0])


TOLD = "UPDATE outlast_commitment SET told_at = flows_now() WHERE id = %(id)s::bigint AND told_at IS NULL RETURNING id"


def told(commitment: int, using: str) -> bool:
    """Somebody was told of its breach."""
    return bool(run("told of breach", TOLD, {"id": commitment}, using))
