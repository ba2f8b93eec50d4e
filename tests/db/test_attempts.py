"""The life of an attempt: nothing of the database is held while it runs; notes, heartbeats and checkpoints; results that come late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

import flows
from flows import COMPLETE, Activity, Checkpoint, End
from flows.errors import CheckpointTooLarge, PayloadError
from flows.models import Activity as ActivityRow
from flows.models import Attempt
from flows.services import attempting as attempts
from flows.services.proceed import Progress
from flows.testing import Clock, LocalWorker, local_worker, movable_clock
from tests import factories
from tests.factories import Line, calls, does, row, status


@pytest.fixture
def onlooker(transactional_db: None) -> Iterator[Any]:
    """A second connection that looks at the first."""
    other = connection.copy()
    yield other
    other.close()


LOOK = """
SELECT a.state, a.xact_start IS NULL, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid)
FROM pg_stat_activity a WHERE a.pid = %s
"""


@pytest.mark.req("A6")
def test_nothing_is_held_while_activity_code_runs(worker: LocalWorker, onlooker: Any) -> None:
    seen = []

    def inspect(attempt: Any) -> None:
        assert not connection.in_atomic_block
        with onlooker.cursor() as cursor:
            cursor.execute(LOOK, [connection.connection.info.backend_pid])
            seen.append(cursor.fetchone())
            cursor.execute("SELECT id FROM outlast_workflow WHERE id = %s FOR UPDATE NOWAIT", [attempt.workflow_id])

    does.update(dict.fromkeys(("one", "two", "three"), inspect))
    Line.start({})
    worker.run()
    assert seen == [("idle", True, 0)] * 3


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    "leave_open",
    [
        lambda: transaction.atomic().__enter__(),
        lambda: [transaction.set_autocommit(False), connection.cursor().execute("SELECT 1")],
        lambda: connection.cursor().execute("BEGIN"),
    ],
    ids=["atomic", "autocommit", "BEGIN"],
)
@pytest.mark.parametrize("how", ["returns", "raises"])
def test_code_that_leaves_a_transaction_open_has_failed(worker: LocalWorker, leave_open: Callable[[], Any], how: str) -> None:
    """However it was opened: what comes after would be committed by nobody."""
    run = Line.start({})

    def act(attempt: Any) -> None:
        if attempt.number == 1:
            leave_open()
            if how == "raises":
                raise flows.errors.ActivityError

    does["one"] = act
    worker.run()
    attempt = Attempt.objects.get(workflow_id=run.id)
    assert (attempt.outcome, attempt.error_class) == ("failed", "ActivityError")
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    assert status(run)[:2] == ("waiting", "WAITING")


@pytest.mark.django_db
def test_an_author_may_test_inside_a_transaction_that_is_rolled_back(settings: Any) -> None:
    """Django's own TestCase: the kit's worker runs activities there too, good ones and bad ones."""
    settings.OUTLAST = {"DISPATCHER": ""}
    factories.forget()
    assert connection.in_atomic_block
    with movable_clock() as clock, local_worker() as worker:
        does["one"] = factories.failing(1)
        run = Line.start({}, key="inside")
        factories.drive(worker, clock)
        assert status(run)[0] == "complete"
        assert Attempt.objects.filter(workflow_id=run.id).count() == 4


def test_code_that_breaks_its_connection_does_not_break_the_turn(worker: LocalWorker, onlooker: Any) -> None:
    run = Line.start({})

    def act(attempt: Any) -> None:
        if attempt.number == 1:
            with onlooker.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
            connection.cursor().execute("SELECT 1")

    does["one"] = act
    worker.run()
    assert Attempt.objects.get(workflow_id=run.id).outcome == "failed"
    assert status(run)[:2] == ("waiting", "WAITING")


@pytest.mark.req("B1", "B2")
def test_what_an_attempt_is_told(worker: LocalWorker, clock: Clock) -> None:
    seen: list[Any] = []
    does["one"] = lambda attempt: (
        seen.append(attempt) or factories.failing(1)(attempt) if attempt.number == 1 else seen.append(attempt)
    )
    run = Line.start({"a": 1}, key="k", by=factories.person("robin"))
    factories.drive(worker, clock)
    first, second = seen
    assert (first.workflow_id, first.flow, first.key, first.node, first.step) == (str(run.id), "t-line", "k", "one", "")
    assert (first.number, second.number, first.visit, second.visit) == (1, 2, 1, 1)
    assert first.operation_id == second.operation_id == f"{run.id}/one/1"
    assert (first.id, second.id) == (f"{run.id}/1/1", f"{run.id}/1/2")
    assert (first.epoch, first.intent_version, dict(first.input)) == (0, 1, {"a": 1})
    assert (first.last_error, second.last_error) == (None, "TRANSIENT")


def test_code_cannot_change_the_record_in_memory(worker: LocalWorker) -> None:
    def act(attempt: Any) -> Any:
        attempt.results["one"]["list"].append(2)
        attempt.input["list"].append(2)
        return [attempt.results["one"]["list"], None]

    does["one"] = lambda attempt: {"list": [1]}
    does["two"] = act
    run = Line.start({"list": [1]})
    worker.run()
    assert row(run).result["two"] == [[1], None]
    assert row(run).result["one"] == {"list": [1]}


def test_notes_are_for_the_next_attempt_of_this_visit(worker: LocalWorker, clock: Clock) -> None:
    seen = []

    def act(attempt: Any) -> None:
        seen.append(attempt.notes)
        assert attempt.note({"page": attempt.number}) == "continue"
        assert attempt.notes == {"page": attempt.number}
        if attempt.number < 3:
            raise flows.errors.Transient

    does["one"] = act
    does["two"] = lambda attempt: seen.append(attempt.notes)
    Line.start({})
    factories.drive(worker, clock)
    assert seen == [None, {"page": 1}, {"page": 2}, None]


def test_a_note_that_is_too_large_keeps_the_one_before(worker: LocalWorker) -> None:
    def act(attempt: Any) -> None:
        attempt.note({"page": 1})
        for bad in ({"x": "x" * 20_000}, {"x": "\x00"}, object()):
            with pytest.raises(PayloadError, match="the note of t-line"):
                attempt.note(bad)
        assert attempt.notes == {"page": 1}

    does["one"] = act
    run = Line.start({})
    worker.run()
    assert ActivityRow.objects.get(workflow_id=run.id, node="one").notes == {"page": 1}
    assert status(run)[0] == "complete"


def test_a_heartbeat_begins_the_timeout_anew(worker: LocalWorker, clock: Clock) -> None:
    run = Line.start({})
    rows = ActivityRow.objects.filter(workflow_id=run.id, node="one").values_list("started_at", "timeout_at")

    def act(attempt: Any) -> None:
        clock.move(minutes=9)
        assert attempt.heartbeat() == "continue"
        started, until = rows.get()
        assert (until - started).total_seconds() > 60 * 18

    does["one"] = act
    worker.run()
    assert status(run)[0] == "complete"


@pytest.mark.parametrize(
    ("meanwhile", "answer"),
    [
        (lambda run, worker: flows.pause(run), "continue"),
        (lambda run, worker: flows.cancel(run), "cancel"),
        (lambda run, worker: flows.supersede(run, goal="x"), "cancel"),
        (lambda run, worker: factories.lose(worker), "lost"),
        (factories.lose_and_complete, "cancel"),
    ],
    ids=["paused", "cancelled", "superseded", "put back", "done by another"],
)
def test_what_a_heartbeat_answers(worker: LocalWorker, meanwhile: Callable[..., Any], answer: str) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    attempt = attempts.Attempt(owned, worker)
    assert attempt.heartbeat() == "continue"
    meanwhile(run, worker)
    assert attempt.heartbeat() == answer
    assert attempt.note({"late": True}) == answer
    if answer != "continue":
        assert ActivityRow.objects.get(workflow_id=run.id, node="one").notes is None


def test_a_heartbeat_without_a_lease_is_lost(worker: LocalWorker) -> None:
    def act(attempt: Any) -> None:
        incarnation, worker.incarnation = worker.incarnation, None
        assert attempt.heartbeat() == "lost"
        worker.incarnation = incarnation

    does["one"] = act
    Line.start({})
    worker.run()
    assert len(calls) == 3


@pytest.mark.req("A5")
def test_a_checkpoint_is_the_workflows_and_bounded(worker: LocalWorker) -> None:
    seen = []

    def first(attempt: Any) -> None:
        seen.append(dict(attempt.checkpoint))
        attempt.save_checkpoint({"revision": "abc", "files": ["a.py"]})
        with pytest.raises(CheckpointTooLarge, match=r"largest keys: transcript \(20,"):
            attempt.save_checkpoint({"revision": "def", "transcript": "x" * 20_000, "small": 1})
        for bad in ([], "x", None, {"x": "\x00"}, {"x": float("nan")}):
            with pytest.raises(PayloadError):
                attempt.save_checkpoint(bad)
        assert attempt.checkpoint == {"revision": "abc", "files": ["a.py"]}

    does["one"] = first
    does["two"] = lambda attempt: seen.append(dict(attempt.checkpoint))
    run = Line.start({})
    worker.run()
    assert seen == [{}, {"revision": "abc", "files": ["a.py"]}]
    assert row(run).checkpoint == {"revision": "abc", "files": ["a.py"]}


@pytest.mark.req("A5")
def test_the_bound_of_a_checkpoint_is_the_flows(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> None:
    flow = declare(
        "t-small", meta={"checkpoint": Checkpoint(max_bytes=30)}, one=Activity(factories.work, then="done"), done=End(COMPLETE)
    )

    def act(attempt: Any) -> None:
        attempt.save_checkpoint({"a": "x" * 20})
        with pytest.raises(CheckpointTooLarge, match="at most 30 are kept"):
            attempt.save_checkpoint({"a": "x" * 30})

    does["one"] = act
    run = flow.start({})
    worker.run()
    assert row(run).checkpoint == {"a": "x" * 20}


@pytest.mark.req("A5")
def test_a_checkpoint_whose_revision_is_gone_is_a_conflict(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> None:
    gone: list[str] = []
    policy = Checkpoint(validate=lambda attempt: f"revision {gone[0]} is gone" if gone else None)
    conflict = {flows.errors.StateConflict: "again"}
    flow = declare(
        "t-checked",
        meta={"checkpoint": policy},
        one=Activity(factories.work, then="two"),
        two=Activity(factories.work, queue="cleanup", on=conflict, then="done"),
        again=Activity(factories.work, queue="cleanup", then="done"),
        done=End(COMPLETE),
    )
    does["one"] = lambda attempt: attempt.save_checkpoint({"revision": "abc"})
    run = flow.start({})
    worker.run(["agents"])
    gone.append("abc")
    worker.run(["cleanup"])
    assert factories.called("two") == 0
    assert Attempt.objects.get(workflow_id=run.id, node="two").error_code == "STATE_CONFLICT"
    assert status(run)[0] == "complete"
    assert factories.called("again") == 1


@pytest.mark.req("A7", "B7")
def test_a_checkpoint_of_an_old_owner_is_refused(worker: LocalWorker) -> None:
    run = Line.start({})

    def act(attempt: Any) -> None:
        if attempt.number == 1:
            factories.lose(worker)
            attempt.save_checkpoint({"revision": "stale"})

    does["one"] = act
    worker.run()
    assert row(run).checkpoint is None
    assert status(run)[0] in ("runnable", "complete")


@pytest.mark.req("A7", "B7")
def test_a_result_of_an_old_owner_is_kept_as_evidence_and_moves_nothing(worker: LocalWorker) -> None:
    run = Line.start({})
    other = factories.another_worker()

    def act(attempt: Any) -> Any:
        if attempt.number == 1:
            factories.lose(worker)
            assert other.run() == 1
            return {"by": "the old owner"}
        return {"by": "the new owner"}

    does["one"] = act
    worker.run()
    assert row(run).result["one"] == {"by": "the new owner"}
    rows = Attempt.objects.filter(workflow_id=run.id, node="one").order_by("number").values_list("outcome", "late_result")
    assert list(rows) == [("lost", {"by": "the old owner"}), ("succeeded", None)]
    operation = {call[:2] for call in calls if call[0] == "one"}
    assert operation == {("one", 1)}


def test_a_late_result_is_kept_once(worker: LocalWorker) -> None:
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    flows.cancel(run)
    ending = factories.ending({"n": 1})
    assert attempts.keep_late(owned, ending)
    assert not attempts.keep_late(owned, factories.ending({"n": 2}))
    assert Attempt.objects.get().late_result == {"n": 1}


@pytest.mark.req("D3")
def test_every_writer_names_what_it_saw(worker: LocalWorker) -> None:
    """Version, epoch, intent version, owner and fence: a wrong one of them and nothing is written."""
    run = Line.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    before = row(run).version
    for name, wrong in (("version", 99), ("version", before - 1), ("epoch", 7), ("intent_version", 7)):
        right = getattr(owned.row, name)
        setattr(owned.row, name, wrong)
        assert factories.try_complete(owned) in (None, Progress.LOST)
        assert row(run).version == before
        setattr(owned.row, name, right)
    owned.worker, mine = factories.another_worker().incarnation, owned.worker
    assert factories.try_complete(owned) in (None, Progress.LOST)
    owned.worker = mine
    assert factories.complete(owned) is Progress.RUN
