"""New runs that are not admitted yet: the arrow that puts one off, and what it still needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from flows.store import holds
from flows.store.limits import QUEUED
from flows.store.sql import run

DEFER = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET status = 'waiting', outcome = 'WAITING', version = w.version + 1, due_at = flows_now() + %(deadline)s::interval, updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.status = 'runnable' AND w.version = 1
    RETURNING w.*
), waits AS (
    INSERT INTO outlast_wait (
        workflow_id, node, visit, kind, reason, event_type, key, deadline_at, on_expiry, epoch, intent_version, policy_version, status,
        priority, opened_at)
    SELECT m.id, m.node, 0, %(kind)s, %(reason)s, '', %(label)s, flows_now() + %(deadline)s::interval, %(on_expiry)s, m.epoch,
        m.intent_version, m.policy_version, 'open', m.priority, flows_now()
    FROM moved m
    RETURNING id, workflow_id, deadline_at
), timers AS (
    INSERT INTO outlast_timer (workflow_id, wait_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
    SELECT m.id, o.id, 'wait_deadline', %(on_expiry)s, o.deadline_at, m.epoch, m.intent_version, m.policy_version, 'pending'
    FROM moved m JOIN waits o ON o.workflow_id = m.id
), needs AS (
    INSERT INTO outlast_deferred (workflow_id, limits) SELECT m.id, %(limits)s::bigint[] FROM moved m
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at)
    SELECT m.id, m.version, 'runnable', m.status, m.node, m.node, m.outcome, m.epoch, 'defer', %(label)s, m.intent_version,
        m.policy_version, m.active_seq, flows_now()
    FROM moved m
)
SELECT m.id FROM moved m LEFT JOIN waits o ON o.workflow_id = m.id WHERE o.id IS NOT NULL OR outlast_half_move('wait')
"""


def defer(
    workflow: UUID,
    limits: Sequence[int],
    *,
    kind: str,
    label: str,
    reason: str,
    deadline: timedelta,
    on_expiry: str,
    using: str,
) -> bool:
    """Put off a run that was just started, in the same transaction: it waits for `label`, and needs a unit of each of `limits`, in order."""
    params = {
        "id": workflow,
        "limits": list(limits),
        "kind": kind,
        "label": label,
        "reason": reason,
        "deadline": deadline,
        "on_expiry": on_expiry,
    }
    return bool(run("defer", DEFER, params, using))


HOLD = "UPDATE outlast_workflow SET slots = slots + %(count)s::smallint WHERE id = %(id)s::uuid"


def hold(workflow: UUID, count: int, using: str) -> None:
    """The run holds so many more units until it ends; the trigger on its end frees them."""
    run("hold slots", HOLD, {"id": workflow, "count": count}, using)


NEEDED = "SELECT workflow_id, limits FROM outlast_deferred WHERE workflow_id = ANY (%(ids)s::uuid[])"


def needed(ids: Sequence[UUID], using: str) -> dict[UUID, list[int]]:
    """What runs that are not admitted need, in order."""
    return {row[0]: list(row[1]) for row in run("deferred", NEEDED, {"ids": list(ids)}, using)}


SIZES = f"""
SELECT l.id, l.size, l.label, {QUEUED}
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS g(id, n) JOIN outlast_limit l ON l.id = g.id ORDER BY g.n
"""


def sizes(ids: Sequence[int], using: str) -> list[tuple[int, int, str, bool]]:
    """(id, size, label, whether somebody waits) of these limits, in their order."""
    params = {"ids": list(ids), "needing": holds.needing()}
    return [(row[0], row[1], row[2], row[3]) for row in run("sizes of limits", SIZES, params, using)] if ids else []


MOVE_ON = "UPDATE outlast_wait SET key = %(label)s, reason = %(reason)s WHERE id = %(wait)s::bigint AND closed_at IS NULL"


def move_on(wait: int, label: str, reason: str, using: str) -> None:
    """A run that waits has this unit, and waits for the next one."""
    run("wait for next limit", MOVE_ON, {"wait": wait, "label": label, "reason": reason}, using)


ADMITTED = """
DELETE FROM outlast_deferred WHERE workflow_id = ANY (%(ids)s::uuid[])
"""


def admitted(ids: Sequence[UUID], using: str) -> None:
    """These runs are let in, or have ended: what they still needed is forgotten. By its key: many wait where little is let in."""
    run("forget deferred", ADMITTED, {"ids": list(ids)}, using)
