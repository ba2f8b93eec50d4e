"""Killed at every point of a run whose deadlines pass one after another: each is handled and told once, what was held is given back once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.chaosapp.patience import DONE, EXPIRED
from tests.support.obligations import FAULTS
from tests.support.processes import Site, uneven_attempts

EVENTS = """
SELECT e.payload->>'kind', e.payload->>'name'
FROM outlast_event e JOIN outlast_workflow w ON w.id::text = e.key WHERE w.key = %s AND e.type = 'deadline.expired' ORDER BY 1, 2
"""
TIMERS = """
SELECT t.kind, t.name, t.status, t.untold FROM outlast_timer t JOIN outlast_workflow w ON w.id = t.workflow_id
WHERE w.key = %s AND (t.status <> 'handled' OR t.untold)
"""


class Teller(telling.Teller):
    """And judges how the story ended."""

    def judge(self, why: str) -> None:
        done = journal.count(self.world, journal.DONE)
        assert done == Counter(DONE), f"{why}: {done}"
        assert not self.site.rows(FAULTS), why
        assert self.site.rows(EVENTS, self.key) == EXPIRED, why
        assert self.site.rows(TIMERS, self.key) == [], why
        ((status, owed),) = self.site.rows("SELECT status, owed FROM outlast_workflow WHERE key = %s", self.key)
        assert (status, owed) == ("complete", 0), why


@pytest.fixture
def teller(make_site: Callable[..., Site], tmp_path: Path) -> Iterator[Teller]:
    # One slice and no hints, and no events of earlier runs that grow old: what a run does depends on nothing but the story.
    site = make_site(DISPATCHER="", SLICE_SECONDS=600, EVENT_UNCLAIMED_SECONDS=10**8)
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    try:
        yield Teller(site, nursery, tmp_path)
    finally:
        nursery.close()
    assert not site.faults()
    assert not uneven_attempts(site.rows)


@pytest.mark.req("T1", "B8", "L1")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell("patience")
    teller.judge("undisturbed")
    assert {"after fire timers", "after effect", "after tell of deadline", "after pass"} <= set(points), sorted(set(points))
    for number, point in enumerate(points):
        teller.begin()
        assert teller.tell("patience", fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell("patience")
        teller.judge(f"killed at {number}: {point}")
