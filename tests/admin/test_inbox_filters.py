"""What the inbox can be narrowed to, its counts, and how many wait for somebody on the index pages."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.api import assign, delegate
from approvals.core.seats import key
from flows.services.clock import now
from tests.support.approving import ROLE, AskYesOrNo, World
from tests.support.browsing import LIST, client_of, page, permit, words
from tests.support.laddering import POOL, ask_long, somebody

pytestmark = pytest.mark.req("F7")


def listed(name: str, **query: str) -> list[int]:
    return [int(number) for number in re.findall(r'href="[^"]*/(\d+)/decide/"', page(client_of(name), reverse(LIST), **query))]


def test_mine_are_also_those_of_whom_i_stand_in_for(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    assert listed("dora") == []
    permit(world.rita, "delegate_own")
    delegate(world.rita, dora, until=now("default") + timedelta(days=1), reason="On leave", by=world.rita)
    assert listed("dora") == [request.pk]


def test_what_i_have_answered_is_not_mine_any_more_though_it_waits_for_others(world: World) -> None:
    request = ask_long(world)
    world.decide(request)
    assert listed("rita") == []
    assert listed("ron") == [request.pk]
    assert listed("rita", queue="pending") == [request.pk]


def test_looked_at_by_me(world: World) -> None:
    one, _two = world.ask(), world.ask()
    assign(one, to=world.rita, by=world.rita)
    assert listed("rita", queue="claimed") == [one.pk]
    assert listed("ron", queue="claimed") == []
    assert "rita" in words(page(client_of("ron"), reverse(LIST))), "the list says who"
    world.decide(one)
    assert listed("rita", queue="claimed") == []


def test_by_flow_by_whom_is_asked_and_by_how_soon(world: World) -> None:
    news, other = world.ask(), world.ask(flow=AskYesOrNo)
    long = ask_long(world)
    assert listed("rita", flow="publish-news") == [news.pk]
    assert listed("rita", flow="ask-yes-or-no") == [other.pk]
    asked = key({"role": ROLE})
    assert sorted(listed("rita", asked=asked)) == sorted([news.pk, other.pk, long.pk])
    world.decide(long)
    world.decide(long, by=world.ron)
    assert listed("lena", asked=key({"pool": POOL})) == [long.pk]
    assert listed("rita", expires="hour") == []
    assert listed("rita", expires="day", flow="publish-news") == [news.pk]
    assert sorted(listed("rita", expires="week")) == sorted([news.pk, other.pk])
    world.clock.move(hours=23, minutes=30)
    assert listed("rita", expires="hour") == [news.pk]


def test_the_list_says_how_many_have_approved_of_how_many(world: World) -> None:
    request = ask_long(world)
    world.decide(request)
    assert "Editors 1/2" in words(page(client_of("ron"), reverse(LIST)))


def test_counts_are_of_what_is_pending_and_only_when_asked_for(world: World) -> None:
    one, _two = world.ask(), world.ask(flow=AskYesOrNo)
    world.decide(world.ask(), by=world.ron)
    assign(one, to=world.rita, by=world.rita)
    assert "(2)" not in page(client_of("rita"), reverse(LIST))
    text = words(page(client_of("rita"), reverse(LIST), _facets="True"))
    for told in (
        "For me to answer (2)",
        "Looked at by me (1)",
        "All pending (2)",
        "publish-news (1)",
        "ask-yes-or-no (1)",
        f"{ROLE} (2)",
        "Within a day (1)",
        "Within a week (2)",
        "Within an hour (0)",
    ):
        assert told in text, told
    assert not re.search(r"Decided \(\d", text), "the past is not counted"
    past = words(page(client_of("rita"), reverse(LIST), _facets="True", queue="all"))
    assert "For me to answer (2)" in past
    assert not re.search(r"publish-news \(\d", past)


def test_the_newest_first_of_what_is_over(world: World) -> None:
    first, second = world.ask(), world.ask()
    world.decide(second)
    world.decide(first)
    assert listed("rita", queue="answered") == [second.pk, first.pk]
    assert listed("rita", queue="all") == [second.pk, first.pk]


# ---------------------------------------------------------------------- on the index


def test_the_index_says_how_many_wait_for_this_user(world: World) -> None:
    for address in (reverse("admin:index"), reverse("admin:app_list", args=["outlast_approvals"])):
        assert "wait for you" not in page(client_of("rita"), address)
    world.ask()
    for address in (reverse("admin:index"), reverse("admin:app_list", args=["outlast_approvals"])):
        assert "1 approval request waits for you." in words(page(client_of("rita"), address))
        assert "waits for you" not in page(client_of("robin"), address)
        assert "waits for you" not in page(client_of("vera"), address)
    world.ask()
    assert "2 approval requests wait for you." in words(page(client_of("ron"), reverse("admin:index")))


def test_pages_that_do_not_print_it_do_not_count(world: World) -> None:
    world.ask()
    client = client_of("rita")
    with CaptureQueriesContext(connection) as captured:
        page(client, reverse("admin:outlast_flows_workflow_changelist"))
    assert not [query for query in captured.captured_queries if "outlast_approval_request" in query["sql"]]


def test_a_theme_finds_it_where_django_keeps_what_a_user_may(world: World, rf: object) -> None:
    world.ask()
    request = rf.get("/")  # type: ignore[attr-defined]
    request.user = world.rita
    (app,) = site.get_app_list(request, "outlast_approvals")
    (perms,) = [model["perms"] for model in app["models"] if model["object_name"] == "Request"]
    assert perms["waiting"] == 1
