"""Killed at every point of a run, and told again by another process: it ends right, with every effect once.

The points come from a run that nobody disturbs: before and after each commit, and after each statement inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

#: For each story: how often each operation is done over its workflows, and how those end.
COPIES = {"everything": 1, "bundle": 3, "control": 1, "moved": 1, "moved at wake": 1}
ENDS = {
    "everything": {"complete"},
    "bundle": {"complete"},
    "control": {"superseded", "complete"},
    "moved": {"complete"},
    "moved at wake": {"complete"},
}
#: The stories whose runs begin under version 1 of their flow and end under version 2.
MOVED = {"moved", "moved at wake"}


class Teller(telling.Teller):
    """And judges how the story ended."""

    def judge(self, story: str, why: str) -> None:
        """Ended right, each effect once by its operation id, no call beyond the attempts on record."""
        done, called = journal.count(self.world, journal.DONE), journal.count(self.world, journal.CALLED)
        assert set(done.values()) == {COPIES[story]}, f"{why}: {done}"
        assert set(called) == set(done), why
        ends = self.site.rows("SELECT DISTINCT status FROM outlast_workflow WHERE key LIKE %s", f"{self.key}%")
        assert {row[0] for row in ends} == ENDS[story], f"{why}: {ends}"
        versions = self.site.rows("SELECT flow_version, epoch FROM outlast_workflow WHERE key LIKE %s", f"{self.key}%")
        assert story not in MOVED or versions == [(2, 1)], f"{why}: {versions}"
        recorded = self.site.rows(
            "SELECT sum(a.attempt) FROM outlast_activity a JOIN outlast_workflow w ON w.id = a.workflow_id WHERE w.key LIKE %s",
            f"{self.key}%",
        )
        assert sum(called.values()) <= recorded[0][0], why


@pytest.fixture
def teller(make_site: Callable[..., Site], tmp_path: Path) -> Iterator[Teller]:
    # One slice and no hints: what a run does depends on nothing but the story.
    site = make_site(DISPATCHER="", SLICE_SECONDS=600)
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    try:
        yield Teller(site, nursery, tmp_path)
    finally:
        nursery.close()
    assert not site.faults()
    assert not uneven_attempts(site.rows)


@pytest.mark.req("T1", "A6", "B1", "F3", "G2")
@pytest.mark.parametrize("story", COPIES)
def test_killed_at_every_point(teller: Teller, story: str) -> None:
    teller.begin()
    points = teller.tell(story)
    teller.judge(story, "undisturbed")
    assert len(points) > 30
    assert story != "everything" or {"before open", "after open"} <= set(points)
    assert story not in MOVED or {"before migrate", "within migrate", "after migrate"} <= set(points)
    for number, point in enumerate(points):
        teller.begin()
        assert teller.tell(story, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell(story)
        teller.judge(story, f"killed at {number}: {point}")


@pytest.mark.req("T1", "A7")
def test_the_recovery_itself_is_killed_at_every_point(teller: Teller) -> None:
    """The first process dies with work in its hands; the second at every point of its own; the third ends the work."""
    teller.begin()
    first = teller.tell("bundle").index("before advance")
    teller.begin()
    teller.tell("bundle", fatal=first)
    points = teller.tell("bundle")
    assert {"before bury workers", "before put back", "after put back"} <= set(points)
    for number, point in enumerate(points[: points.index("before advance")]):
        teller.begin()
        teller.tell("bundle", fatal=first)
        assert teller.tell("bundle", fatal=number) == points[: number + 1]
        teller.tell("bundle")
        teller.judge("bundle", f"recovery killed at {number}: {point}")
