"""Killed while two runs wait for admission, for a provider and for a limit: both end, and nothing stays held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import telling
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

STORY = "scarce"
#: Where capacity is taken, waited for, given and given back.
NAMES = (
    *(
        "start",
        "defer",
        "hold slots",
        "pass",
        "ensure limit",
        "add dependency",
        "take slot",
        "effect",
        "free slots",
        "write dependency",
    ),
    *("pump", "dependency", "count tokens", "reserve slots", "readmit", "forget deferred", "arm limits", "reclaim slots"),
)
MOST = 3 * len(NAMES)


class Teller(telling.Teller):
    """And judges what is left."""

    def judge(self, why: str) -> None:
        rows = self.site.rows("SELECT status, slots FROM outlast_workflow WHERE key LIKE %s", f"{self.key}/%")
        assert [status for status, _ in rows] == ["complete", "complete"], why
        held = self.site.rows(
            "SELECT l.label FROM outlast_slot s JOIN outlast_limit l ON l.id = s.limit_id WHERE s.workflow_id IS NOT NULL"
        )
        assert held == [], f"{why}: {held}"
        assert self.site.rows("SELECT FROM outlast_wait WHERE closed_at IS NULL") == [], why
        assert self.site.rows("SELECT FROM outlast_deferred") == [], why


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


@pytest.mark.req("R1", "R2", "A7")
def test_killed_once_at_every_kind_of_point(teller: Teller) -> None:
    """One story, told by one process after another: each dies at a kind of point that nobody has met before it."""
    teller.begin()
    met = teller.folder / "met"
    met.mkdir()
    order = f"once:worker:{','.join(NAMES)}:{met}"
    while (code := teller.nursery.run(STORY, teller.world, teller.key, order)) != 0:
        assert code == telling.KILLED, teller.nursery.log.read_text()[-3000:]
        assert len(list(met.iterdir())) < MOST
    teller.judge("told to its end")
    points = {path.name for path in met.iterdir()}
    assert {"within defer", "within reserve slots", "within readmit", "before pump", "after pump", "within free slots"} <= points
    assert {"before pass", "after pass", "within take slot", "within write dependency", "within hold slots"} <= points
