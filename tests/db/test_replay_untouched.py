"""While a replay runs nothing gets out of the process, and nothing into the record: what tries is named."""

from __future__ import annotations

import _thread
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.util import spawnv_passfds
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

import flows
from flows import COMPLETE, Activity, Branch, End, Flow
from flows.models import Workflow
from flows.services.replay import replay
from flows.services.untouched import Touched, called, untouched
from flows.store.history import NotAlone, snapshot
from flows.store.sql import run as execute
from flows.testing import LocalWorker
from tests.factories import Ask, Line, Nap, Pipe, does, failing, row, work
from tests.support.approving import World, world
from tests.support.commanding import Ran, cli
from tests.support.record import KEPT, tables

__all__ = ["cli", "world"]

pytestmark = pytest.mark.req("S1")

Declare = Callable[..., type[Flow]]
STRAYS = {"test_a_function_that_reaches_out_is_located"}


def connects() -> None:
    socket.create_connection(("127.0.0.1", 9))


def sends() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"", ("127.0.0.1", 9))


def writes() -> None:
    Workflow.objects.update(priority=1)


def reads() -> None:
    Workflow.objects.count()


def writes_past_django() -> None:
    connection.connection.execute("UPDATE outlast_workflow SET priority = 1")


def connects_to_a_database() -> None:
    psycopg.connect(host="127.0.0.1", port=9)


def runs() -> None:
    subprocess.run([sys.executable, "-c", ""], check=False)


def starts_a_thread() -> None:
    threading.Thread(target=lambda: None).start()


def sends_through_an_open_socket() -> None:
    SOCKETS[0].send(b"x")


def sends_all_through_an_open_socket() -> None:
    SOCKETS[0].sendall(b"x")


def sends_a_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


def sends_encrypted() -> None:
    ssl.SSLSocket.send(ssl.SSLSocket.__new__(ssl.SSLSocket), b"x")


def opens_a_port() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))


def looks_a_name_up() -> None:
    socket.gethostbyname("localhost")


def looks_an_address_up() -> None:
    socket.gethostbyaddr("127.0.0.1")


def streams() -> None:
    list(connection.connection.cursor().stream("SELECT 1"))


def copies() -> None:
    with connection.connection.cursor().copy("COPY (SELECT 1) TO STDOUT"):
        pass


def uses_an_open_cursor() -> None:
    CURSORS[0].execute("SELECT 1")


def streams_from_an_open_cursor() -> None:
    list(CURSORS[0].stream("SELECT 1"))


def asks_libpq() -> None:
    connection.connection.pgconn.exec_(b"SELECT 1")


def commits() -> None:
    connection.connection.commit()


def asks_a_shell() -> None:
    os.system("true")


def spawns() -> None:
    os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})


def spawns_as_multiprocessing_does() -> None:
    spawnv_passfds(sys.executable, [sys.executable, "-c", ""], ())


def forks() -> None:
    if not os.fork():
        os._exit(0)


def signals() -> None:
    os.kill(os.getpid(), 0)


def starts_a_raw_thread() -> None:
    _thread.start_new_thread(lambda: None, ())


def hands_work_to_a_pool() -> None:
    POOL.submit(print)


def writes_to_a_pipe() -> None:
    os.write(1, b"")


#: What was open before: a pooled client's socket, a cursor, a pool whose thread runs.
SOCKETS = socket.socketpair()
CURSORS: list[psycopg.Cursor[Any]] = []
POOL = ThreadPoolExecutor(1)

WAYS = [
    *(connects, sends, writes, reads, writes_past_django, connects_to_a_database, runs, starts_a_thread),
    *(sends_through_an_open_socket, sends_all_through_an_open_socket, sends_a_message, sends_encrypted, opens_a_port),
    *(
        looks_a_name_up,
        looks_an_address_up,
        streams,
        copies,
        uses_an_open_cursor,
        streams_from_an_open_cursor,
        asks_libpq,
        commits,
    ),
    *(asks_a_shell, spawns, spawns_as_multiprocessing_does, forks, signals, starts_a_raw_thread, hands_work_to_a_pool),
    writes_to_a_pipe,
]


@pytest.fixture(autouse=True)
def open_before(transactional_db: None) -> Iterator[None]:
    connection.ensure_connection()
    CURSORS[:] = [psycopg.Cursor(connection.connection)]
    POOL.submit(int).result()
    yield
    CURSORS.clear()


@pytest.mark.parametrize("reach", WAYS, ids=lambda reach: reach.__name__)
def test_what_reaches_out_is_refused_and_named(reach: Callable[[], None], transactional_db: None) -> None:
    with untouched() as held, pytest.raises(Touched):
        reach()
    assert len(held.tried) == 1


def test_a_refusal_that_was_swallowed_is_raised_again() -> None:
    def look() -> str:
        with suppress(BaseException):
            asks_a_shell()
        return "done"

    with pytest.raises(Touched, match="starts a process"):
        called(look)
    assert called(str, 5) == "5"


def test_a_guard_inside_a_guard_leaves_the_outer_one() -> None:
    with untouched() as outer:
        with untouched() as inner, suppress(Touched):
            connects()
        with suppress(Touched):
            asks_a_shell()
    assert (inner.tried, outer.tried) == (["looks a name up"], ["starts a process"])
    asks_a_shell()


def test_a_connection_of_a_database_may_be_looked_at() -> None:
    """Python's collector looks whether one is closed, at any moment."""
    with untouched() as held:
        assert (connection.connection.closed, held.tried) == (False, [])
        assert psycopg.Connection.__new__(psycopg.Connection).__del__() is None


def test_afterwards_everything_is_as_it_was(transactional_db: None) -> None:
    places = [(psycopg.Connection, "connect"), (psycopg.Connection, "wait"), (socket.socket, "sendall"), (os, "write")]
    before = [vars(owner).get(name) for owner, name in places]
    with untouched(), suppress(Touched):
        reads()
    assert [vars(owner).get(name) for owner, name in places] == before
    assert not isinstance(connection.connection.pgconn, property)
    asks_libpq()
    assert Workflow.objects.count() == 0
    with socket.socket() as listening, socket.socket() as other:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        other.connect(listening.getsockname())


def test_other_threads_go_on(transactional_db: None) -> None:
    found: list[Any] = []
    go, gone = threading.Event(), threading.Event()

    def other() -> None:
        go.wait()
        with suppress(OSError):
            connects()
        found.append("went on")
        gone.set()

    thread = threading.Thread(target=other)
    thread.start()
    with untouched() as held:
        go.set()
        gone.wait(10)
    thread.join()
    assert (found, held.tried) == (["went on"], [])


def test_two_threads_hold_it_each_for_itself() -> None:
    """One that ends does not open the ways out for the other."""
    tried: list[Any] = []
    entered, ended = threading.Event(), threading.Event()

    def other() -> None:
        with untouched() as held:
            entered.set()
            ended.wait(10)
            with suppress(Touched):
                sends_all_through_an_open_socket()
            tried.append(held.tried)

    thread = threading.Thread(target=other)
    with untouched() as held, suppress(Touched):
        connects()
    thread.start()
    entered.wait(10)
    with untouched():
        pass
    sends_all_through_an_open_socket()
    ended.set()
    thread.join()
    assert (held.tried, tried) == (["looks a name up"], [["sends through a socket"]])


def test_the_server_refuses_writes_in_the_snapshot(transactional_db: None) -> None:
    with pytest.raises(DatabaseError, match="read-only"), snapshot("default"):
        execute("write", "UPDATE outlast_workflow SET priority = 1", {}, "default")
    assert execute("write", "SELECT current_setting('transaction_read_only')", {}, "default") == [("off",)]


@pytest.mark.parametrize("reach", WAYS, ids=lambda reach: reach.__name__)
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_function_that_reaches_out_is_located(
    worker: LocalWorker,
    declare: Declare,
    reach: Callable[[], None],
    swallowed: bool,  # noqa: FBT001 - a case
) -> None:
    """Also where it swallows the refusal, by a bare except."""
    quiet = [True]

    def which(state: Any) -> str:
        if not quiet[0]:
            try:
                reach()
            except BaseException:
                if not swallowed:
                    raise
        return "on"

    flow = declare(
        "t-reaching", one=Activity(work, then="which"), which=Branch(which, choices={"on": "done"}), done=End(COMPLETE)
    )
    run, other = flow.start({}), Line.start({})
    worker.run()
    quiet[0] = False
    found = {one.id: one.drift for one in replay()}
    drift = found[str(run.id)]
    assert drift is not None
    assert (drift.seq, drift.field, drift.recorded) == (3, "outside", None)
    assert "a function of the flow" in drift.replayed
    assert found[str(other.id)] is None
    assert row(run).priority == 0


def test_it_wants_a_transaction_of_its_own(transactional_db: None) -> None:
    Line.start({})
    with transaction.atomic(), pytest.raises(NotAlone, match="outside atomic"):
        list(replay())


def contents() -> list[tuple[str, int]]:
    """Every table as it is; a row that is written, even with the same values, is another version of it."""
    every = "SELECT coalesce(sum(hashtextextended(t.ctid::text || t.xmin::text || t::text, 0)), 0) FROM {} t"
    return [(table, execute("contents", every.format(table), {}, "default")[0][0]) for table in [*tables(), *KEPT]]


def mixed(worker: LocalWorker, world: World) -> int:
    """Forty runs: steps, pipelines, failures, events, sleeps, questions; ended, waiting, paused, cancelled, superseded, before a person."""
    does["one"] = failing(3)
    for number in range(8):
        Line.start({}, key=f"line {number}")
        Pipe.start({}, key=f"pipe {number}")
        Ask.start({}, key=f"ask {number}")
        Nap.start({}, key=f"nap {number}")
    worker.run()
    for number in range(6):
        flows.signal(f"e {number}", "t.asked", key=f"ask {number}", payload={"n": number})
    requests = [world.ask() for _ in range(8)]
    for request in requests[:4]:
        world.decide(request)
    world.clock.move(minutes=61)  # retries, sleeps, and the deadlines of those that nobody answered
    for _ in range(3):
        worker.tick()
        worker.run()
        world.worker.run()
    live = list(Workflow.objects.filter(status="waiting", outcome="WAITING").order_by("flow_name", "pk"))
    for act, run in zip((flows.cancel, flows.pause, lambda one: flows.supersede(one, goal="other")), live, strict=False):
        act(run)
    world.worker.run()
    return Workflow.objects.count()


def test_the_command_replays_everything_and_writes_nowhere(worker: LocalWorker, world: World, cli: Callable[..., Ran]) -> None:
    count = mixed(worker, world)
    assert count >= 40
    found = set(Workflow.objects.values_list("status", flat=True))
    assert {"complete", "waiting", "paused", "cancelled", "superseded"} <= found
    before = contents()
    ran = cli("replay", "--all")
    assert (ran.code, contents()) == (0, before)
    assert ran.err.startswith(f"{count} replayed")
    assert ran.err.rstrip().endswith("0 differ")
    assert cli("replay", "--all", "--json").json["differences"] == []
    assert contents() == before


def test_nothing_is_written_by_a_replay(worker: LocalWorker) -> None:
    runs = [Line.start({}) for _ in range(3)]
    worker.run()
    before = execute("count", WRITTEN, {}, "default")
    assert all(replay(runs))
    assert execute("count", WRITTEN, {}, "default") == before


#: Every row of the record that an arrow would change, as it is.
WRITTEN = """
SELECT (SELECT md5(string_agg(w::text, '' ORDER BY w.id)) FROM outlast_workflow w),
    (SELECT md5(string_agg(t::text, '' ORDER BY t.workflow_id, t.seq)) FROM outlast_transition t),
    (SELECT count(*) FROM outlast_attempt), (SELECT count(*) FROM outlast_event), (SELECT count(*) FROM outlast_notice)
"""
