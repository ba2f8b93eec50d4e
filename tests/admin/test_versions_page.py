"""The workflow's page offers a newer version to who may operate, and a permitted POST with a reason is the only way to take it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Wait
from flows.errors import CannotMigrate
from flows.models import Event, Workflow
from tests import factories
from tests.factories import row
from tests.support.approving import PASSWORD, World
from tests.support.versions import Declare, note, version

pytestmark = pytest.mark.req("G2", "Q3")

NAME = "t-paged"
EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def declare(world: World) -> Iterator[Declare]:
    """Rita may operate, Vera may look."""
    world.rita.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    with factories.declaring(world.worker) as declaring:
        yield declaring


def nodes(*names: str) -> dict[str, Any]:
    made = {name: Activity(factories.work, then=after) for name, after in zip(names, [*names[1:], "done"], strict=True)}
    return {
        "ask": Wait("t.paged", key="k", deadline=Deadline(hours=1, then=ESCALATE), then=names[0]),
        **made,
        "done": End(COMPLETE),
    }


def waiting(world: World, declare: Declare) -> Any:
    run = version(declare, NAME, 1, nodes("a")).start({})
    world.worker.run()
    return run


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def page(run: Any, name: str = "rita") -> str:
    return client_of(name).get(reverse("admin:outlast_flows_workflow_change", args=[run.id])).content.decode()


def post(run: Any, name: str = "rita", **data: Any) -> Any:
    return client_of(name).post(
        reverse("admin:outlast_flows_workflow_migrate", args=[run.id]), {"to": 2, "reason": "a scan", **data}, follow=True
    )


def test_a_run_is_migrated_from_its_page(world: World, declare: Declare) -> None:
    run = waiting(world, declare)
    assert "A newer version" not in page(run)
    version(declare, NAME, 2, nodes("scan", "a"), migrate_from={1: {"ask": "scan"}})
    shown = page(run)
    assert "It would go on under version 2 at the step scan." in shown
    assert "A newer version" not in page(run, "vera")
    assert row(run).flow_version == 1
    answer = post(run)
    assert "Migrated: it goes on under version 2, at scan." in answer.content.decode()
    assert (row(run).flow_version, note(run)["reason"]) == (2, "a scan")
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (
        world.rita, str(run.id), "migrated from version 1 (ask) to 2 (scan)",
    )  # fmt: skip
    assert "A newer version" not in page(run)
    assert "It is of that version already." in post(run).content.decode()
    assert LogEntry.objects.count() == 1
    world.worker.run()
    assert row(run).status == "complete"


def test_a_refusal_says_why_before_and_after(world: World, declare: Declare) -> None:
    def refuse(state: flows.State) -> flows.Migrated:
        raise CannotMigrate(EVIL)

    run = waiting(world, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: refuse})
    shown = page(run)
    assert "It cannot be migrated to version 2 now:" in shown
    answer = post(run).content.decode()
    assert "It was not migrated:" in answer
    for text in (shown, answer):
        assert "<script>alert(1)" not in text
        assert "\u202e" not in text
    assert not LogEntry.objects.exists()
    assert row(run).flow_version == 1


def test_a_look_at_the_page_lets_nothing_out(world: World, declare: Declare) -> None:
    """It asks the migration where the run would go on; that must be a question only."""

    def reaches_out(state: flows.State) -> flows.Migrated:
        flows.signal("e", "t.other", key="k")
        return flows.Migrated("ask")

    run = waiting(world, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: reaches_out})
    assert "asks a database; it must be pure" in page(run)
    assert "asks a database; it must be pure" in post(run).content.decode()
    assert not Event.objects.exists()
    assert row(run).flow_version == 1


@pytest.mark.parametrize("data", [{"reason": ""}, {"reason": "   "}, {"to": ""}, {"to": "x"}, {"reason": "x" * 2001}])
def test_what_is_missing_is_said_at_its_field(world: World, declare: Declare, data: dict[str, Any]) -> None:
    run = waiting(world, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    shown = post(run, **data).content.decode()
    assert "Nothing was changed." in shown
    assert row(run).flow_version == 1


def test_who_may_and_how(world: World, declare: Declare) -> None:
    run = waiting(world, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    address = reverse("admin:outlast_flows_workflow_migrate", args=[run.id])
    assert post(run, "vera").status_code == 403
    assert client_of("rita").get(address).status_code == 405
    assert client_of("rita", enforce_csrf_checks=True).post(address, {"to": 2, "reason": "x"}).status_code == 403
    assert client_of("rita").post("/admin/outlast_flows/workflow/no-id/migrate/").status_code == 404
    assert Client().post(address, {"to": 2, "reason": "x"}).status_code == 302
    assert row(run).flow_version == 1
    assert "No flow" in post(run, to=9).content.decode()
    assert Workflow.objects.get().flow_version == 1


def test_a_run_that_moved_meanwhile(world: World, declare: Declare) -> None:
    run = waiting(world, declare)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    flows.cancel(run)
    assert "A newer version" not in page(run)
    assert "it has ended: cancelled" in post(run).content.decode()
