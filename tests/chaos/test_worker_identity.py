"""Which worker may take what: one of a name, and only definitions that it has."""

from __future__ import annotations

import pytest

from tests.support.chaosapp.flows import Three
from tests.support.processes import Site


@pytest.mark.req("A7")
def test_a_second_worker_of_one_name_refuses_to_start(site: Site) -> None:
    first = site.worker("twin")
    second = site.procs.start("worker", name="second", env={"WORKER_NAME": "twin"})
    assert second.popen.wait(30) == 73
    assert "A worker named 'twin@" in second.output()
    assert "celery worker -n NAME@%h" in second.output()
    assert "Traceback" not in second.output()
    assert first.is_alive()
    runs = [site.start(Three) for _ in range(3)]
    site.wait_complete(*runs)
    assert [status for _, status in site.workers()] == ["alive"]


@pytest.mark.req("A7")
def test_a_name_is_free_again_when_its_worker_has_stopped(site: Site) -> None:
    site.worker("twin").stop()
    site.worker("twin")
    assert [status for _, status in site.workers()] == ["stopped", "alive"]


@pytest.mark.req("A7", "V2")
def test_a_worker_without_the_definition_leaves_the_work_alone(site: Site) -> None:
    """As in a deploy: a worker that does not know the flow consumes the hints, and the work waits for one that does."""
    stranger = site.worker("stranger", DJANGO_SETTINGS_MODULE="project.settings")
    site.beat()
    runs = [site.start(Three) for _ in range(5)]
    site.wait("the stranger to have looked", lambda: stranger.output().count("chaos-three.one") >= 2)
    assert {site.status(run)[0] for run in runs} == {"runnable"}
    assert site.rows("SELECT DISTINCT attempts FROM outlast_workflow") == [(0,)]
    site.worker("knows")
    site.wait_complete(*runs)
    site.assert_sound(5)
