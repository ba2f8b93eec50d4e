"""The arrow MIGRATE: a workflow goes on under a newer version of its definition, in a new generation. Plan first, then this one statement.

    waiting, paused  → runnable    the turn that takes it up passes the gate of the new version, and rests again where nothing has come
    waiting          → paused      it is suspended for a person, and stays so
    running          → runnable, paused     by its own owner, before anything of the claim was begun

Guarded by version, status, epoch, definition as seen, arrivals and owner; and no effect of it is in doubt.

    moved    the workflow row                       ended    the open activity: scheduled again if it goes over, else fenced
    waits    the one that goes over is bound to the new generation; any other is withdrawn
    bound    timers of the workflow and of that wait    dropped  timers of other waits    given    results that the migration gave
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from flows.core.state import GIVEN
from flows.store.sql import run

MIGRATE = """
WITH old AS (
    SELECT id, status, node, active_seq FROM outlast_workflow WHERE id = %(id)s::uuid
), moved AS (
    UPDATE outlast_workflow w
    SET status = %(status)s, outcome = %(outcome)s, error_code = %(error_code)s, node = %(node)s, flow_version = %(flow_version)s::int,
        fingerprint = %(fingerprint)s, version = w.version + 1, epoch = w.epoch + 1, worker_id = NULL, worker_pid = NULL,
        activity_seq = w.activity_seq + cardinality(%(given_nodes)s::text[]),
        active_seq = CASE WHEN %(keep_activity)s::bool THEN w.active_seq END,
        attempts = w.attempts - CASE WHEN w.status = 'running' AND w.active_seq IS NOT NULL THEN 1 ELSE 0 END,
        queue = coalesce(%(queue)s, w.queue), placement = %(placement)s,
        rank = CASE WHEN %(status)s = 'runnable' THEN flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second'
                    ELSE w.rank END,
        due_at = CASE WHEN %(status)s = 'paused' AND %(keep_wait)s::bigint IS NOT NULL THEN w.due_at END,
        pause_requested_at = NULL, updated_at = flows_now()
    FROM old WHERE w.id = old.id AND w.version = %(version)s::int AND w.status = %(seen_status)s AND w.epoch = %(epoch)s::int
      AND w.flow_version = %(seen_version)s::int AND w.fingerprint = %(seen_fingerprint)s AND w.wake_seq = %(wake_seq)s::int
      AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid AND w.target = ''
      AND NOT EXISTS (SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND o.status IN ('in_flight', 'uncertain'))
    RETURNING w.*, old.status AS was, old.node AS was_node, old.active_seq AS was_active
), ended AS (
    UPDATE outlast_activity a
    SET status = CASE WHEN %(keep_activity)s::bool THEN 'scheduled' ELSE 'fenced' END, fence = a.fence + 1,
        attempt = a.attempt - CASE WHEN a.status = 'running' THEN 1 ELSE 0 END,
        timeout_s = CASE WHEN %(keep_activity)s::bool THEN %(timeout)s::float8 ELSE a.timeout_s END,
        worker_id = NULL, worker_pid = NULL, started_at = NULL, timeout_at = NULL,
        ended_at = CASE WHEN NOT %(keep_activity)s::bool THEN flows_now() END
    FROM moved m WHERE a.workflow_id = %(id)s::uuid AND a.seq = m.was_active
    RETURNING a.seq
), waits AS (
    UPDATE outlast_wait o
    SET status = CASE WHEN o.id = %(keep_wait)s::bigint THEN o.status ELSE 'withdrawn' END,
        closed_at = CASE WHEN o.id = %(keep_wait)s::bigint THEN NULL ELSE flows_now() END,
        epoch = CASE WHEN o.id = %(keep_wait)s::bigint THEN m.epoch ELSE o.epoch END,
        node = CASE WHEN o.id = %(keep_wait)s::bigint THEN m.node ELSE o.node END,
        on_expiry = CASE WHEN o.id = %(keep_wait)s::bigint THEN coalesce(%(on_expiry)s, o.on_expiry) ELSE o.on_expiry END
    FROM moved m WHERE o.workflow_id = %(id)s::uuid AND o.closed_at IS NULL
    RETURNING o.id, o.status
), bound AS (
    UPDATE outlast_timer t
    SET epoch = m.epoch, on_expiry = CASE WHEN t.kind = 'wait_deadline' THEN coalesce(%(on_expiry)s, t.on_expiry) ELSE t.on_expiry END
    FROM moved m WHERE t.workflow_id = %(id)s::uuid AND t.fired_at IS NULL AND t.commitment_id IS NULL
      AND (t.wait_id IS NULL OR t.wait_id = %(keep_wait)s::bigint)
), dropped AS (
    DELETE FROM outlast_timer t USING moved m
    WHERE t.workflow_id = %(id)s::uuid AND t.fired_at IS NULL AND t.commitment_id IS NULL
      AND t.wait_id IS NOT NULL AND t.wait_id IS DISTINCT FROM %(keep_wait)s::bigint
), given AS (
    INSERT INTO outlast_activity (
        workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, timeout_s, result, opened_at, ended_at)
    SELECT m.id, m.activity_seq - cardinality(%(given_nodes)s::text[]) + g.n, g.node, %(step)s, g.visit, 'done', 0, 0, 0, 0, 0,
        g.result::jsonb, flows_now(), flows_now()
    FROM moved m CROSS JOIN unnest(%(given_nodes)s::text[], %(given_visits)s::int[], %(given_results)s::text[])
        WITH ORDINALITY AS g(node, visit, result, n)
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, error_code, note, at)
    SELECT m.id, m.version, m.was, m.status, m.was_node, m.node, m.outcome, m.epoch, 'migrate', %(ref)s, m.intent_version,
        m.policy_version, m.active_seq, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT m.version, m.epoch, m.queue FROM moved m
WHERE (m.was_active IS NULL OR EXISTS (SELECT FROM ended) OR outlast_half_move('activity'))
  AND (%(keep_wait)s::bigint IS NULL OR EXISTS (SELECT FROM waits WHERE id = %(keep_wait)s::bigint) OR outlast_half_move('wait'))
"""


@dataclass(frozen=True, slots=True)
class Migrate:
    """The arrow's parameters. The first block is the guard: the row as it was seen."""

    id: UUID
    version: int
    seen_status: str
    epoch: int
    seen_version: int
    seen_fingerprint: str
    wake_seq: int
    worker: UUID | None

    status: str
    outcome: str
    error_code: str | None
    node: str
    flow_version: int
    fingerprint: str
    queue: str | None
    placement: str
    priority_seconds: int

    keep_activity: bool
    timeout: float
    keep_wait: int | None
    on_expiry: str | None

    given_nodes: list[str]
    given_visits: list[int]
    given_results: list[str]

    ref: str
    note: str


_FIELDS = tuple(field.name for field in fields(Migrate))


@dataclass(frozen=True, slots=True)
class Moved:
    """The workflow after the arrow."""

    version: int
    epoch: int
    queue: str


def migrate(m: Migrate, using: str) -> Moved | None:
    """Make the migration true; None (= lost): the workflow is not as it was seen, or an effect of it is in doubt."""
    params: dict[str, Any] = {name: getattr(m, name) for name in _FIELDS}
    rows = run("migrate", MIGRATE, {**params, "step": GIVEN}, using)
    return Moved(*rows[0]) if rows else None


DOUBTS = """
SELECT id FROM outlast_operation WHERE workflow_id = %(workflow)s::uuid AND status IN ('in_flight', 'uncertain') ORDER BY id
"""


def doubts(workflow: UUID, using: str) -> list[str]:
    """Operations of which nobody knows whether they happened, those that are to be asked for again included."""
    return [row[0] for row in run("doubts", DOUBTS, {"workflow": workflow}, using)]


LIVE = """
SELECT id, flow_version FROM outlast_workflow
WHERE flow_name = %(flow)s AND flow_version < %(below)s::int AND (%(source)s::int IS NULL OR flow_version = %(source)s::int)
  AND status NOT IN ('complete', 'failed', 'cancelled', 'superseded') AND id > %(after)s::uuid
ORDER BY id LIMIT %(limit)s::int
"""


def live(flow: str, *, below: int, source: int | None, after: UUID, limit: int, using: str) -> list[UUID]:
    """The next live workflows of a flow, in id order, of one version or of all below one."""
    params = {"flow": flow, "below": below, "source": source, "after": after, "limit": limit}
    return [row[0] for row in run("live workflows", LIVE, params, using)]


SHAPES = """
SELECT w.flow_name, w.flow_version, w.fingerprint, count(*)::int,
    count(*) FILTER (WHERE w.status IN ('reconciling', 'cancelling'))::int
FROM outlast_workflow w WHERE w.status NOT IN ('complete', 'failed', 'cancelled', 'superseded')
GROUP BY w.flow_name, w.flow_version, w.fingerprint ORDER BY w.flow_name, w.flow_version, w.fingerprint
"""

EXAMPLES = """
SELECT coalesce(w.key, w.id::text) FROM outlast_workflow w
WHERE w.flow_name = %(flow)s AND w.flow_version = %(version)s::int AND w.fingerprint = %(fingerprint)s
  AND w.status NOT IN ('complete', 'failed', 'cancelled', 'superseded')
ORDER BY w.id LIMIT 3
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """Live workflows of one shape of one version: how many, and how many of them only service what they owe."""

    flow: str
    version: int
    fingerprint: str
    count: int
    servicing: int


def shapes(using: str) -> list[Shape]:
    """With which definitions live workflows go."""
    return [Shape(*row) for row in run("live definitions", SHAPES, {}, using)]


def examples(shape: Shape, using: str) -> list[str]:
    """Some of these workflows, by key or id, the oldest first."""
    params = {"flow": shape.flow, "version": shape.version, "fingerprint": shape.fingerprint}
    return [row[0] for row in run("examples", EXAMPLES, params, using)]
