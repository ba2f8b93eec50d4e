"""Starting: idempotent by key for ever, atomic with the caller's transaction, bound to an intent."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connections, transaction

import flows
from flows.errors import IntentClosed, KeyConflict, UnknownIntent, UnknownWorkflow
from flows.models import Activity, Intent, SessionLink, Timer, Transition, Workflow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, Cross, Dated, Line, Pipe, row
from tests.support.record import Counting

pytestmark = pytest.mark.req("A1")


def test_what_a_start_writes() -> None:
    user = get_user_model().objects.create_user("robin")
    run = Line.start({"repo": "x"}, key="k", goal="Ship it", by=user, subject=user, priority=2)
    workflow = row(run)
    assert (workflow.status, workflow.outcome, workflow.node, workflow.version, workflow.epoch) == ("runnable", "", "one", 1, 0)
    assert (workflow.flow_name, workflow.flow_version, workflow.key, workflow.input) == ("t-line", 1, "k", {"repo": "x"})
    assert workflow.fingerprint == Line.definition.fingerprint
    assert (workflow.user_id, workflow.user_label, workflow.subject) == (user.pk, "robin", f"auth.user:{user.pk}")
    assert (workflow.queue, workflow.placement, workflow.attempts, workflow.active_seq) == ("agents", "", 0, 1)
    assert (workflow.created_at - workflow.rank).total_seconds() == 120
    intent = workflow.intent
    assert (intent.goal, intent.version, intent.status, intent.user_id) == ("Ship it", 1, "active", user.pk)
    assert run.created
    assert (run.status, run.intent_id, str(run)) == ("runnable", intent.pk, str(workflow.pk))
    log = Transition.objects.get(workflow_id=run.id)
    assert (log.seq, log.from_status, log.to_status, log.trigger, log.trigger_ref) == (1, "", "runnable", "start", "robin")
    activity = Activity.objects.get(workflow_id=run.id)
    assert (activity.node, activity.status, activity.attempt, activity.visit) == ("one", "scheduled", 0, 1)


def test_the_start_of_each_kind_of_first_node(clock: Clock) -> None:
    pipe, ask, dated = Pipe.start({}), Ask.start({"key": "a"}), Dated.start({})
    assert Activity.objects.get(workflow_id=pipe.id).step == "a"
    assert (row(ask).active_seq, Activity.objects.filter(workflow_id=ask.id).count()) == (None, 0)
    timer = Timer.objects.get(workflow_id=dated.id)
    assert (timer.kind, timer.due_at) == ("workflow_deadline", row(dated).deadline_at)
    assert row(Cross.start({})).placement == ""


def test_the_same_key_and_input_is_the_same_run(worker: LocalWorker, hints: Counting) -> None:
    first = Line.start({"a": 1, "b": [1, 2]}, key="once")
    hints.clear()
    again = Line.start({"b": [1, 2], "a": 1}, key="once")
    assert (again.id, again.created, again.intent_id) == (first.id, False, first.intent_id)
    assert not hints.hints
    worker.run()
    ended = Line.start({"a": 1, "b": [1, 2]}, key="once")
    assert (ended.id, ended.created, ended.status, ended.outcome) == (first.id, False, "complete", "COMPLETE")
    assert (Workflow.objects.count(), Intent.objects.count()) == (1, 1)
    assert Activity.objects.filter(node="one").count() == 1


def test_a_key_with_another_input_is_a_conflict() -> None:
    Line.start({"a": 1}, key="once")
    with pytest.raises(KeyConflict, match="another input"):
        Line.start({"a": 2}, key="once")
    with pytest.raises(KeyConflict):
        Line.start({"a": 1.5}, key="once")
    assert Workflow.objects.count() == 1


def test_a_key_belongs_to_one_flow() -> None:
    assert Line.start({}, key="once").id != Ask.start({}, key="once").id


def test_without_a_key_every_start_is_a_run() -> None:
    assert Line.start({}).id != Line.start({}).id


def test_start_many_in_order_and_with_repeats(hints: Counting) -> None:
    before = Line.start({"n": 2}, key="k2")
    hints.clear()
    runs = [("k3", {"n": 3}), (None, {"n": 0}), ("k1", {"n": 1}), ("k2", {"n": 2}), ("k3", {"n": 3}), (None, {"n": 0})]
    started = Line.start_many(runs)
    assert [one.key for one in started] == ["k3", None, "k1", "k2", "k3", None]
    assert [one.created for one in started] == [True, True, True, False, True, True]
    assert started[0].id == started[4].id
    assert started[3].id == before.id
    assert len({one.id for one in started}) == 5
    assert sum(len(hint.ids) for hint in hints.hints) == 4
    assert Line.start_many([]) == []


def test_start_many_with_one_conflict_keeps_nothing() -> None:
    Line.start({"n": 1}, key="k1")
    with pytest.raises(KeyConflict):
        Line.start_many([("k0", {}), ("k1", {"n": 2}), ("k2", {})])
    with pytest.raises(KeyConflict):
        Line.start_many([("k8", {}), ("k9", {"n": 1}), ("k9", {"n": 2})])
    assert Workflow.objects.count() == Intent.objects.count() == 1


def test_many_starts_are_one_message_for_ten(hints: Counting) -> None:
    Line.start_many([(None, {}) for _ in range(25)])
    assert [len(hint.ids) for hint in hints.hints] == [10, 10, 5]
    assert {(hint.queue, hint.label) for hint in hints.hints} == {("agents", "t-line.one")}


def test_a_start_goes_with_the_callers_transaction(hints: Counting, worker: LocalWorker) -> None:
    with transaction.atomic():
        run = Line.start({}, key="k", session="chat-1")
        transaction.set_rollback(True)
    assert not Workflow.objects.filter(pk=run.id).exists()
    assert not (
        Intent.objects.exists() or Transition.objects.exists() or Activity.objects.exists() or SessionLink.objects.exists()
    )
    assert not hints.hints
    with transaction.atomic():
        Line.start({}, key="k")
        assert not hints.hints
    assert len(hints.hints) == 1


def test_an_error_in_a_start_leaves_the_callers_transaction_usable() -> None:
    with transaction.atomic():
        Line.start({"a": 1}, key="k")
        with pytest.raises(KeyConflict):
            Line.start({"a": 2}, key="k")
        Line.start({"a": 2}, key="k2")
    assert Workflow.objects.count() == 2


def test_a_start_under_a_given_intent(worker: LocalWorker) -> None:
    first = Line.start({}, goal="Both")
    intent = Intent.objects.get()
    for given in (intent, first, intent.pk, str(intent.pk)):
        assert Line.start({}, intent=given).intent_id == intent.pk
    flows.supersede(intent, goal="Newer")
    assert row(Line.start({}, intent=intent)).intent_version == 2
    assert Intent.objects.count() == 1


def test_a_start_under_a_closed_or_unknown_intent_is_refused() -> None:
    run = Line.start({})
    flows.cancel_intent(run)
    with pytest.raises(IntentClosed, match="cancelled"):
        Line.start({}, intent=run)
    for unknown in (uuid4(), "nonsense", 7):
        with pytest.raises(UnknownIntent):
            Line.start({}, intent=unknown)
    assert Workflow.objects.count() == 1


def test_a_repeated_start_under_an_intent_that_was_closed_meanwhile_gives_the_run() -> None:
    intent = Line.start({}).intent_id
    first = Line.start({"a": 1}, key="k", intent=intent)
    flows.cancel_intent(intent)
    again = Line.start({"a": 1}, key="k", intent=intent)
    assert (again.id, again.created, again.status) == (first.id, False, "cancelled")
    with pytest.raises(KeyConflict):
        Line.start({"a": 2}, key="k", intent=intent)
    with pytest.raises(IntentClosed):
        Line.start_many([("k", {"a": 1}), ("new", {})], intent=intent)


def test_one_workflow_over_two_sessions_and_two_workflows_in_one_session() -> None:
    first, second = Line.start({}, session="chat-1"), Line.start({}, session="chat-1")
    assert flows.link(first, "chat-2")
    assert not flows.link(first, "chat-2")
    assert flows.describe(first).sessions == ["chat-1", "chat-2"]
    assert set(SessionLink.objects.filter(session="chat-1").values_list("workflow_id", flat=True)) == {first.id, second.id}


def test_a_repeated_start_links_its_session_too() -> None:
    first = Line.start({}, key="k", session="chat-1")
    Line.start({}, key="k", session="chat-2")
    assert flows.describe(first).sessions == ["chat-1", "chat-2"]


@pytest.mark.parametrize("unknown", [uuid4(), "nonsense"])
def test_an_unknown_workflow_is_not_linked(unknown: Any) -> None:
    with pytest.raises(UnknownWorkflow):
        flows.link(unknown, "chat-1")
    assert not SessionLink.objects.exists()


def test_the_user_may_be_deleted_and_stays_named() -> None:
    user = get_user_model().objects.create_user("robin")
    run = Line.start({}, by=user)
    user.delete()
    assert (row(run).user_id, row(run).user_label) == (None, "robin")


def test_priority_goes_first(worker: LocalWorker) -> None:
    runs = [Line.start({}, priority=priority) for priority in (0, 1, -1, 5)]
    order = [factories.take_one(worker).row.id for _ in runs]
    assert order == [runs[3].id, runs[1].id, runs[0].id, runs[2].id]


@pytest.mark.parametrize("priority", [32768, -32768, 10**30, 1.5, "high", None])
def test_a_priority_is_a_small_number(priority: Any) -> None:
    with transaction.atomic(), pytest.raises(flows.errors.PayloadError, match="the priority of t-line"):
        Line.start({}, priority=priority)
    assert not Workflow.objects.exists()


def test_the_async_twins() -> None:
    async def go() -> tuple[Any, ...]:
        run = await Line.astart({}, key="a")
        many = await Line.astart_many([("a", {}), ("b", {})])
        cancelled = await flows.acancel(run)
        await sync_to_async(connections.close_all)()
        return run, many, cancelled

    run, many, cancelled = asyncio.run(go())
    assert [one.id == run.id for one in many] == [True, False]
    assert cancelled.answer == "accepted"
