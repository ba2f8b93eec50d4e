"""What people and new goals change of a ledger: how much it allows. The ledgers are locked (see `flows/store/budgets.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from flows.core.budget import FULL
from flows.store.budgets import OPEN, REST, SINCE
from flows.store.sql import run

CHANGE = """
WITH moved AS (
    UPDATE outlast_budget b
    SET allowance = %(allowance)s::numeric, soft = %(soft)s::numeric, kept = %(kept)s::numeric,
        warned_at = CASE WHEN b.spent >= %(soft)s::numeric THEN b.warned_at END, updated_at = flows_now()
    WHERE b.id = %(id)s::bigint
    RETURNING b.id
)
INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, reason, by_id, by_label, at)
SELECT m.id, %(entry)s, %(amount)s::numeric, %(workflow)s::uuid, '', %(reason)s, %(by)s, %(by_label)s, flows_now() FROM moved m
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A ledger's new limits, and the entry that says why: `raised` or `carried`, by how much, and by whom."""

    id: int
    allowance: Decimal
    soft: Decimal
    kept: Decimal
    entry: str
    amount: Decimal
    workflow: UUID | None = None
    reason: str = ""
    by: Any = None
    by_label: str = ""


def change(made: Change, using: str) -> bool:
    """Change what a locked ledger allows."""
    return bool(run("change budget", CHANGE, {name: getattr(made, name) for name in Change.__dataclass_fields__}, using))


#: What the intent's runs have spent so far is spent of it, and what their running attempts have set aside is set aside in it too. An attempt
#: that has said what it used has said so here as well (0 more), so that its end settles both ledgers alike.
LIMIT = f"""
WITH known AS (
    SELECT least(coalesce(sum(b.spent), 0), {FULL}) AS spent FROM outlast_budget b JOIN outlast_workflow w ON w.id = b.workflow_id
    WHERE w.intent_id = %(intent)s::uuid AND b.kind = %(kind)s
), open AS (
    SELECT e.workflow_id, e.node, e.activity_seq, e.attempt, e.call, {REST} AS rest,
        EXISTS (SELECT FROM outlast_budget_entry u WHERE {SINCE}) AS told
    FROM outlast_budget b JOIN outlast_workflow w ON w.id = b.workflow_id JOIN outlast_budget_entry e ON e.budget_id = b.id
    WHERE w.intent_id = %(intent)s::uuid AND b.kind = %(kind)s AND {OPEN}
), made AS (
    INSERT INTO outlast_budget (intent_id, kind, allowance, soft, kept, spent, reserved, updated_at)
    SELECT %(intent)s::uuid, %(kind)s, %(allowance)s::numeric, %(soft)s::numeric, %(kept)s::numeric, k.spent,
        (SELECT coalesce(sum(rest), 0) FROM open), flows_now()
    FROM known k
    ON CONFLICT (intent_id, kind) WHERE intent_id IS NOT NULL DO NOTHING
    RETURNING id, spent
), limited AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, node, reason, by_id, by_label, at)
    SELECT m.id, 'raised', %(allowance)s::numeric, '', %(reason)s, %(by)s, %(by_label)s, flows_now() FROM made m
), taken_over AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
    SELECT m.id, 'carried' AS entry, m.spent, NULL::uuid, '', NULL::int, NULL::int, 0, '', '', flows_now() FROM made m WHERE m.spent > 0
    UNION ALL
    SELECT m.id, 'reserved', o.rest, o.workflow_id, o.node, o.activity_seq, o.attempt, o.call, '', '', flows_now()
    FROM made m CROSS JOIN open o
    UNION ALL
    SELECT m.id, 'spent', 0, o.workflow_id, o.node, o.activity_seq, o.attempt, o.call, '', '', flows_now()
    FROM made m CROSS JOIN open o WHERE o.told
    ORDER BY entry
)
SELECT id FROM made
"""


def limit(
    intent: UUID, kind: str, *, allowance: Decimal, soft: Decimal, kept: Decimal, reason: str, by: Any, by_label: str, using: str
) -> bool:
    """Make the ledger of an intent (whose live workflows are locked); False: there is one."""
    params = {
        "intent": intent,
        "kind": kind,
        "allowance": allowance,
        "soft": soft,
        "kept": kept,
        "reason": reason,
        "by": by,
        "by_label": by_label,
    }
    return bool(run("limit budget", LIMIT, params, using))


OF_WORKFLOWS = """
SELECT b.id, b.workflow_id, b.kind, b.allowance, b.soft, b.kept, b.spent, b.reserved FROM outlast_budget b
WHERE b.workflow_id = ANY (%(ids)s::uuid[]) ORDER BY b.id FOR NO KEY UPDATE
"""


def lock_of(workflows: Sequence[UUID], using: str) -> list[tuple[Any, ...]]:
    """Lock all ledgers of these (locked) workflows: (id, workflow, kind, allowance, soft, kept, spent, reserved)."""
    return run("lock budgets", OF_WORKFLOWS, {"ids": list(workflows)}, using)
