"""How long people were waited for: read from requests and their reviews, in one statement a question, and never kept.

A step is asked when the request is (the first), or at the approval that filled the step before. It is done at the answer that ends it. Those to
whom a request was escalated are asked from their moment on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.core.status import VERDICTS
from flows.core.protocol import TERMINAL, WAIT_KINDS
from flows.store.sql import literals, run

_ANSWER = f"v.refused = '' AND v.verdict IN ({literals(VERDICTS)})"

#: Requests that the period is about: asked or answered in it, or open now. By index, however many were answered before.
_TOUCHED = """
touched AS MATERIALIZED (
    SELECT id FROM outlast_approval_request WHERE asked_at >= %(since)s::timestamptz AND asked_at < %(until)s::timestamptz
    UNION SELECT request_id FROM outlast_review WHERE refused = '' AND at >= %(since)s::timestamptz AND at < %(until)s::timestamptz
    UNION SELECT id FROM outlast_approval_request WHERE status = 'pending')
"""

#: Each step that was reached of these requests: asked when, done when, open still.
_STEPS = f"""
reached AS (
    SELECT r.id, r.status, r.asked_at, r.escalation, r.escalated, (s.ordinality - 1)::int AS step, s.value->'audience' AS audience,
        s.ordinality - 1 < r.step OR r.answer <> '' AS done,
        (SELECT max(v.at) FROM outlast_review v WHERE v.request_id = r.id AND v.step = s.ordinality - 1 AND {_ANSWER}) AS said_at
    FROM touched t JOIN outlast_approval_request r ON r.id = t.id
    CROSS JOIN LATERAL jsonb_array_elements(r.steps) WITH ORDINALITY s
    WHERE s.ordinality - 1 <= r.step),
steps AS (
    SELECT id, step, audience, escalation, escalated, asked_at AS request_asked_at,
        coalesce(lag(said_at) OVER (PARTITION BY id ORDER BY step), asked_at) AS asked_at,
        CASE WHEN done THEN said_at END AS done_at,
        NOT done AND status = 'pending' AS open
    FROM reached)
"""

AUDIENCES = f"""
WITH {_TOUCHED}, {_STEPS},
asked AS (
    SELECT id, audience, asked_at, done_at, open FROM steps
    UNION ALL
    SELECT s.id, e.value->'audience', greatest(s.asked_at, min(m.at)), s.done_at, s.open
    FROM steps s CROSS JOIN LATERAL jsonb_array_elements(s.escalation) WITH ORDINALITY e
    CROSS JOIN LATERAL (SELECT s.request_asked_at + (e.value->>'after')::float8 * interval '1 second' AS at) m
    WHERE e.ordinality <= s.escalated AND e.value->'audience' <> s.audience AND (s.done_at IS NULL OR s.done_at > m.at)
    GROUP BY s.id, s.step, s.asked_at, s.done_at, s.open, e.value->'audience'),
timed AS (
    SELECT a.id, n.key AS kind, n.value AS name, a.open, a.asked_at,
        a.asked_at >= %(since)s::timestamptz AND a.asked_at < %(until)s::timestamptz AS is_asked,
        NOT a.open AND a.done_at IS NULL AS is_lapsed,
        CASE WHEN a.done_at >= %(since)s::timestamptz AND a.done_at < %(until)s::timestamptz
            THEN extract(epoch FROM a.done_at - a.asked_at)::float8 END AS seconds
    FROM asked a CROSS JOIN LATERAL jsonb_each_text(a.audience) n)
SELECT kind, name, count(*) FILTER (WHERE is_asked), count(seconds), count(*) FILTER (WHERE is_asked AND is_lapsed),
    count(DISTINCT id) FILTER (WHERE open),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds), max(seconds),
    min(asked_at) FILTER (WHERE open), (array_agg(id ORDER BY asked_at, id) FILTER (WHERE open))[1]
FROM timed GROUP BY kind, name
HAVING count(*) FILTER (WHERE is_asked OR open) + count(seconds) > 0
ORDER BY count(DISTINCT id) FILTER (WHERE open) DESC, max(seconds) DESC NULLS LAST, kind, name
LIMIT %(most)s::int
"""


@dataclass(frozen=True, slots=True)
class Waited:
    """How long an audience was waited for; spans in seconds, over the steps that were done in the period.

    `kind`: role, pool, permission or user. `asked`: steps put to it in the period. `answered`: done in the period. `lapsed`: asked in it and
    ended without an answer (expired, withdrawn). `open`: waits for it now; `oldest_at`, `oldest`: since when the longest does, and which
    request that is.
    """

    kind: str
    name: str
    asked: int
    answered: int
    lapsed: int
    open: int
    p50: float | None
    p95: float | None
    longest: float | None
    oldest_at: datetime | None
    oldest: int | None


def audiences(since: datetime, until: datetime, most: int, using: str) -> list[Waited]:
    """What each role, pool, permission and person was waited for, those with the most that is open first."""
    return [Waited(*row) for row in run("waiting of audiences", AUDIENCES, _params(since, until, most), using)]


PEOPLE = f"""
WITH {_TOUCHED}, {_STEPS}
SELECT v.by_id, max(v.by_label), count(*), count(*) FILTER (WHERE v.verdict = 'approve'), count(*) FILTER (WHERE v.for_label <> ''),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM v.at - s.asked_at)),
    percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM v.at - s.asked_at)),
    max(extract(epoch FROM v.at - s.asked_at))::float8
FROM outlast_review v JOIN steps s ON s.id = v.request_id AND s.step = v.step
WHERE {_ANSWER} AND v.at >= %(since)s::timestamptz AND v.at < %(until)s::timestamptz
GROUP BY v.by_id, CASE WHEN v.by_id IS NULL THEN v.by_label END
ORDER BY count(*) DESC, max(v.by_label)
LIMIT %(most)s::int
"""


@dataclass(frozen=True, slots=True)
class Answering:
    """What one person answered in the period, and how long after their step was asked; spans in seconds.

    `answered` counts every answer that was taken; `approved`, and `for_others` in whose name they stood in, are some of them.
    """

    user: Any
    name: str
    answered: int
    approved: int
    for_others: int
    p50: float
    p95: float
    longest: float


def people(since: datetime, until: datetime, most: int, using: str) -> list[Answering]:
    """What people answered, those with the most answers first."""
    return [Answering(*row) for row in run("waiting of people", PEOPLE, _params(since, until, most), using)]


BACKLOG = """
SELECT n.key, n.value, count(DISTINCT r.id), min(r.asked_at),
    count(DISTINCT r.id) FILTER (WHERE r.expires_at <= flows_now() + %(soon)s::float8 * interval '1 second')
FROM outlast_approval_request r CROSS JOIN LATERAL unnest(r.audiences) a CROSS JOIN LATERAL jsonb_each_text(a::jsonb) n
WHERE r.status = 'pending' GROUP BY n.key, n.value ORDER BY count(DISTINCT r.id) DESC, n.key, n.value
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for an audience now. `oldest_at`: when the oldest of these requests was asked. `soon`: how many expire soon."""

    kind: str
    name: str
    open: int
    oldest_at: datetime
    soon: int


def backlog(soon: float, using: str) -> list[Backlog]:
    """What waits for whom now, the longest queue first; `soon` in seconds."""
    return [Backlog(*row) for row in run("backlog of audiences", BACKLOG, {"soon": soon}, using)]


_HUMAN = literals(kind.name for kind in WAIT_KINDS.values() if kind.slo == "human")

#: The lives of some workflows, by the workflow's own indexes.
_LIVES = f"""
SELECT w.id, w.flow_name, w.key,
    extract(epoch FROM CASE WHEN w.status IN ({literals(TERMINAL)}) THEN w.updated_at ELSE flows_now() END - w.created_at)::float8 AS life,
    (SELECT coalesce(sum(extract(epoch FROM coalesce(o.closed_at, flows_now()) - o.opened_at)), 0)::float8
        FROM outlast_wait o WHERE o.workflow_id = w.id AND o.kind IN ({_HUMAN})) AS human,
    (SELECT coalesce(sum(extract(epoch FROM a.ended_at - a.started_at)), 0)::float8 FROM outlast_attempt a WHERE a.workflow_id = w.id)
    + (SELECT coalesce(sum(extract(epoch FROM flows_now() - c.started_at)), 0)::float8
        FROM outlast_activity c WHERE c.workflow_id = w.id AND c.status = 'running') AS work
FROM outlast_workflow w
"""

OF_WORKFLOWS = f"{_LIVES} WHERE w.id = ANY (%(ids)s::uuid[]) ORDER BY w.id"

OF_FLOWS = f"""
WITH {_TOUCHED},
lives AS ({_LIVES} WHERE w.id = ANY (ARRAY(SELECT r.workflow_id FROM touched t JOIN outlast_approval_request r ON r.id = t.id)))
SELECT flow_name, count(*), sum(life), sum(human), sum(work) FROM lives GROUP BY flow_name ORDER BY sum(human) DESC, flow_name
LIMIT %(most)s::int
"""


@dataclass(frozen=True, slots=True)
class Life:
    """How much of a workflow's life people were waited for, and how much of it was work; seconds. The rest waited for something else."""

    workflow: UUID
    flow: str
    key: str | None
    life: float
    human: float
    work: float


@dataclass(frozen=True, slots=True)
class Lives:
    """The same of all workflows of a flow that people were asked about in a period, summed up."""

    flow: str
    workflows: int
    life: float
    human: float
    work: float


def lives(workflows: Sequence[UUID], using: str) -> list[Life]:
    """The lives of these workflows."""
    return [Life(*row) for row in run("lives of workflows", OF_WORKFLOWS, {"ids": list(workflows)}, using)]


def flows(since: datetime, until: datetime, most: int, using: str) -> list[Lives]:
    """The lives by flow, those that waited longest for people first."""
    return [Lives(*row) for row in run("lives of flows", OF_FLOWS, _params(since, until, most), using)]


def _params(since: datetime, until: datetime, most: int) -> dict[str, Any]:
    return {"since": since, "until": until, "most": most}
