"""Fields that REDACT names are hidden on pages, in the API and from commands from who lacks `see_redacted`; code sees all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows.models import Event, Wait
from flows.services import describe, redacting
from tests.factories import Ask, Line, does
from tests.support.approving import World
from tests.support.commanding import cli
from tests.support.filling import OrderParts, fill

__all__ = ["cli"]

SECRET = "4111-1111"


@pytest.fixture
def looking(settings: Any, world: World) -> dict[str, Client]:
    """Ann looks at pages, Eve at redacted values too."""
    settings.OUTLAST = {**settings.OUTLAST, "REDACT": ["*.**.card", "*.**.number"]}
    clients = {}
    for name, more in (("ann", ()), ("eve", ("see_redacted",))):
        user = get_user_model().objects.create_user(name, is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(codename__startswith="view_") | Permission.objects.filter(codename__in=more)
        )
        clients[name] = Client()
        clients[name].force_login(user)
    return clients


@pytest.fixture
def run(world: World, looking: Any) -> Any:
    worker = world.worker
    does["after"] = lambda attempt: {"card": SECRET}
    made = Ask.start({"key": "k", "card": SECRET}, key="k")
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload={"by": {"number": SECRET}})
    worker.run()
    flows.signal("e2", "t.again", key="k", payload={"card": SECRET})
    worker.run()
    return made


def pages(client: Client, run: Any) -> str:
    event = Event.objects.get(event_id="e1")
    urls = [("workflow", run.id), ("event", event.pk), ("wait", Wait.objects.earliest("pk").pk)]
    found = [client.get(reverse(f"admin:outlast_flows_{name}_change", args=[pk])) for name, pk in urls]
    assert [one.status_code for one in found] == [200, 200, 200]
    return "".join(one.content.decode() for one in found)


def test_pages_hide_them_and_show_them_to_who_may(run: Any, looking: dict[str, Client]) -> None:
    assert SECRET not in pages(looking["ann"], run)
    assert pages(looking["ann"], run).count("(redacted)") >= 3
    assert SECRET in pages(looking["eve"], run)
    assert "(redacted)" not in pages(looking["eve"], run)
    assert SECRET not in pages(looking["ann"], run), "who looked before is forgotten"


def test_commands_hide_them_until_somebody_looks_who_may(run: Any, cli: Any) -> None:
    for verb in (("show", run.id), ("events", "show", Event.objects.get(event_id="e1").pk)):
        assert SECRET not in cli(*verb, "--json").out
        assert SECRET not in cli(*verb).out
        assert SECRET not in cli(*verb, "--json", "--as", "ann").out
        assert SECRET in cli(*verb, "--json", "--as", "eve").out
    assert cli("show", run.id, "--as", "nobody").code == 1
    assert redacting.shown("input", {"card": SECRET}) == {"card": "(redacted)"}, (
        "who looked is forgotten with the end of the command"
    )


def test_the_context_and_the_file_of_a_run_hide_them_too(world: World, looking: dict[str, Client]) -> None:
    """The context is text, without fields: what strangers wrote is hidden whole."""
    does["after"] = lambda attempt: {"card": SECRET}
    made = Line.start({"card": SECRET})
    address = reverse("admin:outlast_flows_workflow_context", args=[made.id])
    assert "(redacted)" in (shown := looking["ann"].get(address).content.decode())
    assert SECRET not in shown
    assert SECRET in looking["eve"].get(address).content.decode()
    does["one"] = does["two"] = does["three"] = lambda attempt: {"card": SECRET}
    world.worker.run()
    raw = reverse("admin:outlast_flows_workflow_raw", args=[made.id])
    assert SECRET not in looking["ann"].get(raw).content.decode()


def test_code_sees_all(run: Any) -> None:
    assert SECRET in json.dumps(describe.describe(run.id).result)
    assert redacting.shown("input", {"card": SECRET}) == {"card": "(redacted)"}


def test_reviewers_see_as_much_of_candidates_and_answers(world: World, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "REDACT": ["candidate.text", "values.title"]}
    client = Client()
    client.force_login(world.rita)
    request = world.ask({"text": SECRET, "more": "shown"})
    page = client.get(reverse("admin:outlast_approvals_request_decide", args=[request.pk])).content.decode()
    assert (SECRET in page, "shown" in page, "(redacted)" in page) == (False, True, True)
    form = world.ask(flow=OrderParts)
    assert fill(world, form, title=SECRET)
    page = client.get(reverse("admin:outlast_approvals_request_decide", args=[form.pk]), follow=True).content.decode()
    assert SECRET not in page
    client.force_login(world.sue)
    page = client.get(reverse("admin:outlast_approvals_request_decide", args=[request.pk])).content.decode()
    assert SECRET in page
    assert world.decide(request), "the digest is of what is recorded"
