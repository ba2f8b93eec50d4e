"""The read-only pages of the durable record."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

import flows
from flows.models import Event, Workflow
from tests.support import releasing
from tests.support.approving import PASSWORD, World

EVIL = "<script>alert(1)</script>\u202e"
NAMES = ("workflow", "intent", "event", "wait", "timer", "worker", "notice")


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


@pytest.mark.req("Q3")
def test_a_workflows_page_answers_the_questions(world: World) -> None:
    request = world.ask(key="n-1", goal="Publish the news")
    shown = client_of("vera").get(reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id])).content.decode()
    for text in (
        "waiting",
        "an answer to the approval request at ask",
        "an eligible reviewer",
        reverse("admin:outlast_approvals_request_of_wait", args=[request.wait_id]),
        "bound to version 1; now 1, active",
        "robin",
        "wait_deadline",
        "<code>publish</code> (approved)",
        "succeeded",
    ):
        assert text in shown, text


@pytest.mark.parametrize("name", NAMES)
def test_every_list_and_page_opens_for_a_reader_and_for_nobody_else(world: World, name: str) -> None:
    from django.apps import apps

    request = world.ask(goal=EVIL, key=EVIL)
    flows.signal("e-1", "ci.finished", key=EVIL, payload={"said": EVIL})
    world.clock.move(hours=25)
    world.worker.tick()
    world.worker.run()
    model = apps.get_model("outlast_flows", name)
    row = model.objects.first()
    assert row is not None, name
    reader, stranger = client_of("vera"), client_of("otto")
    world.otto.user_permissions.clear()
    for target in (
        reverse(f"admin:outlast_flows_{name}_changelist"),
        reverse(f"admin:outlast_flows_{name}_change", args=[row.pk]),
        reverse(f"admin:outlast_flows_{name}_history", args=[row.pk]),
    ):
        response = reader.get(target)
        assert response.status_code == 200, target
        assert "<script>alert" not in response.content.decode()
        assert "\u202e" not in response.content.decode()
        assert stranger.get(target).status_code == 403
    assert reader.post(reverse(f"admin:outlast_flows_{name}_change", args=[row.pk]), {"x": "y"}).status_code == 403
    assert client_of("sue").get(reverse(f"admin:outlast_flows_{name}_add")).status_code == 403
    assert request.workflow_id


def test_workflows_are_found_by_key_id_status_and_flow(world: World) -> None:
    one, two = world.ask(key="n-1"), world.ask(key="n-2")
    flows.cancel(two.workflow)
    client = client_of("vera")

    def found(**query: str) -> list[Workflow]:
        response = client.get(reverse("admin:outlast_flows_workflow_changelist"), query)
        return list(response.context["cl"].result_list)

    assert found() == [two.workflow, one.workflow]
    assert found(q="n-1") == found(q=str(one.workflow_id)) == found(status="waiting") == [one.workflow]
    assert found(q="n-") == []
    assert found(flow="publish-news", status="cancelled") == [two.workflow]
    assert found(flow="nothing") == []


def test_events_are_found_by_their_id(world: World) -> None:
    flows.signal("e-1", "x", key="k")
    flows.signal("e-2", "x", key="k")
    response = client_of("vera").get(reverse("admin:outlast_flows_event_changelist"), {"q": "e-2", "status": "pending"})
    assert list(response.context["cl"].result_list) == [Event.objects.get(event_id="e-2")]


def shown_of(name: str, pk: object) -> str:
    return client_of("vera").get(reverse(f"admin:outlast_flows_{name}_change", args=[pk])).content.decode()


@pytest.mark.req("D1", "D3")
def test_an_intents_page_lists_its_runs_and_what_a_new_goal_would_end(world: World) -> None:
    request = world.ask(key="n-1", goal="Publish the news")
    other = world.ask(key="n-2")
    intent = request.workflow.intent_id
    page = shown_of("intent", intent)
    assert reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id]) in page
    assert reverse("admin:outlast_flows_workflow_change", args=[other.workflow_id]) not in page
    assert "1 live run" in page
    assert "withdrawn: " in page
    assert "approval at ask: its request can no longer be answered" in page


def test_an_intent_without_live_runs_is_still_wanted_and_says_so(world: World) -> None:
    request = world.ask(key="n-1")
    world.decide(request)
    world.worker.run()
    assert world.workflow(request).status == "complete"
    page = shown_of("intent", request.workflow.intent_id)
    assert "and no live run" in page
    listed = client_of("vera").get(reverse("admin:outlast_flows_intent_changelist"))
    assert [(one.status, one.live_runs) for one in listed.context["cl"].result_list] == [("active", 0)]


def test_nobody_needs_to_offer_the_release_of_a_run_that_has_ended(world: World) -> None:
    releasing.both()
    request = world.ask(key="n-1")
    assert "offered by" in shown_of("workflow", request.workflow_id)
    world.decide(request)
    world.worker.run()
    page = shown_of("workflow", request.workflow_id)
    assert "R17" in page
    assert "the current one" in page
    assert "offer" not in page


def test_an_events_page_says_that_it_may_have_woken_others(world: World) -> None:
    flows.signal("e-1", "x", key="k")
    event = Event.objects.get()
    assert "wakes all that wait" not in shown_of("event", event.pk)
    Event.objects.update(workflow_id=world.ask().workflow_id, status="consumed")
    assert "An event wakes all that wait for its type and key." in shown_of("event", event.pk)


@pytest.mark.parametrize("wrong", ["no-id", "00000000-0000-0000-0000-000000000000"])
def test_a_workflow_that_does_not_exist(world: World, wrong: str) -> None:
    assert client_of("vera").get(f"/admin/outlast_flows/workflow/{wrong}/change/").status_code == 404


def test_without_the_human_plane_there_is_simply_no_link(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.admin import read_only

    def missing(*args: object, **kwargs: object) -> str:
        raise read_only.NoReverseMatch

    request = world.ask()
    monkeypatch.setattr(read_only, "reverse", missing)
    shown = client_of("vera").get(reverse("admin:outlast_flows_workflow_change", args=[request.workflow_id])).content.decode()
    assert "an eligible reviewer" in shown
    assert "of-wait" not in shown
