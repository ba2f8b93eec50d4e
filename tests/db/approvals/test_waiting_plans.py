"""A week's waiting times beside years of answers: by index only, and few pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals.services import browsing
from approvals.store import kept
from approvals.store import waiting as store
from flows.services.clock import now
from tests.support import record as records
from tests.support.plans import Plan, explain

#: The history is made once; `sound` and `transactional_db` leave it alone.
KEEPS_RECORD = True

DECIDED, PENDING = 30_000, 200

HISTORY = """
INSERT INTO outlast_intent (id, goal, version, status, user_label, created_at, updated_at)
SELECT md5('i' || n)::uuid, 'old', 1, 'active', '', now(), now() FROM generate_series(1, %(all)s) n;

INSERT INTO outlast_workflow (
    id, flow_name, flow_version, fingerprint, key, input, input_digest, subject, intent_id, intent_version, user_label, node, status, outcome,
    version, epoch, wake_seq, activity_seq, attempts, release, policy_version, queue, placement, priority, rank, created_at, updated_at)
SELECT md5('w' || n)::uuid, 't-news', 1, 'f', 'old-' || n, '{}', 'd', '', md5('i' || n)::uuid, 1, '', 'done', 'complete', 'COMPLETE',
    5, 0, 0, 3, 3, '', '', 'agents', '', 0, now(), now() - n * interval '1 hour', now() - n * interval '1 hour' + interval '30 minutes'
FROM generate_series(1, %(all)s) n;

INSERT INTO outlast_activity (workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, timeout_s, timeout_at, opened_at)
SELECT md5('w' || n)::uuid, s, 'one', '', s, 'done', 1, 1, 0, 0, 60, now(), now() FROM generate_series(1, %(all)s) n, generate_series(1, 3) s;

INSERT INTO outlast_api_answer (user_id, key, asked, status, body, at)
SELECT n %% 100, 'key-' || n, 'a', 200, '{}', now() - n * interval '4 seconds' FROM generate_series(1, %(all)s) n;

INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, started_at, ended_at, outcome)
SELECT md5('w' || n)::uuid, s, 1, 'one', now(), now(), 'succeeded' FROM generate_series(1, %(all)s) n, generate_series(1, 3) s;

INSERT INTO outlast_wait (
    workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status, opened_at, closed_at)
SELECT md5('w' || n)::uuid, 'ask', 1, 'approval', '', '', '', '', 0, 1, '', 'satisfied', now(), now() FROM generate_series(1, %(all)s) n;

INSERT INTO outlast_approval_request (
    workflow_id, wait_id, node, visit, steps, escalation, ladder, bulk, answers, self_approval, candidate_node, candidate, digest, revision,
    kind, subset, intent_id, intent_version, epoch, policy_version, requester_label, asked_at, expires_at, on_expiry, step, given, escalated,
    audiences, claimed_label, status, answer, answered_at)
SELECT md5('w' || n)::uuid, n, 'ask', 1, jsonb_build_array(jsonb_build_object('name', 'g', 'need', 1, 'audience', jsonb_build_object('role',
    'group ' || n %% 20))), '[]', '', false, '{approved,denied}', false, 'one', '{"choice": "a", "value": 1, "digest": "d"}', 'd', 1,
    'approval', '', md5('i' || n)::uuid, 1, 0, '', '', now() - n * interval '1 hour', now() + n * interval '1 minute', '', 0, 0, 0,
    ARRAY['{"role":"group ' || n %% 20 || '"}'], '',
    CASE WHEN n <= %(decided)s THEN 'denied' ELSE 'pending' END, CASE WHEN n <= %(decided)s THEN 'denied' ELSE '' END,
    CASE WHEN n <= %(decided)s THEN now() - n * interval '1 hour' + interval '30 minutes' END
FROM generate_series(1, %(all)s) n;

INSERT INTO outlast_review (request_id, verdict, digest, by_label, for_label, step, comment, refused, at)
SELECT r.id, 'deny', 'd', 'somebody', '', 0, '', '', r.answered_at FROM outlast_approval_request r WHERE r.answer = 'denied';
"""


@pytest.fixture(scope="module")
def years(quick_commits: None, django_db_blocker: Any) -> Iterator[None]:
    """One answer an hour for years, and a few hundred questions that are open; statistics as autovacuum keeps them."""
    with django_db_blocker.unblock():
        records.wipe(large=True)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in HISTORY.split(";\n"):
                if statement.strip():
                    cursor.execute(statement, {"decided": DECIDED, "all": DECIDED + PENDING})
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        yield
        records.wipe(large=True)


def good(plan: Plan, pages: int) -> Plan:
    """By index only, and within so many pages."""
    assert plan.whole == set(), (plan.whole, plan.pages)
    assert plan.pages <= pages, plan.pages
    return plan


def week(most: int = 500) -> dict[str, Any]:
    moment = now("default")
    return {"since": moment - timedelta(days=7), "until": moment, "most": most}


@pytest.mark.req("Q1")
def test_a_week_costs_what_happened_in_it(years: None) -> None:
    plan = good(explain(store.AUDIENCES, week()), 6000)
    assert {"outlast_approval_request_asked", "outlast_review_taken_at", "outlast_approval_request_inbox"} <= plan.indexes
    good(explain(store.PEOPLE, week()), 6000)
    good(explain(store.OF_FLOWS, week()), 9000)
    found = store.audiences(week()["since"], week()["until"], 500, "default")
    assert (len(found), sum(one.open for one in found)) == (20, PENDING)
    assert 160 <= sum(one.answered for one in found) <= 169


def test_the_backlog_reads_what_is_open(years: None) -> None:
    plan = good(explain(store.BACKLOG, {"soon": 3600.0}), 400)
    assert "outlast_approval_request_inbox" in plan.indexes
    assert sum(one.open for one in store.backlog(3600.0, "default")) == PENDING


def test_lives_of_some_workflows(years: None) -> None:
    ids = [one.workflow_id for one in browsing.requests(None, queue="all", limit=20, using="default").rows]
    good(explain(store.OF_WORKFLOWS, {"ids": ids}), 400)
    assert len(store.lives(ids, "default")) == 20


def test_pages_of_the_queues_are_ranges_of_an_index(years: None) -> None:
    """The last page costs what the first does."""
    first, second = (browsing.requests(None, queue=queue, limit=50, using="default") for queue in ("pending", "all"))
    for queue, page, index in (
        ("pending", first, "outlast_approval_request_inbox"),
        ("all", second, "outlast_approval_request_pkey"),
    ):
        with CaptureQueriesContext(connection) as queries:
            browsing.requests(None, queue=queue, limit=50, cursor=page.following, using="default")
        plan = good(explain(queries[0]["sql"], {}), 500)
        assert index in plan.indexes


def test_keys(years: None) -> None:
    good(explain(kept.FIND, {"user": 1, "key": "key-1"}), 10)
    good(explain(kept.CLAIM, {"user": 1, "key": "key-1", "asked": "b"}), 20)
    assert "outlast_api_answer_old" in good(explain(kept.FORGET, {}), 200).indexes
