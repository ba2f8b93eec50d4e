"""One statement that looks at everything the clock cares about, so that an idle second costs one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from flows import registry
from flows.store import holds
from flows.store.sql import literals, run

#: Something of an outbox is due.
OWED = "EXISTS (SELECT FROM {table} WHERE sent_at IS NULL AND gave_up_at IS NULL AND (due_at IS NULL OR due_at <= flows_now()))"

#: `{owed}` and `{watches}` are put in when it is known which outboxes and which watches there are.
THINGS = """
    EXISTS (SELECT FROM outlast_timer WHERE status = 'pending' AND due_at <= flows_now()) AS due,
    (SELECT extract(epoch FROM min(due_at) - flows_now())::float8 FROM outlast_timer
     WHERE status = 'pending' AND due_at > flows_now() AND due_at <= flows_now() + interval '1.2 seconds') AS soon,
    EXISTS (SELECT FROM outlast_worker WHERE status = 'alive' AND lease_until <= statement_timestamp()) AS expired,
    EXISTS (SELECT FROM outlast_workflow w LEFT JOIN outlast_worker k ON k.id = w.worker_id
            WHERE w.status = 'running' AND w.worker_id IS NOT NULL AND (k.id IS NULL OR k.status <> 'alive')) AS lost,
    EXISTS (SELECT FROM outlast_workflow w JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
            WHERE w.status = 'running' AND w.worker_id IS NOT NULL
              AND a.timeout_at + %(grace)s::float8 * interval '1 second' <= flows_now()) AS overdue,
    EXISTS (SELECT FROM outlast_workflow WHERE status = 'runnable'
              AND (updated_at < flows_now() - interval '0.7 seconds' OR updated_at > flows_now())) AS ready,
    ({owed}) AS notices,
    EXISTS (SELECT FROM outlast_operation WHERE due_at IS NOT NULL AND worker_id IS NULL AND due_at <= flows_now()) AS servicing,
    EXISTS (SELECT FROM outlast_operation o LEFT JOIN outlast_worker k ON k.id = o.worker_id
            WHERE o.worker_id IS NOT NULL AND (k.id IS NULL OR k.status <> 'alive'
                OR o.timeout_at + %(grace)s::float8 * interval '1 second' <= statement_timestamp()))
        OR EXISTS (SELECT FROM outlast_operation o
            WHERE o.due_at IS NOT NULL AND o.worker_id IS NULL AND o.flown_by IS NOT NULL AND o.status = 'uncertain'
              AND NOT EXISTS (SELECT FROM outlast_worker k WHERE k.id = o.flown_by AND k.status = 'alive')) AS looks_lost,
    EXISTS (SELECT FROM outlast_commitment WHERE breached_at IS NOT NULL AND told_at IS NULL) AS breaches,
    EXISTS (SELECT FROM outlast_timer WHERE untold) AS untold,
    {watches} AS watches
"""

LOOK = f"""
INSERT INTO outlast_tick (id, ticked_at) VALUES (1, statement_timestamp())
ON CONFLICT (id) DO UPDATE SET ticked_at = statement_timestamp()
WHERE outlast_tick.ticked_at <= statement_timestamp() - %(min_age)s::float8 * interval '1 second'
   OR outlast_tick.ticked_at > statement_timestamp()
RETURNING {THINGS}
"""

#: Marked only where there is nothing to do: what is found is the tick's, and until it comes the mark grows old.
IDLE = f"""
WITH found AS MATERIALIZED (SELECT {THINGS}),
     idle AS (SELECT FROM found WHERE soon IS NULL AND NOT (
         due OR expired OR lost OR overdue OR ready OR notices OR servicing OR looks_lost OR breaches OR untold OR cardinality(watches) > 0)),
     marked AS (
         INSERT INTO outlast_tick (id, ticked_at) SELECT 1, statement_timestamp() FROM idle
         ON CONFLICT (id) DO UPDATE SET ticked_at = statement_timestamp())
SELECT EXISTS (SELECT FROM idle)
"""


def statement(text: str) -> str:
    """One of the two statements, with the outboxes and the watches that are registered."""
    watches = tuple((watch.name, watch.exists) for watch in registry.watches())
    return _completed(text, tuple(outbox.table for outbox in registry.outboxes()), watches)


@lru_cache(maxsize=8)
def _completed(text: str, tables: tuple[str, ...], watches: tuple[tuple[str, str], ...]) -> str:
    named = ", ".join(f"CASE WHEN {exists} THEN {literals([name])} END" for name, exists in watches)
    found = f"array_remove(ARRAY[{named}]::text[], NULL)" if named else "'{}'::text[]"
    owed = " OR ".join(OWED.format(table=table) for table in tables) or "false"
    return text.replace("{owed}", owed).replace("{watches}", found)


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to do: due timers, seconds to the next one soon, expired leases, lost work, overdue attempts, idle ready rows,
    notices, operations that are due, looks whose owner is gone or late,
    breaches that nobody was told of, deadlines whose event is still to come, and the names of the watches that found something.
    """

    due: bool
    soon: float | None
    expired: bool
    lost: bool
    overdue: bool
    ready: bool
    notices: bool
    servicing: bool
    looks_lost: bool
    breaches: bool
    untold: bool
    watches: list[str]


def look(grace: float, min_age: float, using: str) -> Look | None:
    """Mark the tick and say what there is to do; None if the last tick is younger than `min_age` seconds.

    What lies in the future (the server's clock was set back) holds up nothing, neither the last tick nor since when a row is ready; nor does a
    tick that is gone (a test emptied the tables).
    """
    rows = run("tick", statement(LOOK), {"grace": grace, "min_age": min_age}, using)
    return Look(*rows[0]) if rows else None


def idle(grace: float, using: str) -> bool:
    """Whether there is nothing to do; that counts as a tick. If there is something, the tick is still to come, and nothing is marked."""
    found: bool = run("idle tick", statement(IDLE), {"grace": grace}, using)[0][0]
    return found


SOON = """
SELECT extract(epoch FROM min(due_at) - flows_now())::float8 FROM outlast_timer
WHERE status = 'pending' AND due_at <= flows_now() + interval '1.2 seconds'
"""


def soon(using: str) -> float | None:
    """Seconds to the next timer, if it is close (0 or less: it is due)."""
    found: float | None = run("next timer", SOON, {}, using)[0][0]
    return found


READY = f"""
SELECT w.id, w.queue, w.flow_name, w.node FROM outlast_workflow w
WHERE w.status = 'runnable' AND w.queue = %(queue)s AND {holds.free("w")} ORDER BY w.rank LIMIT %(limit)s::int
"""

OLDEST = f"""
SELECT extract(epoch FROM flows_now() - w.updated_at)::float8 FROM outlast_workflow w
WHERE w.status = 'runnable' AND w.queue = %(queue)s AND {holds.free("w")} ORDER BY w.rank LIMIT 1
"""


def oldest(queue: str, using: str) -> float | None:
    """Seconds that the first ready workflow of a queue has waited that nothing holds; None if there is none."""
    rows = run("oldest ready", OLDEST, {"queue": queue, "needing": holds.needing()}, using)
    return float(rows[0][0]) if rows else None


SLOTS = """
SELECT q.queue, sum(k.concurrency)::int FROM outlast_worker k CROSS JOIN LATERAL unnest(k.queues) AS q(queue)
WHERE k.status = 'alive' AND k.lease_until > statement_timestamp() GROUP BY q.queue
"""

QUEUES = "SELECT DISTINCT queue FROM outlast_workflow WHERE status = 'runnable'"


def slots(using: str) -> dict[str, int]:
    """How many turns the live workers of each queue can run at once."""
    return {row[0]: row[1] for row in run("slots", SLOTS, {}, using)}


def ready_queues(using: str) -> list[str]:
    """Queues that have ready workflows."""
    return [row[0] for row in run("ready queues", QUEUES, {}, using)]


def ready(queue: str, limit: int, using: str) -> list[tuple[UUID, str, str, str]]:
    """Ready workflows of a queue that nothing holds, in the order of the claim, for the dispatch sweep's hints."""
    params = {"queue": queue, "limit": limit, "needing": holds.needing()}
    return [(row[0], row[1], row[2], row[3]) for row in run("ready", READY, params, using)]
