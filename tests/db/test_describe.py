"""Asking: the five answers about a workflow, and the check that the log says what the row says."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

import flows
from flows.core.fold import FIELDS
from flows.core.protocol import Status
from flows.errors import UnknownWorkflow
from flows.models import Activity, Worker
from flows.services import describe
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, Pipe, in_status, row

pytestmark = pytest.mark.req("A4")


def differences(run: Any) -> list[str]:
    ((_, found),) = describe.verify(run)
    return [difference.field for difference in found]


def behind_the_guards(*statements: tuple[str, list[Any]]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for sql, params in statements:
            cursor.execute(sql, params)


TAMPERED = {
    "status": "'paused', outcome = 'WAITING'",
    "node": "'elsewhere'",
    "outcome": "'WAITING', status = 'paused'",
    "epoch": "9",
    "intent_version": "9",
    "policy_version": "'p9'",
    "version": "9",
}


@pytest.mark.parametrize("field", FIELDS)
def test_verify_finds_a_row_that_was_changed_behind_the_guards(field: str) -> None:
    run = Line.start({})
    assert differences(run) == []
    before = row(run).__dict__[field]
    behind_the_guards((f"UPDATE outlast_workflow SET {field} = {TAMPERED[field]} WHERE id = %s", [run.id]))
    assert field in differences(run)
    undo = "UPDATE outlast_workflow SET status = 'runnable', outcome = '' WHERE id = %s"
    behind_the_guards((undo, [run.id]), (f"UPDATE outlast_workflow SET {field} = %s WHERE id = %s", [before, run.id]))
    assert differences(run) == []


def test_a_row_whose_activity_was_deleted_is_found_and_holds_up_nobody(worker: LocalWorker) -> None:
    headless, other = Line.start({}), Line.start({})
    Activity.objects.filter(workflow_id=headless.id).delete()
    worker.batch_size = 10
    worker.run()
    assert (row(headless).status, row(other).status) == ("runnable", "complete")
    assert (differences(headless), differences(other)) == (["activity"], [])
    flows.cancel(headless)
    assert differences(headless) == []


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("DELETE FROM outlast_transition WHERE workflow_id = %s AND seq = 2", "seq after 1"),
        ("UPDATE outlast_transition SET to_status = 'waiting' WHERE workflow_id = %s AND seq = 2", "from_status of 3"),
        ("UPDATE outlast_transition SET from_node = 'x' WHERE workflow_id = %s AND seq = 3", "from_node of 3"),
        ("UPDATE outlast_transition SET epoch = 5 WHERE workflow_id = %s AND seq = 2", "epoch of 3"),
        ("DELETE FROM outlast_transition WHERE workflow_id = %s", "log"),
    ],
)
def test_verify_finds_a_log_that_was_changed_behind_the_guards(worker: LocalWorker, damage: str, found: str) -> None:
    run = Line.start({})
    worker.run()
    kept = list(describe.timeline(run.id, "default"))
    behind_the_guards((damage, [run.id]))
    assert found in differences(run)
    columns = ", ".join(kept[0])
    holes = ", ".join(["%s"] * len(kept[0]))
    restore = [(f"INSERT INTO outlast_transition ({columns}) VALUES ({holes})", list(entry.values())) for entry in kept]
    behind_the_guards(("DELETE FROM outlast_transition WHERE workflow_id = %s", [run.id]), *restore)


def test_verify_of_everything(worker: LocalWorker) -> None:
    for status in (
        Status.COMPLETE,
        Status.FAILED,
        Status.CANCELLED,
        Status.SUPERSEDED,
        Status.WAITING,
        Status.RUNNABLE,
        Status.PAUSED,
    ):
        in_status(status, worker)
    found = dict(describe.verify())
    assert len(found) == 7
    assert not any(found.values())


def test_verify_of_nothing_known() -> None:
    with pytest.raises(UnknownWorkflow):
        list(describe.verify(uuid4()))


def test_the_five_answers(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"}, key="name", goal="Know it", by=factories.person("robin"))
    worker.run()
    told = flows.describe(run)
    assert (told.flow, told.version, told.key, told.status, told.outcome, told.node) == (
        "t-ask",
        1,
        "name",
        "waiting",
        "WAITING",
        "ask",
    )
    assert (told.intent["goal"], told.intent["version"], told.accountable) == ("Know it", 1, "robin")
    (wait,) = told.waits
    assert (wait.kind, wait.reason, wait.ends, wait.event_type, wait.key) == (
        "event", "waiting for t.asked k", "the event's sender", "t.asked", "k",
    )  # fmt: skip
    assert (wait.deadline, wait.on_expiry) == (row(run).due_at, "escalate")
    assert told.legal_moves == ["cancelling", "paused", "runnable", "superseded"]
    assert ("", "after") in told.next_nodes
    assert told.decision_needed.startswith("none")
    assert [entry["trigger"] for entry in told.timeline] == ["start", "claim", "decided"]


@pytest.mark.parametrize(
    ("status", "needed"),
    [
        (Status.PAUSED, "a person resumes it"),
        (Status.COMPLETE, "none: the workflow has ended"),
        (Status.RUNNABLE, "none: it goes on by itself"),
        (Status.RUNNING, "none: it goes on by itself"),
    ],
)
def test_who_must_do_something(worker: LocalWorker, status: Status, needed: str) -> None:
    assert flows.describe(in_status(status, worker)).decision_needed.startswith(needed)


def test_a_ready_run_that_no_live_worker_takes_says_so(worker: LocalWorker) -> None:
    run = Line.start({})
    assert flows.describe(run).decision_needed == "none: it goes on by itself"
    Worker.objects.update(definitions=[])
    assert flows.describe(run).decision_needed.startswith("a worker: no live one offers t-line@1 on queue agents;")


def test_lists(worker: LocalWorker) -> None:
    first, second, third = Line.start({}, key="a"), Line.start({}, key="b"), Pipe.start({}, key="a")
    factories.take_one(worker)
    assert [one.pk for one in flows.list()] == [third.id, second.id, first.id]
    assert [one.pk for one in flows.list(flow="t-line")] == [second.id, first.id]
    assert [one.pk for one in flows.list(status="running")] == [first.id]
    assert [one.pk for one in flows.list(key="a", flow="t-pipe")] == [third.id]
    assert [one.pk for one in flows.list(limit=1)] == [third.id]
    assert flows.get(str(first.id)).pk == first.id
