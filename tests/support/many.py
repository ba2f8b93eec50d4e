"""A record of very many runs, a tenth of them live, and of one run with a long log, written in bulk: no arrow led there."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction

#: Ids grow with time, as those of real runs do. Of a hundred: seven wait (six of them for an event), one is ready, one computes, one is paused.
RUNS = """
INSERT INTO outlast_intent (id, goal, version, status, user_label, created_at, updated_at)
SELECT md5('i' || n)::uuid, 'Goal number ' || n, 1, 'active', 'robin', now(), now() FROM generate_series(1, %(goals)s) n;

INSERT INTO outlast_workflow (
    id, flow_name, flow_version, fingerprint, key, input, input_digest, subject, intent_id, intent_version, user_label, node, status, outcome,
    error_code, version, epoch, wake_seq, activity_seq, attempts, release, policy_version, queue, placement, priority, rank, worker_id,
    created_at, updated_at)
SELECT overlay(overlay(md5('w' || n) placing lpad(to_hex((extract(epoch FROM began) * 1000)::bigint), 12, '0') from 1 for 12) placing '7'
        from 13 for 1)::uuid,
    'many-' || n %% 20, 1 + n %% 2, 'f', 'order-' || n, jsonb_build_object('text', repeat('order ', 20)), 'd', '',
    md5('i' || 1 + n %% %(goals)s)::uuid, 1, 'robin', 'ask', status, outcome, code, 5, 0, 0, 3, 3,
    CASE WHEN n %% 7 = 0 THEN 'R' || n %% 3 ELSE '' END, '', 'agents', '', 0, began,
    CASE WHEN status = 'running' THEN md5('worker')::uuid END, began, began
FROM (
    SELECT n, now() - (%(count)s - n) * interval '1 second' AS began,
        (CASE n %% 100 WHEN 1 THEN 'runnable' WHEN 2 THEN 'running' WHEN 3 THEN 'paused' WHEN 11 THEN 'cancelled'
            WHEN 12 THEN 'superseded' WHEN 13 THEN 'failed' WHEN 14 THEN 'failed'
            ELSE CASE WHEN n %% 100 BETWEEN 4 AND 10 THEN 'waiting' ELSE 'complete' END END) AS status,
        (CASE n %% 100 WHEN 1 THEN '' WHEN 2 THEN '' WHEN 3 THEN 'WAITING' WHEN 11 THEN 'CANCELLED' WHEN 12 THEN 'SUPERSEDED'
            WHEN 13 THEN 'FAILED' WHEN 14 THEN 'FAILED' WHEN 10 THEN 'HUMAN_REQUIRED'
            ELSE CASE WHEN n %% 100 BETWEEN 4 AND 9 THEN 'WAITING' ELSE 'COMPLETE' END END) AS outcome,
        (CASE n %% 100 WHEN 10 THEN 'BUDGET_EXHAUSTED' WHEN 13 THEN 'PERMANENT' WHEN 14 THEN 'VERIFICATION_FAILED' END) AS code
    FROM generate_series(1, %(count)s) n) made;

INSERT INTO outlast_wait (
    workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status, opened_at)
SELECT id, 'ask', 1, CASE WHEN outcome <> 'WAITING' THEN 'human' WHEN flow_name = 'many-4' THEN 'approval' ELSE 'event' END, 'for the answer',
    'many.answered', key, '', 0, 1, '', 'open', updated_at
FROM outlast_workflow WHERE status = 'waiting' AND flow_name LIKE 'many-%%';
"""

#: One run that went round a loop: three arrows, one attempt, one verdict, one effect and one candidate each time.
LOG = """
INSERT INTO outlast_transition (
    workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version,
    activity_seq, attempt, error_code, at)
SELECT %(id)s::uuid, s, (ARRAY['waiting', 'runnable', 'running'])[1 + s %% 3], (ARRAY['runnable', 'running', 'waiting'])[1 + s %% 3],
    'ask', 'ask',
    CASE WHEN s %% 3 = 2 THEN 'WAITING' ELSE '' END, 0, (ARRAY['event', 'claim', 'parked'])[1 + s %% 3], '', 1, '', s / 3, 1, NULL,
    now() - (%(arrows)s - s) * interval '20 seconds' - CASE WHEN s < %(arrows)s / 2 THEN interval '3 days' ELSE '0' END
FROM generate_series(%(from)s, %(arrows)s) s;

INSERT INTO outlast_activity (
    workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, timeout_s, timeout_at, opened_at, ended_at)
SELECT %(id)s::uuid, %(first)s + s, 'ask', '', %(first)s + s, 'done', 1, 1, 0, 0, 60, now(), now(), now()
FROM generate_series(1, %(arrows)s / 3) s;

INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, started_at, ended_at, outcome)
SELECT %(id)s::uuid, %(first)s + s, 1, 'ask', now(), now(), 'succeeded' FROM generate_series(1, %(arrows)s / 3) s;

INSERT INTO outlast_verdict (
    workflow_id, version, epoch, node, activity_seq, attempt, cause, verdict, reason, checks, intent_version, at)
SELECT %(id)s::uuid, 3 * s, 0, 'ask', %(first)s + s, 1, 'event', 'ALLOWED', 'all holds', '[]', 1, now()
FROM generate_series(1, %(arrows)s / 3) s;

INSERT INTO outlast_operation (
    id, workflow_id, activity_seq, node, name, kind, status, request_digest, attempt, epoch, intent_version, compensable, two_people, again,
    external_id, flown_at, settled_by, looks, tries, lost)
SELECT %(id)s || '/ask/' || s, %(id)s::uuid, %(first)s + s, 'ask', '', 'effect', 'succeeded', '', 1, 0, 1, false, false, false, '', now(),
    '', 0, 0, 0
FROM generate_series(1, %(arrows)s / 3) s;

INSERT INTO outlast_candidate (workflow_id, node, activity_seq, attempt, revision, choice, digest, refused, release, model, prompt_hash,
    context_hash, output_hash, usage, evidence_digest, at)
SELECT %(id)s::uuid, 'ask', %(first)s + s, 1, s, 'patch', 'sha256:' || md5(s::text), '', '', 'm-1', '', '', '', '{}', '', now()
FROM generate_series(1, %(arrows)s / 3) s;
"""


def write(count: int) -> None:
    """So many runs, with triggers off; and the planner knows of them."""
    _run(RUNS, {"count": count, "goals": max(count // 100, 1)})


def lengthen(workflow: UUID, arrows: int) -> None:
    """Give a run a log of so many arrows, with what belongs to a third of them; its own rows stay."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT version, activity_seq FROM outlast_workflow WHERE id = %s", [workflow])
        version, first = cursor.fetchone()
    _run(LOG, {"id": str(workflow), "from": version + 1, "first": first, "arrows": arrows})
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE outlast_workflow SET version = %s WHERE id = %s", [arrows, workflow])


def _run(script: str, params: dict[str, Any]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in script.split(";\n"):
            if statement.strip():
                cursor.execute(statement, params)
    with connection.cursor() as cursor:
        for table in ("workflow", "wait", "intent", "transition", "activity", "attempt", "verdict", "operation", "candidate"):
            cursor.execute(f"VACUUM ANALYZE outlast_{table}")
