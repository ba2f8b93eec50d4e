"""The page of a commitment: who may say what becomes of it, by a POST with a reason; and twice is once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flows import COMPLETE, Activity, Commits, End, commitments
from flows.models import Commitment
from tests import factories
from tests.factories import status
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("J1", "Q3")

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def run(world: World) -> Iterator[Any]:
    """A run that only waits for a word about what it holds; its reference is text from outside. Rita may say it, Vera may look."""
    world.rita.user_permissions.set([Permission.objects.get(codename="service_commitment")])
    world.otto.user_permissions.clear()
    with factories.declaring(world.worker) as declare:
        hold = Activity(factories.work, commits=Commits("hold", reference=lambda result: EVIL), then="done")
        started = declare("t-held", hold=hold, done=End(COMPLETE)).start({}, key=EVIL)
        world.worker.run()
        assert status(started)[0] == "reconciling"
        yield started
    factories.forget()


def held() -> Commitment:
    return Commitment.objects.get()


def url() -> str:
    return reverse("admin:outlast_flows_commitment_change", args=[held().pk])


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def post(name: str = "rita", **data: str) -> Any:
    return client_of(name).post(url(), {"what": "fulfil", "to": "", "reason": "it was used", **data}, follow=True)


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


@pytest.mark.parametrize(
    ("given", "becomes", "noted"),
    [
        ({"what": "fulfil"}, "fulfilled", "Fulfilled."),
        ({"what": "transfer", "to": EVIL}, "transferred", "Transferred."),
        ({"what": "defer"}, "deferred", "Deferred."),
    ],
)
def test_a_person_says_what_becomes_of_it(run: Any, world: World, given: dict[str, str], becomes: str, noted: str) -> None:
    response = post(**given, reason=EVIL)
    assert said(response) == f"hold is {becomes}; the status of its workflow is complete."
    assert "<script>alert(1)" not in response.content.decode()
    assert "\u202e" not in response.content.decode()
    assert (held().status, held().closed_by, held().reason) == (becomes, "rita", EVIL)
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.get_change_message()) == (world.rita, str(held().pk), noted)
    again = post(**given)
    assert said(again) == f"It has ended: it is {becomes}. Nothing was changed."
    assert (LogEntry.objects.count(), held().reason) == (1, EVIL)
    assert "What becomes of it" not in client_of("rita").get(url()).content.decode()


def test_a_form_that_somebody_else_was_faster_than_changes_nothing(run: Any) -> None:
    assert "What becomes of it" in client_of("rita").get(url()).content.decode()
    commitments.transfer(held(), to="the night shift", by=None, reason="at five")
    assert said(post()) == "It has ended: it is transferred. Nothing was changed."
    assert (held().status, held().holder, LogEntry.objects.count()) == ("transferred", "the night shift", 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"what": ""}, "Choose what becomes of it."),
        ({"what": "lose"}, "Choose what becomes of it."),
        ({"reason": " "}, "Say why: the reason is part of the record."),
        ({"what": "transfer"}, "Say to whom it goes over."),
        ({"to": "me"}, "Only what is handed over has a new holder"),
    ],
)
def test_what_is_missing_is_said_at_its_field(run: Any, given: dict[str, str], message: str) -> None:
    shown = post(**given).content.decode()
    assert message in shown
    assert "Nothing was changed." in shown
    assert "<title>Error:" in shown
    assert (held().status, LogEntry.objects.count()) == ("active", 0)


def test_only_a_permitted_post_says_anything(run: Any) -> None:
    given = {"what": "fulfil", "reason": "x"}
    assert post("vera").status_code == 403
    assert post("otto").status_code == 403
    assert Client().post(url(), given).status_code == 302
    assert client_of("rita", enforce_csrf_checks=True).post(url(), given).status_code == 403
    assert client_of("rita").put(url()).status_code == 405
    response = client_of("rita").get(url(), given)
    assert response.headers["Cache-Control"].startswith("no-store")
    assert "What becomes of it" not in client_of("vera").get(url()).content.decode()
    assert client_of("otto").get(url()).status_code == 403
    assert client_of("rita").get(url().replace(str(held().pk), "x")).status_code == 404
    assert (held().status, LogEntry.objects.count()) == ("active", 0)


def test_one_that_has_not_begun_is_left_alone(run: Any) -> None:
    Commitment.objects.update(status="planned")
    assert "It has not begun" in said(post())
    assert held().status == "planned"
    Commitment.objects.update(status="active")
