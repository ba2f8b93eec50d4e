"""A sound record around the runs of `tests.support.many`: what a healthy system has beside them, so that every query has something to pass over.

Of every live run the log has its last row; what waits has its deadline and the timer of it, every third run a deadline of its own; of finished
runs there are waits, timers, effects, commitments, ledgers and events.
"""

from __future__ import annotations

from django.db import connection, transaction

SOUND = """
INSERT INTO outlast_worker (id, name, status, host, boot_id, pid_namespace, pid, process_started, region, host_class, placements, queues,
    definitions, releases, concurrency, lease_until, renewed_at, started_at)
SELECT md5('worker')::uuid, 'bench', 'alive', '', '', '', 1, '', '', '', '{}', '{agents,cleanup,control}',
    ARRAY(SELECT 'many-' || n || '@' || v FROM generate_series(0, 19) n, generate_series(1, 2) v), '{*}', 100000,
    now() + interval '1 day', now(), now() - interval '1 day';

INSERT INTO outlast_transition (
    workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version, at)
SELECT id, s, 'runnable', status, 'ask', 'ask', outcome, 0, 'claim', '', 1, '', updated_at FROM outlast_workflow, generate_series(4, 5) s;

UPDATE outlast_wait SET kind = 'event' WHERE kind = 'approval';
UPDATE outlast_wait SET deadline_at = now() + interval '9 days', on_expiry = 'escalate' WHERE kind = 'event';

INSERT INTO outlast_wait (workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status,
    opened_at, closed_at)
SELECT id, 'ask', 1, 'event', '', 'many.answered', key, '', 0, 1, '', 'satisfied', created_at, updated_at
FROM outlast_workflow WHERE status = 'complete';

INSERT INTO outlast_timer (workflow_id, wait_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
SELECT workflow_id, id, 'wait_deadline', on_expiry, deadline_at, 0, 1, '', 'pending' FROM outlast_wait WHERE deadline_at IS NOT NULL;

UPDATE outlast_workflow SET deadline_at = now() + interval '20 days'
WHERE status IN ('waiting', 'paused', 'runnable', 'running') AND right(key, 1) IN ('1', '4', '7');
INSERT INTO outlast_timer (workflow_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
SELECT id, 'workflow_deadline', 'escalate', deadline_at, 0, 1, '', 'pending' FROM outlast_workflow WHERE deadline_at IS NOT NULL;
INSERT INTO outlast_timer (workflow_id, kind, due_at, epoch, intent_version, policy_version, status, fired_at)
SELECT id, 'sleep', created_at, 0, 1, '', 'fired', created_at FROM outlast_workflow WHERE status = 'complete';

INSERT INTO outlast_operation (
    id, workflow_id, activity_seq, node, name, kind, status, request_digest, attempt, epoch, intent_version, compensable, two_people, again,
    external_id, flown_at, settled_by, looks, tries, lost)
SELECT id || '/ask/1', id, 1, 'ask', '', 'effect', 'succeeded', '', 1, 0, 1, false, false, false, '', created_at, '', 0, 0, 0
FROM outlast_workflow;

INSERT INTO outlast_commitment (workflow_id, activity_seq, node, visit, name, kind, reference, status, releasable, may_defer, holder, reason,
    opened_at, closed_at, closed_by, deadline_at)
SELECT id, 1, 'ask', 1, 'hold', 'hold', 'r', CASE WHEN status = 'waiting' THEN 'active' ELSE 'released' END, true, false, '', '',
    created_at, CASE WHEN status <> 'waiting' THEN updated_at END, '', now() + interval '5 days'
FROM outlast_workflow WHERE right(key, 1) = '5';
INSERT INTO outlast_timer (workflow_id, commitment_id, kind, on_expiry, due_at, epoch, intent_version, policy_version, status)
SELECT workflow_id, id, 'commitment_deadline', 'escalate', deadline_at, 0, 1, '', 'pending' FROM outlast_commitment WHERE status = 'active';

INSERT INTO outlast_budget (workflow_id, kind, allowance, kept, spent, reserved, updated_at)
SELECT id, 'model_calls', 9, 0, 2, 0, updated_at FROM outlast_workflow WHERE right(key, 1) = '6';
INSERT INTO outlast_budget_entry (budget_id, entry, amount, workflow_id, node, activity_seq, attempt, call, reason, by_label, at)
SELECT b.id, e.entry, 2, b.workflow_id, 'ask', 1, 1, 0, '', '', b.updated_at
FROM outlast_budget b, (VALUES ('reserved'), ('spent'), ('settled')) e(entry);
UPDATE outlast_budget_entry SET amount = 0 WHERE entry = 'settled';

INSERT INTO outlast_event (event_id, type, key, payload, payload_hash, status, place, deliveries, observed_at)
SELECT 'e-' || key, 'many.answered', 'early-' || key, '{}', '', CASE WHEN right(key, 2) = '33' THEN 'pending' ELSE 'consumed' END,
    CASE WHEN right(key, 2) = '33' THEN 'early' ELSE 'taken' END, 1, updated_at
FROM outlast_workflow WHERE status = 'complete'
"""

TABLES = (
    "workflow",
    "wait",
    "timer",
    "transition",
    "operation",
    "commitment",
    "budget",
    "budget_entry",
    "event",
    "activity",
    "worker",
)


def write() -> None:
    """Beside the runs that are there."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in SOUND.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE outlast_{table}")
