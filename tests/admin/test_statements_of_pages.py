"""How many statements a page costs does not grow with what it shows, nor with how many people there are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.api import delegate
from approvals.models import Pool, Request
from flows.services.clock import now
from tests.admin.test_together_pages import BECAME, give, personally, select, selection
from tests.support.approving import ROLE, World
from tests.support.browsing import LIST, client_of, permit, url_of
from tests.support.laddering import somebody

pytestmark = pytest.mark.req("F7")

MANY = 30


def statements(act: Callable[[], Any]) -> int:
    """Of the second look: the first warms what is looked up once for a process."""
    act()
    with CaptureQueriesContext(connection) as captured:
        assert act().status_code == 200
    return len(captured)


def stand_in(world: World, taker: Any, number: int) -> None:
    giver = somebody(f"giver{number}", role=ROLE)
    delegate(giver, taker, until=now("default") + timedelta(days=1), reason="On leave", by=world.sue)


def test_of_who_stands_in_for_many(world: World) -> None:
    dora, request = somebody("dora", permissions=("answer_request", "delegate_own")), world.ask()
    client = client_of("dora")
    pages = {
        "inbox": lambda: client.get(reverse(LIST)),
        "facets": lambda: client.get(reverse(LIST), {"_facets": "True"}),
        "index": lambda: client.get(reverse("admin:index")),
        "decide": lambda: client.get(url_of(request)),
        "delegations": lambda: client.get(reverse("admin:outlast_approvals_delegation_changelist")),
    }
    stand_in(world, dora, 0)
    few = {name: statements(look) for name, look in pages.items()}
    for number in range(1, MANY):
        stand_in(world, dora, number)
    many = {name: statements(look) for name, look in pages.items()}
    assert many == few
    assert client.get(reverse(LIST)).context["cl"].queryset.get() == request


def test_of_many_reviewers(world: World) -> None:
    permit(world.rita, "assign_request")
    request, client = world.ask(), client_of("rita")
    pages = {
        "decide": lambda: client.get(url_of(request)),
        "assign": lambda: client.get(url_of(request, "assign")),
        "assign several": lambda: select(client, "assign", request),
    }
    few = {name: statements(look) for name, look in pages.items()}
    for number in range(MANY):
        somebody(f"reviewer{number}", role=ROLE)
    many = {name: statements(look) for name, look in pages.items()}
    assert many == few


def test_of_many_requests(world: World) -> None:
    permit(world.rita, "assign_request", "view_pool", "delegate_any")
    world.rita.is_superuser = True
    world.rita.save()
    client = client_of("rita")

    def shown(*wanted: Request) -> dict[str, int]:
        give(client, "assign", selection(select(client, "assign", *wanted)), to=world.rita.pk)
        pages = {
            "inbox": lambda: client.get(reverse(LIST)),
            "pending": lambda: client.get(reverse(LIST), {"queue": "pending"}),
            "all": lambda: client.get(reverse(LIST), {"queue": "all"}),
            "index": lambda: client.get(reverse("admin:index")),
            "select": lambda: select(client, "approve", *wanted),
            "select to deny": lambda: select(client, "deny", *wanted),
            "became": lambda: client.get(reverse(BECAME)),
            "pools": lambda: client.get(reverse("admin:outlast_approvals_pool_changelist")),
        }
        return {name: statements(look) for name, look in pages.items()}

    one = personally(world)
    few = shown(one)
    more = [personally(world) for _ in range(MANY)]
    for number in range(MANY):
        Pool.objects.create(name=f"pool{number}").members.add(world.ron, world.rita)
    assert shown(one, *more) == few


def test_of_many_reviews(world: World) -> None:
    request = world.ask()
    client = Client()
    client.force_login(world.vera)
    few = statements(lambda: client.get(url_of(request)))
    for _ in range(MANY):
        world.decide(request, by=world.vera)
    assert len(world.refusals(request)) == MANY
    assert statements(lambda: client.get(url_of(request))) == few
