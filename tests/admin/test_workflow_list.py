"""The list of workflows: counts over it, filters that find what they say, each by a bounded look; and the overview."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import flows
from flows import COMPLETE, Activity, End, Retry, errors, hours, releases
from flows.admin import workflow_filters
from flows.models import Workflow
from flows.services import listing
from flows.store import counts
from tests import factories
from tests.factories import Ask, Line
from tests.support.approving import World
from tests.support.browsing import client_of, permit
from tests.support.statements import counted

pytestmark = pytest.mark.req("Q3")

LIST = "admin:outlast_flows_workflow_changelist"
tries: list[int] = []


@pytest.fixture
def client(world: World) -> Client:
    world.vera.user_permissions.set(Permission.objects.filter(content_type__app_label="outlast_flows"))
    world.vera.is_staff = True
    world.vera.save()
    return client_of("vera")


def stranger() -> Client:
    """Somebody of the staff who may see nothing of flows."""
    found, _made = get_user_model().objects.get_or_create(username="a-stranger", defaults={"is_staff": True})
    client = Client()
    client.force_login(found)
    return client


def busy(attempt: Any) -> None:
    tries.append(attempt.number)
    if len(tries) == 1:
        raise errors.Transient("later")


def listed(client: Client, **query: str) -> set[Any]:
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200
    return {row.pk for row in response.context["cl"].result_list}


def chip(client: Client, value: str, **query: str) -> dict[str, Any]:
    (found,) = [one for one in client.get(reverse(LIST), query).context["chips"] if one["value"] == value]
    return dict(found)


def test_the_counts_are_those_of_the_lists_and_lead_there(world: World, client: Client) -> None:
    waiting = [Ask.start({}).id for _ in range(3)]
    ended = Line.start({}).id
    world.worker.run()
    ready = Line.start({}).id
    shown = {one["value"]: one["count"] for one in client.get(reverse(LIST)).context["chips"]}
    assert (shown["waiting"], shown["complete"], shown["runnable"], shown["event"]) == ("3", "1", "1", "3")
    assert shown["failed"] == "0"
    assert "timer" not in shown, "nothing waits so"
    for value, expected in {"waiting": waiting, "complete": [ended], "runnable": [ready]}.items():
        assert listed(client, status=value) == set(expected)
    assert listed(client, wait="event") == set(waiting)
    found = chip(client, "event")
    assert found["query"] == "?wait=event"
    page = client.get(reverse(LIST) + found["query"]).content.decode()
    assert 'aria-current="true"' in page
    assert chip(client, "event", wait="event", status="waiting", p="1")["query"] == "?status=waiting", "it is let go of again"


def test_a_count_has_an_end(world: World, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = counts.COUNT.replace(f"LIMIT {counts.MOST + 1}", "LIMIT 3")
    monkeypatch.setattr(counts, "COUNT", statement)
    monkeypatch.setattr(counts, "MOST", 2)
    for _ in range(5):
        Ask.start({})
    assert chip(client, "runnable")["count"] == "2+"


def test_filters_find_what_they_say(world: World, client: Client) -> None:
    one = Line.start({}).id
    other = Ask.start({}).id
    world.worker.run()
    third = Line.start({}).id
    Workflow.objects.filter(pk=other).update(release="R1", error_code="RATE_LIMITED")
    releases.register("R1", models={"planner": "m-1"})
    name = Line.definition.name
    assert listed(client, flow=name) == {one, third}
    assert listed(client, flow=name, version="1") == {one, third}
    assert listed(client, flow=name, version="2") == set()
    assert listed(client, release="R1") == {other}
    assert listed(client, error="RATE_LIMITED") == {other}
    assert listed(client, error="NO_SUCH_CODE") == set()
    assert listed(client, age="1h") == {one, other, third}
    assert listed(client, age="over-1d") == set()
    Workflow.objects.filter(pk=other).update(release="", error_code=None)
    assert listed(client, flow=name, status="complete", age="7d") == {one}


def test_what_no_index_finds_is_looked_for_among_the_newest(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [Line.start({}).id for _ in range(3)]
    new = [Line.start({}).id for _ in range(2)]
    monkeypatch.setattr(listing, "LOOKED_THROUGH", 2)
    name = Line.definition.name
    assert listed(client, flow=name) == set(new)
    assert "At most the newest 2 were looked through." in client.get(reverse(LIST), {"flow": name}).content.decode()
    assert listed(client, flow=name, status="runnable") == {*old, *new}, "of live ones, all"
    assert listed(client) == {*old, *new}
    assert not workflow_filters.is_bounded({"status": "complete"})


def test_the_list_costs_the_same_however_many_there_are(world: World, client: Client) -> None:
    def cost() -> int:
        with counted() as ours, CaptureQueriesContext(connection) as captured:
            client.get(reverse(LIST))
        return len(captured) + len(ours)

    Ask.start({})
    world.worker.run()
    cost()
    few = cost()
    for _ in range(20):
        Ask.start({})
    world.worker.run()
    assert cost() == few < 12


def test_a_retry_does_not_wait_for_its_time(world: World, client: Client) -> None:
    tries.clear()
    with factories.declaring(world.worker) as declare:
        flow = declare(
            "t-retry-now",
            call=Activity(busy, retry=Retry(3, initial=hours(1), maximum=hours(1)), then="done"),
            done=End(COMPLETE),
        )
        run = flow.start({})
        world.worker.run()
        page = client.get(reverse("admin:outlast_flows_workflow_change", args=[run.id]))
        (control,) = [one for one in page.context["controls"] if one["verb"] == "retry"]
        address = reverse("admin:outlast_flows_workflow_retry", args=[run.id])
        seen = control["form"].initial["seen"]
        reader = client_of("otto")
        permit(world.otto, "view_workflow")
        assert reader.post(address, {"reason": "now", "seen": seen}).status_code == 403
        assert client.post(address, {"reason": "", "seen": seen}).status_code == 200, "it asks why"
        answer = client.post(address, {"reason": "The provider is back", "seen": seen}, follow=True)
        assert [str(one) for one in answer.context["messages"]] == ["It is tried again now: its status is runnable."]
        world.worker.run()
        assert flows.describe(run).status == "complete"
        assert tries == [1, 2]


def test_a_hold_is_the_first_reason(world: World, client: Client) -> None:
    run = Ask.start({})
    flows.hold("flow", Ask.definition.name, reason="an incident")
    why = flows.describe(run).why
    assert why[0].code == "HELD"
    assert "an incident" in why[0].says
    other = Line.start({})
    assert [one.code for one in flows.describe(other).why] != ["HELD"]
    flows.lift("flow", Ask.definition.name, reason="over")
    assert flows.describe(run).why[0].code != "HELD"


def test_the_context_and_the_json_of_a_run(world: World, client: Client) -> None:
    tries.clear()
    with factories.declaring(world.worker) as declare:
        flow = declare(
            "t-context-page",
            call=Activity(busy, retry=Retry(3, initial=hours(1), maximum=hours(1)), then="done"),
            done=End(COMPLETE),
        )
        run = flow.start({"said": "<script>alert(1)</script>\u202e"}, key="c-1")
        world.worker.run()
        address = reverse("admin:outlast_flows_workflow_context", args=[run.id])
        page = client.get(address).content.decode()
        assert "data, from" in page
        assert "&lt;script&gt;" in page
        assert "<script>alert" not in page
        assert "\u202e" not in page
        raw = reverse("admin:outlast_flows_workflow_raw", args=[run.id])
        found = json.loads(client.get(raw).content)
        assert (found["id"], found["key"], found["why"][0]["code"]) == (str(run.id), "c-1", "WAITING")
        for target in (address, raw):
            assert client.post(target).status_code == 403
            assert stranger().get(target).status_code == 403
        flows.cancel(run)
        assert "no code would get" not in page
        assert "no code would get a context now" in client.get(address).content.decode()


def test_the_overview_says_how_everything_is(world: World, client: Client) -> None:
    for _ in range(2):
        Ask.start({})
    world.worker.run()
    world.ask()
    Line.start({})
    flows.hold("flow", Ask.definition.name, reason="an incident")
    address = reverse("admin:outlast_flows_overview_changelist")
    assert client.get(address + "?p=-1&q=%00&id__in=x&o=9").status_code == 200, "it takes nothing from its address"
    response = client.get(address)
    tiles = {str(one["label"]): one for one in response.context["tiles"]}
    assert tiles["Ready, and not taken yet"]["count"] == "1"
    assert tiles["Open requests to people"]["count"] == "1"
    assert (tiles["Holds"]["count"], tiles["Holds"]["alarming"]) == ("1", True)
    assert tiles["Effects in doubt"]["count"] == "0"
    assert not tiles["Effects in doubt"]["alarming"]
    for one in [
        *(one for one in response.context["tiles"] if one["url"]),
        *[{"url": chip["query"]} for chip in response.context["chips"]],
    ]:
        assert client.get(one["url"]).status_code == 200, one
    for label in ("Ready, and not taken yet", "Open requests to people", "Commitments over their deadline", "Holds"):
        behind = client.get(tiles[label]["url"]).context["cl"].result_count
        assert str(behind) == tiles[label]["count"], "a figure is the way to its list"
    with counted() as ours, CaptureQueriesContext(connection) as captured:
        client.get(address)
    assert len(captured) + len(ours) < 12
    assert "no-store" in response["Cache-Control"]
    assert stranger().get(address).status_code == 403
    run = Workflow.objects.latest("pk")
    assert client.get(reverse("admin:outlast_flows_overview_change", args=[run.pk])).url.endswith(f"/workflow/{run.pk}/change/")  # type: ignore[attr-defined]
