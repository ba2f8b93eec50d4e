"""The ledgers: each change of one is a guarded statement with its entry (docs/decisions/0004, docs/how-to/budgets.md).

    reserved   amount is set aside                      with the pass of an attempt, if there is room
    spent      amount was used; it is taken off what the attempt has set aside
    settled    what is still set aside is free again; amount is what it cost beside what was said     with the end of the attempt
    raised     the limit went up by amount              a person
    carried    the limit (of a workflow), or what is spent (of an intent), was taken over from elsewhere

    spent = Σ spent + Σ settled (+ Σ carried, of an intent), at most FULL
    reserved = Σ over attempts without `settled`: max(reserved − Σ spent since, 0)

Whoever draws on a ledger has the workflow locked for which it draws, then locks the ledgers (those of workflows first, by id), and acts in a new
statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from flows.core.budget import FULL, Ledger
from flows.core.protocol import BudgetKind
from flows.store.sql import run

LEDGERS = """
SELECT b.id, coalesce(b.workflow_id = %(workflow)s::uuid, false), b.kind, b.allowance, b.soft, b.kept, b.spent, b.reserved,
    coalesce(b.workflow_id <> %(workflow)s::uuid, false)
FROM outlast_budget b
WHERE (b.workflow_id = ANY (%(workflows)s::uuid[]) OR b.intent_id = %(intent)s::uuid) AND b.kind = ANY (%(kinds)s::text[])
ORDER BY b.workflow_id IS NULL, b.id
"""
LOCK = LEDGERS + " FOR NO KEY UPDATE"


def ledgers(
    workflow: UUID | None,
    intent: UUID | None,
    kinds: Sequence[str],
    using: str,
    *,
    along: Sequence[UUID] | None = None,
    lock: bool = False,
) -> list[Ledger]:
    """The ledgers of these kinds that are made: the workflow's and those of its ancestors on which it draws (`along`, its own among them; None:
    its own alone), then the intent's.
    """
    workflows = list(along) if along is not None else [workflow] if workflow is not None else []
    params = {"workflow": workflow, "workflows": workflows, "intent": intent, "kinds": list(kinds)}
    rows = run("lock budgets", LOCK, params, using) if lock else run("budgets", LEDGERS, params, using)
    return [Ledger(row[0], row[1], BudgetKind(row[2]), *row[3:9]) for row in rows]


MAKE = """
INSERT INTO outlast_budget (workflow_id, kind, allowance, soft, kept, spent, reserved, updated_at)
SELECT %(workflow)s::uuid, g.kind, g.allowance, g.soft, g.kept, 0, 0, flows_now()
FROM unnest(%(kinds)s::text[], %(allowances)s::numeric[], %(softs)s::numeric[], %(kepts)s::numeric[]) AS g(kind, allowance, soft, kept)
ON CONFLICT (workflow_id, kind) WHERE workflow_id IS NOT NULL DO NOTHING
"""


def make(workflow: UUID, missing: Sequence[Ledger], using: str) -> None:
    """Make ledgers of a (locked) workflow; one that is there stays as it is."""
    params = {
        "workflow": workflow,
        "kinds": [one.kind.value for one in missing],
        "allowances": [one.allowance for one in missing],
        "softs": [one.soft for one in missing],
        "kepts": [one.kept for one in missing],
    }
    run("make budgets", MAKE, params, using)


@dataclass(frozen=True, slots=True)
class Drawer:
    """Who draws: one attempt at a node of a workflow. `seq` None: no attempt (an approval is asked for). `call`: the entry of its journal; 0:
    the attempt as a whole.
    """

    workflow: UUID
    node: str
    seq: int | None
    attempt: int | None
    call: int = 0


#: An amount of 0 is measured afterwards: something must be left of what limits it.
ROOM = """
    (b.allowance IS NULL OR CASE WHEN a.amount = 0
        THEN b.spent + b.reserved < b.allowance - CASE WHEN %(privileged)s::bool THEN 0 ELSE b.kept END
        ELSE b.spent + b.reserved + a.amount <= b.allowance - CASE WHEN %(privileged)s::bool THEN 0 ELSE b.kept END END)
"""

RESERVE = f"""
WITH moved AS (
    UPDATE outlast_budget b SET reserved = b.reserved + a.amount, updated_at = flows_now()
    FROM unnest(%(kinds)s::text[], %(amounts)s::numeric[]) AS a(kind, amount)
    WHERE b.id = ANY (%(ids)s::bigint[]) AND b.kind = a.kind AND {ROOM}
    RETURNING b.id, a.amount
), entered AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
    SELECT m.id, 'reserved', m.amount, %(workflow)s::uuid, %(node)s, %(seq)s::int, %(attempt)s::int, %(call)s::int, '', '', flows_now()
    FROM moved m
)
SELECT id FROM moved
"""


def reserve(
    drawer: Drawer, locked: Sequence[Ledger], wanted: Mapping[BudgetKind, Decimal], using: str, *, privileged: bool
) -> bool:
    """Set aside what an attempt may use, in each of these locked ledgers; False: one has no room, and the caller takes all of it back."""
    params = {**_drawn(drawer, locked, wanted), "privileged": privileged}
    return len(run("reserve", RESERVE, params, using)) == len(locked)


def _drawn(drawer: Drawer, locked: Sequence[Ledger], wanted: Mapping[BudgetKind, Decimal]) -> dict[str, Any]:
    return {
        "workflow": drawer.workflow,
        "node": drawer.node,
        "seq": drawer.seq,
        "attempt": drawer.attempt,
        "call": drawer.call,
        "ids": [one.id for one in locked],
        "kinds": [kind.value for kind in wanted],
        "amounts": list(wanted.values()),
    }


#: What is spent, with so much more; the entries say all of it.
MORE = f"least(b.spent + {{cost}}, {FULL})"

#: The soft limit is told once: a notice to the accountable user, and the moment of it on the ledger.
WARNED = """
CASE WHEN b.warned_at IS NULL AND b.soft IS NOT NULL AND b.spent + {cost} >= b.soft THEN flows_now() ELSE b.warned_at END
"""
NOTICE = """
notice AS (
    INSERT INTO outlast_notice (workflow_id, user_id, outcome, code, created_at, tries)
    SELECT DISTINCT w.id, w.user_id, coalesce(nullif(w.outcome, ''), upper(w.status)), 'BUDGET_SOFT', flows_now(), 0
    FROM moved m JOIN {told} JOIN outlast_workflow w ON w.id = t.workflow_id
    WHERE m.warned AND w.user_id IS NOT NULL
)
"""

#: What an attempt has set aside and not settled.
OPEN = """
    e.entry = 'reserved' AND NOT EXISTS (
        SELECT FROM outlast_budget_entry s
        WHERE s.workflow_id = e.workflow_id AND s.activity_seq = e.activity_seq AND s.attempt = e.attempt AND s.budget_id = e.budget_id
          AND s.call = e.call AND s.entry = 'settled')
"""
#: What an attempt has used of a reservation `e`: what it said after it was set aside. What it said before (in a probe) never was in it.
SINCE = """
    u.workflow_id = e.workflow_id AND u.activity_seq = e.activity_seq AND u.attempt = e.attempt AND u.budget_id = e.budget_id
    AND u.call = e.call AND u.entry = 'spent' AND u.id > e.id
"""
#: What of a reservation `e` is still set aside.
REST = f"greatest(e.amount - (SELECT coalesce(sum(u.amount), 0) FROM outlast_budget_entry u WHERE {SINCE}), 0)"

SPEND = f"""
WITH held AS (
    SELECT b.id, a.amount, b.warned_at IS NULL AS quiet, least(a.amount, coalesce((
        SELECT sum({REST}) FROM outlast_budget_entry e
        WHERE e.workflow_id = %(workflow)s::uuid AND e.activity_seq = %(seq)s::int AND e.attempt = %(attempt)s::int AND e.call = %(call)s::int
          AND e.budget_id = b.id AND {OPEN}
    ), 0)) AS covered
    FROM outlast_budget b JOIN unnest(%(kinds)s::text[], %(amounts)s::numeric[]) AS a(kind, amount) ON a.kind = b.kind
    WHERE b.id = ANY (%(ids)s::bigint[])
), moved AS (
    UPDATE outlast_budget b
    SET spent = {MORE.format(cost="h.amount")}, reserved = b.reserved - h.covered,
        warned_at = {WARNED.format(cost="h.amount")}, updated_at = flows_now()
    FROM held h WHERE b.id = h.id
    RETURNING b.id, h.amount, h.quiet AND b.warned_at IS NOT NULL AS warned, b.workflow_id IS NOT NULL AS own, b.kind, b.allowance, b.soft,
        b.kept, b.spent, b.reserved
), entered AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
    SELECT m.id, 'spent', m.amount, %(workflow)s::uuid, %(node)s, %(seq)s::int, %(attempt)s::int, %(call)s::int, '', '', flows_now()
    FROM moved m
), {NOTICE.format(told="(SELECT %(workflow)s::uuid AS workflow_id) AS t ON true")}
SELECT id, own, kind, allowance, soft, kept, spent, reserved FROM moved
"""


def spend(drawer: Drawer, locked: Sequence[Ledger], used: Mapping[BudgetKind, Decimal], using: str) -> list[Ledger]:
    """Book what was used, limits or not: it was. The ledgers afterwards."""
    rows = run("spend", SPEND, _drawn(drawer, locked, used), using)
    return [Ledger(row[0], row[1], BudgetKind(row[2]), *row[3:8]) for row in rows]


REVIEW = f"""
WITH moved AS (
    UPDATE outlast_budget b SET spent = {MORE.format(cost="a.amount")}, warned_at = {WARNED.format(cost="a.amount")}, updated_at = flows_now()
    FROM (SELECT 1::numeric AS amount) a WHERE b.id = ANY (%(ids)s::bigint[]) AND {ROOM}
    RETURNING b.id, b.warned_at IS NOT NULL AND b.warned_at = flows_now() AS warned
), entered AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, reason, by_label, at)
    SELECT m.id, 'spent', 1, %(workflow)s::uuid, %(node)s, '', '', flows_now() FROM moved m
), {NOTICE.format(told="(SELECT %(workflow)s::uuid AS workflow_id) AS t ON true")}
SELECT id FROM moved
"""


def review(workflow: UUID, node: str, locked: Sequence[Ledger], using: str) -> bool:
    """People are asked once more: book it in each of these locked ledgers; False: one has no room, and the caller takes all of it back."""
    params = {"workflow": workflow, "node": node, "ids": [one.id for one in locked], "privileged": False}
    return len(run("review", REVIEW, params, using)) == len(locked)


HELD = f"""
SELECT e.budget_id, sum({REST})
FROM outlast_budget_entry e
WHERE e.workflow_id = %(workflow)s::uuid AND e.activity_seq = %(seq)s::int AND e.attempt = %(attempt)s::int AND {OPEN}
GROUP BY e.budget_id
"""


def held(drawer: Drawer, using: str) -> dict[int, Decimal]:
    """Ledger → what a running attempt has set aside and not used so far."""
    params = {"workflow": drawer.workflow, "seq": drawer.seq, "attempt": drawer.attempt}
    return {row[0]: row[1] for row in run("held budgets", HELD, params, using)}


OWNED = """
SELECT w.id FROM outlast_workflow w JOIN outlast_activity a ON a.workflow_id = w.id
WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
  AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
  AND a.seq = %(seq)s::int AND a.fence = %(fence)s::int AND a.status = 'running'
FOR NO KEY UPDATE OF w
"""


def lock_owned(workflow: UUID, version: int, epoch: int, worker: UUID, seq: int, fence: int, using: str) -> bool:
    """Lock the workflow of a running attempt; False if it is no longer this worker's."""
    params = {"id": workflow, "version": version, "epoch": epoch, "worker": worker, "seq": seq, "fence": fence}
    return bool(run("lock owned", OWNED, params, using))


OF_ATTEMPT = "e.workflow_id = ANY (%(ids)s::uuid[]) AND e.activity_seq = %(seq)s::int AND e.attempt = %(attempt)s::int"
OF_CALL = f"{OF_ATTEMPT} AND e.call = %(call)s::int"
OF_WORKFLOWS = "e.workflow_id = ANY (%(ids)s::uuid[])"


def _lock_open(which: str) -> str:
    return f"""
SELECT b.id FROM outlast_budget b
WHERE b.id = ANY (ARRAY (SELECT e.budget_id FROM outlast_budget_entry e WHERE {which} AND {OPEN}))
ORDER BY b.workflow_id IS NULL, b.id FOR NO KEY UPDATE
"""


def _settle(which: str) -> str:
    """An attempt that has said something of a kind has spent what it said; one that has said nothing has spent what it set aside.

    Of one that ended without its owner (`known` is false) nobody knows: all that it set aside counts. Computing is measured.
    One that met a want of capacity (`unused`) has spent what it said and no more.
    """
    return f"""
WITH open AS (
    SELECT e.budget_id, e.workflow_id, e.node, e.activity_seq, e.attempt, e.call, b.warned_at IS NULL AS quiet,
        greatest(e.amount - s.said, 0) AS rest,
        CASE WHEN b.kind = 'compute_seconds' THEN greatest(extract(epoch FROM flows_now() - (
                 SELECT a.started_at FROM outlast_activity a WHERE a.workflow_id = e.workflow_id AND a.seq = e.activity_seq
             )), 0)::numeric(20, 6)
             WHEN %(known)s::bool AND (%(unused)s::bool OR s.times > 0) THEN 0
             ELSE greatest(e.amount - s.said, 0) END AS cost
    FROM outlast_budget_entry e JOIN outlast_budget b ON b.id = e.budget_id
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(u.amount), 0) AS said, count(*) AS times FROM outlast_budget_entry u WHERE {SINCE}) s
    WHERE {which} AND {OPEN}
), moved AS (
    UPDATE outlast_budget b
    SET reserved = b.reserved - t.rest, spent = {MORE.format(cost="t.cost")},
        warned_at = {WARNED.format(cost="t.cost")}, updated_at = flows_now()
    FROM (SELECT budget_id, sum(rest) AS rest, sum(cost) AS cost, bool_and(quiet) AS quiet FROM open GROUP BY budget_id) t
    WHERE b.id = t.budget_id
    RETURNING b.id, t.quiet AND b.warned_at IS NOT NULL AS warned
), entered AS (
    INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
    SELECT o.budget_id, 'settled', o.cost, o.workflow_id, o.node, o.activity_seq, o.attempt, o.call, %(reason)s, '', flows_now() FROM open o
), {NOTICE.format(told="open t ON t.budget_id = m.id")}
SELECT count(*) FROM moved
"""


LOCK_ATTEMPT, SETTLE_ATTEMPT = _lock_open(OF_ATTEMPT), _settle(OF_ATTEMPT)
LOCK_CALL, SETTLE_CALL = _lock_open(OF_CALL), _settle(OF_CALL)
LOCK_WORKFLOWS, SETTLE_WORKFLOWS = _lock_open(OF_WORKFLOWS), _settle(OF_WORKFLOWS)


def settle(workflow: UUID, seq: int, attempt: int, using: str, *, known: bool, reason: str, unused: bool = False) -> bool:
    """An attempt has ended: what it has set aside is settled, once. False: it had nothing open. The workflow is locked."""
    params = {"ids": [workflow], "seq": seq, "attempt": attempt}
    if not run("lock open budgets", LOCK_ATTEMPT, params, using):
        return False
    return bool(run("settle budgets", SETTLE_ATTEMPT, {**params, "known": known, "unused": unused, "reason": reason}, using))


def settle_call(drawer: Drawer, using: str) -> bool:
    """A call of a running attempt has ended, with what was said of it. The workflow is locked, and its ledgers."""
    params = {"ids": [drawer.workflow], "seq": drawer.seq, "attempt": drawer.attempt, "call": drawer.call}
    if not run("lock open budgets", LOCK_CALL, params, using):
        return False
    return bool(run("settle budgets", SETTLE_CALL, {**params, "known": True, "unused": False, "reason": ""}, using))


def settle_all(workflows: Sequence[UUID], using: str, *, reason: str) -> bool:
    """The attempts of these (locked) workflows have ended without their owners: whatever is set aside counts as spent."""
    params = {"ids": list(workflows)}
    if not run("lock open budgets", LOCK_WORKFLOWS, params, using):
        return False
    return bool(run("settle budgets", SETTLE_WORKFLOWS, {**params, "known": False, "unused": False, "reason": reason}, using))
