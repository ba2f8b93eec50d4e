"""Killed at every point of a run that asks for a file: the answer stands once, and its file is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.asked import CONTENT
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

ANSWERS = """
SELECT v.values->'contract'->>'path', o.evidence->'answer'->'contract'->>'path', w.result->'contract'->>'path', w.status, r.status
FROM outlast_workflow w JOIN outlast_approval_request r ON r.workflow_id = w.id JOIN outlast_wait o ON o.id = r.wait_id
JOIN outlast_review v ON v.request_id = r.id AND v.refused = '' WHERE w.key = %s
"""


class Teller(telling.Teller):
    """And judges how the story ended."""

    def judge(self, why: str) -> int:
        """How many files are left besides the one that the answer names."""
        ((said, heard, result, status, request),) = self.site.rows(ANSWERS, self.key)
        assert said == heard == result, why
        assert (status, request) == ("complete", "answered"), why
        done = journal.count(self.world, journal.DONE)
        assert (len(done), set(done.values())) == (2, {1}), why
        kept = [path for path in Path(self.world, "outlast").rglob("*") if path.is_file()]
        assert Path(self.world, said) in kept, why
        assert all(path.read_bytes() == CONTENT for path in kept), why
        return len(kept) - 1


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


@pytest.mark.req("T1", "C6")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell("asked")
    assert teller.judge("undisturbed") == 0
    assert {"before answer ask", "within answer request", "within wake", "after answer ask"} <= set(points), points
    left, last = set[int](), points.index("before answer ask")
    for number, point in enumerate(points):
        teller.begin()
        assert teller.tell("asked", fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell("asked")
        if teller.judge(f"killed at {number}: {point}"):
            left.add(number)
    assert last in left, "a file that is kept, and whose answer is not committed, is left over"
    assert max(left) == last, "and none after that"
