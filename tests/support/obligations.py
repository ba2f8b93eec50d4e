"""What must hold of effects and commitments in the record, at every moment between two transactions, found by plain SQL.

assert faults() == []          owed is exact, no end with debts, nobody stuck, every release and compensation agrees with what it is for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from tests.support import record

#: Each part selects (workflow, what is wrong). Read in one statement, so in one snapshot.
FAULTS = """
SELECT w.id, format('owed is %s and should be %s (%s)', w.owed, d.effects + d.mitigations + d.held, w.status)
FROM outlast_workflow w CROSS JOIN LATERAL (SELECT
    (SELECT count(*)::int FROM outlast_operation o
     WHERE o.workflow_id = w.id AND o.kind = 'effect' AND o.status IN ('in_flight', 'uncertain')) AS effects,
    (SELECT count(*)::int FROM outlast_operation o
     WHERE o.workflow_id = w.id AND o.kind = 'compensation' AND o.status NOT IN ('succeeded', 'abandoned')) AS mitigations,
    (SELECT count(*)::int FROM outlast_commitment c
     WHERE c.workflow_id = w.id AND NOT c.may_defer AND c.status IN ('planned', 'active', 'breached', 'releasing')) AS held) d
WHERE w.owed <> d.effects + d.mitigations + d.held
UNION ALL
SELECT o.workflow_id, format('%s after its end (%s): %s', o.id, w.status, o.status) FROM outlast_operation o
JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE w.status IN ('complete', 'failed', 'cancelled', 'superseded')
  AND (o.status IN ('planned', 'in_flight', 'uncertain') OR o.status = 'failed' AND o.kind <> 'effect')
UNION ALL
SELECT c.workflow_id, format('commitment %s after the end: %s', c.name, c.status) FROM outlast_commitment c
JOIN outlast_workflow w ON w.id = c.workflow_id
WHERE w.status IN ('complete', 'failed', 'cancelled', 'superseded') AND c.status IN ('planned', 'active', 'breached', 'releasing')
UNION ALL
SELECT w.id, format('%s with nothing owed', w.status) FROM outlast_workflow w
WHERE w.status IN ('reconciling', 'cancelling') AND w.owed = 0
UNION ALL
SELECT w.id, 'reconciling without a doubt' FROM outlast_workflow w
WHERE w.status = 'reconciling' AND w.target = '' AND NOT EXISTS (
    SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND o.kind = 'effect' AND o.status = 'uncertain' AND NOT o.again)
UNION ALL
SELECT o.workflow_id, format('%s is %s and to be asked for again (%s, target %L)', o.id, o.status, w.status, w.target)
FROM outlast_operation o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.again AND o.status <> 'in_flight' AND (o.status <> 'uncertain' OR o.due_at IS NOT NULL OR o.worker_id IS NOT NULL
    OR w.target <> '' OR w.outcome = 'HUMAN_REQUIRED')
UNION ALL
SELECT w.id, format('%s, and nobody will look at anything of it', w.status) FROM outlast_workflow w
WHERE w.status IN ('reconciling', 'cancelling') AND w.outcome <> 'HUMAN_REQUIRED'
  AND NOT EXISTS (SELECT FROM outlast_operation o
                  WHERE o.workflow_id = w.id AND (o.due_at IS NOT NULL OR o.worker_id IS NOT NULL
                        OR o.status = 'uncertain' OR o.status = 'failed' AND o.kind <> 'effect'))
  AND NOT EXISTS (SELECT FROM outlast_commitment c
                  WHERE c.workflow_id = w.id AND c.status IN ('active', 'breached') AND NOT c.releasable AND NOT c.may_defer)
UNION ALL
SELECT o.workflow_id, format('%s is in flight of a workflow that is %s', o.id, w.status) FROM outlast_operation o
JOIN outlast_workflow w ON w.id = o.workflow_id WHERE o.kind = 'effect' AND o.status = 'in_flight' AND w.status <> 'running'
UNION ALL
SELECT o.workflow_id, format('%s: nothing may go past the doubt about %s', w.status, o.id) FROM outlast_operation o
JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.kind = 'effect' AND o.status = 'uncertain' AND NOT o.again AND w.status IN ('runnable', 'running')
UNION ALL
SELECT o.workflow_id, format('%s is %s, and due or owned', o.id, o.status) FROM outlast_operation o
WHERE (o.worker_id IS NOT NULL AND o.status NOT IN ('in_flight', 'uncertain'))
   OR (o.due_at IS NOT NULL AND o.status IN ('succeeded', 'compensated', 'abandoned'))
   OR (o.status = 'uncertain' AND o.doubt_since IS NULL)
UNION ALL
SELECT o.workflow_id, format('%s is %s of a commitment that is %s', o.id, o.status, coalesce(c.status, 'missing'))
FROM outlast_operation o LEFT JOIN outlast_commitment c ON c.id = o.commitment_id
WHERE o.kind = 'release' AND (CASE o.status
    WHEN 'succeeded' THEN c.status IS DISTINCT FROM 'released' WHEN 'abandoned' THEN c.status IN ('active', 'releasing')
    ELSE c.status IS DISTINCT FROM 'releasing' END)
UNION ALL
SELECT c.workflow_id, format('commitment %s is releasing without a release', c.name) FROM outlast_commitment c
WHERE c.status = 'releasing' AND NOT EXISTS (
    SELECT FROM outlast_operation o WHERE o.commitment_id = c.id AND o.status IN ('planned', 'in_flight', 'uncertain', 'failed'))
UNION ALL
SELECT o.workflow_id, format('%s is compensated, %s is %s', o.id, m.id, coalesce(m.status, 'missing')) FROM outlast_operation o
LEFT JOIN outlast_operation m ON m.of_id = o.id WHERE o.status = 'compensated' AND m.status IS DISTINCT FROM 'succeeded'
UNION ALL
SELECT o.workflow_id, format('%s has succeeded, %s is %s', m.id, o.id, o.status) FROM outlast_operation m
JOIN outlast_operation o ON o.id = m.of_id WHERE m.kind = 'compensation' AND m.status = 'succeeded' AND o.status <> 'compensated'
UNION ALL
SELECT c.workflow_id, format('commitment %s is %s, its effect is %s', c.name, c.status, o.status) FROM outlast_commitment c
JOIN outlast_operation o ON o.id = c.operation_id
WHERE (c.status IN ('active', 'releasing', 'released', 'breached') AND o.status NOT IN ('succeeded', 'compensated'))
   OR (c.status IN ('planned', 'void') AND o.status IN ('succeeded', 'compensated'))
UNION ALL
SELECT o.workflow_id, format('%s of one operation count', o.id) FROM outlast_operation o
JOIN outlast_resolution r ON r.operation_id = o.id AND r.counted AND r.answer = 'happened' GROUP BY o.id HAVING count(*) > 1
"""


def faults() -> list[str]:
    """Everything that is wrong with what is owed, with the log, and with who waits for what."""
    with connection.cursor() as cursor:
        cursor.execute(FAULTS)
        found = [f"{row[0]}: {row[1]}" for row in cursor.fetchall()]
    return found + record.unsound() + record.stranded()


def broken(outcomes: Sequence[Any]) -> list[Exception]:
    """Errors among the outcomes of a round that nobody expects: deadlocks, half moves, anything but a clear answer."""
    from flows.core.errors import LostOwnership
    from flows.core.misuse import UsageError

    expected = LostOwnership, UsageError
    return [outcome for outcome in outcomes if isinstance(outcome, Exception) and not isinstance(outcome, expected)]
