"""Bulk operations from the list of workflows: what the list shows, no more, with the rights of who asks; seen and stopped on a page."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows.models import Bulk, BulkItem, Workflow
from flows.services import bulk as service
from tests.factories import Line, row
from tests.support.approving import PASSWORD, World

EVIL = "<script>alert(1)</script>"
ADD, LIST = "admin:outlast_flows_bulk_add", "admin:outlast_flows_bulk_changelist"
WORKFLOWS = "admin:outlast_flows_workflow_changelist"


@pytest.fixture
def client(world: World) -> Client:
    made = Client()
    assert made.login(username="vera", password=PASSWORD)
    return made


def may_operate(world: World) -> None:
    world.vera.user_permissions.add(Permission.objects.get(codename="operate_workflow"))


def page(client: Client, made: Bulk) -> str:
    return client.get(reverse("admin:outlast_flows_bulk_change", args=[made.pk])).content.decode()


def test_what_the_list_shows_is_done_and_said(world: World, client: Client) -> None:
    may_operate(world)
    runs = Line.start_many([(f"k{number}", {}) for number in range(3)])
    listed = client.get(reverse(WORKFLOWS), {"flow": "t-line", "status": "runnable"}).content.decode()
    address = f"{reverse(ADD)}?flow=t-line&status=runnable"
    assert address.replace("&", "&amp;") in listed
    asked = client.get(address).content.decode()
    assert "3 runs of the list with" in asked
    assert "flow = t-line, status = runnable" in asked
    posted = client.post(address, {"verb": "cancel", "reason": EVIL, "seen": 3}, follow=True)
    shown = posted.content.decode()
    assert "3 runs are worked off now." in shown
    assert "0 of 3 are done" in shown
    assert EVIL not in shown
    made = Bulk.objects.get()
    assert (made.filter, made.by_label, made.verb) == ({"flow": "t-line", "status": "runnable"}, "vera", "cancel")
    world.worker.run()
    world.worker.tick()
    shown = page(client, made)
    assert "3 of 3 are done" in shown
    assert re.search(r"too_late(</\w+>)*: 3", shown)
    assert str(runs[0].id) in shown, "each that became something else is named"
    assert "Stop it" not in shown
    assert "cancel" in client.get(reverse(LIST)).content.decode()


def test_a_search_and_a_page_number(world: World, client: Client) -> None:
    """The search narrows, the page that one is on does not."""
    may_operate(world)
    run = Line.start({}, key="one")
    Line.start({}, key="two")
    client.post(f"{reverse(ADD)}?q=one&p=1&o=3", {"verb": "pause", "reason": "x", "seen": 1})
    assert list(BulkItem.objects.values_list("workflow_id", flat=True)) == [run.id]
    assert Bulk.objects.get().filter == {"q": "one"}


def test_stop(world: World, client: Client) -> None:
    may_operate(world)
    Line.start_many([(f"k{number}", {}) for number in range(3)])
    client.post(f"{reverse(ADD)}?flow=t-line", {"verb": "cancel", "reason": "x", "seen": 3})
    made = Bulk.objects.get()
    service.carry_out("default", 1)
    said = client.post(
        reverse("admin:outlast_flows_bulk_change", args=[made.pk]), {"reason": "enough"}, follow=True
    ).content.decode()
    assert "It is stopped; what is done is done." in said
    assert "1 of 3 are done" in said
    assert "vera: enough" in said
    world.worker.tick()
    assert Workflow.objects.filter(status="runnable").count() == 2


def test_nothing_is_done_to_everything_to_more_than_was_seen_or_to_what_is_no_filter(world: World, client: Client) -> None:
    may_operate(world)
    run = Line.start({})
    Line.start({})
    for query in ("", "?p=2"):
        shown = client.get(reverse(ADD) + query).content.decode()
        assert "nothing is done to everything" in shown
        client.post(reverse(ADD) + query, {"verb": "cancel", "reason": "x", "seen": 9})
    said = client.post(f"{reverse(ADD)}?flow=t-line", {"verb": "cancel", "reason": "x", "seen": 1}).content.decode()
    assert "2 runs match now, and 1 did when you looked" in said
    client.post(f"{reverse(ADD)}?input__secret=x", {"verb": "cancel", "reason": "x", "seen": 9})
    client.post(f"{reverse(ADD)}?flow=t-none", {"verb": "cancel", "reason": "x", "seen": 9})
    for given in (
        {"verb": "delete", "reason": "x"},
        {"verb": "cancel", "reason": ""},
        {"verb": "cancel", "reason": "x", "to": 2},
    ):
        client.post(f"{reverse(ADD)}?flow=t-line", {"seen": 2, **given})
    assert not Bulk.objects.exists()
    assert row(run).status == "runnable"


def test_who_may_only_look(world: World, client: Client) -> None:
    Line.start({})
    made = service.make("pause", Workflow.objects.all(), filter={}, reason="x")
    assert client.get(reverse(ADD)).status_code == 403
    assert client.post(f"{reverse(ADD)}?flow=t-line", {"verb": "cancel", "reason": "x", "seen": 1}).status_code == 403
    assert client.post(reverse("admin:outlast_flows_bulk_change", args=[made.id]), {"reason": "x"}).status_code == 403
    assert "outlast_flows.operate_workflow" in page(client, Bulk.objects.get())
    assert reverse(ADD) not in client.get(reverse(WORKFLOWS), {"flow": "t-line"}).content.decode()
