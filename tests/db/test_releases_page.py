"""The code of docs/how-to/releases.md, from a record in which no release is registered yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.utils import timezone

import flows
from flows import COMPLETE, FAILED, Activity, Deadline, End, Flow, Visits, Wait, checks, releases, restart_from
from flows.models import Activity as Visit
from flows.models import Release
from flows.testing import Clock, LocalWorker
from tests.docs.test_code_blocks import RELEASES, written_in
from tests.factories import offer, row, status, work
from tests.support import releasing

pytestmark = pytest.mark.req("I1")


@pytest.fixture
def page(worker: LocalWorker) -> Iterator[dict[str, Any]]:
    with written_in(RELEASES) as names:
        offer(worker)
        yield names


@pytest.fixture
def ann(transactional_db: None) -> Iterator[Any]:
    made = get_user_model().objects.create_user("ann")
    made.user_permissions.add(Permission.objects.get(codename="manage_release"))
    yield made
    made.user_permissions.clear()


def entered(run: Any) -> list[str]:
    return list(Visit.objects.filter(workflow_id=run.id).order_by("seq").values_list("node", flat=True))


def test_the_page_registers_what_it_names_and_its_flow_is_sound(page: dict[str, Any], ann: Any) -> None:
    assert checks.check_flows(None) == []
    page["roll_out"](ann)
    assert sorted(Release.objects.values_list("name", flat=True)) == ["R17", "R18"]
    assert releases.get("R18").compatible_with == ["R17"]


def test_a_plan_of_another_release_is_made_again_and_the_window_is_not_missed(
    page: dict[str, Any], worker: LocalWorker, clock: Clock, ann: Any
) -> None:
    releases.register("R17", models={"planner": "m-1"}, prompts={"propose": "Propose a change."}, by=ann)
    releases.make_current("R17", by=ann, reason="the first one")
    opens = timezone.now() + timedelta(hours=6)
    run = page["Nightly"].start({"window": opens.isoformat()})
    worker.run()
    assert (row(run).node, row(run).release) == ("window", "R17")

    page["roll_out"](ann)
    clock.move(hours=7)
    for _ in range(3):
        worker.tick()
        worker.run()
    assert (row(run).node, row(run).status, row(run).release) == ("done", "complete", "R18")
    assert entered(run) == ["plan", "plan", "act"]


def test_what_woke_a_run_that_begins_again_is_used_up(declare: Callable[..., type[Flow]], worker: LocalWorker) -> None:
    """As the page says: the wait that is reached again is ended by another event."""
    releasing.both()
    flow = declare(
        "t-again",
        meta={"on_release": restart_from("plan")},
        plan=Activity(work, visits=Visits(5, then="stopped"), then="window"),
        window=Wait("window.opened", key="prod", deadline=Deadline(hours=12, then="stopped"), then="act"),
        act=Activity(work, then="done"),
        done=End(COMPLETE),
        stopped=End(FAILED),
    )
    run = flow.start({})
    worker.run()
    releasing.now_is("R18")
    flows.signal("evt-1", "window.opened", key="prod")
    worker.run()
    assert status(run) == ("waiting", "WAITING", "window")
    assert entered(run) == ["plan", "plan"]
    flows.signal("evt-2", "window.opened", key="prod")
    worker.run()
    assert status(run) == ("complete", "COMPLETE", "done")
