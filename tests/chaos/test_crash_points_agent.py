"""Killed at every commit of an agent turn, and around every call, and told again: no effect twice, nothing paid twice but the call in flight.

`OUTLAST_CRASH_POINTS=12` tells the whole story, twelve calls of a model and eight of tools; `=all` kills after each statement inside a
transaction, too, which for the record is the same as before its commit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.store import invariants
from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.agent import BILLED, CALL, CALLS, EACH, EFFECTS, READ, TOOLS
from tests.support.chaosapp.nursery import Nursery
from tests.support.obligations import FAULTS
from tests.support.processes import Site, uneven_attempts

STORY = "agent"
ALL = os.environ.get("OUTLAST_CRASH_POINTS") == "all"
USED = [call for number in sorted(TOOLS) for call in TOOLS[number]]

ENTRIES = """
SELECT j.kind, j.status, count(*)::int FROM outlast_journal j JOIN outlast_workflow w ON w.id = j.workflow_id
WHERE w.key = %s GROUP BY j.kind, j.status
"""
LEDGER = """
SELECT b.kind, b.spent, b.reserved FROM outlast_budget b JOIN outlast_workflow w ON b.workflow_id = w.id WHERE w.key = %s
"""


class Teller(telling.Teller):
    """And judges what the world has seen, what the journal says, and what was paid."""

    def judge(self, why: str, most: int) -> None:
        """`most`: so many processes have died."""
        done = journal.count(self.world, journal.DONE)
        assert done == Counter(EFFECTS), f"{why}: {done}"
        billed = journal.count(self.world, BILLED)
        again = {number: count - 1 for number, count in billed.items() if count > 1}
        assert len(billed) == CALLS, f"{why}: {billed}"
        assert sum(again.values()) <= most, f"{why}: {again} were paid again"
        looks = journal.count(self.world, READ)
        assert looks.total() <= sum(tool == "look" for tool, _ in USED) + most, f"{why}: {looks}"
        assert not self.site.rows(FAULTS), why
        for query in (invariants.UNBALANCED, invariants.UNSETTLED):
            assert not self.site.rows(query), why
        ((status, owed, result),) = self.site.rows("SELECT status, owed, result FROM outlast_workflow WHERE key = %s", self.key)
        expected = [{"seen" if tool == "look" else "receipt": what} for tool, what in USED]
        assert (status, owed, result) == ("complete", 0, expected), why
        found = {(kind, state): count for kind, state, count in self.site.rows(ENTRIES, self.key)}
        lost = found.pop(("model", "lost"), 0)
        assert lost + found.pop(("tool", "lost"), 0) <= most, f"{why}: {found}"
        assert found == {("model", "done"): CALLS, ("tool", "done"): len(USED)}, f"{why}: {found}"
        ledger = {kind: (spent, reserved) for kind, spent, reserved in self.site.rows(LEDGER, self.key)}
        assert ledger["model_tokens"] == (CALLS * CALL + lost * EACH, 0), f"{why}: {ledger}, {lost} lost"
        assert ledger["model_calls"] == (CALLS + lost, 0), why
        assert sum(again.values()) <= lost, f"{why}: what was paid again is charged"


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


@pytest.mark.failure("worker dies in the middle of an agent's turn")
@pytest.mark.req("T1", "O1", "B5", "A5", "N1")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell(STORY)
    teller.judge("undisturbed", 0)
    assert points.count("after call") == CALLS + len(USED)
    assert points.count("after journal begin") == points.count("after journal record") == CALLS + len(USED)
    for number, point in enumerate(points):
        if point.startswith("within") and not ALL:
            continue
        why = f"killed at {number}: {point}"
        teller.begin()
        assert teller.tell(STORY, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.tell(STORY)
        teller.judge(why, 1)
