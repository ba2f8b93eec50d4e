"""A lapse of time with real workers: 45 minutes in which one deadline after another passes, in the seconds that workers need for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from flows.testing import timelapse
from tasks.testing import CannotCrash, kit
from tests.support.chaosapp import journal
from tests.support.chaosapp.flows import LongNap
from tests.support.chaosapp.patience import DONE, EXPIRED, Patience
from tests.support.processes import ALIAS, Site


@pytest.mark.req("B8", "C3", "L1", "T1")
def test_a_run_is_carried_through_its_deadlines_by_real_workers(site: Site, measured: Callable[[str, float], None]) -> None:
    with timelapse(using=ALIAS) as lapse:
        site.worker()
        site.cleanup()
        site.beat()
        other = site.start(LongNap)
        run = site.start(Patience)
        lapse.until(run, status="waiting", node="ask")
        assert timedelta(minutes=4) < lapse.to_next_timer(run) <= timedelta(minutes=5)
        assert site.status(run) == ("waiting", "ask", "WAITING"), "a breach goes on"
        lapse.by(minutes=11)
        assert (site.status(run), len(site.called("look/2"))) == (("waiting", "ask", "WAITING"), 1)
        measured("the rest of 45 minutes", site.wait("the end", lambda: lapse.until(run, status="complete") is None))
        assert site.status(other)[0] == "complete", "the clock is everybody's"
    events = site.rows("SELECT payload FROM outlast_event WHERE type = 'deadline.expired' AND key = %s", str(run))
    assert sorted((body["kind"], body["name"]) for (body,) in events) == EXPIRED
    mine = [line["operation"] for line in journal.read(site.world, journal.DONE) if line["operation"].startswith(str(run))]
    assert Counter(operation.partition("/")[2] for operation in mine) == Counter(DONE)
    assert not site.faults()


@pytest.mark.req("T1", "V3")
def test_the_kit_of_projects_waits_for_real_workers(site: Site) -> None:
    with kit(real=True, using=ALIAS) as outlast:
        site.worker()
        site.beat()
        run = site.start(LongNap)
        outlast.until(run, status="waiting")
        with pytest.raises(CannotCrash, match="processes of their own"):
            outlast.run(crash_at=0)
        outlast.until(run, status="complete")
        outlast.assert_operations(run)
    assert not site.faults()
