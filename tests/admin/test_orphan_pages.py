"""The pages of orphans: what was found, and what a person does about it, with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows.core.ids import new_id
from flows.models import Event, Finding
from flows.services.liveness import scanning
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("P2")

LIST = "admin:outlast_flows_finding_changelist"
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def client(world: World) -> Client:
    made = Client()
    assert made.login(username="vera", password=PASSWORD)
    return made


@pytest.fixture
def found(world: World) -> Finding:
    """An event about a run that is none."""
    flows.signal("e-1", "t.asked", key=EVIL, payload={}, about=flows.About(workflow=new_id()))
    scanning.scan()
    return Finding.objects.get()


def allow(person: Any, *names: str) -> None:
    person.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_flows", codename__in=names))


def address(one: Finding) -> str:
    return reverse("admin:outlast_flows_finding_change", args=[one.pk])


def test_what_is_open_is_listed_with_what_the_scan_saw(client: Client, found: Finding) -> None:
    listed = client.get(reverse(LIST)).content.decode()
    assert "misdirected" in listed
    assert reverse("admin:outlast_flows_event_change", args=[Event.objects.get().pk]) in listed
    assert "misdirected" not in client.get(reverse(LIST), {"kind": "half"}).content.decode().partition("result_list")[2]
    page = client.get(address(found)).content.decode()
    assert "An event says" not in page
    assert "an event says that it is about a run that is none" in page
    assert EVIL not in page
    assert "outlast_flows.operate_workflow" in page, "vera may not decide, and is told what that needs"


def test_a_reason_and_the_right_are_needed(world: World, client: Client, found: Finding) -> None:
    asked = {"what": "redeliver", "reason": "its run is there now"}
    assert client.post(address(found), asked).status_code == 403
    allow(world.vera, "operate_workflow")
    assert "part of the record" in client.post(address(found), {**asked, "reason": ""}).content.decode()
    assert "redeliver_event" in client.post(address(found), asked).content.decode()
    assert client.post(address(found), {**asked, "what": "cancel"}).status_code == 200
    found.refresh_from_db()
    assert found.status == "open"
    allow(world.vera, "redeliver_event")
    assert "Done." in client.post(address(found), asked, follow=True).content.decode()
    found.refresh_from_db()
    assert (found.status, found.code, found.by_label) == ("repaired", "redeliver", "vera")
    assert "oa-orphan" not in client.get(address(found)).content.decode()


def test_dismissed_it_leaves_the_list_and_is_found_under_all(world: World, client: Client, found: Finding) -> None:
    allow(world.vera, "operate_workflow")
    client.post(address(found), {"what": "dismiss", "reason": EVIL})
    assert address(found) not in client.get(reverse(LIST)).content.decode()
    assert address(found) in client.get(reverse(LIST), {"status": "all"}).content.decode()
    page = client.get(address(found)).content.decode()
    assert (EVIL in page, "dismissed" in page) == (False, True)
