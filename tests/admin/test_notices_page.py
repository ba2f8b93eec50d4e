"""Who was told of which request, in the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from approvals.models import Notice
from tests.support import noticing
from tests.support.approving import World, world
from tests.support.noticing import send

__all__ = ["world"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5")]


@pytest.fixture
def told(world: World) -> World:
    """Rita was told and Ron has no address."""
    noticing.with_addresses(world)
    get_user_model().objects.filter(pk=world.ron.pk).update(email="")
    world.ask(key="k")
    send()
    return world


def page(client: Client, **query: str) -> str:
    answer = client.get(reverse("admin:outlast_approvals_notice_changelist"), query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_it_says_who_was_told_and_why_not(client: Client, told: World) -> None:
    client.force_login(told.vera)
    shown = page(client)
    assert ">rita<" in shown
    assert "never sent: NO_ADDRESS" in shown
    assert "written out" not in shown
    assert "written out" in page(client, state="events")
    unsent = page(client, state="unsent")
    assert ("ron" in unsent, ">rita<" in unsent) == (True, False)
    assert ">rita<" not in page(client, kind="decided")
    assert ">rita<" not in page(client, state="waiting")
    request = Notice.objects.first()
    assert request is not None
    assert reverse("admin:outlast_approvals_request_decide", args=[request.request_id]) in shown


@pytest.mark.req("F7")
def test_it_only_shows_and_only_to_who_may_view(client: Client, told: World) -> None:
    row = Notice.objects.exclude(channel="").first()
    assert row is not None
    change = reverse("admin:outlast_approvals_notice_change", args=[row.pk])
    client.force_login(told.vera)
    assert client.get(change).status_code == 200
    assert client.post(change, {"kind": "decided"}).status_code == 403
    assert client.get(reverse("admin:outlast_approvals_notice_add")).status_code == 403
    client.force_login(told.otto)
    told.otto.user_permissions.clear()
    assert client.get(change).status_code == 403


def test_the_list_costs_the_same_for_many(client: Client, told: World, django_assert_max_num_queries: Any) -> None:
    told.ask(), told.ask()
    send()
    client.force_login(told.sue)
    with django_assert_max_num_queries(8):
        page(client)
