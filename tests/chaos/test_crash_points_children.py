"""Killed at every point of a run with children, and told again: each item once, each fan joined once, nothing left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

pytestmark = pytest.mark.req("G4", "T1")

STORY = "fanning"
ITEMS = 2
#: The commits and statements of children; each kind of point is met so often.
OURS = {
    "park", "open fan", "count children", "count branches", "take branches", "start", "lock fan", "join fan", "close fan", "wake", "end",
    "move", "stop branches", "owe children", "children ended", "cancel", "child stopped", "signal", "settled", "close",
}  # fmt: skip
TIMES = 2


class Teller(telling.Teller):
    """And judges the children."""

    def judge(self, why: str) -> None:
        ((run, status, result),) = self.site.rows("SELECT id, status, result FROM outlast_workflow WHERE key = %s", self.key)
        assert (status, result["succeeded"]) == ("complete", ITEMS), why
        kids = self.site.rows("SELECT flow_name, status FROM outlast_workflow WHERE parent_id = %s", run)
        assert sorted(kids)[:ITEMS] == [("chaos-fanning.each", "complete")] * ITEMS, why
        leaves = [status for name, status in kids if name == "chaos-leaf"]
        # One was waited for. The other was asked to end with its parent: it has ended by then, one way or the other, or was never begun.
        assert "complete" in leaves and set(leaves) <= {"complete", "cancelled"} and len(leaves) <= 2, why
        done = [line["operation"] for line in journal.read(self.world, journal.DONE)]
        assert len(done) == len(set(done)), why
        assert len(done) - ITEMS in (leaves.count("complete"), len(leaves)), why
        joins = self.site.rows("SELECT count(*) FROM outlast_transition WHERE workflow_id = %s AND trigger = 'children'", run)
        assert joins == [(2,)], why
        ended = (
            "SELECT status, running, total - succeeded - cancelled - skipped FROM outlast_fan WHERE workflow_id = %s ORDER BY id"
        )
        assert self.site.rows(ended, run) == [("closed", 0, 0)] * 3, why
        assert not self.site.rows("SELECT FROM outlast_branch WHERE parent_id = %s AND counted_at IS NULL", run), why
        assert self.site.rows("SELECT owed FROM outlast_workflow WHERE id = %s", run) == [(0,)], why


@pytest.fixture
def teller(make_site: Callable[..., Site], tmp_path: Path) -> Iterator[Teller]:
    site = make_site(DISPATCHER="", SLICE_SECONDS=600)
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    try:
        yield Teller(site, nursery, tmp_path)
    finally:
        nursery.close()
    assert not site.faults()
    assert not uneven_attempts(site.rows)


def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell(STORY)
    teller.judge("undisturbed")
    needed = {
        "within open fan",
        "after park",
        "within take branches",
        "within count branches",
        "within join fan",
        "within owe children",
    }
    assert needed <= set(points), needed - set(points)
    seen: Counter[str] = Counter()
    for number, point in enumerate(points):
        seen[point] += 1
        if point.partition(" ")[2] not in OURS or seen[point] > TIMES:
            continue
        why = f"killed at {number}: {point}"
        teller.begin()
        assert teller.tell(STORY, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell(STORY)
        teller.judge(why)
