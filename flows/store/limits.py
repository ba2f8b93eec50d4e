"""Limits: the rows that say how much there is, what of it is to be had at this moment, and the tokens of those with a rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.capacity import Want
from flows.core.protocol import CAPACITY
from flows.store import holds
from flows.store.sql import literals, run

#: Open waits for capacity, in the words of the index.
WAITING = f"o.closed_at IS NULL AND o.kind IN ({literals(sorted(CAPACITY))})"

#: Somebody who waits under the label of `l` can be let in, and is not held (parameter `needing`). Where nothing is known of the tables yet, an
#: EXISTS and a join would be planned as a hash of whoever waits for anything; a value that is looked up is looked up.
QUEUED = f"""coalesce((
    SELECT true FROM outlast_wait o
    WHERE o.key = l.label AND {WAITING}
      AND (SELECT q.status = 'waiting' AND q.outcome = 'WAITING' AND NOT {holds.held("q")}
           FROM outlast_workflow q WHERE q.id = o.workflow_id) LIMIT 1), false)"""

FIND = f"""
SELECT g.n::int, l.id, l.size, l.lasting, l.rate, l.burst, d.status, d.trial_workflow, d.allowed, d.ceiling,
    EXISTS (SELECT FROM outlast_slot s WHERE s.limit_id = l.id AND s.workflow_id = %(workflow)s::uuid
              AND s.activity_seq IS NOT DISTINCT FROM %(seq)s::int),
    {QUEUED}
FROM unnest(%(names)s::text[], %(keys)s::text[]) WITH ORDINALITY AS g(name, key, n)
LEFT JOIN outlast_limit l ON l.name = g.name AND l.key = g.key
LEFT JOIN outlast_dependency d ON g.name = 'dependency:' || d.name
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of one want. `own`: a unit is reserved for who asks. `queued`: others wait for one. `id` None: nobody ever asked for it."""

    id: int | None
    size: int
    lasting: bool
    rate: float | None
    burst: float | None
    status: str
    trial: UUID | None
    allowed: float
    ceiling: int | None
    own: bool
    queued: bool


def find(wants: Sequence[Want], workflow: UUID, seq: int | None, using: str) -> list[Found]:
    """How it stands with each of these, in their order. Nothing is locked."""
    params = {"names": [w.name for w in wants], "keys": [w.key for w in wants], "workflow": workflow, "seq": seq}
    params["needing"] = holds.needing()
    rows = sorted(run("find limits", FIND, params, using))
    return [
        Found(row[1], row[2] or 0, bool(row[3]), row[4], row[5], row[6] or "healthy", row[7], row[8] or 0.0, *row[9:12])
        for row in rows
    ]


#: A limit is unique by name and key, and by its label: whichever a maker at the same moment meets, it waits for the other one.
ADD = """
INSERT INTO outlast_limit (name, key, label, size, lasting, rate, burst, tokens, refilled_at)
VALUES (%(name)s, %(key)s, %(label)s, %(size)s::int, %(lasting)s::bool, %(rate)s::float8, %(burst)s::float8,
    coalesce(%(burst)s::float8, 0), flows_now())
ON CONFLICT DO NOTHING
"""

ENSURE = """
UPDATE outlast_limit SET size = %(size)s::int, lasting = %(lasting)s::bool, rate = %(rate)s::float8, burst = %(burst)s::float8
WHERE name = %(name)s AND key = %(key)s RETURNING id
"""

SLOTS = """
INSERT INTO outlast_slot (limit_id, number, since)
SELECT %(limit)s::bigint, n, flows_now() FROM generate_series(1, %(size)s::int) AS n
ON CONFLICT (limit_id, number) DO NOTHING
"""


def ensure(want: Want, size: int, using: str) -> int:
    """Make the limit, or make it as large as it is declared now, with its slots; its id. What is over the size is given no more."""
    params = {
        "name": want.name,
        "key": want.key,
        "size": size,
        "lasting": want.lasting,
        "rate": want.rate,
        "burst": want.burst,
    }
    run("add limit", ADD, {**params, "label": want.label}, using)
    made: int = run("ensure limit", ENSURE, params, using)[0][0]
    run("ensure slots", SLOTS, {"limit": made, "size": size}, using)
    return made


#: What is saved by now, of a row `l`, at a rate and up to a bound.
SAVED = """least(%(burst)s::float8, l.tokens + %(rate)s::float8
    * greatest(extract(epoch FROM flows_now() - l.refilled_at)::float8, 0))"""

TOKEN = f"""
UPDATE outlast_limit l SET tokens = {SAVED} - 1, refilled_at = flows_now()
WHERE l.id = %(limit)s::bigint AND {SAVED} >= 1
RETURNING l.id
"""


def token(limit: int, rate: float, burst: float, using: str) -> bool:
    """Spend one token; False: none is saved."""
    return bool(run("spend token", TOKEN, {"limit": limit, "rate": rate, "burst": burst}, using))


LOCK = """
SELECT l.id, l.name, l.key, l.label, l.size, l.lasting, l.rate, l.burst, l.tokens,
    greatest(extract(epoch FROM flows_now() - l.refilled_at)::float8, 0), flows_now()
FROM outlast_limit l WHERE l.id = %(limit)s::bigint FOR NO KEY UPDATE SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """A limit that is locked. `elapsed`: seconds since its tokens were counted."""

    id: int
    name: str
    key: str
    label: str
    size: int
    lasting: bool
    rate: float | None
    burst: float | None
    tokens: float
    elapsed: float
    now: Any


def lock(limit: int, using: str) -> Locked | None:
    """Lock a limit; None: somebody else has it, who does the same."""
    rows = run("lock limit", LOCK, {"limit": limit}, using)
    return Locked(*rows[0]) if rows else None


COUNTED = "UPDATE outlast_limit SET tokens = %(tokens)s::float8, refilled_at = %(at)s::timestamptz WHERE id = %(limit)s::bigint"


def counted(limit: Locked, tokens: float, using: str) -> None:
    """So many tokens are left of a locked limit, as of the moment when it was locked: what has come since belongs to the next count."""
    run("count tokens", COUNTED, {"limit": limit.id, "tokens": tokens, "at": limit.now}, using)


#: The labels under which somebody waits, one look into the index for each.
AWAITED = f"""
WITH RECURSIVE k AS (
    (SELECT o.key FROM outlast_wait o WHERE {WAITING} ORDER BY o.key LIMIT 1)
    UNION ALL
    SELECT (SELECT o.key FROM outlast_wait o WHERE {WAITING} AND o.key > k.key ORDER BY o.key LIMIT 1) FROM k WHERE k.key IS NOT NULL
)
SELECT l.id, l.label FROM k JOIN outlast_limit l ON l.label = k.key
"""


def awaited(using: str) -> list[tuple[int, str]]:
    """The limits (id, label) for which somebody waits."""
    return [(row[0], row[1]) for row in run("awaited limits", AWAITED, {}, using)]


#: A look that was asked for and did not come is asked for again. The disk is not waited for: what a crash of the server loses is noted again.
ARM = f"""
UPDATE outlast_limit l SET look_at = flows_now() + %(seconds)s::float8 * interval '1 second'
WHERE l.id = ANY (ARRAY (
        SELECT l.id FROM outlast_limit l
        WHERE l.id = ANY (%(limits)s::bigint[])
          AND (l.look_at IS NULL OR l.look_at <= flows_now() OR l.look_at > flows_now() + interval '5 seconds')
          AND {QUEUED} FOR NO KEY UPDATE SKIP LOCKED))
    AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING l.id
"""


def arm(limits: Sequence[int], seconds: float, using: str) -> bool:
    """Note that the waiters of these limits are looked at in so many seconds; False: nobody waits, or that has been asked for."""
    return bool(run("arm limits", ARM, {"limits": list(limits), "seconds": seconds, "needing": holds.needing()}, using))


LABELLED = "SELECT id, label FROM outlast_limit WHERE label = ANY (%(labels)s::text[])"


def labelled(labels: Sequence[str], using: str) -> list[tuple[int, str]]:
    """The limits (id, label) of these labels, as far as they are there."""
    return [(row[0], row[1]) for row in run("limits of labels", LABELLED, {"labels": list(labels)}, using)]
