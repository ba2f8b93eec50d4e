"""A row that somebody edited says so in a report on all runs; it stops neither a replay nor a forecast of the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction

import flows
from flows import COMPLETE, ESCALATE, Activity, Branch, Deadline, End, Flow, Wait
from flows.models import Transition
from flows.services.foresee import foresee
from flows.services.replay import replay
from flows.testing import LocalWorker
from tests import factories
from tests.support.commanding import Ran, cli
from tests.support.versions import version

__all__ = ["cli"]

pytestmark = pytest.mark.req("S1")

Declare = Callable[..., type[Flow]]
TAMPERS = True

ASK = {"ask": Wait("t.asked", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="done"), "done": End(COMPLETE)}
NOTES = [
    *(
        {"from": [1], "to": 2},
        {"from": {"a": 1}, "to": 2},
        {"from": 1, "to": "x"},
        {"from": 1, "to": None},
        {"from": "1", "to": 2},
    ),
    *({"from": 1, "to": 2, "results": 5}, {"from": 1, "to": 2, "kept": 5}, {"from": 1e30, "to": 1e30}, {"from": None}),
    *({"deadline": 5}, {"deadline": [5]}, {"from": True, "to": 2}, {"from": 10**20, "to": 2}, [], "x"),
]


@contextmanager
def edited(table: str, column: str, where: str, value: str) -> Iterator[None]:
    """As somebody does it who may switch triggers off."""

    def put(text: str) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {where}", [text])
            assert cursor.rowcount == 1

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column}::text FROM {table} WHERE {where}")
        (was,) = cursor.fetchone()
    put(value)
    try:
        yield
    finally:
        put(was)


@pytest.fixture
def migrated(declare: Declare, worker: LocalWorker) -> Any:
    """A run that was taken from version 1 to 2, beside one that was not."""
    one = version(declare, "t-noted", 1, ASK)
    run = one.start({}, key="edited")
    one.start({}, key="other")
    worker.run()
    version(declare, "t-noted", 2, {**ASK, "extra": Activity(factories.work, then="done")}, migrate_from={1: {}})
    assert flows.migrate(run)
    worker.run()
    return run


@pytest.mark.parametrize("note", NOTES, ids=json.dumps)
def test_the_note_of_a_migration(migrated: Any, cli: Callable[..., Ran], note: Any) -> None:
    row = f"workflow_id = '{migrated.id}' AND trigger = 'migrate'"
    with edited("outlast_transition", "note", row, json.dumps(note)):
        replayed = cli("replay", "--flow", "t-noted", "--json")
        foreseen = cli("replay", "--flow", "t-noted", "--live", "--against", "2", "--json")
    assert Transition.objects.get(workflow_id=migrated.id, trigger="migrate").note["to"] == 2
    assert (replayed.code in (0, 1), foreseen.code in (0, 1)) == (True, True)
    assert replayed.json["checked"] == foreseen.json["checked"] == 2
    named = {one["key"] for one in (*replayed.json["differences"], *foreseen.json["breaking"], *foreseen.json["unknown"])}
    assert named <= {"edited"}


def test_an_odd_note_is_named(migrated: Any) -> None:
    with edited("outlast_transition", "note", f"workflow_id = '{migrated.id}' AND trigger = 'migrate'", '{"from": [1], "to": 2}'):
        drift = next(iter(replay([migrated]))).drift
    assert drift is not None
    assert (drift.seq, drift.field) == (1, "record")
    assert "has from = [1], which is not a version" in drift.recorded


@pytest.mark.parametrize("lowered", ["-1", "0", "1", "99"])
def test_a_version_that_the_log_does_not_come_to(migrated: Any, declare: Declare, lowered: str) -> None:
    three = version(
        declare, "t-noted", 3, {**ASK, "more": Activity(factories.work, then="done")}, migrate_from={2: {}, 1: {}, 0: {}, -1: {}}
    )
    with edited("outlast_workflow", "flow_version", f"id = '{migrated.id}'", lowered):
        assert not next(iter(replay([migrated])))
        found = {one.key: one for one in foresee(three)}
    assert found["edited"].unknown.endswith(f"the row says version {lowered}, the log came to 2")
    assert found["other"]


def test_values_of_the_record(declare: Declare, worker: LocalWorker) -> None:
    flow = declare(
        "t-valued",
        one=Activity(factories.work, then="ask"),
        ask=Wait("t.asked", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="fork"),
        fork=Branch(lambda state: "on", choices={"on": "two"}),
        two=Wait("t.more", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="done"),
        done=End(COMPLETE),
    )
    run, other = flow.start({"a": 1}), flow.start({})
    worker.run()
    flows.signal("e", "t.asked", key="k", payload={"x": 1})
    worker.run()
    places = [
        *(("outlast_workflow", column, f"id = '{run.id}'") for column in ("input", "result")),
        ("outlast_activity", "result", f"workflow_id = '{run.id}'"),
        *(("outlast_wait", column, f"workflow_id = '{run.id}' AND node = 'ask'") for column in ("evidence", "result")),
        ("outlast_transition", "note", f"workflow_id = '{run.id}' AND seq = 1"),
    ]
    for table, column, where in places:
        for value in (
            "[]",
            "5",
            '"x"',
            '{"$outlast": 5}',
            '{"$outlast": "json"}',
            '{"payload": 5}',
            '{"choice": 1, "digest": 3}',
        ):
            with edited(table, column, where, value):
                found = {one.id: one for one in replay()}
                assert found[str(other.id)], (table, column, value)
                assert {one.id: bool(one) for one in foresee(flow)}[str(other.id)], (table, column, value)
