"""The pages of holds: what is held, by whom and why; made and lifted with a reason."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows.models import Hold
from tests.factories import Line
from tests.support.approving import PASSWORD, World

EVIL = "<script>alert(1)</script>"
ADD, LIST = "admin:outlast_flows_hold_add", "admin:outlast_flows_hold_changelist"


@pytest.fixture
def client(world: World) -> Client:
    made = Client()
    assert made.login(username="vera", password=PASSWORD)
    return made


def may_hold(world: World) -> None:
    world.vera.user_permissions.add(Permission.objects.get(codename="hold_work"))


def page(client: Client, hold: Hold) -> str:
    return client.get(reverse("admin:outlast_flows_hold_change", args=[hold.pk])).content.decode()


def test_hold_and_lift(world: World, client: Client) -> None:
    may_hold(world)
    Line.start({})
    posted = client.post(reverse(ADD), {"scope": "flow", "name": "t-line", "reason": EVIL}, follow=True)
    hold = Hold.objects.get()
    assert (hold.scope, hold.name, hold.by_label, hold.reason) == ("flow", "t-line", "vera", EVIL)
    shown = posted.content.decode()
    assert "It is held: what runs now ends its step" in shown
    assert EVIL not in shown
    listed = client.get(reverse(LIST)).content.decode()
    assert "flow t-line" in listed
    assert EVIL not in listed
    assert ">1<" in page(client, hold), "so many ready runs it stops"
    posted = client.post(reverse(ADD), {"scope": "flow", "name": "t-line", "reason": "me too"}, follow=True)
    assert "It was held already" in posted.content.decode()
    lifted = client.post(reverse("admin:outlast_flows_hold_change", args=[hold.pk]), {"reason": "they are well"}, follow=True)
    assert "It is lifted; workers take it up again" in lifted.content.decode()
    assert "Lift it" not in page(client, hold)
    assert "flow t-line" not in client.get(reverse(LIST)).content.decode()
    assert "flow t-line" in client.get(reverse(LIST), {"state": "all"}).content.decode()


def test_what_cannot_be_held_is_said_at_the_form(world: World, client: Client) -> None:
    may_hold(world)
    for given, said in (
        ({"scope": "flow", "name": "t-lime", "reason": "x"}, "t-lime"),
        ({"scope": "all", "name": "t-line", "reason": "x"}, "A hold of everything has no name"),
        ({"scope": "key", "name": "", "reason": "x"}, "needs a name"),
        ({"scope": "key", "name": "k", "reason": ""}, "Say why"),
        ({"scope": "world", "name": "k", "reason": "x"}, "not one of the available choices"),
    ):
        found = client.post(reverse(ADD), given)
        assert (found.status_code, said in found.content.decode()) == (200, True), given
    assert not Hold.objects.exists()


def test_a_page_that_is_old_lifts_nothing_else(world: World, client: Client) -> None:
    may_hold(world)
    flows.hold("all", reason="x")
    old = Hold.objects.get()
    flows.lift("all", reason="x")
    flows.hold("all", reason="another matter")
    said = client.post(reverse("admin:outlast_flows_hold_change", args=[old.pk]), {"reason": "x"}, follow=True)
    assert "It was lifted already" in said.content.decode()
    assert len(flows.holds()) == 1


def test_who_may_only_look(world: World, client: Client) -> None:
    flows.hold("all", reason="x")
    hold = Hold.objects.get()
    assert client.get(reverse(ADD)).status_code == 403
    assert client.post(reverse(ADD), {"scope": "all", "reason": "x"}).status_code == 403
    assert client.post(reverse("admin:outlast_flows_hold_change", args=[hold.pk]), {"reason": "x"}).status_code == 403
    assert "outlast_flows.hold_work" in page(client, hold)
    run = Line.start({})
    shown = client.get(reverse("admin:outlast_flows_workflow_change", args=[run.id])).content.decode()
    assert "Lift what holds it" in shown
    assert reverse("admin:outlast_flows_hold_change", args=[hold.pk]) in shown
