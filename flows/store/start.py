"""The start arrow: one statement for any number of workflows of one flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.store.releases import CURRENT_OF
from flows.store.sql import loads, run


@dataclass(frozen=True, slots=True)
class NewWorkflow:
    """One workflow to start; `input` is encoded JSON."""

    id: UUID
    intent_id: UUID
    key: str | None
    input: str
    digest: str
    goal: str
    subject: str


@dataclass(frozen=True, slots=True)
class StartedRow:
    """What is there after the start: the new row, or the one that had the key already."""

    id: UUID
    key: str | None
    intent_id: UUID
    digest: str
    status: str
    outcome: str
    created: bool


START = f"""
WITH given AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(intents)s::uuid[], %(keys)s::text[], %(inputs)s::text[], %(digests)s::text[], %(goals)s::text[],
        %(subjects)s::text[]
    ) AS g(id, intent_id, key, input, digest, goal, subject)
), started AS (
    INSERT INTO outlast_workflow (
        id, flow_name, flow_version, fingerprint, key, input, input_digest, subject, intent_id, intent_version, user_id, user_label,
        node, status, outcome, version, epoch, wake_seq, activity_seq, active_seq, attempts, release, policy_version,
        queue, placement, priority, rank, deadline_at, created_at, updated_at,
        parent_id, depth, ledgers, chain, tenant, started_by
    )
    SELECT id, %(flow)s, %(flow_version)s::int, %(fingerprint)s, key, input::jsonb, digest, subject, intent_id,
        %(intent_version)s::int, %(user)s, %(user_label)s, %(node)s, 'runnable', '', 1, 0, 0,
        CASE WHEN %(opens)s::bool THEN 1 ELSE 0 END, CASE WHEN %(opens)s::bool THEN 1 END, 0,
        coalesce(%(release)s::text, {CURRENT_OF.format(flow="%(flow)s")}, ''), %(policy)s,
        %(queue)s, %(placement)s, %(priority)s::smallint,
        coalesce(%(rank)s::timestamptz, flows_now() - %(priority)s::int * %(priority_seconds)s::int * interval '1 second'),
        flows_now() + %(deadline)s::interval, flows_now(), flows_now(),
        %(parent)s::uuid, %(depth)s::smallint, CASE WHEN %(ledgers)s::uuid[] IS NOT NULL THEN %(ledgers)s::uuid[] || id END,
        %(chain)s::uuid, %(tenant)s, %(started_by)s
    FROM given
    WHERE (SELECT gone.workflow_id FROM outlast_key gone WHERE gone.flow = %(flow)s AND gone.key = given.key) IS NULL
    ORDER BY key NULLS LAST, id
    ON CONFLICT (flow_name, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id, key, intent_id, input_digest, status, outcome
), intent AS (
    INSERT INTO outlast_intent (id, goal, version, status, user_id, user_label, created_at, updated_at)
    SELECT g.intent_id, g.goal, 1, 'active', %(user)s, %(user_label)s, flows_now(), flows_now()
    FROM started s JOIN given g USING (id) WHERE %(own_intent)s::bool
), activity AS (
    INSERT INTO outlast_activity (workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, timeout_s, opened_at)
    SELECT id, 1, %(node)s, %(step)s, 1, 'scheduled', 0, 0, 0, 0, %(timeout)s::float8, flows_now()
    FROM started WHERE %(opens)s::bool
), timer AS (
    INSERT INTO outlast_timer (workflow_id, kind, name, on_expiry, due_at, epoch, intent_version, policy_version, status)
    SELECT s.id, t.kind, t.name, t.on_expiry, flows_now() + t.span, 0, %(intent_version)s::int, %(policy)s, 'pending'
    FROM started s CROSS JOIN unnest(
        %(timer_kinds)s::text[], %(timer_names)s::text[], %(timer_policies)s::text[], %(timer_spans)s::interval[]
    ) AS t(kind, name, on_expiry, span)
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, note, at
    )
    SELECT id, 1, '', 'runnable', '', %(node)s, '', 0, 'start', %(user_label)s, %(intent_version)s::int, %(policy)s,
        CASE WHEN %(opens)s::bool THEN 1 END, %(note)s::jsonb, flows_now()
    FROM started
)
SELECT id, key, intent_id, input_digest, status, outcome, true FROM started
"""


def start(new: Sequence[NewWorkflow], common: dict[str, Any], using: str) -> list[StartedRow]:
    """Start workflows that share all but identity and input; those whose key is taken are left out (see `taken`).

    Two starts of one key meet at its unique index: the second waits until the first commits, in order of key, and holds no lock on the row
    that it then finds. (To update that row, only to have it returned, would lock by key what everybody else locks by id.) A key outlasts its
    run: retention keeps it in `outlast_key`. Where it does so while this statement waits for the run's row, a trigger refuses the new row
    (a serialization failure): begun anew, the start finds the key.

    `common` holds flow, flow_version, fingerprint, node, step, opens (the first node is an activity), timeout, queue, placement,
    priority, priority_seconds, deadline (interval or None), timer_kinds, timer_names, timer_policies, timer_spans (of the deadlines that count
    from the start), intent_version, own_intent, user, user_label, policy, and release (None: the current one of the flow; it is looked up in
    the same statement); rank (None: by time and priority), parent, depth, ledgers (the own one is added; None: the own one alone), chain, tenant
    and started_by; note (JSON for the first row of the log, or None).
    """
    params = {
        **common,
        "ids": [w.id for w in new],
        "intents": [w.intent_id for w in new],
        "keys": [w.key for w in new],
        "inputs": [w.input for w in new],
        "digests": [w.digest for w in new],
        "goals": [w.goal for w in new],
        "subjects": [w.subject for w in new],
    }
    return [StartedRow(*row) for row in run("start", START, params, using)]


NOTE = "SELECT note FROM outlast_transition WHERE workflow_id = %(id)s::uuid AND seq = 1"


def note(row_id: UUID, using: str) -> dict[str, Any]:
    """What was noted of a run when it was started."""
    rows = run("note of the start", NOTE, {"id": row_id}, using)
    return dict(loads(rows[0][0]) or {}) if rows else {}


TAKEN = """
SELECT id, key, intent_id, input_digest, status, outcome, false FROM outlast_workflow
WHERE flow_name = %(flow)s AND key = ANY (%(keys)s::text[])
UNION ALL
SELECT workflow_id, key, intent_id, input_digest, status, outcome, false FROM outlast_key
WHERE flow = %(flow)s AND key = ANY (%(keys)s::text[])
"""


def taken(flow: str, keys: Sequence[str], using: str) -> list[StartedRow]:
    """The runs that have these keys already, those included that retention has deleted."""
    return [StartedRow(*row) for row in run("taken keys", TAKEN, {"flow": flow, "keys": list(keys)}, using)]
