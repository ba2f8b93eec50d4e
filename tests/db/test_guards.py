"""What the database itself refuses to plain SQL, whoever writes it: the record cannot say what cannot be."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from flows.core.ids import new_id
from flows.core.protocol import MOVES, OUTCOMES, Outcome, Status
from flows.models import Activity, Attempt, Timer, Transition, Wait, Workflow
from flows.testing import LocalWorker, local_worker
from tests import factories
from tests.factories import Line

pytestmark = pytest.mark.req("A2")

PAIRS = [(source, target) for source in Status for target in Status]


def execute(sql: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


@contextmanager
def refused(code: str, text: str = "") -> Iterator[None]:
    """The statement is refused with that SQLSTATE, and leaves nothing behind."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        yield
    cause = caught.value.__cause__
    assert isinstance(cause, psycopg.Error)
    assert cause.sqlstate == code, cause
    assert text in str(cause)


CHECK, MOVED, ILLEGAL, NO_LOG, APPEND_ONLY = "23514", "OL002", "OL003", "OL004", "OL005"

LOG = """
INSERT INTO outlast_transition (workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref,
    intent_version, policy_version, at)
SELECT id, version + 1, status, %s, node, node, %s, epoch, 'test', '', intent_version, policy_version, now()
FROM outlast_workflow WHERE id = %s
"""


def log(run: Any, status: str, outcome: str) -> None:
    execute(LOG, status, outcome, run.id)


def force(run: Any, status: Status) -> None:
    """Put a row into a status that no arrow leads to yet, as a superuser could with the triggers off."""
    outcome = next(iter(OUTCOMES[status]), None) or ""
    worker = new_id() if status is Status.RUNNING else None
    with transaction.atomic():
        execute("SET LOCAL session_replication_role = replica")
        log(run, status, outcome)
        execute(
            "UPDATE outlast_workflow SET status = %s, outcome = %s, worker_id = %s, version = version + 1, active_seq = NULL WHERE id = %s",
            status, outcome, worker, run.id,
        )  # fmt: skip
        execute("DELETE FROM outlast_activity WHERE workflow_id = %s", run.id)


def move(run: Any, target: str, outcome: str = "", worker: Any = None) -> None:
    execute(
        "UPDATE outlast_workflow SET status = %s, outcome = %s, worker_id = %s, version = version + 1 WHERE id = %s",
        target, outcome, worker, run.id,
    )  # fmt: skip


def outcome_of(target: Status) -> str:
    return min(outcome or "" for outcome in OUTCOMES[target])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{source}>{target}" for source, target in PAIRS])
def test_only_the_moves_of_the_table_are_taken(source: Status, target: Status) -> None:
    run = Line.start({})
    if source is not Status.RUNNABLE:
        force(run, source)
    outcome, worker = outcome_of(target), new_id() if target is Status.RUNNING else None
    with transaction.atomic():
        if target in MOVES[source]:
            log(run, target, outcome)
            move(run, target, outcome, worker)
        else:
            log(run, target, outcome)
            with refused(ILLEGAL, f"from {source} to {target}"):
                move(run, target, outcome, worker)
        transaction.set_rollback(True)
    wipe_forced(run)


def wipe_forced(run: Any) -> None:
    with transaction.atomic():
        execute("SET LOCAL outlast.retention = 'on'")
        execute("DELETE FROM outlast_transition WHERE workflow_id = %s", run.id)
        execute("DELETE FROM outlast_workflow WHERE id = %s", run.id)


def test_a_status_outside_the_protocol_is_refused() -> None:
    run = Line.start({})
    with refused(CHECK, "outlast_workflow_state"):
        move(run, "thinking")
    with refused(CHECK, "outlast_workflow_state"):
        move(run, "")


@pytest.mark.parametrize("target", list(Status))
def test_a_status_carries_only_its_own_outcomes(target: Status) -> None:
    run = Line.start({})
    worker = new_id() if target is Status.RUNNING else None
    for outcome in ["", *Outcome, "SHRUG"]:
        if outcome in {allowed or "" for allowed in OUTCOMES[target]}:
            continue
        with refused(CHECK, "outlast_workflow_state"):
            log(run, target, outcome)
            move(run, target, outcome, worker)


def test_running_needs_an_owner_and_nothing_else_has_one(worker: LocalWorker) -> None:
    run = Line.start({})
    with refused(CHECK, "outlast_workflow_state"):
        log(run, "running", "")
        move(run, "running")
    with refused(CHECK, "outlast_workflow_state"):
        execute("UPDATE outlast_workflow SET worker_id = %s WHERE id = %s", new_id(), run.id)
    factories.take_one(worker)
    with refused(CHECK, "outlast_workflow_state"):
        execute("UPDATE outlast_workflow SET worker_id = NULL WHERE id = %s", run.id)


@pytest.mark.req("A4")
def test_a_move_without_its_log_row_is_refused() -> None:
    run = Line.start({})
    with refused(NO_LOG, "without its log row"):
        move(run, "paused", "WAITING")


@pytest.mark.parametrize(
    "wrong",
    [
        {"to_status": "'cancelling'"},
        {"outcome": "'HUMAN_REQUIRED'"},
        {"to_node": "'elsewhere'"},
        {"epoch": "epoch + 1"},
        {"from_status": "'waiting'"},
        {"version + 1": "version + 2"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
@pytest.mark.req("A4")
def test_a_log_row_that_says_something_else_is_refused(wrong: dict[str, str]) -> None:
    run = Line.start({})
    ((column, value),) = wrong.items()
    columns = {
        "version + 1": "version + 1", "from_status": "status", "to_status": "'paused'", "to_node": "node",
        "outcome": "'WAITING'", "epoch": "epoch",
    }  # fmt: skip
    columns[column] = value
    with refused(NO_LOG), transaction.atomic():
        execute(
            f"""
            INSERT INTO outlast_transition (workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger,
                trigger_ref, intent_version, policy_version, at)
            SELECT id, {columns["version + 1"]}, {columns["from_status"]}, {columns["to_status"]}, node, {columns["to_node"]},
                {columns["outcome"]}, {columns["epoch"]}, 'test', '', intent_version, policy_version, now()
            FROM outlast_workflow WHERE id = %s
            """,
            run.id,
        )
        move(run, "paused", "WAITING")


@pytest.mark.parametrize("step", ["+ 2", "- 1", "+ 100"])
def test_a_version_moves_by_one(step: str) -> None:
    run = Line.start({})
    with refused(MOVED, "version moving by one"):
        execute(f"UPDATE outlast_workflow SET version = version {step} WHERE id = %s", run.id)


@pytest.mark.parametrize(
    "change",
    [
        "node = 'three'",
        "epoch = epoch + 1",
        "intent_version = intent_version + 1",
        "status = 'paused', outcome = 'WAITING'",
        "intent_id = gen_random_uuid()",
    ],
)
def test_what_an_arrow_moves_needs_a_version(change: str) -> None:
    run = Line.start({})
    with refused(MOVED, "version moving by one"):
        execute(f"UPDATE outlast_workflow SET {change} WHERE id = %s", run.id)


def test_priority_and_notes_need_no_version() -> None:
    run = Line.start({})
    execute("UPDATE outlast_workflow SET priority = 3, rank = now() WHERE id = %s", run.id)
    assert factories.row(run).version == 1


@pytest.mark.parametrize(
    ("version", "status", "outcome", "code"),
    [(2, "runnable", "", MOVED), (0, "runnable", "", MOVED), (1, "paused", "WAITING", ILLEGAL), (1, "complete", "COMPLETE", ILLEGAL),
     (1, "runnable", "", NO_LOG)],
)  # fmt: skip
def test_a_workflow_begins_runnable_at_version_one_with_its_log_row(version: int, status: str, outcome: str, code: str) -> None:
    template = factories.row(Line.start({}))
    copy = {field.attname: getattr(template, field.attname) for field in Workflow._meta.concrete_fields}
    copy |= {"id": new_id(), "version": version, "status": status, "outcome": outcome}
    with refused(code):
        Workflow.objects.create(**copy)


@pytest.mark.req("A4")
@pytest.mark.parametrize("verb", ["UPDATE", "DELETE FROM"])
def test_the_log_is_append_only(verb: str) -> None:
    Line.start({})
    with refused(APPEND_ONLY, "append-only"):
        execute(f"{verb} outlast_transition {'SET at = at' if verb == 'UPDATE' else ''}")
    assert Transition.objects.count() == 1


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("module", "table"),
    [("flows.migrations.0002_guards", "outlast_transition"), ("approvals.migrations.0002_guards", "outlast_review")],
)
def test_the_log_is_not_emptied_outside_a_test_database(module: str, table: str) -> None:
    """The functions and triggers of the migrations themselves, in a database that has an ordinary name."""
    guards = importlib.import_module(module).APPEND_ONLY
    settings = connection.settings_dict
    into = {"host": settings["HOST"], "port": settings["PORT"], "user": settings["USER"], "password": settings["PASSWORD"]}
    name = f"plain_{new_id().hex}"
    with psycopg.connect(dbname=settings["NAME"], autocommit=True, **into) as server:
        server.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        try:
            with psycopg.connect(dbname=name, autocommit=True, **into) as plain:
                plain.execute(f"CREATE TABLE {table} (id int); CREATE TABLE outlast_approval_request (id int)")  # type: ignore[arg-type]
                plain.execute(guards)
                with pytest.raises(psycopg.DatabaseError, match="append-only") as caught:
                    plain.execute(f"TRUNCATE {table}")  # type: ignore[arg-type]
                assert caught.value.sqlstate == APPEND_ONLY
                plain.execute(f"SET outlast.retention = 'on'; TRUNCATE {table}")  # type: ignore[arg-type]
        finally:
            server.execute(f"DROP DATABASE {name}")  # type: ignore[arg-type]


@pytest.mark.req("U1")
def test_django_may_flush_a_test_database_and_work_goes_on(worker: LocalWorker) -> None:
    """What every TransactionTestCase and live server of a host project does after each of its tests."""
    Line.start({})
    call_command("flush", interactive=False, verbosity=0)
    assert (Workflow.objects.count(), Transition.objects.count()) == (0, 0)
    with local_worker() as another:
        run = Line.start({})
        another.tick()
        another.run()
        assert factories.row(run).status == "complete"


@pytest.mark.req("A4")
def test_the_log_is_append_only_for_the_orm_too() -> None:
    Line.start({})
    with refused(APPEND_ONLY):
        Transition.objects.update(trigger="nothing happened")
    with refused(APPEND_ONLY):
        Transition.objects.all().delete()


@pytest.mark.req("A4")
def test_retention_opens_the_log_for_its_own_transaction_only() -> None:
    run = Line.start({})
    with transaction.atomic():
        execute("SET LOCAL outlast.retention = 'on'")
        with refused(APPEND_ONLY):  # not even retention rewrites history
            execute("UPDATE outlast_transition SET at = at")
        execute("DELETE FROM outlast_transition WHERE workflow_id = %s", run.id)
        transaction.set_rollback(True)
    with refused(APPEND_ONLY):
        execute("DELETE FROM outlast_transition WHERE workflow_id = %s", run.id)


def test_the_same_log_row_twice_is_refused() -> None:
    Line.start({})
    with refused("23505"):
        execute("INSERT INTO outlast_transition SELECT * FROM outlast_transition")


@pytest.mark.parametrize(
    ("model", "column", "value"),
    [(Activity, "status", "thinking"), (Attempt, "outcome", "shrugged"), (Wait, "status", "ajar"), (Wait, "kind", "mood"),
     (Timer, "status", "late"), (Timer, "kind", "egg")],
    ids=str,
)  # fmt: skip
def test_words_outside_the_protocol_are_refused(worker: LocalWorker, model: type, column: str, value: str) -> None:
    factories.Dated.start({"key": "k"})
    worker.run()
    assert model.objects.exists()  # type: ignore[attr-defined]
    with refused(CHECK):
        model.objects.update(**{column: value})  # type: ignore[attr-defined]


def test_one_open_wait_a_node(worker: LocalWorker) -> None:
    run = factories.in_status(Status.WAITING, worker)
    with refused("23505"):
        Wait.objects.bulk_create([_copy(Wait.objects.get(workflow_id=run.id))])


def test_one_run_a_key() -> None:
    Line.start({}, key="once")
    other = factories.row(Line.start({}, key="other"))
    with refused("23505"):
        Workflow.objects.filter(pk=other.pk).update(key="once")


def _copy(wait: Wait) -> Wait:
    wait.pk = None
    wait._state.adding = True
    return wait


def test_the_tables_of_the_protocol_are_those_of_the_database() -> None:
    """MOVES and OUTCOMES, as the trigger and the constraint have them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'outlast_workflow_moved'")
        source = cursor.fetchone()[0]
        found = {
            (status.value, outcome or "") for status in Status for outcome in ["", *Outcome] if _state_ok(cursor, status, outcome)
        }
    pairs = {f"{a.value if a else ''}>{b.value}" for a, targets in MOVES.items() for b in targets}
    listed = {pair.strip() for pair in source.split("'{")[1].split("}'")[0].replace("\n", "").split(",")}
    assert listed == pairs
    assert found == {(status.value, outcome or "") for status, allowed in OUTCOMES.items() for outcome in allowed}


def _state_ok(cursor: Any, status: Status, outcome: str) -> bool:
    owner = "gen_random_uuid()" if status is Status.RUNNING else "NULL"
    cursor.execute(f"SELECT outlast_state_ok(%s, %s, {owner})", [status, outcome])
    return bool(cursor.fetchone()[0])


#: The table of slots, as far as the trigger names it.
SLOTS = (
    "CREATE TEMP TABLE outlast_slot (number int, workflow_id uuid, activity_seq int, fence int, since timestamptz) ON COMMIT DROP"
)
BRANCH = """
INSERT INTO outlast_branch (fan_id, number, name, input, status, workflow_id, parent_id) VALUES (%s, 1, '', '{}', 'running', %s, %s)
"""


@pytest.mark.req("E4", "B3")
@pytest.mark.parametrize(("outcome", "told"), [("COMPLETE", True), ("CONTINUED", False)])
def test_the_end_of_a_child_is_told_to_its_branch_and_frees_its_slots(worker: LocalWorker, outcome: str, *, told: bool) -> None:
    run = Line.start({})
    factories.take_one(worker)
    with transaction.atomic():
        execute(SLOTS)
        execute(BRANCH, 1, run.id, run.id)
        execute(
            "INSERT INTO outlast_slot VALUES (1, %s, NULL, NULL), (2, %s, 1, 1), (3, %s, NULL, NULL)", run.id, run.id, new_id()
        )
        execute("UPDATE outlast_workflow SET parent_id = id, slots = 1, active_seq = NULL WHERE id = %s", run.id)
        log(run, "complete", outcome)
        move(run, "complete", outcome)
        with connection.cursor() as cursor:
            cursor.execute("SELECT ended_at IS NOT NULL, outcome FROM outlast_branch")
            assert cursor.fetchall() == [(told, outcome if told else "")]
            cursor.execute("SELECT number FROM outlast_slot WHERE workflow_id IS NULL ORDER BY number")
            assert cursor.fetchall() == [(1,)], "what an attempt holds is freed by its end"
        transaction.set_rollback(True)
