"""A record that somebody has edited: replay says where, and what it would have to be. The edits go behind the guards, as a superuser's could."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

import flows
from flows import COMPLETE, ESCALATE, Activity, Branch, Candidate, Deadline, Decision, End, Flow, Visits, Wait
from flows.core.history import Drift
from flows.services.replay import replay
from flows.testing import LocalWorker
from tests.factories import Line, does, failing, row, work
from tests.support import record as records
from tests.support.approving import World, world

__all__ = ["world"]

pytestmark = pytest.mark.req("S1", "A4")

TAMPERS = True

Declare = Callable[..., type[Flow]]


@pytest.fixture(autouse=True)
def emptied(transactional_db: None) -> Any:
    """What these tests leave behind is not sound, by design."""
    yield
    records.wipe()


def edit(sql: str, *params: Any) -> None:
    """Change the record with its triggers off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, params)
        assert cursor.rowcount == 1, sql


def edit_log(run: Any, at: int, /, **values: Any) -> None:
    """Change one row of the log."""
    listed = ", ".join(f'"{name}" = %s' for name in values)
    edit(f"UPDATE outlast_transition SET {listed} WHERE workflow_id = %s AND seq = %s", *values.values(), run.id, at)


def drift(run: Any) -> Drift:
    (found,) = replay([run])
    assert found.drift is not None, "the edit was not found"
    return found.drift


def read(state: Any) -> str:
    return str(state.event["payload"]["says"])


def heard(declare: Declare, worker: LocalWorker, says: str = "yes") -> Any:
    """A workflow with a decision, a wait with choices and a branch, brought to its end."""
    flow = declare(
        "t-heard",
        propose=Decision(lambda attempt: Candidate("go", {"n": 1}), choices={"go": "ask", "stop": "no"}),
        ask=Wait("t.heard", key="k", read=read, choices={"yes": "one", "no": "no"}, deadline=Deadline(days=1, then=ESCALATE)),
        one=Activity(work, then="which"),
        which=Branch(lambda state: "big" if state.results["one"]["n"] > 5 else "small", choices={"big": "two", "small": "yes"}),
        two=Activity(work, then="yes"),
        yes=End(COMPLETE, result=lambda state: state.results["one"]),
        no=End(COMPLETE),
    )
    does["one"] = lambda attempt: {"n": 3}
    run = flow.start({})
    worker.run()
    flows.signal("e1", "t.heard", key="k", payload={"says": says})
    worker.run()
    assert row(run).status == "complete"
    (found,) = replay([run])
    assert found.drift is None
    return run


#: start 1, claim 2, completed (decision) 3, event 4, claim 5, woken 6, completed 7
LAST = 7


@pytest.mark.parametrize(
    ("seq", "values", "expected"),
    [
        (1, {"to_node": "ask"}, Drift(1, "to_node", "ask", "propose")),
        (1, {"activity_seq": None}, Drift(1, "activity_seq", None, 1)),
        (2, {"to_status": "reconciling"}, Drift(2, "to_status", "reconciling", "no move of the protocol from runnable")),
        (2, {"trigger": "resume"}, Drift(2, "trigger", "resume", "no arrow of it leads from runnable to running")),
        (2, {"attempt": 4}, Drift(2, "attempt", 4, 1)),
        (2, {"epoch": 3}, Drift(2, "epoch", 3, 0)),
        (2, {"error_code": "X"}, Drift(2, "error_code", "X", None)),
        (2, {"activity_seq": 2}, Drift(2, "activity_seq", 2, 1)),
        (3, {"to_node": "one"}, Drift(3, "to_node", "one", "ask")),
        (3, {"from_node": "one"}, Drift(3, "from_node", "one", "propose")),
        (3, {"to_status": "paused", "outcome": ""}, Drift(3, "outcome", "", "no outcome of paused")),
        (3, {"outcome": "HUMAN_REQUIRED"}, Drift(3, "outcome", "HUMAN_REQUIRED", "WAITING")),
        (3, {"error_code": "X"}, Drift(3, "error_code", "X", None)),
        (3, {"trigger": "failed"}, Drift(3, "trigger", "failed", "attempt 1 of propose: succeeded")),
        (3, {"intent_version": 2}, Drift(3, "intent_version", 2, 1)),
        (4, {"from_status": "paused"}, Drift(4, "from_status", "paused", "waiting")),
        (6, {"to_node": "two"}, Drift(6, "to_node", "two", "one")),
        (6, {"trigger": "expired"}, Drift(6, "trigger", "expired", "woken")),
        (6, {"note": json.dumps({"via": ["two"]})}, Drift(6, "via", ["two"], [])),
        (6, {"note": json.dumps({"deadline": ["sla"]})}, Drift(6, "deadline", ["sla"], [])),
        (6, {"note": json.dumps({"verdict": "APPROVAL_REQUIRED"})}, Drift(6, "verdict", "APPROVAL_REQUIRED", None)),
        (LAST, {"note": None}, Drift(LAST, "via", [], ["which"])),
        (LAST, {"to_status": "failed", "outcome": "FAILED"}, Drift(LAST, "to_status", "failed", "complete (finish yes)")),
        (LAST, {"epoch": 1}, Drift(LAST, "epoch", 1, 0)),
        (LAST, {"seq": 9}, Drift(LAST, "seq", "no row", LAST)),
    ],
)  # fmt: skip
def test_an_edited_row_of_the_log_is_located(
    worker: LocalWorker, declare: Declare, seq: int, values: dict[str, Any], expected: Drift
) -> None:
    run = heard(declare, worker)
    edit_log(run, seq, **values)
    assert drift(run) == expected


def test_a_deleted_row_of_the_log_is_located(worker: LocalWorker, declare: Declare) -> None:
    run = heard(declare, worker)
    edit("DELETE FROM outlast_transition WHERE workflow_id = %s AND seq = 4", run.id)
    assert drift(run) == Drift(4, "seq", "no row", 4)


def test_a_log_that_is_gone(worker: LocalWorker) -> None:
    run = Line.start({})
    edit("DELETE FROM outlast_transition WHERE workflow_id = %s", run.id)
    assert drift(run) == Drift(1, "seq", "no row", 1)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("result", {"n": 9}, Drift(LAST, "to_status", "complete", "running (open two)")),
        ("result", {"n": 4}, Drift(LAST, "result", {"n": 3}, {"n": 4})),
        ("node", "two", Drift(6, "activity 2", "two", "one")),
        ("visit", 2, Drift(6, "visit of activity 2", 2, 1)),
    ],
)
def test_an_edited_activity_is_located(worker: LocalWorker, declare: Declare, field: str, value: Any, expected: Drift) -> None:
    run = heard(declare, worker)
    stored = json.dumps(value) if field == "result" else value
    edit(f"UPDATE outlast_activity SET {field} = %s WHERE workflow_id = %s AND seq = 2", stored, run.id)
    assert drift(run) == expected


def test_an_edited_candidate_is_located_by_its_digest(worker: LocalWorker, declare: Declare) -> None:
    run = heard(declare, worker)
    edit("UPDATE outlast_activity SET result = jsonb_set(result, '{value,n}', '2') WHERE workflow_id = %s AND seq = 1", run.id)
    found = drift(run)
    assert (found.seq, found.field) == (3, "digest of propose")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("evidence = jsonb_set(evidence, '{payload,says}', '\"no\"')", (6, "to_status", "running", "complete (finish no)")),
        ("evidence = jsonb_set(evidence, '{payload,more}', '1')", (6, "result of ask")),
        ("evidence = NULL", (6, "to_status", "running", "waiting (rest)")),
        ("evidence = NULL, due_since = now()", (6, "to_status", "running", "waiting (suspend ask WAIT_EXPIRED)")),
        ("key = 'other'", (3, "key of wait", "other", "k")),
        ("event_type = 'other'", (3, "event_type of wait", "other", "t.heard")),
        ("kind = 'timer'", (3, "kind of wait", "timer", "event")),
        ("result = NULL", (6, "result of ask", None)),
    ],
)
def test_an_edited_wait_is_located(worker: LocalWorker, declare: Declare, change: str, expected: tuple[Any, ...]) -> None:
    run = heard(declare, worker)
    edit(f"UPDATE outlast_wait SET {change} WHERE workflow_id = %s", run.id)
    found = drift(run)
    told = (found.seq, found.field.rstrip("0123456789 "), found.recorded, found.replayed)
    assert told[: len(expected)] == expected


def test_an_edited_attempt_is_located(worker: LocalWorker) -> None:
    does["one"] = failing(1)
    run = Line.start({})
    worker.run()
    edit("UPDATE outlast_attempt SET outcome = 'succeeded' WHERE workflow_id = %s", run.id)
    assert drift(run) == Drift(3, "trigger", "failed", "attempt 1 of one: succeeded")
    edit("UPDATE outlast_attempt SET outcome = 'failed', error_code = 'POLICY_DENIED' WHERE workflow_id = %s", run.id)
    assert drift(run) == Drift(3, "outcome", "WAITING", "POLICY_BLOCKED")


def test_an_edited_row_of_the_workflow_is_located(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    edit("UPDATE outlast_workflow SET node = 'two' WHERE id = %s", run.id)
    assert drift(run) == Drift(5, "row node", "two", "done")


def test_an_edited_result_of_the_workflow_is_located(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    edit("UPDATE outlast_workflow SET result = '1' WHERE id = %s", run.id)
    found = drift(run)
    assert (found.seq, found.field, found.recorded) == (5, "result", 1)


def test_an_edited_approval_is_located(world: World) -> None:
    request = world.ask()
    world.decide(request)
    world.worker.run()
    run = world.workflow(request)
    (found,) = replay([run])
    assert found.drift is None
    edit("UPDATE outlast_approval_request SET digest = 'sha256:other' WHERE id = %s", request.pk)
    told = drift(run)
    assert told.field == f"digest of the question behind wait {request.wait_id}"
    edit("UPDATE outlast_approval_request SET digest = %s, expires_at = asked_at WHERE id = %s", request.digest, request.pk)
    told = drift(run)
    assert (told.field, told.replayed) == ("to_status", "waiting (park ask)")


def test_a_note_of_any_shape_is_a_drift_and_stops_nothing(worker: LocalWorker) -> None:
    does["one"] = failing(1)
    run, sound = Line.start({}), Line.start({})
    worker.run()
    edit_log(run, 3, note=json.dumps({"failure": 7}))
    found = {one.id: one for one in replay()}
    drifted = found[str(run.id)].drift
    assert drifted is not None
    assert (drifted.seq, drifted.field) == (3, "record")
    assert found[str(sound.id)].drift is None


def test_what_cannot_be_read_here_is_said_and_stops_nothing(worker: LocalWorker) -> None:
    run, sound = Line.start({}), Line.start({})
    edit("""UPDATE outlast_workflow SET input = '{"$outlast": "sealed", "data": ""}' WHERE id = %s""", run.id)
    found = {one.id: one for one in replay()}
    assert "codec 'sealed'" in found[str(run.id)].unknown
    assert found[str(sound.id)]


def test_a_definition_that_was_changed_without_its_version_is_told(worker: LocalWorker, declare: Declare) -> None:
    run = declare("t-changed", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    worker.run()
    declare("t-changed", one=Activity(work, visits=Visits(2, then="done"), then="done"), done=End(COMPLETE))
    found = drift(run)
    assert (found.seq, found.field) == (1, "fingerprint")
