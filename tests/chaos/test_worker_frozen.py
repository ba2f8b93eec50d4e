"""SIGSTOP of a whole worker past its lease, then SIGCONT: the old owner's commit is refused, and the work ends right once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.support.chaosapp import journal
from tests.support.chaosapp.flows import Held
from tests.support.processes import Site, family


@pytest.mark.failure("lease expires under a slow worker")
@pytest.mark.req("T1", "A7", "B1")
def test_the_old_owner_comes_back_too_late(make_site: Callable[..., Site]) -> None:
    site = make_site(LEASE_SECONDS=3.0, LEASE_RENEW_SECONDS=1.0)
    frozen = site.worker("frozen")
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    for pid in family(frozen.pid):
        os.kill(pid, signal.SIGSTOP)
    site.worker("other")
    site.wait("the step to be taken up", lambda: len(site.called("two/1")) == 2, seconds=3.0 + 2.0)
    assert ("frozen@", "dead") in [(name.partition("@")[0] + "@", status) for name, status in site.workers()]
    # Both attempts may go on now; the frozen one first ends what it had begun, and must not be believed.
    for pid in family(frozen.pid):
        os.kill(pid, signal.SIGCONT)
    site.let_go()
    site.wait_complete(run)
    site.wait("both attempts to end", lambda: len(journal.read(site.world, journal.ENDED)) == 2)
    query = "SELECT number, outcome, late_result IS NOT NULL FROM outlast_attempt WHERE workflow_id = %s AND node = 'two' ORDER BY number"
    site.wait("the evidence", lambda: site.rows(query, run) == [(1, "lost", True), (2, "succeeded", False)])
    assert site.rows("SELECT result->>'number' FROM outlast_activity WHERE workflow_id = %s AND node = 'two'", run) == [("2",)]
    site.assert_sound(1)
    # It goes on as a new incarnation.
    site.wait(
        "a new incarnation", lambda: [status for name, status in site.workers() if name.startswith("frozen")] == ["dead", "alive"]
    )


@pytest.mark.req("A7")
def test_frozen_for_less_than_its_lease_keeps_its_work(site: Site) -> None:
    worker = site.worker()
    site.worker("other")
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    pids = (
        family(worker.pid) if site.called("two/1")[0]["pid"] in family(worker.pid) else family(site.procs.processes["other"].pid)
    )
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    ticks = site.rows("SELECT ticked_at FROM outlast_tick")
    site.wait("the clock to look twice", lambda: len({*ticks, *site.rows("SELECT ticked_at FROM outlast_tick")}) > 1)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    site.let_go()
    site.wait_complete(run)
    assert site.attempts(run, "two") == ["succeeded"]
    site.assert_sound(1)
