"""TERM: what runs gets the soft timeout, what has not started goes back at once, and the process ends."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.support.chaosapp.flows import Held, Load, Three
from tests.support.processes import Site


@pytest.mark.req("A7", "T1")
def test_running_work_may_end_and_the_rest_is_handed_over(site: Site, measured: Callable[[str, float], None]) -> None:
    leaving = site.worker("leaving", WORKER_CONCURRENCY="1")
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    waiting = [site.start(Three) for _ in range(10)]
    leaving.signal(signal.SIGTERM)
    leaving.wait_for("running activities have 20 s to end")
    site.worker("staying")
    site.wait_complete(*waiting)
    site.let_go()
    began = time.monotonic()
    leaving.popen.wait(19)  # long before the timeout
    measured("exit after the last step of a soft shutdown", time.monotonic() - began)
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["succeeded"]  # it was let to its end
    assert [status for name, status in site.workers() if name.startswith("leaving")] == ["stopped"]
    site.assert_sound(11)


@pytest.mark.req("A7", "T1")
def test_work_that_outlasts_the_soft_timeout_is_handed_back(site: Site, measured: Callable[[str, float], None]) -> None:
    leaving = site.worker("leaving", CHAOS_SOFT_SECONDS="2")
    site.worker("staying", WORKER_CONCURRENCY="1")
    runs = [site.start(Held) for _ in range(3)]  # one of them at least is the leaving worker's
    site.wait("the steps", lambda: len(site.called("two/1")) == 3)
    leaving.signal(signal.SIGTERM)
    began = time.monotonic()
    leaving.popen.wait(20)
    measured("exit of a soft shutdown with a timeout of 2 s", time.monotonic() - began)
    gone = site.rows("SELECT count(*) FROM outlast_attempt WHERE outcome = 'lost'")[0][0]
    assert gone == 2
    assert site.rows("SELECT count(*) FROM outlast_workflow WHERE status = 'running'") == [(1,)]
    site.let_go()
    site.wait_complete(*runs)
    site.assert_sound(3)


@pytest.mark.req("A7")
def test_asked_twice_it_ends_at_once(site: Site, measured: Callable[[str, float], None]) -> None:
    leaving = site.worker("leaving", WORKER_CONCURRENCY="1")
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    leaving.signal(signal.SIGTERM)
    leaving.wait_for("running activities have 20 s to end")
    began = time.monotonic()
    leaving.signal(signal.SIGTERM)
    leaving.popen.wait(15)
    measured("exit after the second TERM", time.monotonic() - began)
    assert site.status(run)[0] == "runnable"  # handed back, not left to a lease
    site.let_go()
    site.worker("staying")
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["lost", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("A7")
def test_a_warm_stop_waits_for_the_step_and_takes_no_other(site: Site) -> None:
    """Celery's own TERM, where REMAP_SIGTERM is not set: it waits for ever for what runs."""
    site.procs.commands["worker"] = site.procs.commands["worker"].removeprefix("env REMAP_SIGTERM=SIGQUIT ")
    leaving = site.worker("leaving", WORKER_CONCURRENCY="1")
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    leaving.signal(signal.SIGTERM)
    leaving.wait_for("Warm shutdown")
    site.let_go()
    assert leaving.popen.wait(30) == 0
    assert site.status(run)[:2] == ("runnable", "three")  # the step was let to its end, the next one not begun
    assert [status for _, status in site.workers()] == ["stopped"]
    site.worker("staying")
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["succeeded"]
    site.assert_sound(1)


def test_a_deploy_under_load(site: Site) -> None:
    """Worker after worker is replaced while work comes in."""
    runs = site.start_many(Load, [{"seconds": 0.05}] * 20)
    worker = site.worker("old")
    site.beat()
    for number in range(2):
        before = len(site.called("one/1"))
        following = site.worker(f"new{number}")
        assert worker.stop() == 0
        worker = following
        site.wait(
            "work by the new one", lambda before=before: len(site.called("one/1")) > before or len(site.called("one/1")) == 20
        )
    site.answer_load(20)
    site.wait_complete(*runs)
    assert not site.rows("SELECT * FROM outlast_attempt WHERE outcome IN ('lost', 'timed_out')")
    site.assert_sound(20)
