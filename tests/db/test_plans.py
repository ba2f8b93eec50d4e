"""The hot statements over a record of 20,000 finished workflows: by index, a bounded number of pages, and old rows cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings

from flows.core.ids import new_id
from flows.models import Timer, Wait, WebhookDelivery, Workflow
from flows.store import (
    advance,
    attempts,
    candidates,
    claim,
    context,
    deadlines,
    events,
    holds,
    leave,
    load,
    locks,
    migrate,
    move,
    places,
    recover,
    releases,
    start,
    streams,
    tick,
    timers,
    webhooks,
)
from flows.testing import LocalWorker, local_worker
from tests import factories
from tests.factories import Ask, Line, Nap
from tests.support import record as records
from tests.support.plans import Plan, explain, let_nobody_look_back

#: The history is made once; `sound` and `transactional_db` leave it alone.
KEEPS_RECORD = True

FINISHED = 20_000

HISTORY = """
INSERT INTO outlast_intent (id, goal, version, status, user_label, created_at, updated_at)
SELECT md5('i' || n)::uuid, 'old', 1, 'active', '', now(), now() FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_workflow (
    id, flow_name, flow_version, fingerprint, key, input, input_digest, subject, intent_id, intent_version, user_label, node, status, outcome,
    version, epoch, wake_seq, activity_seq, attempts, release, policy_version, queue, placement, priority, rank, created_at, updated_at)
SELECT md5('w' || n)::uuid, 't-line', 1, 'f', 'old-' || n, '{}', 'd', '', md5('i' || n)::uuid, 1, '', 'done',
    (ARRAY['complete', 'failed', 'cancelled'])[1 + n %% 3], (ARRAY['COMPLETE', 'FAILED', 'CANCELLED'])[1 + n %% 3],
    5, 0, 0, 3, 3, '', '', 'agents', '', 0, now() - n * interval '1 minute', now() - n * interval '1 minute', now()
FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_transition (
    workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version, at)
SELECT md5('w' || n)::uuid, s, 'x', 'y', '', '', '', 0, '', '', 1, '', now() FROM generate_series(1, %(count)s) n, generate_series(1, 5) s;

INSERT INTO outlast_activity (workflow_id, seq, node, step, visit, status, attempt, fence, failures, lost, timeout_s, timeout_at, opened_at)
SELECT md5('w' || n)::uuid, s, 'one', '', s, 'done', 1, 1, 0, 0, 60, now(), now()
FROM generate_series(1, %(count)s) n, generate_series(1, 3) s;

INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, ended_at, outcome)
SELECT md5('w' || n)::uuid, s, 1, 'one', now(), 'succeeded' FROM generate_series(1, %(count)s) n, generate_series(1, 3) s;

INSERT INTO outlast_wait (
    workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status, opened_at, closed_at)
SELECT md5('w' || n)::uuid, 'ask', 1, 'event', '', 't.asked', 'k' || n, '', 0, 1, '', 'satisfied', now(), now()
FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_wait_part (wait_id, workflow_id, number, name, event_type, key, event_id, evidence, open)
SELECT n, md5('w' || n)::uuid, 1, 't.part', 't.part', 'k' || n, n, '{}', false FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_timer (workflow_id, kind, due_at, epoch, intent_version, policy_version, status, fired_at)
SELECT md5('w' || n)::uuid, 'sleep', now() - interval '1 day', 0, 1, '', 'fired', now() FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_event (event_id, type, key, payload, payload_hash, status, deliveries, observed_at)
SELECT 'old-' || n, 't.asked', 'k' || n, '{}', '', 'consumed', 1, now() FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_notice (workflow_id, outcome, code, created_at, tries, sent_at)
SELECT md5('w' || n)::uuid, 'FAILED', '', now(), 1, now() FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_approval_notice (request_id, channel, user_label, kind, number, created_at, tries, sent_at)
SELECT n, '', '', 'asked', 0, now(), 1, now() FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_operation (
    id, workflow_id, activity_seq, node, name, kind, status, request_digest, attempt, epoch, intent_version, compensable, two_people, again,
    external_id, flown_at, settled_by, looks, tries, lost)
SELECT md5('w' || n)::uuid || '/one/' || s, md5('w' || n)::uuid, s, 'one', '', 'effect', 'succeeded', '', 1, 0, 1, false, false, false,
    '', now(), '', 0, 0, 0
FROM generate_series(1, %(count)s) n, generate_series(1, 3) s;

INSERT INTO outlast_candidate (workflow_id, node, activity_seq, attempt, revision, choice, digest, refused, release, model, prompt_hash,
    context_hash, output_hash, usage, evidence_digest, at)
SELECT md5('w' || n)::uuid, 'one', s, 1, 1, 'patch', '', '', '', '', '', '', '', '{}', '', now()
FROM generate_series(1, %(count)s) n, generate_series(1, 3) s;

INSERT INTO outlast_observation (workflow_id, node, activity_seq, attempt, name, version, baseline, at)
SELECT md5('w' || n)::uuid, 'one', s, 1, 'main', 'v', true, now() FROM generate_series(1, %(count)s) n, generate_series(1, 3) s;

INSERT INTO outlast_commitment (workflow_id, activity_seq, node, visit, name, kind, reference, status, releasable, may_defer, holder, reason,
    opened_at, closed_at, closed_by)
SELECT md5('w' || n)::uuid, 1, 'one', 1, 'hold', 'hold', 'r', 'released', true, false, '', '', now(), now(), ''
FROM generate_series(1, %(count)s) n;
INSERT INTO outlast_dependency (name, since) SELECT 'd' || n, now() FROM generate_series(1, 2000) n;
INSERT INTO outlast_key (flow, key, workflow_id, intent_id, input_digest, status, outcome, ended_at, deleted_at)
SELECT 't-line', 'gone' || n, md5('g' || n)::uuid, md5('g' || n)::uuid, '', 'complete', 'COMPLETE', now(), now() FROM generate_series(1, 2000) n;
INSERT INTO outlast_start_key (flow, key) SELECT 'f', 'k' || n FROM generate_series(1, 2000) n;
INSERT INTO outlast_hold (scope, name, by_label, reason, since, lifted_at)
SELECT 'flow', 'f' || n, '', 'r', now(), now() FROM generate_series(1, 2000) n;

INSERT INTO outlast_fan (id, workflow_id, node, visit, wait_id, kind, body, epoch, total, running, succeeded, failed, cancelled, skipped, need,
    tolerated, concurrency, on_cancel, on_lose, awaited, owing, status, opened_at, closed_at)
SELECT 1000000 + n, md5('w' || n)::uuid, 'map', 1, n, 'map', 'one', 0, 10, 0, 10, 0, 0, 0, 10, 0, 5, 'request', 'cancel', true, false, 'joined',
    now(), now() FROM generate_series(1, 2000) n;

INSERT INTO outlast_branch (fan_id, number, name, input, status, workflow_id, parent_id, outcome, started_at, ended_at, counted_at)
SELECT 1000001 + n %% 2000, n, '', '{}', 'succeeded', md5('b' || n)::uuid, md5('w' || (1 + n %% 2000))::uuid, 'COMPLETE', now(), now(), now()
FROM generate_series(1, %(count)s) n;

INSERT INTO outlast_schedule (id, name, origin, revision, flow_name, input, kind, expression, time_zone, repeated, missing, missed, cap, overlap,
    compute, calendar, user_label, priority, tenant, paused_by, reason, planned_until, next_at, digest, updated_at)
SELECT 1000000 + n, 's' || n, 'record', 1, 't-line', '{}', 'interval', '60', 'UTC', '', '', 'newest', 10, 'skip', 'claim', '', '', 0, '', '', '',
    now(), now() + n * interval '1 day', '', now() FROM generate_series(1, 500) n;

INSERT INTO outlast_occurrence (schedule_id, scheduled_for, local, origin, status, code, due_at, tries, revision, planned_at, ended_at, by_label,
    reason)
SELECT 1000001 + n %% 500, now() - n * interval '1 minute', '', 'planned', 'skipped', 'MISSED', now(), 0, 1, now(), now(), '', ''
FROM generate_series(1, %(count)s) n;
"""

NAMED = """
INSERT INTO outlast_release (name, model_hashes, prompt_hashes, tool_hashes, policy_hashes, digest, compatible_with, note, by_label, at)
SELECT 'R' || n, '{}', '{}', '{}', '{}', 'd' || n, '[]', '', '', now() FROM generate_series(1, 18) n;
UPDATE outlast_worker SET releases = '{R1}'
"""


@pytest.fixture(scope="module")
def busy(quick_commits: None, django_db_blocker: Any) -> Iterator[LocalWorker]:
    """A year of finished work, beside it some that is ready, waiting and asleep; statistics as autovacuum keeps them."""
    quiet = override_settings(OUTLAST={"DISPATCHER": records.COUNTING})
    with django_db_blocker.unblock(), quiet:
        records.wipe(large=True)  # the entries of what earlier tests deleted would be read, too
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in HISTORY.split(";\n"):
                if statement.strip():
                    cursor.execute(statement, {"count": FINISHED})
        with local_worker() as worker:
            for number in range(20):
                Ask.start({"key": f"live-{number}"})
                Nap.start({})
            worker.run()
            Line.start_many([(None, {}) for _ in range(200)])
            let_nobody_look_back()
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            yield worker
        records.wipe(large=True)


def good(plan: Plan, pages: int) -> Plan:
    """By index only, and within so many pages."""
    assert plan.whole == set(), plan.text
    assert plan.pages <= pages, plan.text
    return plan


def claiming(worker: LocalWorker, limit: int = 1) -> dict[str, Any]:
    return {
        "queue": "agents", "limit": limit, "worker": str(worker.incarnation), "pid": 1, "flows": worker.flows,
        "versions": worker.versions, "placements": [], "needing": [],
    }  # fmt: skip


def test_claim(busy: LocalWorker) -> None:
    let_nobody_look_back()
    plan = good(explain(claim.CLAIM, claiming(busy)), 200)
    assert "outlast_workflow_ready" in plan.indexes
    ten = good(explain(claim.CLAIM, claiming(busy, 10)), 700)
    assert "outlast_workflow_ready" in ten.indexes
    carries = {**claiming(busy, 10), "releases": ["R17", "R18"], "deciding": ["t-line@1"]}
    assert "outlast_workflow_ready" in good(explain(claim.CLAIM_OFFERED, carries), 700).indexes


#: What is held now, beside what was in the course of years.
HELD = "INSERT INTO outlast_hold (scope, name, by_label, reason, since) SELECT 'key', 'k' || n, '', 'r', now() FROM generate_series(1, 5) n"


def test_a_claim_beside_holds(busy: LocalWorker) -> None:
    """Nothing held: one look at the index of open holds. Something held: a look for each row that is taken, and history costs nothing."""
    with transaction.atomic(), connection.cursor() as cursor:
        plain = explain(claim.CLAIM, claiming(busy, 10))
        cursor.execute(HELD)
        plan = good(
            explain(claim.CLAIM, claiming(busy, 10)), plain.pages + 200
        )  # some pages for each of ten rows, however many were lifted
        assert plan.indexes >= {"outlast_workflow_ready", "outlast_hold_open"}
        good(explain(holds.OF, {"id": Workflow.objects.filter(status="runnable")[0].pk, "node": None, "needing": []}), 20)
        good(explain(holds.OPEN, {}), 20)
        good(explain(tick.READY, {"queue": "agents", "limit": 10, "needing": []}), 100)
        transaction.set_rollback(True)


def test_releases(busy: LocalWorker) -> None:
    """Among 20,000 finished runs that were pinned too, only live ones are looked at."""
    made = releases.MAKE_CURRENT, {"flow": "t-line", "release": "R17", "reason": "", "by": ""}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE outlast_workflow SET release = 'R16' WHERE status <> 'runnable'")
        cursor.execute("UPDATE outlast_workflow SET release = 'R17' WHERE status = 'runnable' AND flow_name = 't-line'")
        cursor.execute(NAMED)
        good(explain(*made), 20)
        one = Workflow.objects.filter(release="R17")[0]
        good(explain(releases.FACT, {"id": one.pk}), 20)
        rest = {"id": one.pk, "release": "R18", "current": "R17", "note": "{}"}
        good(explain(releases.PIN_AT_REST, rest), 80)
        guard = {"version": 1, "epoch": 0, "intent_version": 1, "worker": busy.incarnation}
        good(explain(releases.PIN, {**rest, **guard}), 20)
        for flow in ("", "t-line"):
            good(explain(releases.PINNED, {"release": "R17", "flow": flow}), 250)
        good(explain(releases.COUNTS, {}), 300)
        stuck = {"patience": 0.0, "deciding": ["t-ask@1"], "limit": 5}
        # How often the few workers are looked at differs with the statistics of a table that is almost empty.
        good(explain(releases.NOT_OFFERED, stuck), 6000)
        assert "outlast_workflow_pinned" in good(explain(releases.ALERT, {**stuck, "code": "X"}), 800).indexes
        transaction.set_rollback(True)


def owned(worker: LocalWorker) -> tuple[Any, dict[str, Any]]:
    one = factories.take_one(worker)
    factories.enter(one)
    row, activity = one.row, one.state.activity
    assert activity is not None
    guard = {
        "id": row.id, "version": row.version, "epoch": row.epoch, "intent_version": row.intent_version, "worker": one.worker,
        "wake_seq": row.wake_seq, "seq": activity.seq, "fence": activity.fence, "from_node": row.node, "result": "{}", "node": "two",
        "note": None,
    }  # fmt: skip
    return one, guard


def test_advance_and_complete(busy: LocalWorker) -> None:
    _, guard = owned(busy)
    step = {"step": "", "visit": 1, "timeout": 60.0, "placement": "", "queue": "agents"}
    plan = good(explain(advance.ADVANCE, {**guard, **step}), 80)
    assert "outlast_workflow_pkey" in plan.indexes
    assert "outlast_workflow_owned" not in plan.indexes
    good(explain(advance.COMPLETE, {**guard, "workflow_result": None}), 80)


def test_move_and_rest(busy: LocalWorker) -> None:
    one, guard = owned(busy)
    arrow = move.Move(
        id=one.row.id, version=one.row.version, epoch=0, intent_version=1, worker=one.worker, pid=one.pid, wake_seq=one.row.wake_seq,
        from_node="one", status="waiting", node="two", outcome="WAITING", end_status="done", seq=1, fence=1, result="{}",
        attempt_outcome="succeeded", wait_kind="event", event_type="t.asked", wait_key="live-1x", trigger="completed",
    )  # fmt: skip
    plan = good(explain(move.MOVE, {name: getattr(arrow, name) for name in move._FIELDS}), 150)
    assert "outlast_workflow_pkey" in plan.indexes
    good(explain(move.REST, guard), 80)


def test_load_and_owner(busy: LocalWorker) -> None:
    old = list(Workflow.objects.filter(status="complete").values_list("pk", flat=True)[:10])
    good(explain(load.LOAD, {"ids": old}), 400)
    good(explain(load.OWNER, {"id": old[0]}), 20)


def test_signals(busy: LocalWorker) -> None:
    event = events.Arrival("e-new", "t.asked", "live-3", "{}", "x").params
    plan = good(explain(events.RECORD, event), 60)
    assert "outlast_wait_channel" in plan.indexes
    assert plan.indexes >= {"outlast_wait_part_channel"}
    early = {
        "types": ["t.asked"],
        "keys": ["live-3"],
        "counts": [1],
        "workflow": Workflow.objects.filter(status="waiting").first().pk,
    }
    plan = good(explain(events.EARLY, early), 30)
    assert plan.indexes >= {"outlast_event_early", "outlast_event_late", "outlast_workflow_pkey"}
    channel = {"type": "t.asked", "key": "k3"}
    assert "outlast_wait_was_channel" in good(explain(places.LAST, channel), 40).indexes
    good(explain(places.NAMED, {**channel, "about_workflow": early["workflow"], "about_wait": None}), 60)
    good(explain(streams.HELD, channel), 20)
    good(explain(streams.OVER, {"limit": 10}), 20)
    good(explain(places.MARK, {"seconds": 86400.0, "limit": 10}), 40)
    wait = Wait.objects.get(status="open", key="live-3")
    wake = {"waits": [wait.pk], "evidence": "{}", "event": None, "trigger": "event", "ref": "e", "priority_seconds": 60}
    good(explain(events.WAKE, wake), 200)
    good(explain(events.CONFLICT, event), 20)


#: As many deliveries as there are finished workflows, half of them of a sender that does not sign its ids.
DELIVERED = """
INSERT INTO outlast_webhook_delivery (source, delivery_id, body_digest, unsigned_id, headers, verdict, code, event_id, events, times, conflicts,
    secret, received_at, seen_at, mapped_by, reason)
SELECT 'plans', 'd' || n, 'sha256:' || n, n %% 2 = 0, '{}', 'accepted', '', 'plans:d' || n, 1, 1, 0, 1, now(), now(), '', ''
FROM generate_series(1, %(count)s) n;
"""


def test_webhooks(busy: LocalWorker) -> None:
    with connection.cursor() as cursor:
        cursor.execute(DELIVERED, {"count": FINISHED})
        cursor.execute("ANALYZE outlast_webhook_delivery")
    try:
        known = {"source": "plans", "delivery_id": "d500", "body_digest": "sha256:700", "unsigned_id": True}
        assert good(explain(webhooks.KNOWN, known), 30).indexes >= {"outlast_webhook_once", "outlast_webhook_body_once"}
        row = {**known, "headers": "{}", "verdict": "unmapped", "secret": 1, "sent_at": None}
        good(explain(webhooks.KEEP, row), 40)
        waiting = good(explain(webhooks.WAITING, {"types": ["t.asked", "t.asked"], "keys": ["live-3", "live-4"]}), 60)
        assert waiting.indexes >= {"outlast_wait_channel", "outlast_wait_part_channel"}
    finally:
        WebhookDelivery.objects.all().delete()


def test_timers(busy: LocalWorker) -> None:
    plan = good(explain(timers.DUE, {"limit": 500}), 250)  # however many have become due meanwhile
    assert "outlast_timer_due" in plan.indexes
    due = list(Timer.objects.filter(status="pending").values_list("pk", flat=True)[:10])
    good(explain(timers.FIRE, {"ids": due, "priority_seconds": 60}), 700)


def test_deadlines(busy: LocalWorker) -> None:
    run = Line.start({})
    keys = {"workflow": run.id, "kinds": ["sla"], "names": [""]}
    good(explain(deadlines.HANDLE, keys), 40)
    good(explain(deadlines.REARM, keys), 40)
    good(explain(deadlines.TELL, {"id": 1}), 20)
    good(explain(deadlines.RENEW, {"workflow": run.id, "names": ["main"], "policies": ["breach"], "spans": ["1 hour"]}), 60)
    good(explain(deadlines.USED, {"workflow": run.id, "names": ["main"]}), 40)


def test_the_look_of_an_idle_second(busy: LocalWorker) -> None:
    let_nobody_look_back()
    good(explain(tick.statement(tick.LOOK), {"grace": 2.0, "min_age": 0.0}), 120)
    assert "outlast_workflow_ready" in good(explain(tick.READY, {"queue": "agents", "limit": 10, "needing": []}), 60).indexes
    good(explain(tick.QUEUES, {}), 60)


def test_recovery(busy: LocalWorker) -> None:
    owned(busy)
    good(explain(recover.LOST, {"limit": 500}), 60)
    good(explain(recover.OVERDUE, {"limit": 500, "grace": 2.0}), 60)
    good(explain(recover.CHILD, {"worker": busy.incarnation, "pids": [busy.pid]}), 30)
    good(explain(recover.UNSTARTED, {"worker": busy.incarnation, "pid": busy.pid, "current": new_id()}), 30)
    released = {"ids": [new_id()], "versions": [1], "touched": [None], "worker": str(busy.incarnation)}
    good(explain(claim.RELEASE, released), 60)


def test_attempts(busy: LocalWorker) -> None:
    one, _ = owned(busy)
    beat = {"id": one.row.id, "version": one.row.version, "epoch": 0, "worker": one.worker, "seq": 1, "fence": 1, "notes": "{}"}
    good(explain(attempts.HEARTBEAT, beat), 40)
    good(explain(attempts.CHECKPOINT, {**beat, "checkpoint": "{}"}), 20)
    good(explain(attempts.LATE, {"id": one.row.id, "seq": 1, "number": 1, "result": "{}"}), 20)


def test_a_decision(busy: LocalWorker) -> None:
    old = Workflow.objects.filter(status="complete").values_list("pk", flat=True)[0]
    read = {"id": old, "seq": 1, "node": "one", "policy": "p", "policy_version": 1}
    plan = explain(context.READ, read)
    assert plan.whole <= {"outlast_policy", "outlast_intent_revision"}, "which are empty here"
    assert plan.pages <= 80, plan.text
    made = candidates.Artifact(old, "one", 9, 1, 1, "", "", "X", "", "", "", "", "", "{}", "")
    good(explain(candidates.ARTIFACT, {name: getattr(made, name) for name in candidates.Artifact.__dataclass_fields__}), 20)


def test_verbs(busy: LocalWorker) -> None:
    run = Line.start({})
    left = {
        "ids": [run.id], "from": ["runnable"], "to": "cancelling", "outcome": "", "code": "X", "epoch_step": 1, "trigger": "cancel",
        "ref": "", "note": None, "target": "",
    }  # fmt: skip
    good(explain(leave.LEAVE, left), 120)
    assert "outlast_workflow_intent" in good(explain(leave.LIVE_OF_INTENT, {"id": run.intent_id}), 20).indexes
    good(explain(leave.PAUSE, {"id": run.id, "ref": "", "note": None, "outcome": "WAITING"}), 60)
    good(explain(locks.WORKFLOWS, {"ids": [run.id]}), 20)
    new = start.NewWorkflow(new_id(), new_id(), "old-77", "{}", "d", "goal", "")
    common = {
        "flow": "t-line", "flow_version": 1, "fingerprint": "f", "node": "one", "step": "", "opens": True, "timeout": 60.0, "queue": "agents",
        "placement": "", "priority": 0, "priority_seconds": 60, "deadline": None, "timer_kinds": [],
        "timer_names": [], "timer_policies": [], "timer_spans": [], "intent_version": 1, "own_intent": True, "note": None, "user": None,
        "user_label": "", "release": "", "policy": "", "rank": None, "parent": None, "depth": 0, "ledgers": None, "chain": None,
        "tenant": "", "started_by": "",
    }  # fmt: skip
    params = {
        **common, "ids": [new.id], "intents": [new.intent_id], "keys": [new.key], "inputs": ["{}"], "digests": ["d"], "goals": ["g"],
        "subjects": [""],
    }  # fmt: skip
    good(explain(start.START, params), 80)
    good(explain(start.START, {**params, "keys": ["brand-new"]}), 120)


def test_migrate(busy: LocalWorker) -> None:
    wait = Wait.objects.get(status="open", key="live-4")
    row = Workflow.objects.get(pk=wait.workflow_id)
    arrow = migrate.Migrate(
        id=row.pk, version=row.version, seen_status="waiting", epoch=0, seen_version=1, seen_fingerprint=row.fingerprint,
        wake_seq=row.wake_seq, worker=None, status="runnable", outcome="", error_code=None, node="ask", flow_version=2, fingerprint="f",
        queue=None, placement="", priority_seconds=60, keep_activity=False, timeout=0.0, keep_wait=wait.pk, on_expiry="escalate",
        given_nodes=["after"], given_visits=[0], given_results=["1"], ref="", note="{}",
    )  # fmt: skip
    params = {name: getattr(arrow, name) for name in migrate._FIELDS}
    plan = good(explain(migrate.MIGRATE, {**params, "step": "(migrated)"}), 150)
    assert "outlast_workflow_pkey" in plan.indexes


def test_the_dead_rows_of_a_year_do_not_slow_a_claim(busy: LocalWorker) -> None:
    """Thousands of workflows ran since the last vacuum: their entries stand at the very front of the index that the claim reads."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_workflow SET (autovacuum_enabled = off)")
        cursor.execute("SELECT pg_stat_reset()")
    try:
        for _ in range(4):
            Line.start_many([(None, {}) for _ in range(1000)], priority=100)
            ready = list(Workflow.objects.filter(status="runnable", priority=100).values_list("pk", flat=True))
            with transaction.atomic():
                leave.leave(
                    ready, sources=["runnable"], to="cancelling", outcome="", code="X", epoch_step=1, trigger="cancel", ref="",
                    note=None, using="default",
                )  # fmt: skip
                leave.leave(
                    ready, sources=["cancelling"], to="cancelled", outcome="CANCELLED", code="X", epoch_step=0, trigger="cancel",
                    ref="", note=None, using="default",
                )  # fmt: skip
        let_nobody_look_back()
        first = explain(claim.CLAIM, claiming(busy))
        second = good(explain(claim.CLAIM, claiming(busy)), 250)
        assert "outlast_workflow_ready" in second.indexes
        assert first.pages >= second.pages
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE outlast_workflow RESET (autovacuum_enabled)")
