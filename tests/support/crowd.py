"""A record of ten thousand questions that wait and four hundred thousand that were answered, written in bulk: no arrow led there."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from tests.support.approving import ROLE

PENDING, DECIDED = 10_000, 400_000
OTHER = "another group of reviewers"

#: Every fifth pending request has one approval counted already; two in ten are put to others. Each reviewer has answered half of the past.
WRITE = """
INSERT INTO outlast_intent (id, goal, version, status, user_label, created_at, updated_at)
SELECT md5('i' || n)::uuid, 'Publish news number ' || n, 1, 'active', 'robin', now(), now() FROM generate_series(1, %(pending)s) n;

INSERT INTO outlast_workflow (
    id, flow_name, flow_version, fingerprint, key, input, input_digest, subject, intent_id, intent_version, user_label, node, status, outcome,
    version, epoch, wake_seq, activity_seq, attempts, release, policy_version, queue, placement, priority, rank, created_at, updated_at)
SELECT md5('w' || n)::uuid, 'publish-news', 1, 'f', 'news-' || n, jsonb_build_object('text', repeat('long news ', 100)), 'd', '',
    md5('i' || n)::uuid, 1, 'robin', 'ask', 'waiting', 'WAITING', 5, 0, 0, 3, 3, '', '', 'agents', '', 0, now(), now(), now()
FROM generate_series(1, %(pending)s) n;

INSERT INTO outlast_approval_request (
    workflow_id, kind, wait_id, node, visit, steps, escalation, ladder, bulk, subset, answers, self_approval, candidate_node, candidate,
    evidence, digest, revision, intent_id, intent_version, epoch, policy_version, requester_id, requester_label, asked_at,
    expires_at, on_expiry, status, answer, answered_at, step, given, escalated, audiences, claimed_label)
SELECT md5('w' || w)::uuid, 'approval', n, CASE WHEN n > %(decided)s THEN 'ask' ELSE 'past' END, 1,
    jsonb_build_array(jsonb_build_object('name', 'Reviewers', 'need', 2, 'audience', jsonb_build_object('role', role))), '[]', '', true,
    '', '{approved,changes,denied}', false, 'propose', jsonb_build_object('choice', 'release', 'value', repeat('text ', 60)), NULL,
    'sha256:' || md5(n::text), 1, md5('i' || w)::uuid, 1, 0, '', %(requester)s, 'robin', now() - n * interval '1 second',
    now() + (1 + n %% 20000) * interval '1 minute', '', status, CASE status WHEN 'denied' THEN 'denied' WHEN 'pending' THEN ''
    ELSE 'approved' END, CASE WHEN status = 'pending' THEN NULL ELSE now() END, 0,
    CASE WHEN status = 'pending' AND n %% 5 = 0 THEN 1 ELSE 0 END, 0,
    ARRAY['{"role":"' || role || '"}'], ''
FROM (
    SELECT n, 1 + n %% %(pending)s AS w, CASE WHEN n %% 5 = 1 THEN %(other)s ELSE %(role)s END AS role,
        CASE WHEN n > %(decided)s THEN 'pending' WHEN n %% 3 = 0 THEN 'denied' ELSE 'approved' END AS status
    FROM generate_series(1, %(decided)s + %(pending)s) n) made;

INSERT INTO outlast_review (request_id, verdict, digest, by_id, by_label, for_label, step, comment, refused, at)
SELECT r.id, CASE r.answer WHEN 'denied' THEN 'deny' ELSE 'approve' END, r.digest, (%(reviewers)s::int[])[1 + r.wait_id %% 2], 'somebody', '', 0,
    '', '', now()
FROM outlast_approval_request r WHERE r.status <> 'pending' OR r.given > 0;
"""


def write(*, requester: int, reviewers: list[int], pending: int = PENDING, decided: int = DECIDED) -> None:
    """Write it, with triggers off, and let the planner know."""
    params: dict[str, Any] = {"pending": pending, "decided": decided, "requester": requester, "reviewers": reviewers}
    params |= {"role": ROLE, "other": OTHER}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in WRITE.split(";\n"):
            if statement.strip():
                cursor.execute(statement, params)
    with connection.cursor() as cursor:
        for table in ("outlast_approval_request", "outlast_review", "outlast_workflow", "outlast_intent"):
            cursor.execute(f"VACUUM ANALYZE {table}")
