"""Fans and their counters. Whoever writes one has its workflow locked, and locks the fan before its branches.

open     – → open          with all its branches, planned
counted  branches that have ended → the counters, once
joined   open → joined     its wait gets the evidence
closed   open, joined → closed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.core.joins import OF_OUTCOME, Counters
from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class NewBranch:
    """One branch of a new fan; `input` is encoded."""

    child: UUID
    name: str
    key: str | None
    input: str


OPEN = """
WITH fan AS (
    INSERT INTO outlast_fan (
        workflow_id, node, visit, wait_id, kind, body, epoch, total, running, succeeded, failed, cancelled, skipped, need, tolerated,
        concurrency, on_cancel, on_lose, awaited, status, opened_at, closed_at)
    VALUES (%(workflow)s::uuid, %(node)s, %(visit)s::int, %(wait)s::bigint, %(kind)s, %(body)s, %(epoch)s::int, %(total)s::int, 0, 0, 0, 0, 0,
        %(need)s::int, %(tolerated)s::int, %(concurrency)s::int, %(on_cancel)s, %(on_lose)s, %(awaited)s::bool, %(status)s, flows_now(),
        CASE WHEN %(status)s = 'closed' THEN flows_now() END)
    RETURNING id, workflow_id
), branches AS (
    INSERT INTO outlast_branch (fan_id, number, name, key, input, status, workflow_id, parent_id)
    SELECT f.id, g.number, g.name, g.key, g.input::jsonb, 'planned', g.child, f.workflow_id
    FROM fan f CROSS JOIN unnest(%(children)s::uuid[], %(names)s::text[], %(keys)s::text[], %(inputs)s::text[])
        WITH ORDINALITY AS g(child, name, key, input, number)
)
SELECT id FROM fan
"""


def open_fan(
    workflow: UUID, node: str, visit: int, wait: int, epoch: int, terms: dict[str, Any], new: Sequence[NewBranch], using: str
) -> int:
    """Write a fan and all its branches; its id. `terms`: kind, body, need, tolerated, concurrency, on_cancel, on_lose, awaited, status."""
    params = {
        **terms,
        "workflow": workflow,
        "node": node,
        "visit": visit,
        "wait": wait,
        "epoch": epoch,
        "total": len(new),
        "children": [one.child for one in new],
        "names": [one.name for one in new],
        "keys": [one.key for one in new],
        "inputs": [one.input for one in new],
    }
    found: int = run("open fan", OPEN, params, using)[0][0]
    return found


@dataclass(frozen=True, slots=True)
class Head:
    """What is read of a fan before anything is locked."""

    workflow_id: UUID
    intent_id: UUID
    awaited: bool


HEAD = """
SELECT f.workflow_id, w.intent_id, f.awaited FROM outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id WHERE f.id = %(id)s::bigint
"""


def head(fan: int, using: str) -> Head | None:
    """To whom a fan belongs."""
    rows = run("fan", HEAD, {"id": fan}, using)
    return Head(*rows[0]) if rows else None


@dataclass(frozen=True, slots=True)
class Locked:
    """A locked fan, and of its (locked) workflow what a child takes over."""

    id: int
    workflow_id: UUID
    node: str
    wait_id: int
    kind: str
    need: int
    tolerated: int
    concurrency: int
    on_lose: str
    on_cancel: str
    awaited: bool
    owing: bool
    status: str
    epoch: int
    counters: Counters
    now_epoch: int
    now_status: str
    target: str
    flow_name: str
    flow_version: int
    intent_version: int
    user_id: Any
    user_label: str
    subject: str
    priority: int
    rank: datetime
    depth: int
    ledgers: list[UUID] | None
    tenant: str


LOCK = """
SELECT f.id, f.workflow_id, f.node, f.wait_id, f.kind, f.need, f.tolerated, f.concurrency, f.on_lose, f.on_cancel, f.awaited, f.owing,
    f.status, f.epoch, f.total, f.running, f.succeeded, f.failed, f.cancelled, f.skipped,
    w.epoch, w.status, w.target, w.flow_name, w.flow_version, w.intent_version, w.user_id, w.user_label, w.subject, w.priority, w.rank, w.depth,
    w.ledgers, w.tenant
FROM outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id WHERE f.id = %(id)s::bigint FOR NO KEY UPDATE OF f
"""


def lock(fan: int, using: str) -> Locked | None:
    """Lock a fan whose workflow is locked."""
    rows = run("lock fan", LOCK, {"id": fan}, using)
    return Locked(*[*rows[0][:14], Counters(*rows[0][14:20]), *rows[0][20:]]) if rows else None


_STATUS = " ".join(f"WHEN '{outcome}' THEN '{status}'" for outcome, status in OF_OUTCOME.items())

COUNT = f"""
WITH ended AS (
    UPDATE outlast_branch b SET status = CASE b.outcome {_STATUS} ELSE 'failed' END, counted_at = flows_now()
    WHERE b.fan_id = %(id)s::bigint AND b.parent_id = %(workflow)s::uuid AND b.ended_at IS NOT NULL AND b.counted_at IS NULL
    RETURNING b.status
), summed AS (
    SELECT count(*)::int AS counted, (count(*) FILTER (WHERE status = 'succeeded'))::int AS succeeded,
        (count(*) FILTER (WHERE status = 'failed'))::int AS failed, (count(*) FILTER (WHERE status = 'cancelled'))::int AS cancelled
    FROM ended
)
UPDATE outlast_fan f
SET running = f.running - s.counted, succeeded = f.succeeded + s.succeeded, failed = f.failed + s.failed, cancelled = f.cancelled + s.cancelled
FROM summed s WHERE f.id = %(id)s::bigint AND s.counted > 0
RETURNING s.counted, f.total, f.running, f.succeeded, f.failed, f.cancelled, f.skipped
"""


def count(fan: Locked, using: str) -> tuple[int, Counters]:
    """Count what has ended of a locked fan; how many that were, and its counters."""
    rows = run("count branches", COUNT, {"id": fan.id, "workflow": fan.workflow_id}, using)
    return (rows[0][0], Counters(*rows[0][1:])) if rows else (0, fan.counters)


CLOSE = """
UPDATE outlast_fan SET status = %(status)s, closed_at = CASE WHEN %(status)s = 'closed' THEN flows_now() END
WHERE id = %(id)s::bigint AND status = ANY (%(from)s::text[]) RETURNING id
"""


def join(fan: int, using: str) -> bool:
    """It is joined; once."""
    return bool(run("join fan", CLOSE, {"id": fan, "status": "joined", "from": ["open"]}, using))


def close(fan: int, using: str) -> bool:
    """Nobody waits for it any more."""
    return bool(run("close fan", CLOSE, {"id": fan, "status": "closed", "from": ["open", "joined"]}, using))


OVER = "SELECT status <> 'open' FROM outlast_fan WHERE id = %(id)s::bigint"


def is_over(fan: int, using: str) -> bool:
    """Whether it is joined or closed."""
    rows = run("fan over", OVER, {"id": fan}, using)
    return bool(rows and rows[0][0])


OF_WAITS = """
SELECT id, status, awaited FROM outlast_fan WHERE workflow_id = ANY (
    SELECT o.workflow_id FROM outlast_wait o WHERE o.id = ANY (%(waits)s::bigint[])) AND wait_id = ANY (%(waits)s::bigint[])
ORDER BY id FOR NO KEY UPDATE
"""


def of_waits(waits: Sequence[int], using: str) -> list[tuple[int, str, bool]]:
    """Lock the fans behind these waits: (id, status, awaited) of each."""
    return [(row[0], row[1], row[2]) for row in run("fans of waits", OF_WAITS, {"waits": list(waits)}, using)]


#: What the end of a workflow concerns: what is open of it, and children that it waits for before it ends, from wherever. A child that nobody
#: waits for, and that is left to itself, is started and counted as if nothing had happened.
STANDING = """
f.status = 'open' AND (f.awaited OR f.on_cancel <> 'abandon') OR (f.on_cancel = 'wait' AND f.running > 0 AND NOT f.owing)
"""

OF_ENDING = f"""
SELECT f.id, f.workflow_id, f.on_cancel, f.running, f.node FROM outlast_fan f
WHERE f.workflow_id = ANY (%(workflows)s::uuid[]) AND ({STANDING}) ORDER BY f.id FOR NO KEY UPDATE
"""


def of_ending(workflows: Sequence[UUID], using: str) -> list[tuple[int, UUID, str, int, str]]:
    """Lock what the end of these (locked) workflows concerns: (id, workflow, on_cancel, running, node) of each fan."""
    return [
        (row[0], row[1], row[2], row[3], row[4])
        for row in run("fans of ending", OF_ENDING, {"workflows": list(workflows)}, using)
    ]


OWES = """
SELECT EXISTS (SELECT FROM outlast_fan f WHERE f.workflow_id = %(id)s::uuid AND f.on_cancel = 'wait' AND f.running > 0)
"""


def waits_for_some(workflow: UUID, using: str) -> bool:
    """Whether children of it run that have to end before it does."""
    found: bool = run("awaited children", OWES, {"id": workflow}, using)[0][0]
    return found


OWE = """
WITH fan AS (UPDATE outlast_fan SET owing = true WHERE id = %(id)s::bigint AND NOT owing RETURNING workflow_id, running)
UPDATE outlast_workflow w SET owed = w.owed + f.running FROM fan f WHERE w.id = f.workflow_id RETURNING w.id
"""


def owe(fan: int, using: str) -> bool:
    """Its (locked) workflow ends after those that run."""
    return bool(run("owe children", OWE, {"id": fan}, using))


PAID = "UPDATE outlast_workflow SET owed = owed - %(count)s::int WHERE id = %(id)s::uuid RETURNING owed"


def paid(workflow: UUID, count: int, using: str) -> None:
    """So many that it waits for have ended."""
    run("children ended", PAID, {"id": workflow, "count": count}, using)


CARRY = """
UPDATE outlast_fan SET epoch = %(epoch)s::int WHERE workflow_id = %(workflow)s::uuid AND wait_id = %(wait)s::bigint RETURNING id
"""


def carry(workflow: UUID, wait: int, epoch: int, using: str) -> bool:
    """A migration takes the fan of that wait over into this generation."""
    return bool(run("carry fan", CARRY, {"workflow": workflow, "wait": wait, "epoch": epoch}, using))


UNCOUNTED = """
SELECT DISTINCT fan_id FROM outlast_branch WHERE ended_at IS NOT NULL AND counted_at IS NULL AND parent_id = ANY (%(parents)s::uuid[])
"""


def uncounted_of(parents: Sequence[UUID], using: str) -> list[int]:
    """The fans of these workflows of which something has ended that is not counted."""
    return sorted(row[0] for row in run("uncounted", UNCOUNTED, {"parents": list(parents)}, using))


ENDED = "ended_at IS NOT NULL AND counted_at IS NULL"
TO_STOP = "stop_at IS NOT NULL AND stopped_at IS NULL AND ended_at IS NULL"
HUNGRY = """
outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.status = 'open' AND f.running < f.concurrency AND f.total > ((((f.running + f.succeeded) + f.failed) + f.cancelled) + f.skipped)
  AND (w.status IN ('waiting', 'running', 'runnable') AND w.epoch = f.epoch OR NOT f.awaited AND f.on_cancel = 'abandon')
"""
#: What the clock looks for.
EXISTS = f"""
EXISTS (SELECT FROM outlast_branch WHERE {ENDED}) OR EXISTS (SELECT FROM outlast_branch WHERE {TO_STOP}) OR EXISTS (SELECT FROM {HUNGRY})
"""

DUE = f"""
SELECT fan_id FROM (
    SELECT fan_id FROM outlast_branch WHERE {ENDED} UNION SELECT f.id FROM {HUNGRY}) AS found(fan_id)
ORDER BY fan_id LIMIT %(limit)s::int
"""


def due(limit: int, using: str) -> list[int]:
    """Fans with something to count, or to start."""
    return [row[0] for row in run("fans due", DUE, {"limit": limit}, using)]
