"""The research agent, killed at every kind of point of every node on its way: one order, and each claim judged once on each basis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site, uneven_attempts

KEY, KILLED = "bridge", -9


@pytest.mark.req("T1", "B1", "O6")
def test_the_agent_is_killed_at_every_kind_of_point_of_every_node(
    make_site: Callable[..., Site], tmp_path: Path, measured: Callable[[str, float], None]
) -> None:
    site, met = make_site(DISPATCHER="", SLICE_SECONDS=600), tmp_path / "met"
    met.mkdir()
    nursery = Nursery(site.environ(), tmp_path / "nursery.log")
    deaths = 0
    try:
        while (code := nursery.run("research", site.world, KEY, f"nodes:{KEY}:{met}")) == KILLED:
            deaths += 1
        assert code == 0, nursery.log.read_text()[-3000:]
    finally:
        nursery.close()
    measured("deaths on the research agent's way", deaths)
    assert deaths == len(list(met.iterdir())) > 100
    assert_answered(site)
    assert_judged_once(site)
    assert not site.faults()
    assert not uneven_attempts(site.rows)
    assert not site.rows(
        "SELECT * FROM outlast_transition WHERE outcome NOT IN ('', 'WAITING', 'COMPLETE', 'RECONCILIATION_REQUIRED')"
    )


def assert_answered(site: Site) -> None:
    """All that it has started has ended, the answer is what an undisturbed run says, and the archive has one order."""
    assert {status for (status,) in site.rows("SELECT status FROM outlast_workflow")} == {"complete"}
    found = dict(site.rows("SELECT name, verdict FROM research_agent_claim"))
    assert found == {
        "bridge": "supported",
        "bridge/deck": "supported",
        "bridge/strength": "supported",
        "noise": "supported",
    }
    ((answer,),) = site.rows("SELECT result FROM outlast_workflow WHERE key = %s", KEY)
    assert (answer["verdicts"], answer["confidence"]) == ({"bridge": "supported", "noise": "supported"}, 40)
    (slip,) = (json.loads(one.read_text()) for one in (site.world / "archive" / "orders").iterdir())
    assert (slip["names"], slip["state"]) == (["survey"], "open")
    assert not site.rows("SELECT source FROM research_agent_evidencerequest WHERE open")
    assert site.rows("SELECT count(*) FROM outlast_operation") == [(1,)]


def assert_judged_once(site: Site) -> None:
    """A claim is judged anew where its basis is another one, and never twice on the same; the other agent is asked once."""
    runs = site.rows("SELECT input ->> 'claim', input ->> 'basis' FROM outlast_workflow WHERE flow_name = 'assess-claim'")
    assert max(Counter(runs).values()) == 1
    assert set(Counter(claim for claim, _ in runs)) == {"bridge", "bridge/deck", "bridge/strength", "noise"}
    assert Counter(claim for claim, _ in runs)["noise"] == 1, "nothing that came later concerns it"
    assert site.rows("SELECT count(*) FROM outlast_workflow WHERE flow_name = 'second-opinion'") == [(1,)]
    evidence = site.rows("SELECT source, version FROM research_agent_evidence WHERE source NOT LIKE 'opinion:%%' ORDER BY source")
    assert evidence == [("blog", 1), ("load-test", 1), ("second-test", 1), ("survey", 1)]
    assert site.rows("SELECT count(*) FROM research_agent_evidence WHERE source LIKE 'opinion:%%'") == [(1,)]
