"""The inbox, through HTTP."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

import flows
from approvals.models import Request
from tests.support.approving import PASSWORD, World

LIST = "admin:outlast_approvals_request_changelist"


def inbox(name: str, **query: str) -> str:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200
    return response.content.decode()


def listed(text: str) -> list[int]:
    """The requests in the list, in order."""
    return [int(number) for number in re.findall(r'href="[^"]*/(\d+)/decide/"', text)]


@pytest.mark.req("F7")
def test_it_shows_what_i_may_answer_soonest_first(world: World) -> None:
    first = world.ask(goal="First news", key="n-1")
    world.clock.move(hours=1)
    second = world.ask(goal="Second news")
    answered = world.ask()
    world.decide(answered, by=world.ron)
    shown = inbox("rita")
    assert listed(shown) == [first.pk, second.pk]
    for text in ("First news", "publish-news n-1", "approval reviewers", "pending", "22\xa0hours"):
        assert text in shown, text
    assert listed(inbox("robin")) == listed(inbox("vera")) == listed(inbox("otto")) == []


@pytest.mark.req("F7")
def test_the_other_queues(world: World) -> None:
    pending, answered, cancelled = world.ask(), world.ask(), world.ask()
    world.decide(answered)
    flows.cancel(cancelled.workflow)
    assert listed(inbox("vera", queue="pending")) == [pending.pk]
    assert listed(inbox("vera", queue="answered")) == [answered.pk]
    assert sorted(listed(inbox("vera", queue="all"))) == sorted([pending.pk, answered.pk, cancelled.pk])
    shown = inbox("vera", queue="all")
    assert "withdrawn" in shown
    assert "aria-current" not in shown or "All" in shown


def test_search_takes_the_whole_key_or_id_of_a_workflow(world: World) -> None:
    one, _other = world.ask(key="n-1"), world.ask(key="n-2")
    for term in ("n-1", str(one.workflow_id), f" {one.workflow_id} "):
        assert listed(inbox("rita", q=term)) == [one.pk]
    assert listed(inbox("rita", q="n-3")) == []


def test_the_list_costs_the_same_number_of_queries_for_one_and_for_many(
    world: World, django_assert_max_num_queries: object
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = Client()
    client.login(username="rita", password=PASSWORD)
    world.ask()
    client.get(reverse(LIST))
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse(LIST))
        counts.append(len(captured))
        for _ in range(5):
            world.ask()
    assert counts[0] == counts[1] <= 10


@pytest.mark.req("F7")
def test_nobody_adds_changes_or_deletes_here(world: World) -> None:
    request = world.ask()
    client = Client()
    client.login(username="sue", password=PASSWORD)
    assert client.get(reverse("admin:outlast_approvals_request_add")).status_code == 403
    delete = reverse("admin:outlast_approvals_request_delete", args=[request.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert client.post(reverse(LIST), {"action": "delete_selected", "_selected_action": [request.pk]}).status_code in (
        200,
        302,
        403,
    )
    assert Request.objects.filter(pk=request.pk).exists()


@pytest.mark.req("F7")
def test_the_history_page_has_the_answer(world: World) -> None:
    request = world.ask()
    world.decide(request)
    client = Client()
    client.login(username="rita", password=PASSWORD)
    shown = client.get(reverse("admin:outlast_approvals_request_history", args=[request.pk])).content.decode()
    assert "Approved this exact candidate." in shown
    assert LogEntry.objects.get().user == world.rita
