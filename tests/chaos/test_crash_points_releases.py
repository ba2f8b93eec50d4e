"""Killed at every point while another release becomes current: nothing is carried out under a release that the run is not pinned to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site

PINS = """
SELECT w.flow_name, t.note -> 'release' ->> 'from', t.note -> 'release' ->> 'to', t.note ->> 'restart'
FROM outlast_transition t JOIN outlast_workflow w ON w.id = t.workflow_id
WHERE w.key = %s AND t.trigger = 'pin' ORDER BY w.flow_name, t.seq
"""


class Teller(telling.Teller):
    """And judges how the story ended."""

    def judge(self, why: str) -> None:
        """All three ended under the new release, each pinned once; what was called after that was called under the new one."""
        old, new = f"{self.key}-old", f"{self.key}-new"
        rows = self.site.rows("SELECT id, flow_name, status, release FROM outlast_workflow WHERE key = %s", self.key)
        assert {(row[2], row[3]) for row in rows} == {("complete", new)}, f"{why}: {rows}"
        assert self.site.rows(PINS, self.key) == [
            ("chaos-asking", old, new, None), ("chaos-migrating", old, new, None), ("chaos-restarting", old, new, "plan"),
        ], why  # fmt: skip
        called = [(one["operation"].split("/"), one["attempt"]) for one in journal.read(self.world, "under")]
        for row in rows:
            mine = [(node, int(visit), release) for (run, node, visit), release in called if run == str(row[0])]
            expected = [("plan", 1, old)] + ([("plan", 2, new)] if row[1] == "chaos-restarting" else []) + [("act", 1, new)]
            assert [step for step, _ in itertools.groupby(mine)] == expected, f"{why}: {mine}"


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


@pytest.mark.req("T1", "I1")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell("released")
    teller.judge("undisturbed")
    assert {"before effect", "within pin", "after effect", "before move release", "within pin at rest"} <= set(points)
    for number, point in enumerate(points):
        teller.begin()
        assert teller.tell("released", fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell("released")
        teller.judge(f"killed at {number}: {point}")
