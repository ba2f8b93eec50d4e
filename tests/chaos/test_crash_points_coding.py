"""The coding agent, killed once at every point of its way to the merge: on the real repository each effect happens once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from project.agents.coding.git import MAIN, head_of
from project.agents.coding.repository import commit_to_main, make_remote, moves
from project.agents.coding.sample import HISTORY
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

KEY, KILLED = "upgrade", -9
SLOW = "    def test_ends_on_the_real_clock"


def make_repository(folder: Path) -> Path:
    """The demonstration's, without the test that waits: it is run often here."""
    remote = make_remote(folder / "remote.git")
    before, _, after = HISTORY[0][1]["tests/test_shop.py"].partition(SLOW)
    quick = before + after[after.index("class Invitations") :]
    commit_to_main(remote, {"tests/test_shop.py": quick}, "Without the slow test")
    return remote


@pytest.mark.req("T1", "B1", "O6")
def test_the_agent_is_killed_once_at_every_point(
    make_site: Callable[..., Site], tmp_path: Path, measured: Callable[[str, float], None]
) -> None:
    site = make_site(DISPATCHER="", SLICE_SECONDS=600)
    met = tmp_path / "met"
    met.mkdir()
    remote = make_repository(site.world)
    base = head_of(str(remote))
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    try:
        deaths = 0
        while (code := nursery.run("coding", site.world, KEY, f"each:{KEY}:{met}")) == KILLED:
            deaths += 1
        assert code == 0, nursery.log.read_text()[-3000:]
    finally:
        nursery.close()
    measured("deaths on the coding agent's way", deaths)
    assert deaths == len(list(met.iterdir())) > 100
    ((run, status),) = site.rows("SELECT id, status FROM outlast_workflow")
    assert status == "complete"
    assert_effects_once(remote, base, run)
    assert_events_once(site)
    assert not site.faults()
    assert not uneven_attempts(site.rows)
    assert not site.rows(
        "SELECT * FROM outlast_transition WHERE outcome NOT IN ('', 'WAITING', 'COMPLETE', 'RECONCILIATION_REQUIRED')"
    )


def assert_effects_once(remote: Path, base: str | None, run: object) -> None:
    """Two candidates were pushed, one after the other, and the second was merged, by one move of main."""
    pushed = moves(remote, f"refs/heads/outlast/{run}")
    assert len(pushed) == 2
    assert len({new for _, new in pushed}) == 2
    assert all(new == old for (_, new), (old, _) in pairwise(pushed))
    heads = [new for _, new in moves(remote, MAIN)]
    assert len(heads[heads.index(base) + 1 :]) == 1


def assert_events_once(site: Site) -> None:
    """Two commits were built, and each report was taken once, however often it came."""
    assert site.rows("SELECT status, count(*) FROM outlast_event GROUP BY status") == [("consumed", 2)]
