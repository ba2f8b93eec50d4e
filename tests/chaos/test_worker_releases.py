"""Two deployments side by side, each with its release: what sleeps under the old one waits for it, and somebody is told when it is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows import releases
from tests.support.chaosapp.flows import Three
from tests.support.processes import ALIAS, Site

pytestmark = pytest.mark.req("I1", "A7", "T1")


def now_is(name: str) -> None:
    releases.make_current(name, by=None, reason="a test", using=ALIAS)


def test_a_pinned_run_waits_for_a_worker_that_carries_its_release(make_site: Callable[..., Site]) -> None:
    site = make_site(RELEASE_ALERT_SECONDS=1.0)
    for name in ("R17", "R18"):
        releases.register(name, prompts={"plan": name}, using=ALIAS)
    new = site.worker("new", OUTLAST_RELEASES="R18")
    site.beat()
    now_is("R17")
    old = [site.start(Three) for _ in range(3)]
    now_is("R18")
    later = [site.start(Three) for _ in range(3)]
    site.wait_complete(*later)
    alerted = "SELECT count(*) FROM outlast_workflow WHERE status = 'runnable' AND release = 'R17' AND alerted_at IS NOT NULL"
    site.wait("somebody to be told", lambda: site.rows(alerted) == [(3,)])
    assert {site.status(run)[0] for run in old} == {"runnable"}
    assert site.rows("SELECT DISTINCT attempts FROM outlast_workflow WHERE release = 'R17'") == [(0,)]
    site.worker("old", OUTLAST_RELEASES="R17, R16")
    site.wait_complete(*old)
    offered = dict(site.rows("SELECT split_part(name, '@', 1), releases FROM outlast_worker"))
    assert offered == {"new": ["R18"], "old": ["R17", "R16"]}
    assert new.is_alive()
    site.assert_sound(6)


def test_a_name_that_no_release_can_have_stops_the_worker(site: Site) -> None:
    wrong = site.procs.start("worker", name="wrong", env={"WORKER_NAME": "wrong", "OUTLAST_RELEASES": "R 17"})
    assert wrong.popen.wait(30) == 78
    assert "'R 17' cannot be the name of a release" in wrong.output()
    assert "Traceback" not in wrong.output()
