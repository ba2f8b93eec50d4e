"""Killed at every point of a run with effects, and told again: the provider has done each thing once, and nothing is owed.

The points are those of the record (before and after each commit, after each statement inside one) and those of the outside: right before
and right after each call. Beside the kills, the answer of each call is cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.nursery import Nursery
from tests.support.obligations import FAULTS
from tests.support.processes import Site, uneven_attempts

#: What the provider must have done at the end of each story, each thing once; and that end.
BOOKED = ("book/1/seat", "book/1/meal", "hold/1", "hold/1/release/cabin")
UNDONE = (*BOOKED, "hold/1/compensate", "book/1/seat/compensate")
DONE = {
    "voyage": ((*BOOKED, "sail/1"), "complete"),
    "voyage cancelled": (UNDONE, "cancelled"),
    "voyage cancelled in flight": (UNDONE, "cancelled"),
}
#: What the others share with it is not told again.
FIRST = "voyage"
STATUSES = {
    "complete": {"succeeded"},
    "cancelled": {"succeeded", "compensated"},
}


class Teller(telling.Teller):
    """And judges what the outside has seen, and what the record says of it."""

    def sound(self, why: str) -> None:
        """What must hold at every moment holds, also where a process has just died."""
        found = self.site.rows(FAULTS)
        assert not found, f"{why}: {found}"

    def judge(self, story: str, why: str) -> None:
        expected, end = DONE[story]
        done = journal.count(self.world, journal.DONE)
        assert done == Counter(expected), f"{why}: {done - Counter(expected)} too often, {Counter(expected) - done} missing"
        self.sound(why)
        ((run, status, owed),) = self.site.rows("SELECT id, status, owed FROM outlast_workflow WHERE key = %s", self.key)
        assert (status, owed) == (end, 0), why
        known = self.site.rows("SELECT id, status FROM outlast_operation WHERE workflow_id = %s", run)
        assert {str(row[0]).partition("/")[2] for row in known} == set(expected), f"{why}: {known}"
        assert {row[1] for row in known} == STATUSES[end], f"{why}: {known}"
        held = self.site.rows("SELECT status FROM outlast_commitment WHERE workflow_id = %s", run)
        assert held == [("released",)], f"{why}: {held}"


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


def undisturbed(teller: Teller, story: str) -> list[str]:
    teller.begin()
    points = teller.tell(story)
    teller.judge(story, "undisturbed")
    return points


def alike(points: list[str], others: list[str]) -> list[str]:
    """The beginning that both have."""
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(points, others, strict=False))]


@pytest.mark.failure("worker dies after the effect, before its result is recorded")
@pytest.mark.req("T1", "B1", "B5", "B7", "J1")
@pytest.mark.parametrize("story", DONE)
def test_killed_at_every_point(teller: Teller, story: str) -> None:
    points = undisturbed(teller, story)
    assert {"before fly", "after fly", "before call", "after call", "after look", "after settle"} <= set(points)
    assert points.count("after call") == len(DONE[story][0])
    shared = [] if story == FIRST else alike(points, undisturbed(teller, FIRST))
    for number, point in list(enumerate(points))[len(shared) :]:
        why = f"killed at {number}: {point}"
        teller.begin()
        assert teller.tell(story, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.sound(why)
        teller.tell(story)
        teller.judge(story, why)


@pytest.mark.req("T1", "B5", "B7")
@pytest.mark.parametrize("story", DONE)
def test_the_connection_is_cut_at_every_call(teller: Teller, story: str) -> None:
    """Before the call, which then did not happen; after it, when nobody hears that it did."""
    points = undisturbed(teller, story)
    calls = [number for number, point in enumerate(points) if point in ("before call", "after call")]
    for number in calls:
        teller.begin()
        teller.tell(story, cut=number)
        teller.judge(story, f"cut at {number}: {points[number]}")


@pytest.mark.req("T1", "A7", "B5", "B7")
@pytest.mark.parametrize("call", ["hold", "compensation", "release"])
def test_the_recovery_itself_is_killed_at_every_point(teller: Teller, call: str) -> None:
    """The first process dies right after a call; the second at every point of its own until it knows of it; the third ends the run."""
    story = "voyage cancelled"
    first = [number for number, point in enumerate(undisturbed(teller, story)) if point == "after call"]
    fatal = first[{"hold": 2, "compensation": 3, "release": 4}[call]]
    teller.begin()
    teller.tell(story, fatal=fatal)
    points = teller.tell(story)
    back = min(points.index(one) for one in ("before put back looks", "before put back") if one in points)
    until = points.index("after settle", back)  # what else was due may have been done before
    for number, point in enumerate(points[: until + 1]):
        why = f"recovery of {call} killed at {number}: {point}"
        teller.begin()
        teller.tell(story, fatal=fatal)
        assert teller.tell(story, fatal=number) == points[: number + 1]
        teller.sound(why)
        teller.tell(story)
        teller.judge(story, why)
