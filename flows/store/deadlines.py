"""Deadlines that have passed: done with, put before the workflow again, told of; and the timers of freshness budgets.

handle    fired → handled           in the transaction of the arrow that its policy leads to
rearm     fired → pending           in the same, where the workflow waits and another one is still to be handled: the next sweep wakes it
tell      untold → told             after its event was recorded
renew     none, pending → pending   in the transaction of a pass that took a new baseline; one that had passed is stale
used      pending → none            in the transaction of a pass that stood on it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from flows.core.policies import Deadline
from flows.store.sql import run

Keys = Sequence[tuple[str, str]]

#: A wait's own timer has no name of its own: only those that release are handled so.
HANDLE = """
UPDATE outlast_timer t SET status = 'handled'
FROM unnest(%(kinds)s::text[], %(names)s::text[]) AS h(kind, name)
WHERE t.workflow_id = %(workflow)s::uuid AND t.kind = h.kind AND t.name = h.name AND t.status = 'fired'
  AND (t.wait_id IS NULL OR t.on_expiry = 'release')
"""

REARM = """
UPDATE outlast_timer t SET status = 'pending', fired_at = NULL
FROM unnest(%(kinds)s::text[], %(names)s::text[]) AS h(kind, name)
WHERE t.workflow_id = %(workflow)s::uuid AND t.kind = h.kind AND t.name = h.name AND t.status = 'fired' AND t.wait_id IS NULL
"""


def handle(workflow: UUID, keys: Keys, using: str) -> None:
    """What these deadlines (kind, name) of a locked workflow say has been done."""
    run("handle deadlines", HANDLE, _keys(workflow, keys), using)


def rearm(workflow: UUID, keys: Keys, using: str) -> None:
    """These deadlines of a locked workflow are looked at again by the next sweep."""
    run("rearm deadlines", REARM, _keys(workflow, keys), using)


def _keys(workflow: UUID, keys: Keys) -> dict[str, object]:
    return {"workflow": workflow, "kinds": [kind for kind, _ in keys], "names": [name for _, name in keys]}


TELL = "UPDATE outlast_timer SET untold = false WHERE id = %(id)s::bigint AND untold RETURNING id"


def told(timer: int, using: str) -> bool:
    """Its event is recorded; False if somebody else has just done it."""
    return bool(run("told of deadline", TELL, {"id": timer}, using))


RENEW = """
WITH given AS (
    SELECT g.* FROM unnest(%(names)s::text[], %(policies)s::text[], %(spans)s::interval[]) AS g(name, on_expiry, span)
), stale AS (
    UPDATE outlast_timer t SET status = 'stale'
    WHERE t.workflow_id = %(workflow)s::uuid AND t.kind = 'freshness' AND t.name = ANY (%(names)s::text[]) AND t.status = 'fired'
), dropped AS (
    DELETE FROM outlast_timer t
    WHERE t.workflow_id = %(workflow)s::uuid AND t.kind = 'freshness' AND t.name = ANY (%(names)s::text[]) AND t.fired_at IS NULL
)
INSERT INTO outlast_timer (workflow_id, kind, name, on_expiry, due_at, epoch, intent_version, policy_version, status)
SELECT w.id, 'freshness', g.name, g.on_expiry, flows_now() + g.span, w.epoch, w.intent_version, w.policy_version, 'pending'
FROM outlast_workflow w CROSS JOIN given g WHERE w.id = %(workflow)s::uuid
"""


def renew(workflow: UUID, budgets: Mapping[str, Deadline], using: str) -> None:
    """A new baseline was taken of these names: their budgets count from now."""
    params = {
        "workflow": workflow,
        "names": list(budgets),
        "policies": [one.word for one in budgets.values()],
        "spans": [one.after for one in budgets.values()],
    }
    run("renew freshness", RENEW, params, using)


USED = """
DELETE FROM outlast_timer
WHERE workflow_id = %(workflow)s::uuid AND kind = 'freshness' AND name = ANY (%(names)s::text[]) AND fired_at IS NULL
"""


def used(workflow: UUID, names: Sequence[str], using: str) -> None:
    """A node that stands on these names has passed its gate: from now on the gate looks, and no timer."""
    run("freshness used", USED, {"workflow": workflow, "names": list(names)}, using)
