"""An activity that does not return: its own timeout interrupts it; where nothing interrupts it, its process is ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.support.chaosapp.flows import Hanging, Stuck, Three
from tests.support.processes import Site


@pytest.mark.req("B8", "T1")
def test_the_timeout_interrupts(site: Site, measured: Callable[[str, float], None]) -> None:
    worker = site.worker()
    began = site.start(Hanging)
    site.wait("the step", lambda: site.called("step/1"))
    measured("from the start of an attempt of 1 s that hangs to the end", site.wait_complete(began, seconds=15))
    assert site.attempts(began, "step") == ["failed", "succeeded"]
    assert site.rows("SELECT error_code FROM outlast_attempt WHERE workflow_id = %s AND number = 1", began) == [
        ("ACTIVITY_TIMEOUT",)
    ]
    calls = site.called("step/1")
    assert os.path.exists(f"/proc/{calls[0]['pid']}")  # noqa: PTH110 - it was interrupted, not killed
    assert "is killed" not in worker.output()
    site.assert_sound(1)


@pytest.mark.req("B8", "T1")
def test_what_cannot_be_interrupted_is_killed(site: Site, measured: Callable[[str, float], None]) -> None:
    worker = site.worker()
    run = site.start(Stuck)
    site.wait("the step", lambda: site.called("step/1"))
    measured("from the start of an attempt of 1 s that is stuck to the end", site.wait_complete(run, seconds=20))
    worker.wait_for("did not stop at its timeout; it is killed")
    assert site.attempts(run, "step") == ["timed_out", "succeeded"]
    more = [site.start(Three) for _ in range(4)]
    site.wait_complete(*more)
    site.assert_sound(5)


@pytest.mark.req("B8", "T1")
def test_a_child_that_is_frozen_is_ended_at_its_timeout(site: Site) -> None:
    site.worker()
    run = site.start(Hanging)
    site.wait("the step", lambda: site.called("step/1"))
    os.kill(site.called("step/1")[0]["pid"], signal.SIGSTOP)
    site.wait_complete(run, seconds=20)
    assert site.attempts(run, "step") == ["timed_out", "succeeded"]
    site.assert_sound(1)


@pytest.mark.req("B8", "A7")
def test_under_threads_the_clock_ends_the_attempt(site: Site) -> None:
    """Nothing interrupts Python code in a thread: the sweep fences the attempt, and another thread goes on."""
    site.worker(WORKER_OPTIONS="-P threads")
    site.beat()
    run = site.start(Stuck)
    site.wait_complete(run, seconds=20)
    assert site.attempts(run, "step") == ["timed_out", "succeeded"]
    site.assert_sound(1)
