"""Killed at every point of a run whose tools ask people, and told again: each call that was allowed is made once, and nothing is owed.

The points are those of the record (before and after each commit, after each statement inside one) and those of the outside: right before
and right after each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.obligations import FAULTS
from tests.support.processes import Site, uneven_attempts

STORY = "guarded"
CALLS = ("rope", "sail", "rope and sail")


class Teller(telling.Teller):
    """And judges what the outside has seen, and what the record says of it."""

    def judge(self, why: str) -> None:
        done = journal.count(self.world, journal.DONE)
        assert done == Counter(CALLS), f"{why}: {done - Counter(CALLS)} too often, {Counter(CALLS) - done} missing"
        found = self.site.rows(FAULTS)
        assert not found, f"{why}: {found}"
        ((run, status, owed, result),) = self.site.rows(
            "SELECT id, status, owed, result FROM outlast_workflow WHERE key = %s", self.key
        )
        assert (status, owed, result) == ("complete", 0, list(CALLS)), why
        asked = self.site.rows(
            "SELECT candidate->'value'->'arguments'->>'what', status, used_by, call FROM outlast_approval_request "
            "WHERE workflow_id = %s ORDER BY id",
            run,
        )
        assert asked == [(what, "consumed", 1, 1) for what in CALLS], f"{why}: each was asked about once, {asked}"
        known = self.site.rows("SELECT status, kind FROM outlast_operation WHERE workflow_id = %s", run)
        assert known == [("succeeded", "effect")] * len(CALLS), f"{why}: {known}"


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


@pytest.mark.failure("worker dies after the effect, before its result is recorded")
@pytest.mark.req("T1", "F6", "B5", "B7")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell(STORY)
    teller.judge("undisturbed")
    assert {"before begin tool", "after begin tool", "before call", "after call", "after ask people", "within next turn"} <= set(
        points
    )
    assert points.count("after call") == len(CALLS)
    for number, point in enumerate(points):
        why = f"killed at {number}: {point}"
        teller.begin()
        assert teller.tell(STORY, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell(STORY)
        teller.judge(why)


@pytest.mark.req("T1", "F6", "B5", "B7")
def test_the_connection_is_cut_at_every_call(teller: Teller) -> None:
    """Before the call, which then did not happen; after it, when nobody hears that it did."""
    teller.begin()
    points = teller.tell(STORY)
    for number, point in enumerate(points):
        if point in ("before call", "after call"):
            teller.begin()
            teller.tell(STORY, cut=number)
            teller.judge(f"cut at {number}: {point}")
