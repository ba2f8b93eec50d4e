"""The measures of whole hours, computed from the log and replaced as a whole (docs/decisions/0008, Q).

    look     hours that have ended and are not measured: one look a minute, whoever comes first (compare-and-set on `looked_at`)
    replace  lock the one row of the roll-up, delete what the hours had, compute them anew, move `until` and `final`: one transaction
Guard: `outlast_rollup`, locked; who does not get it stops, for somebody is at it. Computing an hour twice is computing it once. A crash before
the commit leaves the hours as they were, and the next look takes them again.

A cut that an hour holds in part counts with that part; a run that moved in no moment of an hour is found by the cut around it. Where the
server's clock was set back, a cut has no length and counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from flows.core.measures import BOUNDS, OF_STATUS, OF_WAIT, Bucket, of_suspension
from flows.core.protocol import LIVE, TERMINAL, Outcome
from flows.store.latency import BY_PEOPLE
from flows.store.sql import literals, run

#: The start of an hour, whatever zone the session has.
HOUR = "date_trunc('hour', {moment}, 'UTC')"

#: Hours of the past that are measured when there was no roll-up before; hours that one look measures.
BACK, AT_ONCE = 7 * 24, 24

_LIVE, _TERMINAL = literals(sorted(LIVE)), literals(sorted(TERMINAL))

#: The wait that was open in a cut: `c` is the cut. A wait of the arrow that ends the cut is not yet its.
WAIT = """
LEFT JOIN LATERAL (
    SELECT o.kind FROM outlast_wait o
    WHERE o.workflow_id = c.workflow_id AND o.opened_at < c.until AND (o.closed_at IS NULL OR o.closed_at > c.since)
    ORDER BY o.id DESC LIMIT 1) q ON c.status = 'waiting'
"""


def _cases(column: str, found: dict[Any, Bucket]) -> str:
    return f"CASE {column} " + " ".join(f"WHEN '{word}' THEN '{bucket}'" for word, bucket in found.items()) + " END"


_SUSPENDED = {word: of_suspension(word) for word in sorted(Outcome)}

#: The bucket of a cut `c`, with its wait `q`, and `n`, what its node was recorded as.
BUCKET = f"""CASE c.status
    WHEN 'running' THEN coalesce(n.bucket, '{Bucket.COMPUTING}')
    WHEN 'waiting' THEN coalesce({_cases("q.kind", dict(OF_WAIT))}, {_cases("c.outcome", dict(_SUSPENDED))})
    ELSE {_cases("c.status", {str(status): bucket for status, bucket in OF_STATUS.items()})} END"""

NODE = "LEFT JOIN outlast_measured_node n ON n.flow = w.flow_name AND n.version = w.flow_version AND n.node = c.node"

#: What follows an end (its values are erased) ends nothing a second time.
#: What was spent in the hours from %(start)s to %(end)s. The cuts that end in them or later, by the row that ends them; and those still open.
SPENT = f"""
SELECT x.hour, w.flow_name, w.flow_version, {BUCKET} AS bucket, sum(x.seconds), count(DISTINCT c.workflow_id)::int
FROM (
    SELECT p.workflow_id, p.to_status AS status, p.to_node AS node, p.outcome, p.at AS since, t.at AS until
    FROM outlast_transition t JOIN outlast_transition p ON p.workflow_id = t.workflow_id AND p.seq = t.seq - 1
    WHERE t.at > %(start)s::timestamptz AND p.at < %(end)s::timestamptz AND p.to_status NOT IN ({_TERMINAL})
    UNION ALL
    SELECT p.workflow_id, p.to_status, p.to_node, p.outcome, p.at, 'infinity'
    FROM outlast_workflow w JOIN outlast_transition p ON p.workflow_id = w.id AND p.seq = w.version
    WHERE w.status IN ({_LIVE}) AND p.at < %(end)s::timestamptz
) c
JOIN outlast_workflow w ON w.id = c.workflow_id
CROSS JOIN LATERAL (
    SELECT h.hour, extract(epoch FROM least(c.until, h.hour + interval '1 hour', %(end)s::timestamptz)
        - greatest(c.since, h.hour, %(start)s::timestamptz)) AS seconds
    FROM generate_series({HOUR.format(moment="greatest(c.since, %(start)s::timestamptz)")},
        least(c.until, %(end)s::timestamptz), interval '1 hour') AS h(hour)) x
{WAIT}
{NODE}
WHERE x.seconds > 0
GROUP BY 1, 2, 3, 4
"""

#: A run's whole life by bucket; the largest says what it was late for.
MOST = f"""(
    SELECT {BUCKET} FROM (
        SELECT p.workflow_id, p.to_status AS status, p.to_node AS node, p.outcome, p.at AS since, t.at AS until
        FROM outlast_transition t JOIN outlast_transition p ON p.workflow_id = t.workflow_id AND p.seq = t.seq - 1
        WHERE t.workflow_id = w.id AND p.to_status NOT IN ({_TERMINAL})) c
    {WAIT}
    {NODE}
    WHERE c.until > c.since
    GROUP BY 1 ORDER BY sum(c.until - c.since) DESC, 1 LIMIT 1)"""

#: What happened in those hours, and how long each took. `woken`: what it waited for before. By `objective`, what was late.
HAPPENED = f"""
WITH objective AS (
    SELECT * FROM unnest(%(flows)s::text[], %(versions)s::int[], %(complete)s::float8[], %(wake)s::float8[], %(answer)s::float8[])
        AS o(flow, version, complete, wake, answer)
), arrow AS MATERIALIZED (
    SELECT t.workflow_id, t.seq, t.at, t.from_status, t.to_status, t.trigger, t.outcome, p.at AS since,
        p.from_status AS before, p.trigger AS woken_by
    FROM outlast_transition t LEFT JOIN outlast_transition p ON p.workflow_id = t.workflow_id AND p.seq = t.seq - 1
    WHERE t.at >= %(start)s::timestamptz AND t.at < %(end)s::timestamptz AND t.from_status NOT IN ({_TERMINAL})
), waited AS (
    SELECT c.workflow_id, q.kind, c.until AS at, c.until - c.since AS took
    FROM (SELECT a.workflow_id, a.from_status AS status, a.since, a.at AS until FROM arrow a WHERE a.from_status = 'waiting') c
    {WAIT}
    WHERE q.kind IS NOT NULL
), claimed AS (
    SELECT c.workflow_id, q.kind, c.at, c.at - c.until AS took
    FROM (SELECT a.workflow_id, a.at, b.at AS since, a.since AS until, b.to_status AS status
          FROM arrow a LEFT JOIN outlast_transition b ON b.workflow_id = a.workflow_id AND b.seq = a.seq - 2
              AND a.before = 'waiting' AND a.woken_by NOT IN ({literals(BY_PEOPLE)})
          WHERE a.trigger = 'claim') c
    {WAIT}
), ended AS (
    SELECT a.workflow_id, a.outcome, a.at, a.at - f.at AS took
    FROM arrow a JOIN outlast_transition f ON f.workflow_id = a.workflow_id AND f.seq = 1
    WHERE a.to_status IN ({_TERMINAL})
), happened AS (
    SELECT workflow_id, 'started' AS what, at, interval '0' AS took FROM arrow WHERE seq = 1
    UNION ALL SELECT workflow_id, 'ended:' || outcome, at, took FROM ended
    UNION ALL SELECT workflow_id, 'wait:' || kind, at, took FROM waited
    UNION ALL SELECT workflow_id, coalesce('wake:' || kind, 'queue'), at, took FROM claimed
    UNION ALL SELECT a.workflow_id, 'attempt:' || a.outcome, a.ended_at, a.ended_at - coalesce(a.started_at, a.ended_at)
        FROM outlast_attempt a WHERE a.ended_at >= %(start)s::timestamptz AND a.ended_at < %(end)s::timestamptz
    UNION ALL SELECT a.workflow_id, 'visit', a.ended_at, interval '0'
        FROM outlast_attempt a WHERE a.number = 1 AND a.ended_at >= %(start)s::timestamptz AND a.ended_at < %(end)s::timestamptz
    UNION ALL SELECT v.workflow_id, 'verdict:' || v.verdict, v.at, interval '0'
        FROM outlast_verdict v WHERE v.at >= %(start)s::timestamptz AND v.at < %(end)s::timestamptz
), late AS (
    SELECT e.workflow_id, 'breach:complete:' || {MOST} AS what, e.at, e.took
    FROM ended e JOIN outlast_workflow w ON w.id = e.workflow_id
    JOIN objective o ON o.flow = w.flow_name AND o.version = w.flow_version
    WHERE e.outcome <> 'CONTINUED' AND e.took > o.complete * interval '1 second'
    UNION ALL
    SELECT c.workflow_id, 'breach:wake:' || c.kind, c.at, c.took
    FROM claimed c JOIN outlast_workflow w ON w.id = c.workflow_id
    JOIN objective o ON o.flow = w.flow_name AND o.version = w.flow_version
    WHERE c.kind IS NOT NULL AND c.took > o.wake * interval '1 second'
    UNION ALL
    SELECT c.workflow_id, 'breach:answer:' || c.kind, c.at, c.took
    FROM waited c JOIN outlast_workflow w ON w.id = c.workflow_id
    JOIN objective o ON o.flow = w.flow_name AND o.version = w.flow_version
    WHERE c.kind IN ({literals(sorted(kind for kind, bucket in OF_WAIT.items() if bucket is Bucket.HUMAN))})
      AND c.took > o.answer * interval '1 second'
), measured AS (
    SELECT {HOUR.format(moment="h.at")} AS hour, w.flow_name, w.flow_version, h.what,
        greatest(extract(epoch FROM h.took), 0) AS seconds
    FROM (SELECT * FROM happened UNION ALL SELECT * FROM late) h JOIN outlast_workflow w ON w.id = h.workflow_id
)
SELECT m.hour, m.flow_name, m.flow_version, m.what, b.le, count(*)::int, sum(m.seconds)
FROM measured m CROSS JOIN LATERAL (
    SELECT (%(bounds)s::float8[])[cardinality(%(bounds)s::float8[]) + 1 - width_bucket(-m.seconds::float8, %(negated)s::float8[])] AS le) b
GROUP BY 1, 2, 3, 4, 5
"""

_BOUNDS = {"bounds": list(BOUNDS), "negated": sorted(-bound for bound in BOUNDS)}


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one hour, flow, version and bucket: seconds, and how many runs."""

    hour: datetime
    flow: str
    version: int
    bucket: str
    seconds: Decimal
    runs: int


@dataclass(frozen=True, slots=True)
class Took:
    """Of one hour, flow, version and kind of happening: one column of the histogram, with the seconds of what lies in it."""

    hour: datetime
    flow: str
    version: int
    what: str
    le: float
    count: int
    seconds: Decimal


@dataclass(frozen=True, slots=True)
class Promise:
    """The objectives of a flow and version, in seconds; None: none of that kind."""

    flow: str
    version: int
    complete: float | None
    wake: float | None
    answer: float | None


def _promised(promises: Sequence[Promise]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"flows": [one.flow for one in promises], "versions": [one.version for one in promises]}
    return {**found, **{name: [getattr(one, name) for one in promises] for name in ("complete", "wake", "answer")}}


def spent(start: datetime, end: datetime, using: str) -> list[Spent]:
    """Where the time between two moments went, computed now."""
    return [Spent(*row) for row in run("measure", SPENT, {"start": start, "end": end}, using)]


def took(start: datetime, end: datetime, promises: Sequence[Promise], using: str) -> list[Took]:
    """What happened between two moments and how long it took, computed now."""
    params = {"start": start, "end": end, **_BOUNDS, **_promised(promises)}
    return [Took(*row) for row in run("measure latencies", HAPPENED, params, using)]


_TRUNCATED = HOUR.format(moment="flows_now()")
_MAY_LOOK = "looked_at <= statement_timestamp() - interval '1 minute' OR looked_at > statement_timestamp()"

#: For the tick: an hour has ended and is not measured (or nobody ever measured), and nobody has set about it within a minute.
DUE = f"coalesce((SELECT r.until < {_TRUNCATED} AND ({_MAY_LOOK}) FROM outlast_rollup r), true)"

BEGIN = f"""
INSERT INTO outlast_rollup (id, looked_at, until, final)
SELECT 1, 'epoch', b.first, b.first FROM (
    SELECT {_TRUNCATED} - CASE WHEN EXISTS (SELECT FROM outlast_transition) THEN interval '{BACK} hours' ELSE interval '0' END AS first) b
ON CONFLICT (id) DO NOTHING
"""

LOOK = f"""
UPDATE outlast_rollup SET looked_at = statement_timestamp() WHERE id = 1 AND until < {_TRUNCATED} AND ({_MAY_LOOK}) RETURNING id
"""

LOCK = f"""
SELECT final, least({_TRUNCATED}, final + interval '{AT_ONCE} hours'), {HOUR.format(moment="flows_now() - interval '1 hour'")}
FROM outlast_rollup WHERE id = 1 FOR NO KEY UPDATE SKIP LOCKED
"""

KNOW = """
INSERT INTO outlast_measured_node (flow, version, node, bucket)
SELECT * FROM unnest(%(flows)s::text[], %(versions)s::int[], %(nodes)s::text[], %(buckets)s::text[])
ON CONFLICT (flow, version, node) DO UPDATE SET bucket = excluded.bucket WHERE outlast_measured_node.bucket <> excluded.bucket
"""

_FORGET = "DELETE FROM {table} WHERE hour >= %(start)s::timestamptz AND hour < %(end)s::timestamptz"

MOVE_ON = """
UPDATE outlast_rollup
SET until = greatest(until, %(end)s::timestamptz),
    final = greatest(final, least(%(end)s::timestamptz, %(last)s::timestamptz))
WHERE id = 1
"""


def know(nodes: Sequence[tuple[str, int, str, str]], using: str) -> None:
    """Record what running at a node counts as: (flow, version, node, bucket)."""
    names = ("flows", "versions", "nodes", "buckets")
    if nodes:
        run("know nodes", KNOW, {name: [one[number] for one in nodes] for number, name in enumerate(names)}, using)


def look(using: str) -> bool:
    """Set about the hours that have ended; False if there is none, or somebody else has within a minute."""
    run("begin roll-up", BEGIN, {}, using)
    return bool(run("look roll-up", LOOK, {}, using))


def lock(using: str) -> tuple[datetime, datetime, datetime] | None:
    """Lock the roll-up: from when, until when to measure, and before when an hour is final; None: somebody is at it."""
    rows = run("lock roll-up", LOCK, {}, using)
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def replace(start: datetime, end: datetime, last: datetime, promises: Sequence[Promise], using: str) -> None:
    """Measure whole hours anew; the roll-up must be locked."""
    span = {"start": start, "end": end}
    run("forget measures", _FORGET.format(table=_MEASURE), span, using)
    run("forget latencies", _FORGET.format(table=_LATENCY), span, using)
    run("roll up", f"INSERT INTO {_MEASURE} (hour, flow, version, bucket, seconds, runs) {SPENT}", span, using)
    into = f"INSERT INTO {_LATENCY} (hour, flow, version, what, le, count, seconds) {HAPPENED}"
    run("roll up latencies", into, {**span, **_BOUNDS, **_promised(promises)}, using)
    run("move roll-up on", MOVE_ON, {"end": end, "last": last}, using)


_MEASURE, _LATENCY = "outlast_measure", "outlast_latency"

STATE = f"SELECT until, final, flows_now(), {_TRUNCATED} FROM (VALUES (1)) AS one(id) LEFT JOIN outlast_rollup USING (id)"


def state(using: str) -> tuple[datetime | None, datetime | None, datetime, datetime]:
    """Until when hours are measured, and for the last time (None: never yet); the moment now, and the start of its hour."""
    row = run("roll-up", STATE, {}, using)[0]
    return row[0], row[1], row[2], row[3]


STORED = "SELECT {columns} FROM {table} WHERE hour >= %(start)s::timestamptz AND hour < %(end)s::timestamptz"


def stored_spent(start: datetime, end: datetime, using: str) -> list[Spent]:
    """What the roll-up has of whole hours."""
    text = STORED.format(columns="hour, flow, version, bucket, seconds, runs", table=_MEASURE)
    return [Spent(*row) for row in run("measures", text, {"start": start, "end": end}, using)]


def stored_took(start: datetime, end: datetime, using: str) -> list[Took]:
    """The same of histograms."""
    text = STORED.format(columns="hour, flow, version, what, le, count, seconds", table=_LATENCY)
    return [Took(*row) for row in run("latencies", text, {"start": start, "end": end}, using)]


__all__ = [
    "DUE", "Promise", "Spent", "Took", "know", "lock", "look", "replace", "spent", "state", "stored_spent", "stored_took", "took",
]  # fmt: skip
