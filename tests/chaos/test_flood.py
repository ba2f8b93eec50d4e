"""A flood of agent work takes neither the slots nor the time of cleanup (K2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import flows
from tests.support.chaosapp import journal
from tests.support.chaosapp.flood import Flood, Holding
from tests.support.processes import ALIAS, Site

FLOOD = 20_000
#: What is promised: from the cancel to the end of the release.
SECONDS = 5.0


def flood(site: Site) -> None:
    for start in range(0, FLOOD, 5000):
        Flood.start_many([(f"flood-{n}", {"folder": str(site.world)}) for n in range(start, start + 5000)], using=ALIAS)


@pytest.mark.req("K2")
@pytest.mark.parametrize("own_worker", [False, True], ids=["one-worker-for-all-queues", "with-the-cleanup-worker"])
def test_a_cancel_releases_what_is_held_in_the_middle_of_a_flood(
    site: Site, measured: Callable[[str, float], None], *, own_worker: bool
) -> None:
    site.beat()
    site.worker(WORKER_OPTIONS="" if own_worker else "-Q control,agents,cleanup")
    if own_worker:
        site.cleanup()
    run = site.start(Holding, key="holding")
    site.wait("the hold", lambda: site.status(run)[0] == "waiting")
    flood(site)
    slots = 2 if own_worker else 1  # where one worker serves all queues, one of its two slots is left to cleanup
    site.wait("the flood to fill the slots", lambda: len(site.called("work/1")) >= slots)
    flows.cancel(run, reason="no longer wanted", using=ALIAS)
    took = site.wait("the release", lambda: site.status(run)[0] == "cancelled", SECONDS)
    measured("cancel to released, in a flood", took)
    assert journal.count(site.world, journal.DONE)["take/1/release/hold"] == 1
    assert site.rows("SELECT status FROM outlast_commitment") == [("released",)]
    assert len(site.called("work/1")) == slots, "the flood has taken a slot that is not its own"
    assert site.rows("SELECT count(*) FROM outlast_workflow WHERE status = 'runnable'")[0][0] > FLOOD - 50
    site.let_go()
