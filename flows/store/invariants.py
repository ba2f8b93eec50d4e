"""The five invariants of the record (P1), and those of its ledgers (N1), each a query for what breaks it. None is found in a sound record with
live workers.

They look at live rows only; of ledgers, at those that have changed within a day. Where a crash may break one for a moment (an owner that died
a second ago), the moment is left out.
"""

from __future__ import annotations

from uuid import UUID

from flows.core.budget import FULL
from flows.core.liveness import RECOVERY
from flows.store.budgets import OPEN, REST
from flows.store.sql import run

#: Seconds that recovery may take.
PATIENCE = RECOVERY

OWNERLESS = """
SELECT w.id, format('%s at %s, and no live worker owns it', w.status, w.node)
FROM outlast_workflow w LEFT JOIN outlast_worker k ON k.id = w.worker_id
WHERE w.status = 'running' AND w.worker_id IS NOT NULL AND (k.id IS NULL OR k.status <> 'alive')
  AND w.updated_at < flows_now() - %(patience)s::int * interval '1 second'
LIMIT 100
"""

ASLEEP = """
SELECT w.id, format('waiting at %s, and nothing will wake it', w.node) FROM outlast_workflow w
WHERE w.status = 'waiting' AND w.outcome = 'WAITING' AND NOT EXISTS (
    SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.closed_at IS NULL AND (
        (o.event_type <> '' OR o.kind IN ('approval', 'ask')) AND o.deadline_at IS NOT NULL OR o.due_since IS NOT NULL
        OR EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND t.wait_id = o.id AND t.fired_at IS NULL
                   AND t.kind NOT IN ('reminder', 'escalation'))))
LIMIT 100
"""

ENDLESS = """
SELECT w.id, format('attempt %s of %s waits for a retry without a time', a.attempt, a.node)
FROM outlast_workflow w
JOIN outlast_wait o ON o.workflow_id = w.id AND o.closed_at IS NULL AND o.kind = 'retry_window'
JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
WHERE w.status = 'waiting' AND o.due_since IS NULL AND NOT EXISTS (
    SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND t.wait_id = o.id AND t.fired_at IS NULL)
LIMIT 100
"""

UNPROTECTED = """
SELECT o.workflow_id, format('%s is due, and no live worker serves the cleanup queue', o.id) FROM outlast_operation o
WHERE o.due_at IS NOT NULL AND o.worker_id IS NULL AND o.due_at < flows_now() - %(patience)s::int * interval '1 second'
  AND NOT EXISTS (SELECT FROM outlast_worker k
                  WHERE k.status = 'alive' AND k.lease_until > statement_timestamp() AND 'cleanup' = ANY (k.queues))
LIMIT 100
"""

UNSERVICED = """
SELECT c.workflow_id, format('%s %s has no release, no deadline and may not be deferred: only a person ends it', c.kind, c.name)
FROM outlast_commitment c
WHERE c.status IN ('planned', 'active', 'breached', 'releasing') AND NOT c.releasable AND NOT c.may_defer AND c.deadline_at IS NULL
LIMIT 100
"""

#: The row of a ledger is what its entries add up to: one statement writes both.
UNBALANCED = f"""
SELECT coalesce(b.workflow_id, b.intent_id), format('the ledger of %s says %s spent and %s reserved, its entries %s and %s',
    b.kind, b.spent, b.reserved, x.spent, x.reserved)
FROM outlast_budget b CROSS JOIN LATERAL (
    SELECT
        least(coalesce(sum(e.amount) FILTER (
            WHERE e.entry IN ('spent', 'settled') OR e.entry = 'carried' AND b.intent_id IS NOT NULL), 0), {FULL}) AS spent,
        coalesce(sum({REST}) FILTER (WHERE {OPEN}), 0) AS reserved
    FROM outlast_budget_entry e WHERE e.budget_id = b.id) x
WHERE b.updated_at > flows_now() - interval '1 day' AND (b.spent <> x.spent OR b.reserved <> x.reserved)
LIMIT 100
"""

UNSETTLED = f"""
SELECT e.workflow_id, format('attempt %s of %s has ended, and what it had set aside is not settled', e.attempt, e.node)
FROM outlast_budget b JOIN outlast_budget_entry e ON e.budget_id = b.id
WHERE b.updated_at > flows_now() - interval '1 day' AND {OPEN} AND NOT EXISTS (
    SELECT FROM outlast_activity a JOIN outlast_workflow w ON w.id = a.workflow_id AND w.active_seq = a.seq
    WHERE a.workflow_id = e.workflow_id AND a.seq = e.activity_seq AND a.attempt = e.attempt AND a.status = 'running')
LIMIT 100
"""

#: A branch that is counted has a run that has ended, or none that was ever begun.
MISCOUNTED = """
SELECT b.parent_id, format('branch %s of its node is counted as %s, and its run %s is %s', b.number, b.status, b.workflow_id, w.status)
FROM outlast_branch b JOIN outlast_workflow w ON w.id = b.workflow_id
WHERE b.counted_at > flows_now() - interval '1 day' AND w.status NOT IN ('complete', 'failed', 'cancelled', 'superseded')
LIMIT 100
"""

#: An open fan belongs to a live run of its generation, or to a child that is left to itself.
UNJOINED = """
SELECT f.workflow_id, format('the children of %s, visit %s, are waited for by nobody, and the fan is open', f.node, f.visit)
FROM outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.status = 'open' AND (f.awaited OR f.on_cancel <> 'abandon')
  AND (w.status IN ('complete', 'failed', 'cancelled', 'superseded') OR w.epoch <> f.epoch)
LIMIT 100
"""

#: A run that waits for its children before it ends has not ended before them.
OUTLIVED = """
SELECT f.workflow_id, format('it has ended, and %s children of %s that it waits for run', f.running, f.node)
FROM outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.on_cancel = 'wait' AND f.running > 0 AND w.status IN ('complete', 'failed', 'cancelled', 'superseded')
LIMIT 100
"""

#: Name of the invariant → the query for what breaks it.
INVARIANTS: dict[str, str] = {
    "no active workflow without owner or wait": OWNERLESS,
    "no waiting workflow without a wake-up condition": ASLEEP,
    "no retry path without an end": ENDLESS,
    "no reconciliation without protected capacity": UNPROTECTED,
    "no active commitment without a servicing path": UNSERVICED,
    "no ledger that its entries do not add up to": UNBALANCED,
    "no budget set aside for an attempt that has ended": UNSETTLED,
    "no counted branch whose run has not ended": MISCOUNTED,
    "no open fan that nobody will close": UNJOINED,
    "no child that runs under an ended parent that waits for it": OUTLIVED,
}


def broken(using: str) -> list[tuple[str, UUID, str]]:
    """(invariant, workflow, what breaks it), at most a hundred of each."""
    return [
        (name, row[0], row[1])
        for name, query in INVARIANTS.items()
        for row in run("invariant", query, {"patience": PATIENCE} if "patience" in query else {}, using)
    ]
