"""The releases' pages, through HTTP: who is pinned and who offers, what differs, and that only a permitted POST changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from flows import releases
from flows.models import CurrentRelease, Release
from tests import factories
from tests.factories import Ask, Line, another_worker, forget, row
from tests.support.approving import PASSWORD, World
from tests.support.releasing import both, now_is, pins, register

pytestmark = pytest.mark.req("I1")

EVIL = "<script>alert(1)</script> \u202eevil\u202c"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
LIST = "admin:outlast_flows_release_changelist"


@pytest.fixture(autouse=True)
def people(world: World) -> Iterator[None]:
    """Rita may manage releases, Vera may look, Otto may do neither."""
    forget()
    world.rita.user_permissions.add(Permission.objects.get(codename="manage_release"))
    world.otto.user_permissions.clear()
    yield
    forget()


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def url(name: str) -> str:
    return reverse("admin:outlast_flows_release_change", args=[Release.objects.get(name=name).pk])


def page(client: Client, name: str, **query: str) -> str:
    response = client.get(url(name), query)
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    return response.content.decode()


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def test_the_list_shows_where_each_is_current_and_who_offers_it(world: World) -> None:
    both()
    Line.start({})
    now_is("R18", Line)
    world.worker.stop()
    another_worker(name="new", releases=["R18"])
    shown = client_of("vera").get(reverse(LIST)).content.decode()
    for text in ("R17", "R18", "UNOFFERED", "no live worker", "new", "t-line", "current"):
        assert text in shown, text
    assert client_of("otto").get(reverse(LIST)).status_code == 403
    assert "R18" not in client_of("vera").get(reverse(LIST), {"q": "R17"}).content.decode().split('id="result_list"')[1]
    assert client_of("vera").get(reverse(LIST), {"q": "R\x00"}).status_code == 200


def test_the_list_costs_the_same_number_of_queries_for_one_and_for_many(world: World) -> None:
    client = client_of("vera")
    both()
    counts = []
    for _ in range(2):
        client.get(reverse(LIST))
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse(LIST))
        counts.append(len(captured))
        for number in range(5):
            register(f"more-{number}")
            now_is(f"more-{number}")
            Line.start({})
    assert counts[0] == counts[1] <= 12


def test_the_page_says_what_it_is_made_of_and_what_differs(world: World) -> None:
    both(compatible=True)
    Line.start({})
    client = client_of("vera")
    shown = page(client, "R18")
    for text in (releases.digest("Plan it, and say why."), "Takes over from", "R17", "no live worker"):
        assert text in shown or text == "no live worker", text
    assert 'name="act"' not in shown, "who may only look changes nothing"
    differing = page(client, "R18", against="R17")
    assert releases.digest("Plan it.") in differing
    assert releases.digest("m-1") not in differing
    assert page(client, "R18", against="nothing") != differing
    assert "every flow that has none of its own" in page(client, "R17")
    assert client.get(reverse("admin:outlast_flows_release_change", args=["99999"])).status_code == 404
    assert client.get(reverse("admin:outlast_flows_release_change", args=["x"])).status_code == 404


def test_text_from_outside_is_text(world: World) -> None:
    releases.register("R17", models={EVIL: 1}, note=EVIL)
    releases.make_current("R17", by=None, reason=EVIL)
    shown = page(client_of("rita"), "R17")
    assert shown.count(ESCAPED) == 3
    assert "<script>alert" not in shown


def test_it_is_made_current_by_a_permitted_post_with_a_reason(world: World) -> None:
    both()
    client = client_of("rita", enforce_csrf_checks=False)
    given = {"act": "current", "current-flow": "t-line", "current-reason": "A trial"}
    assert client_of("vera").post(url("R18"), given).status_code == 403
    response = client.post(url("R18"), {**given, "current-reason": ""})
    assert "Say why: the reason is part of the record." in response.content.decode()
    assert "Nothing was changed." in response.content.decode()
    assert CurrentRelease.objects.count() == 1
    response = client.post(url("R18"), given, follow=True)
    assert said(response) == "R18 is current for new runs now."
    made = CurrentRelease.objects.get(flow_name="t-line")
    assert (made.release, made.by_label, made.reason) == ("R18", "rita", "A trial")
    assert LogEntry.objects.get().change_message == "Made current for t-line: A trial"
    assert said(client.post(url("R18"), given, follow=True)) == "R18 was current already."
    assert LogEntry.objects.count() == 1
    assert client.post(url("R18"), {**given, "current-flow": "t-none"}).status_code == 200
    assert client.put(url("R18")).status_code == 405


def test_csrf_is_checked(world: World) -> None:
    both()
    client = client_of("rita", enforce_csrf_checks=True)
    assert client.post(url("R18"), {"act": "current", "current-reason": "x"}).status_code == 403


def test_runs_are_moved_after_a_look_at_what_would_become_of_them(world: World) -> None:
    both()
    running, waiting = Line.start({}, priority=9), Ask.start({"key": "x"})
    factories.enter(factories.take_one(world.worker))
    world.worker.run()
    client = client_of("rita")
    assert "Show what would be moved" in page(client, "R17")
    seen = page(client, "R17", to="R18", flow="", run="")
    assert "1 of 2 would be moved to R18." in seen
    assert "It is computing" in seen
    assert row(waiting).release == "R17"
    refused = client.post(url("R17"), {"act": "move", "to": "R18", "flow": "", "run": "", "reason": ""}).content.decode()
    assert "Say why: the reason is part of the record." in refused
    assert "1 of 2 would be moved to R18." in refused
    response = client.post(url("R17"), {"act": "move", "to": "R18", "flow": "", "run": "", "reason": "Read both"}, follow=True)
    assert said(response).startswith("1 of 2 moved to R18. It is computing")
    assert pins(waiting) == [("waiting", "R17", "R18")]
    assert LogEntry.objects.get().change_message == "Moved 1 runs to R18: Read both"
    factories.lose(world.worker)
    assert row(running).release == "R17"


def test_one_run_is_moved_or_keeps_its_own(world: World) -> None:
    both()
    one, two = Line.start({}), Line.start({})
    now_is("R18")
    client = client_of("rita")
    given = {"act": "move", "to": "R17", "flow": "", "run": str(one.id), "reason": "It is almost done"}
    assert "1 of 1 would be moved to R17." in page(client, "R17", to="R17", flow="", run=str(one.id))
    client.post(url("R17"), given)
    assert (row(one).passed_over, row(two).passed_over) == ("R18", None)
    assert "No run with this id is pinned to R17." in page(client, "R17", to="R18", flow="", run="x")
    assert "No run with this id is pinned to R18." in page(client, "R18", to="R17", flow="", run=str(one.id))
    assert client.post(url("R18"), {**given, "to": "R71"}).status_code == 200
    assert client_of("vera").post(url("R17"), given).status_code == 403
    assert row(two).release == "R17"
    world.worker.run()


def test_a_workflow_shows_its_release_and_the_alert(world: World, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "RELEASE_ALERT_SECONDS": 0.001}
    both()
    run, other = Line.start({}), Ask.start({"key": "x"})
    world.worker.run()
    stuck = Line.start({})
    now_is("R18")
    world.worker.stop()
    world.clock.move(seconds=1)
    world.worker.tick()
    client = client_of("vera")
    change = reverse("admin:outlast_flows_workflow_change", args=[stuck.id])
    shown = client.get(change).content.decode()
    assert "Alert: the run is ready, and cannot be taken." in shown
    assert "current is R18" in shown
    assert url("R17") in shown
    listed = client.get(reverse("admin:outlast_flows_workflow_changelist"), {"alert": "release"})
    assert [one.pk for one in listed.context["cl"].result_list] == [stuck.id]
    assert {run.id, other.id} - {stuck.id}
    assert "ALERT" in client.get(reverse(LIST)).content.decode()
    assert "1 run is ready, and no live worker offers this release." in page(client, "R17")
