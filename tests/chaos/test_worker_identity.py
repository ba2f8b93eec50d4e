"""Which worker may take what: one of a name, only definitions that it has, and nothing that it does not get to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from tests.support.chaosapp.flows import Held, Three
from tests.support.processes import ALIAS, Site


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


@pytest.mark.req("A7")
def test_what_is_claimed_behind_a_long_step_goes_to_somebody_else(site: Site, measured: Callable[[str, float], None]) -> None:
    """Quick work is claimed several at a time; when one of it turns out to be long, the rest does not wait for it."""
    site.worker("busy", WORKER_CONCURRENCY="1")
    site.wait_complete(*site.start_many(Three, [{}] * 20))  # now the worker knows its work to be quick
    with transaction.atomic(using=ALIAS):
        first = site.start(Held, key="long")
        behind = [site.start(Three, key=f"behind-{number}") for number in range(5)]
    site.wait("the long step", lambda: [call for call in site.called("two/1") if str(first) in call["operation"]])
    site.worker("idle")
    measured("what was claimed behind a long step is done after", site.wait_complete(*behind))
    assert site.status(first)[0] == "running"
    site.let_go()
    site.wait_complete(first)
    assert not site.rows("SELECT * FROM outlast_attempt WHERE outcome <> 'succeeded'")
    assert site.rows("SELECT count(*) > 0 FROM outlast_transition WHERE trigger = 'release'") == [(True,)]
    site.assert_sound(26)
