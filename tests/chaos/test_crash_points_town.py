"""The browser agent, killed once at every point of its way to the receipt: the site has what was confirmed, and has it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from project.agents.browser.process import SiteProcess
from project.dev.engines import child
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

KEY, KILLED = "fair", -9


@pytest.fixture
def town() -> Iterator[SiteProcess]:
    with SiteProcess(wrapper=child("--signal", "9", "--")) as process:
        yield process


def told(site: Site, town: SiteProcess, tmp_path: Path, crash: str) -> int:
    """The story, told again until it has come to its end; how often its process was killed."""
    (site.world / "address").write_text(town.address)
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    deaths = 0
    try:
        while (code := nursery.run("town", site.world, KEY, crash)) == KILLED:
            deaths += 1
        assert code == 0, nursery.log.read_text()[-3000:]
    finally:
        nursery.close()
    return deaths


@pytest.mark.req("T1", "B1", "O6")
def test_the_agent_is_killed_once_at_every_point(
    make_site: Callable[..., Site], town: SiteProcess, tmp_path: Path, measured: Callable[[str, float], None]
) -> None:
    site, met = make_site(DISPATCHER="", SLICE_SECONDS=600), tmp_path / "met"
    met.mkdir()
    deaths = told(site, town, tmp_path, f"each:{KEY}:{met}")
    measured("deaths on the browser agent's way", deaths)
    assert deaths == len(list(met.iterdir())) > 100
    assert_done_once(site, town)


@pytest.mark.req("T1", "B1", "O6")
def test_the_agent_is_killed_before_and_after_every_request_to_the_site(
    make_site: Callable[..., Site], town: SiteProcess, tmp_path: Path
) -> None:
    site = make_site(DISPATCHER="", SLICE_SECONDS=600)
    met = site.world / "requests"
    met.mkdir()
    deaths = told(site, town, tmp_path, f"record:{tmp_path / 'points'}")
    names = {mark.name for mark in met.iterdir()}
    assert deaths == len(names) >= 20
    assert {"before POST  permits", "after POST  permits", "after POST  documents", "after POST  login"} <= names
    assert_done_once(site, town)


def assert_done_once(site: Site, town: SiteProcess) -> None:
    """The site has what was confirmed, once, in the form's newest layout, and nothing else; nothing is left, and nobody was needed."""
    ledger = town.ledger()
    assert site.rows("SELECT status FROM outlast_workflow") == [("complete",)]
    (permit,) = ledger["permits"]
    (confirmed,) = site.rows("SELECT candidate FROM outlast_approval_request WHERE status = 'consumed'")
    assert permit["fields"] == {one["field"]: one["value"] for one in confirmed[0]["value"]["fields"]}
    assert (permit["state"], permit["fields"]["music"]) == ("received", "no")
    assert [(one["number"], one["state"]) for one in ledger["documents"]] == [("D-1", "accepted")]
    assert not list((site.world / "outlast" / "browser").glob("*/*")), "no session is left in the storage"
    assert site.rows("SELECT status, count(*) FROM outlast_event GROUP BY status") == [("consumed", 1)]
    assert not site.faults()
    assert not uneven_attempts(site.rows)
    assert not site.rows(
        "SELECT * FROM outlast_transition WHERE outcome NOT IN ('', 'WAITING', 'COMPLETE', 'RECONCILIATION_REQUIRED')"
    )
