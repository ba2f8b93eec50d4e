"""Messages are hints: all of them lost, each delivered five times, the broker gone for a while. Only latency changes."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable

import pytest
import redis
from django.test import override_settings

from tests.support.chaosapp.flows import Held, Load, Three
from tests.support.processes import Site

COUNT = 30


def under_load(site: Site) -> list[object]:
    """Work of every kind, some of it done."""
    runs = site.start_many(Load, [{"seconds": 0.1}] * COUNT)
    site.wait("some work to be done", lambda: len(site.called("four/1")) + len(site.called("one/1")) >= 3)
    site.answer_load(COUNT)
    return runs


@pytest.mark.failure("broker loses everything")
@pytest.mark.req("T1", "A7")
def test_the_broker_loses_everything(site: Site, measured: Callable[[str, float], None]) -> None:
    worker = site.worker()
    site.beat()
    runs = under_load(site)
    with redis.Redis.from_url(site.servers.redis_url) as client:
        for _ in range(5):
            before = len(site.open_runs())
            client.flushall()
            site.wait("more to be done", lambda before=before: len(site.open_runs()) < before)
        client.flushall()
    measured("from the last FLUSHALL to the end of the work", site.wait_complete(*runs))
    assert worker.is_alive()
    site.assert_sound(COUNT)


@pytest.mark.req("T1")
def test_one_lost_message_costs_a_second_or_two(site: Site, measured: Callable[[str, float], None]) -> None:
    """The start's hint is never sent: the clock finds the work."""
    site.worker()
    site.beat()
    with override_settings(OUTLAST={"DISPATCHER": ""}):
        runs = [site.start(Three) for _ in range(5)]
    took = site.wait_complete(*runs)
    measured("the work of a lost hint is done after", took)
    assert took < 10
    site.assert_sound(5)


@pytest.mark.req("T1")
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_the_broker_goes_away_and_comes_back(site: Site, how: str) -> None:
    worker, beat = site.worker(), site.beat()
    runs = under_load(site)
    if how == "kill":
        site.servers.kill("redis")
    else:
        site.servers.stop("redis")
    more = [site.start(Three, key=f"meanwhile-{number}") for number in range(3)]  # a start does not need the broker
    site.start_server("redis")
    site.wait_complete(*runs, *more)
    assert worker.is_alive()
    assert beat.is_alive()
    site.assert_sound(COUNT + 3)


@pytest.mark.req("T1", "A7")
def test_a_broker_that_hangs_costs_no_lease(make_site: Callable[..., Site]) -> None:
    """It takes connections and answers nothing: whoever publishes waits for a time-out, and the lease is kept all the same."""
    site = make_site(LEASE_SECONDS=3.0, LEASE_RENEW_SECONDS=1.0)
    worker = site.worker()
    runs = [site.start(Held) for _ in range(2)]
    site.wait("the steps", lambda: len(site.called("two/1")) == 2)
    victim = site.called("two/1")[0]
    os.kill(site.servers.redis_pid, signal.SIGSTOP)
    try:
        os.kill(victim["pid"], signal.SIGKILL)  # what it worked on is put back by the parent, which publishes that
        renewed = "SELECT count(*) FROM outlast_worker WHERE status = 'alive' AND renewed_at > started_at + interval '9 seconds'"
        site.wait("the lease to be renewed three times over", lambda: site.rows(renewed) == [(1,)], seconds=30)
    finally:
        os.kill(site.servers.redis_pid, signal.SIGCONT)
    site.let_go()
    site.wait_complete(*runs)
    assert worker.is_alive()
    assert [status for _, status in site.workers()] == ["alive"], "the lease was lost"
    lost = uuid.UUID(victim["operation"].partition("/")[0])
    assert sorted(site.attempts(lost, "two")) == ["lost", "succeeded"]
    assert [site.attempts(run, "two") for run in runs if run != lost] == [["succeeded"]]
    site.assert_sound(2)


@pytest.mark.req("T1")
def test_callers_do_not_wait_again_and_again_for_a_broker_that_hangs(site: Site, measured: Callable[[str, float], None]) -> None:
    site.worker()
    site.beat()
    os.kill(site.servers.redis_pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        runs = [site.start(Three) for _ in range(3)]
        took = time.monotonic() - began
    finally:
        os.kill(site.servers.redis_pid, signal.SIGCONT)
    measured("three starts with a broker that hangs", took)
    assert took < 8
    site.wait_complete(*runs)
    site.assert_sound(3)


@pytest.mark.req("T1")
def test_every_message_comes_five_times(site: Site) -> None:
    site.worker(CHAOS_COPIES="5")
    site.worker("other", CHAOS_COPIES="5")
    site.beat(CHAOS_COPIES="5")
    runs = under_load(site)
    site.wait_complete(*runs)
    assert not site.rows("SELECT * FROM outlast_attempt WHERE outcome NOT IN ('succeeded', 'failed')")
    site.assert_sound(COUNT)
