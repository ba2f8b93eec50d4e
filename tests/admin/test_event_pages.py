"""The inbox of events: each place is found, what an event says is shown as data, and those who may have one delivered again, with a reason."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

import flows
from flows.admin.events import GROUPS, MEANS
from flows.core.inbox import Place
from flows.models import Event, Redelivery
from flows.models import Wait as WaitRow
from tests.factories import Ask, status
from tests.support.approving import PASSWORD, World

pytestmark = pytest.mark.req("E2", "Q3")

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def inbox(world: World) -> Any:
    """A run that waits; Rita may have events delivered again, Vera may look."""
    world.rita.user_permissions.set([Permission.objects.get(codename="redeliver_event")])
    run = Ask.start({"key": "k"})
    world.worker.run()
    flows.signal(EVIL, "t.asked", key=EVIL, payload={"say": EVIL}, about=flows.About(workflow=uuid4()))
    return run


def event() -> Event:
    return Event.objects.get(event_id=EVIL)


def url() -> str:
    return reverse("admin:outlast_flows_event_change", args=[event().pk])


def client_of(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def post(name: str = "rita", **data: Any) -> Any:
    seen = f"{event().status}:{event().redelivered}"
    return client_of(name).post(url(), {"reason": "it was for this run", "to": "", "seen": seen, **data}, follow=True)


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def listed(**query: str) -> list[Event]:
    response = client_of("vera").get(reverse("admin:outlast_flows_event_changelist"), query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


def test_every_place_has_its_words_and_is_found_by_one_filter_or_taken() -> None:
    assert set(MEANS) == set(Place)
    grouped = {place for _, places in GROUPS.values() for place in places}
    assert grouped == set(Place) - {Place.TAKEN, Place.STARTED}


def test_the_list_is_narrowed_by_place(inbox: Any) -> None:
    flows.signal("e2", "t.nobody", key="k")
    assert listed(place="misdirected") == listed(place="alerts") == [event()]
    assert [one.event_id for one in listed(place="unknown")] == ["e2"]
    assert listed(place="late") == []
    assert len(listed()) == 2


def test_what_it_says_is_data(inbox: Any) -> None:
    for address in (url(), reverse("admin:outlast_flows_event_changelist")):
        page = client_of("vera").get(address).content.decode()
        assert "<script>alert(1)" not in page
        assert "\u202e" not in page
    assert "never waits for it" in client_of("vera").get(url()).content.decode()


def test_a_person_has_it_delivered_again(inbox: Any, world: World) -> None:
    wait = WaitRow.objects.get()
    response = post(to=str(wait.pk), reason=EVIL)
    assert said(response) == "Delivered: it reached 1 runs."
    assert "<script>alert(1)" not in response.content.decode()
    assert "\u202e" not in response.content.decode()
    world.worker.run()
    assert status(inbox)[2] == "again"
    made = Redelivery.objects.get()
    assert (made.by, made.reason, made.wait_id) == (world.rita, EVIL, wait.pk)
    entry = LogEntry.objects.get()
    assert (entry.user, entry.get_change_message()) == (world.rita, "Delivered again.")
    assert "Deliver it again" not in client_of("rita").get(url()).content.decode()


def test_twice_is_once_and_what_moved_is_said(inbox: Any) -> None:
    assert said(post()) == "Nobody waits for it now: the next wait of its type and key takes it."
    assert "since this page was opened" in said(post(seen="aside:0"))
    assert (event().redelivered, Redelivery.objects.count(), LogEntry.objects.count()) == (1, 1, 1)


def test_a_wait_that_is_over_is_too_late(inbox: Any) -> None:
    flows.cancel(inbox)
    assert "takes nothing any more" in said(post(to=str(WaitRow.objects.get().pk)))
    assert event().redelivered == 0


@pytest.mark.parametrize("data", [{"reason": " "}, {"seen": "x"}, {"to": "x"}, {"to": "0"}, {"to": "4711"}])
def test_what_cannot_be_changes_nothing(inbox: Any, data: dict[str, str]) -> None:
    response = post(**data)
    assert "Nothing was changed." in response.content.decode()
    assert (event().redelivered, LogEntry.objects.count()) == (0, 0)


@pytest.mark.parametrize("name", ["vera", "otto"])
def test_who_may_not_is_refused(inbox: Any, name: str) -> None:
    assert post(name).status_code == 403
    assert event().redelivered == 0
    if name == "vera":
        page = client_of("vera").get(url()).content.decode()
        assert "outlast_flows.redeliver_event" in page
        assert "Deliver again</button>" not in page


def test_a_get_changes_nothing(inbox: Any) -> None:
    assert client_of("rita").get(url(), {"reason": "r", "seen": "aside:0"}).status_code == 200
    assert event().redelivered == 0
