"""Workflows that wake together: what one of them suffers must not touch the others, and an opening that the server lost strands nobody."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Retry, Wait
from flows.core.errors import PayloadError
from flows.services import opening, turn
from flows.store import advance as hot
from flows.store.sql import run as execute
from flows.testing import LocalWorker
from tasks.keeper import Keeper, Offer
from tasks.shared import Shared, boottime
from tests import factories
from tests.factories import Ask, Line, does, status

USING = "default"


def answer(count: int, prefix: str = "k") -> None:
    for number in range(count):
        flows.signal(f"e-{prefix}{number}", "t.asked", key=f"{prefix}{number}")


def asked(worker: LocalWorker, count: int, prefix: str = "k") -> list[Any]:
    runs = [Ask.start({"key": f"{prefix}{number}"}) for number in range(count)]
    worker.run()
    return runs


def lose_the_next_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server dies before the commit of the next opening is on disk (its commit does not wait): its rows never were."""

    def lost(arrows: Any, using: str) -> Any:
        with transaction.atomic(using=using):
            rows = hot.open_woken(arrows, using)
            transaction.set_rollback(True, using=using)
        monkeypatch.setattr(opening, "open_woken", hot.open_woken)
        return rows

    monkeypatch.setattr(opening, "open_woken", lost)


def server_dies() -> None:
    """All connections of the old server are gone with it."""
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def behind(worker: LocalWorker) -> tuple[Any, Any]:
    """A ready activity, and behind it a workflow whose wait was answered: one claim takes both."""
    first = Line.start({})
    flows.pause(first)
    (second,) = asked(worker, 1)
    answer(1)
    flows.resume(first)
    execute("first", "UPDATE outlast_workflow SET rank = 'epoch' WHERE id = %(id)s::uuid", {"id": first.id}, USING)
    worker.batch_size = 10
    return first, second


def once(action: Callable[[], None]) -> Callable[[Any], Any]:
    left = [action]

    def act(attempt: Any) -> Any:
        if left:
            left.pop()()
        return {"by": attempt.node}

    return act


def reconnect() -> None:
    """The code uses the database itself, and gets over the loss of its connection."""
    try:
        server_dies()
    except OperationalError:
        connection.close()


def killed_from_outside() -> None:
    raw = connection.connection
    with psycopg.connect(raw.info.dsn, password=raw.info.password, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [raw.info.backend_pid])


@pytest.mark.parametrize("meanwhile", [lambda: None, server_dies, reconnect], ids=["pooler", "code-fails", "code-reconnects"])
def test_an_opening_that_the_server_lost_is_put_back(worker: LocalWorker, monkeypatch: Any, meanwhile: Any) -> None:
    (run,) = asked(worker, 1)
    answer(1)
    lose_the_next_opening(monkeypatch)
    does["after"] = once(meanwhile)
    worker.run()
    worker.tick()
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")


def test_an_opening_that_the_server_lost_is_put_back_behind_a_result_that_was_saved(
    worker: LocalWorker, monkeypatch: Any
) -> None:
    first, second = behind(worker)
    lose_the_next_opening(monkeypatch)
    does["one"] = once(killed_from_outside)
    worker.run()
    worker.tick()
    worker.run()
    assert (status(first)[0], status(second)) == ("complete", ("waiting", "WAITING", "again"))


@pytest.mark.parametrize("meanwhile", [lambda: None, killed_from_outside], ids=["pooler", "connection"])
@pytest.mark.parametrize("seconds", [0.5, 5.0], ids=["begun late", "given back"])
def test_an_opening_that_the_server_lost_is_put_back_behind_a_long_step(
    worker: LocalWorker, monkeypatch: Any, meanwhile: Any, seconds: float
) -> None:
    """What waits behind it is checked again before it begins; when the slice is over, it is given back. Neither finds the row as opened."""
    first, second = behind(worker)
    lose_the_next_opening(monkeypatch)
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0], sleep=time.sleep)
    monkeypatch.setattr(turn, "time", clock)

    def long() -> None:
        meanwhile()
        passed[0] += seconds

    does["one"] = once(long)
    worker.run()
    worker.tick()
    worker.run()
    assert (status(first)[0], status(second)) == ("complete", ("waiting", "WAITING", "again"))


@pytest.mark.parametrize("size", [1010, 200])
def test_a_wait_result_near_the_bound_stops_nobody_else(worker: LocalWorker, declare: Any, settings: Any, size: int) -> None:
    """A payload is legal up to MAX_PAYLOAD_BYTES; the wait's result holds it twice, with a few bytes around it."""
    flow = declare(
        "t-big",
        ask=Wait(
            "t.big",
            key=factories.key_of,
            read=lambda state: state.event["payload"] if size > 1000 else [state.event["payload"]] * 10,
            then="after",
            deadline=Deadline(hours=1, then=ESCALATE),
        ),
        after=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    settings.OUTLAST = {**settings.OUTLAST, "MAX_PAYLOAD_BYTES": 1024}
    runs = [flow.start({"key": f"k{n}"}) for n in range(3)]
    worker.run()
    for n in range(3):
        flows.signal(
            f"a rather long event id, as senders have them: {n}",
            "t.big",
            key=f"k{n}",
            payload={"x": "x" * (size if n == 1 else 1)},
        )
    worker.batch_size = 10
    for _ in range(3):
        with contextlib.suppress(PayloadError):  # the turn breaks off; the next one begins with putting back
            worker.run()
    assert [status(runs[0])[0], status(runs[2])[0]] == ["complete", "complete"]
    assert status(runs[1])[0] in ("complete", "waiting")


def test_who_waited_behind_a_killer_has_lost_no_attempt(worker: LocalWorker, declare: Any, monkeypatch: Any) -> None:
    """A process dies under the first workflow of its claim; the code of the second one never began."""
    flow = declare(
        "t-careful",
        ask=Wait("t.asked", key=factories.key_of, then="after", deadline=Deadline(hours=1, then=ESCALATE)),
        after=Activity(
            factories.work, retry=Retry(max_lost=0), then="done"
        ),  # never again without a person, once it may have begun
        done=End(COMPLETE),
    )
    runs = [flow.start({"key": f"k{number}"}) for number in range(2)]
    worker.run()
    answer(2)
    shared = Shared()
    keeper = Keeper(Offer("w", ["agents"], [], [], 1), shared, forked=True, using=USING)
    keeper.incarnation = worker.incarnation
    monkeypatch.setattr("tasks.keeper.processes.exists", lambda pid: False)
    batch = factories.take_up_to(worker, 10)
    assert [owned.row.id for owned in batch] == [run.id for run in runs]
    opening.open_batch(batch, factories.STAY)
    factories.enter(batch[0])
    shared.write(shared.take_slot(), boottime(), boottime() + 600, 1, runs[0].id)  # it runs the first; the second has not begun
    keeper.watch()
    worker.run()
    assert [status(run)[:2] for run in runs] == [("waiting", "HUMAN_REQUIRED"), ("complete", "COMPLETE")]


def test_a_fault_is_logged_once(worker: LocalWorker, declare: Any, caplog: Any) -> None:
    def bad(state: Any) -> str:
        raise KeyError("x")

    flow = declare(
        "t-fault",
        ask=Wait("t.f", key=factories.key_of, read=bad, then="after", deadline=Deadline(hours=1, then=ESCALATE)),
        after=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({"key": "k"})
    worker.run()
    flows.signal("e", "t.f", key="k")
    with caplog.at_level(logging.ERROR):
        worker.run()
    assert status(run)[1] == "HUMAN_REQUIRED"
    assert len([r for r in caplog.records if "a function of the flow raised" in r.getMessage()]) == 1


def test_only_the_openings_own_commit_does_not_wait(worker: LocalWorker) -> None:
    with connection.cursor() as c:
        c.execute("SET synchronous_commit = on")
    asked(worker, 2)
    answer(2)
    batch = factories.take_up_to(worker, 2)
    with transaction.atomic():
        opening.open_batch(batch, factories.STAY)
        with connection.cursor() as c:
            c.execute("SHOW synchronous_commit")
            found = c.fetchone()[0]
    with connection.cursor() as c:
        c.execute("SHOW synchronous_commit")
        assert c.fetchone()[0] == "on"
    assert found == "on"
