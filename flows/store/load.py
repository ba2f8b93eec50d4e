"""Reading a workflow's state with a fresh snapshot, after the claim (or the lock) has been taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.core.deadlines import WORKFLOWS
from flows.store.sql import literals, loads, run


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the engine needs beside the claimed row.

    `activities`: (node, step, newest visit, done visit, result). `waits`: (node, newest visit, visit of the result, result).
    `open_wait`: (id, node, kind, visit, evidence, due, reason, policy) or None. `passed`: deadlines that nobody has handled yet, as (kind,
    name); `degraded`: one with DEGRADE has passed.
    """

    id: UUID
    version: int
    wake_seq: int
    pause_requested: bool
    intent_version: int
    intent_status: str
    activities: list[tuple[str, str, int, int | None, Any]]
    waits: list[tuple[str, int, int, Any]]
    open_wait: tuple[int, str, str, int, Any, bool, str, str] | None
    passed: tuple[tuple[str, str], ...]
    words: dict[tuple[str, str], str]
    degraded: bool
    now: datetime
    owed: int


#: The recorded history of the workflow `{w}`: four columns, used by the claim and by `load` alike.
HISTORY = """
    (SELECT json_agg(json_build_array(x.node, x.step, x.visit, x.done_visit, x.result)) FROM (
        SELECT DISTINCT ON (a.node, a.step) a.node, a.step, max(a.visit) OVER (PARTITION BY a.node, a.step) AS visit,
            CASE WHEN a.status = 'done' THEN a.visit END AS done_visit, CASE WHEN a.status = 'done' THEN a.result END AS result
        FROM outlast_activity a WHERE a.workflow_id = {w}.id
        ORDER BY a.node, a.step, (a.status = 'done') DESC, a.visit DESC, a.seq DESC) x),
    (SELECT json_agg(json_build_array(x.node, x.visit, x.result_visit, x.result)) FROM (
        SELECT DISTINCT ON (o.node) o.node, max(o.visit) OVER (PARTITION BY o.node) AS visit, o.visit AS result_visit, o.result
        FROM outlast_wait o WHERE o.workflow_id = {w}.id AND o.visit > 0
        ORDER BY o.node, (o.result IS NOT NULL) DESC, o.visit DESC) x),
    (SELECT json_build_array(o.id, o.node, o.kind, o.visit, o.evidence, o.due_since IS NOT NULL, o.reason, o.on_expiry)
     FROM outlast_wait o WHERE o.workflow_id = {w}.id AND o.status = 'open' LIMIT 1),
    (SELECT json_agg(json_build_array(t.kind, t.name, t.status, t.on_expiry) ORDER BY t.id) FROM outlast_timer t
     WHERE t.workflow_id = {w}.id AND (t.status = 'fired' AND (t.kind IN (__WORKFLOWS__) OR t.on_expiry = 'release')
        OR t.status IN ('fired', 'handled') AND t.on_expiry LIKE 'degrade%'))
""".replace("__WORKFLOWS__", literals(WORKFLOWS))

LOAD = f"""
SELECT w.id, w.version, w.wake_seq, w.pause_requested_at IS NOT NULL, i.version, i.status, flows_now(), w.owed, {HISTORY.format(w="w")}
FROM outlast_workflow w JOIN outlast_intent i ON i.id = w.intent_id
WHERE w.id = ANY (%(ids)s::uuid[])
"""


def load(ids: Sequence[UUID], using: str) -> dict[UUID, Loaded]:
    """The recorded state of these workflows."""
    return {row[0]: parse(row) for row in run("load", LOAD, {"ids": list(ids)}, using)}


def parse(row: Sequence[Any]) -> Loaded:
    """A `Loaded` from id, version, wake_seq, pause asked, intent version and status, now, owed, and the four columns of HISTORY."""
    activities = [(a[0], a[1], a[2], a[3], a[4]) for a in _parsed(row[8]) or []]
    waits = [(w[0], w[1], w[2], w[3]) for w in _parsed(row[9]) or []]
    wait, timers = _parsed(row[10]), _parsed(row[11]) or []
    return Loaded(
        id=row[0],
        version=row[1],
        wake_seq=row[2],
        pause_requested=row[3],
        intent_version=row[4],
        intent_status=row[5],
        now=row[6],
        activities=activities,
        waits=waits,
        open_wait=tuple(wait) if wait else None,
        passed=tuple(
            (kind, name) for kind, name, status, word in timers if status == "fired" and (kind in WORKFLOWS or word == "release")
        ),
        words={(kind, name): word for kind, name, status, word in timers if status == "fired"},
        degraded=any(word.startswith("degrade") for *_, word in timers),
        owed=row[7],
    )


def _parsed(value: Any) -> Any:
    return loads(value) if value is not None else None


OWNER = """
SELECT w.id, w.flow_name, w.flow_version, w.fingerprint, w.key, w.input, w.intent_id, w.intent_version, w.user_id, w.user_label,
    w.node, w.version, w.epoch, w.wake_seq, w.activity_seq, w.active_seq, w.queue, w.priority, w.policy_version, w.release,
    w.checkpoint, w.error_code, w.owed, flows_now(), a.step, a.visit, a.attempt, a.fence, a.failures, a.lost, a.last_error, a.notes,
    a.timeout_s, w.parent_id, w.ledgers, w.chain, a.opened_at, w.worker_id, w.worker_pid
FROM outlast_workflow w
LEFT JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
WHERE w.id = %(id)s::uuid
"""
RUNNING = OWNER + "AND w.status = 'running'"


def running(workflow_id: UUID, using: str) -> tuple[tuple[Any, ...], UUID, int] | None:
    """A running workflow as a claim would have returned it, with its owner; for sweeps that act in the owner's place."""
    rows = run("read running", RUNNING, {"id": workflow_id}, using)
    return (rows[0][:-2], rows[0][-2], rows[0][-1]) if rows else None


def whole(workflow_id: UUID, using: str) -> tuple[Any, ...]:
    """A workflow in whatever status, as a claim would return it."""
    row: tuple[Any, ...] = run("read workflow", OWNER, {"id": workflow_id}, using)[0][:-2]
    return row
