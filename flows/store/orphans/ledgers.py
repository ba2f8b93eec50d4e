"""Ledgers that changed within a day: what their rows say against what their entries add up to, and what is set aside for nobody."""

from __future__ import annotations

from flows.core.budget import FULL
from flows.store.budgets import OPEN, REST

_RECENT = "b.updated_at > flows_now() - interval '1 day'"

UNBALANCED = f"""
SELECT 'budget:' || b.id, b.workflow_id, jsonb_build_object('budget', b.id, 'kind', b.kind, 'intent', b.intent_id, 'spent', b.spent::text,
    'reserved', b.reserved::text, 'entries_spent', x.spent::text, 'entries_reserved', x.reserved::text)
FROM outlast_budget b CROSS JOIN LATERAL (
    SELECT
        least(coalesce(sum(e.amount) FILTER (
            WHERE e.entry IN ('spent', 'settled') OR e.entry = 'carried' AND b.intent_id IS NOT NULL), 0), {FULL}) AS spent,
        coalesce(sum({REST}) FILTER (WHERE {OPEN}), 0) AS reserved
    FROM outlast_budget_entry e WHERE e.budget_id = b.id) x
WHERE {_RECENT} AND (b.spent <> x.spent OR b.reserved <> x.reserved)
LIMIT %(limit)s::int
"""

UNSETTLED = f"""
SELECT DISTINCT format('attempt:%s/%s/%s', e.workflow_id, e.activity_seq, e.attempt), e.workflow_id, jsonb_build_object(
    'activity', e.activity_seq, 'attempt', e.attempt, 'node', e.node)
FROM outlast_budget b JOIN outlast_budget_entry e ON e.budget_id = b.id
WHERE {_RECENT} AND {OPEN} AND NOT EXISTS (
    SELECT FROM outlast_activity a JOIN outlast_workflow w ON w.id = a.workflow_id AND w.active_seq = a.seq
    WHERE a.workflow_id = e.workflow_id AND a.seq = e.activity_seq AND a.attempt = e.attempt AND a.status = 'running')
LIMIT %(limit)s::int
"""
