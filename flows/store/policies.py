"""Policies: versions are only added, one after the other; a run is bound to one, and moved to the newest by an arrow of its own.

publish   the name is locked (advisory), then the next version is inserted: two publishers make two versions, in order
adopt     the workflow is locked; waiting, paused and ready ones stay where they are, bound to the newest version
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from flows.store.sql import run

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('outlast policy ' || %(name)s, 0))"

NEWEST = "SELECT version, digest, blocks FROM outlast_policy WHERE name = %(name)s ORDER BY version DESC LIMIT 1"

PUBLISH = """
INSERT INTO outlast_policy (name, version, body, digest, blocks, note, by_id, by_label, at)
VALUES (%(name)s, %(version)s::int, %(body)s::jsonb, %(digest)s, %(blocks)s::bool, %(note)s, %(by)s, %(by_label)s, flows_now())
"""


def lock(name: str, using: str) -> None:
    """Serialise publishers of one policy until the end of the transaction."""
    run("lock policy", LOCK, {"name": name}, using)


def newest(name: str, using: str) -> tuple[int, str, bool] | None:
    """(version, digest, blocks) of the newest version; None if there is none."""
    rows = run("newest policy", NEWEST, {"name": name}, using)
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def publish(params: Mapping[str, Any], using: str) -> None:
    """Insert the next version; the name is locked."""
    run("publish policy", PUBLISH, params, using)


ADOPT = """
WITH old AS (
    SELECT id, status, policy_version FROM outlast_workflow
    WHERE id = %(id)s::uuid AND status IN ('waiting', 'paused', 'runnable') AND policy_version <> %(policy)s
      AND split_part(policy_version, '@', 1) = split_part(%(policy)s, '@', 1)
), moved AS (
    UPDATE outlast_workflow w
    SET policy_version = %(policy)s, version = w.version + 1, updated_at = flows_now()
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.policy_version AS was
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, error_code, note, at)
    SELECT m.id, m.version, m.status, m.status, m.node, m.node, m.outcome, m.epoch, 'policy', m.was, m.intent_version,
        m.policy_version, m.active_seq, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT outcome FROM moved
"""


def adopt(workflow_id: UUID, policy: str, note: str, using: str) -> str | None:
    """Bind a locked workflow to another version of its policy; its outcome, or None if it cannot be moved now, or is bound to it already."""
    rows = run("adopt policy", ADOPT, {"id": workflow_id, "policy": policy, "note": note}, using)
    return str(rows[0][0]) if rows else None
