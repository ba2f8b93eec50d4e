"""Claim, hand back and put back: who runs what. Claim, commit, work, commit: nothing is held in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.core.errors import HalfMove
from flows.store import holds
from flows.store.load import HISTORY, Loaded, parse
from flows.store.releases import CURRENT_OF
from flows.store.sql import run


@dataclass(slots=True)
class Claimed:
    """A workflow that this worker owns, as the claim returned it; `activity` columns are None when none is open.

    `ledgers`: the workflows on whose budgets it draws, its own last; None: its own alone. `opened_at`: of the open activity.

    `version` and `wake_seq` follow the arrows that the owner makes.
    """

    id: UUID
    flow_name: str
    flow_version: int
    fingerprint: str
    key: str | None
    input: Any
    intent_id: UUID
    intent_version: int
    user_id: Any
    user_label: str
    node: str
    version: int
    epoch: int
    wake_seq: int
    activity_seq: int
    active_seq: int | None
    queue: str
    priority: int
    policy_version: str
    release: str
    checkpoint: Any
    error_code: str | None
    owed: int
    now: datetime
    step: str | None
    visit: int | None
    number: int | None
    fence: int | None
    failures: int | None
    lost: int | None
    last_error: str | None
    notes: Any
    timeout_s: float | None
    parent_id: UUID | None
    ledgers: list[UUID] | None
    chain: UUID | None
    opened_at: datetime | None
    loaded: Loaded | None = None

    @property
    def fresh(self) -> bool:
        """Nothing has happened since the start: the claim returned all there is."""
        return self.version == 2 and self.wake_seq == 0


def _claim(offered: str) -> str:
    """The statement; `offered` is its condition on the release of a row.

    A row whose open activity was deleted behind the guards is not taken: it would take every claim of its queue down with it.
    The status is looked at where the rows are locked; said again of the update, it would have the index of ready rows read from end to end.
    What is held is passed over; where nothing is held, that is one look at an empty index.
    The history is read in the same statement. Its snapshot is older than the row lock, so it counts only if the row was then as it is
    locked now (version and wake_seq): every write to a workflow's history moves one of them. Otherwise `loaded` stays None.
    """
    return f"""
WITH offered AS (
    SELECT * FROM unnest(%(flows)s::text[], %(versions)s::int[]) AS o(flow_name, flow_version)
), claimed AS (
    UPDATE outlast_workflow w
    SET status = 'running', version = w.version + 1, worker_id = %(worker)s::uuid, worker_pid = %(pid)s::int,
        attempts = w.attempts + CASE WHEN w.active_seq IS NULL THEN 0 ELSE 1 END, updated_at = flows_now()
    WHERE w.id = ANY (ARRAY (
            SELECT r.id FROM outlast_workflow r
            WHERE r.status = 'runnable' AND r.queue = %(queue)s
              AND (r.flow_name, r.flow_version) IN (SELECT flow_name, flow_version FROM offered)
              AND (r.placement = '' OR r.placement = ANY (%(placements)s::text[]))
              AND {holds.free("r")}
              {offered}AND (r.active_seq IS NULL
                   OR r.active_seq = (SELECT x.seq FROM outlast_activity x WHERE x.workflow_id = r.id AND x.seq = r.active_seq))
            ORDER BY r.rank LIMIT %(limit)s::int FOR NO KEY UPDATE SKIP LOCKED))
      AND EXISTS (SELECT FROM outlast_worker k
                  WHERE k.id = %(worker)s::uuid AND k.status = 'alive' AND k.lease_until > statement_timestamp())
    RETURNING w.*
), activity AS (
    UPDATE outlast_activity a
    SET status = 'running', attempt = a.attempt + 1, fence = a.fence + 1, worker_id = c.worker_id, worker_pid = c.worker_pid,
        started_at = flows_now(), timeout_at = flows_now() + a.timeout_s * interval '1 second'
    FROM claimed c WHERE a.workflow_id = c.id AND a.seq = c.active_seq
    RETURNING a.*
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, attempt, at
    )
    SELECT c.id, c.version, 'runnable', 'running', c.node, c.node, '', c.epoch, 'claim', %(worker)s, c.intent_version,
        c.policy_version, c.active_seq, a.attempt, flows_now()
    FROM claimed c LEFT JOIN activity a ON a.workflow_id = c.id
)
SELECT c.id, c.flow_name, c.flow_version, c.fingerprint, c.key, c.input, c.intent_id, c.intent_version, c.user_id, c.user_label,
    c.node, c.version, c.epoch, c.wake_seq, c.activity_seq, c.active_seq, c.queue, c.priority, c.policy_version, c.release,
    c.checkpoint, c.error_code, c.owed, flows_now(), a.step, a.visit, a.attempt, a.fence, a.failures, a.lost, a.last_error, a.notes, a.timeout_s,
    c.parent_id, c.ledgers, c.chain, a.opened_at, h.*
FROM claimed c LEFT JOIN activity a ON a.workflow_id = c.id
LEFT JOIN LATERAL (
    SELECT c.id, c.version, c.wake_seq, c.pause_requested_at IS NOT NULL, i.version, i.status, flows_now(), c.owed, {HISTORY.format(w="s")}
    FROM outlast_workflow s JOIN outlast_intent i ON i.id = s.intent_id
    WHERE s.id = c.id AND s.version = c.version - 1 AND s.wake_seq = c.wake_seq AND (c.version > 2 OR c.wake_seq > 0)
) h ON true
WHERE c.active_seq IS NULL OR a.seq IS NOT NULL OR outlast_half_move('activity')
ORDER BY c.rank
"""


#: What a worker that carries whatever it is given asks for: nothing about releases, so that it pays nothing for them.
CLAIM = _claim("")

#: A pinned row is taken where its release is offered, or where the flow's policy lets another release decide and one is current.
CLAIM_OFFERED = _claim(f"""AND (r.release = '' OR r.release = ANY (%(releases)s::text[])
                   OR (r.flow_name || '@' || r.flow_version = ANY (%(deciding)s::text[])
                       AND {CURRENT_OF.format(flow="r.flow_name")} NOT IN (r.release, coalesce(r.passed_over, ''))))
              """)


def claim(
    *,
    queue: str,
    limit: int,
    worker: UUID,
    pid: int,
    flows: Sequence[str],
    versions: Sequence[int],
    placements: Sequence[str],
    using: str,
    releases: Sequence[str] | None = None,
    deciding: Sequence[str] = (),
) -> list[Claimed]:
    """Take up to `limit` ready workflows of a queue, in order of rank; their open activities start an attempt.

    Only definitions, placements and releases (None: all) that this worker offers, only while its own lease holds, nothing that is held, and
    never two claimers for one row. `deciding`: `name@version` of the flows whose policy lets another release than the pinned one decide.
    """
    params = {
        "queue": queue,
        "limit": limit,
        "worker": str(worker),
        "pid": pid,
        "flows": list(flows),
        "versions": list(versions),
        "placements": list(placements),
        "needing": holds.needing(),
    }
    statement = CLAIM
    if releases is not None:
        statement, params = CLAIM_OFFERED, {**params, "releases": list(releases), "deciding": list(deciding)}
    try:
        return [_claimed(row) for row in run("claim", statement, params, using)]
    except HalfMove:
        # A row changed between this statement's snapshot and its lock. Nothing was written; the next look sees it whole.
        return []


def _claimed(row: Sequence[Any]) -> Claimed:
    claimed = Claimed(*row[:37])
    claimed.loaded = parse(row[37:]) if row[37] is not None else None
    return claimed


RELEASE = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET status = CASE WHEN w.pause_requested_at IS NULL THEN 'runnable' ELSE 'paused' END,
        outcome = CASE WHEN w.pause_requested_at IS NULL THEN '' ELSE 'WAITING' END, pause_requested_at = NULL,
        attempts = w.attempts - CASE WHEN w.active_seq IS NULL THEN 0 ELSE 1 END,
        version = w.version + 1, worker_id = NULL, worker_pid = NULL, updated_at = flows_now()
    FROM unnest(%(ids)s::uuid[], %(versions)s::int[], %(touched)s::timestamptz[]) AS g(id, version, touched)
    WHERE w.id = ANY (ARRAY (SELECT r.id FROM outlast_workflow r WHERE r.id = ANY (%(ids)s::uuid[]) ORDER BY r.id FOR NO KEY UPDATE))
      AND w.id = g.id AND w.version = g.version AND (g.touched IS NULL OR w.updated_at = g.touched)
      AND w.status = 'running' AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
    RETURNING w.*
), activity AS (
    UPDATE outlast_activity a
    SET status = 'scheduled', attempt = a.attempt - 1, worker_id = NULL, worker_pid = NULL, started_at = NULL, timeout_at = NULL
    FROM moved m WHERE a.workflow_id = m.id AND a.seq = m.active_seq
    RETURNING a.workflow_id
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at
    )
    SELECT m.id, m.version, 'running', m.status, m.node, m.node, m.outcome, m.epoch, 'release', %(worker)s, m.intent_version,
        m.policy_version, m.active_seq, flows_now()
    FROM moved m
)
SELECT m.id, m.queue, m.flow_name, m.node, m.status FROM moved m LEFT JOIN activity a ON a.workflow_id = m.id
WHERE m.active_seq IS NULL OR a.workflow_id IS NOT NULL OR outlast_half_move('activity')
"""


def release(rows: Sequence[tuple[UUID, int, datetime | None]], worker: UUID, using: str) -> list[tuple[UUID, str, str, str, str]]:
    """Give back claimed workflows (id, version, last touched) whose activity code has not started; their attempt does not count.

    With a time, only if nobody has begun to work on the row since. (id, queue, flow, node, status now) of each: one that was asked to pause is
    paused, the others are ready.
    """
    params = {
        "ids": [row[0] for row in rows],
        "versions": [row[1] for row in rows],
        "touched": [row[2] for row in rows],
        "worker": str(worker),
    }
    return [(row[0], row[1], row[2], row[3], row[4]) for row in run("release", RELEASE, params, using)]


BEGIN = """
UPDATE outlast_workflow SET updated_at = flows_now()
WHERE id = %(id)s::uuid AND version = %(version)s::int AND status = 'running' AND worker_id IS NOT DISTINCT FROM %(worker)s::uuid
RETURNING id
"""


def begin(workflow_id: UUID, version: int, worker: UUID, using: str) -> bool:
    """Begin with what was claimed a while ago; False if it was given back meanwhile. After this nobody gives it back."""
    params = {"id": workflow_id, "version": version, "worker": str(worker)}
    return bool(run("begin", BEGIN, params, using))
