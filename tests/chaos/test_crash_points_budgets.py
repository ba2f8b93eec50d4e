"""Killed at every point of a run under budgets, and told again: what the provider billed is never more than what the ledgers say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.store import invariants
from tests.support import telling
from tests.support.chaosapp import journal
from tests.support.chaosapp.budgets import ATTEMPT, CALL, METERED
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

STORY = "metered"
#: What the undisturbed run spends: two thoughts, which say what they used, and a check that says nothing of it.
UNDISTURBED = 2 * CALL + CALL

LEDGERS = """
SELECT b.spent, b.reserved FROM outlast_budget b JOIN outlast_workflow w ON b.workflow_id = w.id OR b.intent_id = w.intent_id
WHERE w.key = %s AND b.kind = 'model_tokens'
"""


class Teller(telling.Teller):
    """And judges what the provider billed, and what the ledgers say of it."""

    def sound(self, why: str) -> None:
        """Holds at every moment, also where a process has just died: nothing that was billed is neither spent nor set aside."""
        for query in (invariants.UNBALANCED, invariants.UNSETTLED):
            assert not self.site.rows(query), why
        for spent, reserved in self.site.rows(LEDGERS, self.key):
            assert spent + reserved >= self.billed, f"{why}: {self.billed} billed, {spent} spent, {reserved} set aside"

    @property
    def billed(self) -> int:
        return CALL * sum(journal.count(self.world, METERED).values())

    def judge(self, why: str) -> None:
        self.sound(why)
        ((run, status),) = self.site.rows("SELECT id, status FROM outlast_workflow WHERE key = %s", self.key)
        assert status == "complete", why
        lost = len(self.site.rows("SELECT FROM outlast_attempt WHERE workflow_id = %s AND outcome = 'lost'", run))
        ledgers = self.site.rows(LEDGERS, self.key)
        assert len(ledgers) == 2, why
        for spent, reserved in ledgers:
            assert reserved == 0, why
            assert max(self.billed, UNDISTURBED) <= spent <= UNDISTURBED + lost * ATTEMPT, f"{why}: {spent} spent, {lost} lost"
        reviews = self.site.rows("SELECT spent FROM outlast_budget WHERE workflow_id = %s AND kind = 'human_reviews'", run)
        assert reviews == [(1,)], why


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


@pytest.mark.req("N1", "T1")
def test_killed_at_every_point(teller: Teller) -> None:
    teller.begin()
    points = teller.tell(STORY)
    teller.judge("undisturbed")
    assert {"before pass", "after pass", "before spend", "after spend", "within settle budgets", "after raise budget"} <= set(
        points
    )
    for number, point in enumerate(points):
        why = f"killed at {number}: {point}"
        teller.begin()
        assert teller.tell(STORY, fatal=number) == points[: number + 1], "the run is not the same every time"
        teller.sound(why)
        teller.tell(STORY)
        teller.judge(why)


@pytest.mark.req("N1", "A7")
def test_the_recovery_itself_is_killed_at_every_point(teller: Teller) -> None:
    """The first process dies between the reservation and its end; the second at every point of putting that back; the third ends the run."""
    teller.begin()
    first = teller.tell(STORY).index("after spend")
    teller.begin()
    teller.tell(STORY, fatal=first)
    points = teller.tell(STORY)
    until = points.index("after put back")
    assert "within settle budgets" in points[:until]
    for number, point in enumerate(points[: until + 1]):
        why = f"recovery killed at {number}: {point}"
        teller.begin()
        teller.tell(STORY, fatal=first)
        assert teller.tell(STORY, fatal=number) == points[: number + 1]
        teller.sound(why)
        teller.tell(STORY)
        teller.judge(why)
