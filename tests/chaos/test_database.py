"""PostgreSQL is stopped and started, or killed and recovered, under load: no workflow is lost or left behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chaosapp.flows import Held, HeldTwice, Load, Three
from tests.support.processes import Site, family

COUNT = 30


@pytest.fixture
def supervised(site: Site) -> Callable[[], Any]:
    """A worker and Beat, each started again when it ends, as a supervisor would; call it while waiting."""
    site.worker()
    site.beat()

    def look() -> bool:
        for name, process in list(site.procs.processes.items()):
            if not process.is_alive():
                process.kill()
                site.procs.start(name, env={"WORKER_CONCURRENCY": "2"})
        return not site.open_runs()

    return look


@pytest.mark.failure("database restarts")
@pytest.mark.req("T1")
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_the_database_restarts_under_load(site: Site, supervised: Callable[[], Any], how: str) -> None:
    site.start_many(Load, [{"seconds": 0.1}] * COUNT)
    site.answer_load(COUNT)
    for _ in range(2):
        before = len(site.open_runs())
        site.wait("some work to be done", lambda before=before: supervised() or len(site.open_runs()) < before)
        if how == "kill":
            site.servers.kill("postgres")
        else:
            site.servers.stop("postgres")
        site.start_server("postgres")
    site.wait("the end of the workflows", supervised, seconds=90)
    site.assert_sound(COUNT)


@pytest.mark.req("T1", "A7")
def test_the_database_freezes_for_longer_than_a_lease(make_site: Callable[..., Site]) -> None:
    """Nobody can renew, nobody can take over: when it goes on, the work is put back or carried on, and ends right once."""
    site = make_site(LEASE_SECONDS=3.0, LEASE_RENEW_SECONDS=1.0)
    site.worker()
    site.beat()
    held = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    site.start_many(Load, [{"seconds": 0.1}] * 10)
    site.answer_load(10)
    pids = family(site.servers.pg_pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    thawed = threading.Timer(5.0, lambda: [os.kill(pid, signal.SIGCONT) for pid in pids])  # two leases, nearly
    thawed.start()
    site.let_go()
    thawed.join()
    site.wait("the end of the workflows", lambda: not site.open_runs())
    assert site.attempts(held, "two")[-1] == "succeeded"
    site.assert_sound(11)


@pytest.mark.req("T1", "A6")
def test_a_step_outlives_a_restart_of_the_database(site: Site, supervised: Callable[[], Any]) -> None:
    """The activity needs no database while it runs, so it runs on, and its result is committed when the database is back."""
    runs = [site.start(Held) for _ in range(2)]
    site.wait("the steps", lambda: len(site.called("two/1")) == 2)
    site.servers.stop("postgres")
    site.start_server("postgres")
    site.let_go()
    site.wait("the end of the workflows", supervised)
    assert [site.attempts(run, "two") for run in runs] == [["succeeded"]] * 2
    site.assert_sound(2)


@pytest.mark.req("T1", "A7")
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_the_step_after_an_absence_is_left_alone_too(site: Site, pool: str) -> None:
    """The result of the first step was committed at the second try; the worker's parent has no reason to doubt the second step."""
    site.worker(WORKER_OPTIONS=f"-P {pool}")
    run = site.start(HeldTwice)
    site.wait("the first step", lambda: site.called("one/1"))
    site.servers.stop("postgres")
    site.let_go("one")
    site.wait_ended("one/1", 1)
    site.start_server("postgres")
    site.wait("the second step", lambda: site.called("two/1"))
    renewals = (
        "SELECT count(*) FROM outlast_worker WHERE renewed_at > (SELECT max(at) FROM outlast_transition) + interval '4 seconds'"
    )
    site.wait("the parent to have looked for longer than it lets a doubt stand", lambda: site.rows(renewals) == [(1,)])
    site.let_go("two")
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["succeeded"]
    site.assert_sound(1)


@pytest.mark.req("T1", "A7")
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_what_a_neighbour_runs_is_left_alone(site: Site, pool: str) -> None:
    """One slot of a worker meets the absence of the database and settles its own doubts; the other slot never notices."""
    site.worker(WORKER_OPTIONS=f"-P {pool}")
    first, second = site.start(Held, key="first"), site.start(Held, key="second")
    site.wait("the steps", lambda: len(site.called("two/1")) == 2)
    site.servers.stop("postgres")
    site.let_go("first")
    site.wait_ended("two/1", 1)
    site.start_server("postgres")
    more = site.start(Three)
    site.wait_complete(first, more)
    site.let_go("second")
    site.wait_complete(second)
    assert [site.attempts(run, "two") for run in (first, second)] == [["succeeded"]] * 2
    site.assert_sound(3)


@pytest.mark.req("T1")
def test_a_result_that_is_ready_while_the_database_is_away_is_kept(site: Site, supervised: Callable[[], Any]) -> None:
    runs = [site.start(Held) for _ in range(2)]
    site.wait("the steps", lambda: len(site.called("two/1")) == 2)
    site.servers.stop("postgres")
    site.let_go()
    site.wait_ended("two/1", 2)
    site.start_server("postgres")
    site.wait("the end of the workflows", supervised)
    assert [site.attempts(run, "two") for run in runs] == [["succeeded"]] * 2
    site.assert_sound(2)
