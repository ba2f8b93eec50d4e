"""SIGKILL: of a worker in the middle of a step, of its parent alone, of one of its children."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.support.chaosapp.flows import Fatal, Held, Three
from tests.support.processes import PATIENCE, Site

LEASE = 10.0


def start_held(site: Site) -> object:
    """A workflow in the middle of its second step."""
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    return run


def wait_again(site: Site, seconds: float = PATIENCE) -> float:
    """Until another attempt at the step has begun."""
    return site.wait("the step to be taken up", lambda: len(site.called("two/1")) == 2, seconds)


@pytest.mark.req("T1", "A7", "B1")
def test_taken_up_at_once_when_the_worker_restarts(site: Site, measured: Callable[[str, float], None]) -> None:
    worker = site.worker()
    run = start_held(site)
    worker.kill()
    site.worker(ready=False)
    took = wait_again(site, LEASE)  # a lease that had to run out would take as long
    measured("taken up after SIGKILL and restart (with the start of Celery)", took)
    site.let_go()
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["lost", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("T1", "A7")
def test_taken_up_within_the_lease_when_it_does_not_restart(site: Site, measured: Callable[[str, float], None]) -> None:
    worker = site.worker()
    run = start_held(site)
    other = site.worker("other")
    site.beat()
    worker.kill()
    took = wait_again(site)
    measured("taken up after SIGKILL without a restart (lease 10 s)", took)
    assert took < LEASE + 2
    site.let_go()
    site.wait_complete(run)
    assert other.is_alive()
    assert site.attempts(run, "two") == ["lost", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("T1", "B1")
def test_taken_up_at_once_when_a_child_dies(site: Site, measured: Callable[[str, float], None]) -> None:
    site.worker()
    run = start_held(site)
    os.kill(site.called("two/1")[0]["pid"], signal.SIGKILL)
    took = wait_again(site, LEASE)
    measured("taken up after SIGKILL of a child", took)
    assert took < 2
    site.let_go()
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["lost", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("T1", "B1")
def test_the_only_slot_is_there_again_at_once(site: Site, measured: Callable[[str, float], None]) -> None:
    """An activity takes its process down; no other child is there to take the work up, so a new one must be."""
    site.worker(WORKER_CONCURRENCY="1")
    run = site.start(Fatal)
    site.wait("the step", lambda: site.called("step/1"))
    took = site.wait_complete(run)
    measured("done after SIGKILL of the only child", took)
    assert took < 4  # Celery's own look at its children comes every five seconds
    assert site.attempts(run, "step") == ["lost", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("T1", "A7")
def test_children_of_a_dead_parent_do_not_go_on_beside_its_successor(site: Site) -> None:
    """Only the parent is killed: what its children still run is taken up by the next worker, and ends right once."""
    worker = site.worker()
    run = start_held(site)
    worker.kill(group=False)
    site.worker()
    wait_again(site, LEASE)
    site.let_go()
    site.wait_complete(run)
    more = [site.start(Three) for _ in range(5)]
    site.wait_complete(*more)
    assert site.attempts(run, "two") == ["lost", "succeeded"]
    site.assert_sound(6)


@pytest.mark.failure("worker dies before the activity starts")
@pytest.mark.req("T1")
def test_killed_between_claim_and_start(site: Site) -> None:
    """A queue full of work, and a worker that is killed again and again while it claims: all of it ends, each effect once."""
    runs = site.start_many(Three, [{}] * 60)
    site.beat()
    for _ in range(3):
        before = len(site.open_runs())
        worker = site.worker(ready=False)
        site.wait("some of the work to be done", lambda before=before: len(site.open_runs()) < before)
        worker.kill()
    site.worker()
    site.wait_complete(*runs)
    site.assert_sound(60)
