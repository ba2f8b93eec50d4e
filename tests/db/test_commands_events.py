"""manage.py flows events and latency: what is in the inbox, delivered again by those who may, and how long wake-ups take."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows.models import Event, Wait
from flows.testing import Clock, LocalWorker
from tests.factories import Ask, status
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("E2")

EVIL = "k\u202e"


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> None:
    """Ann may have events delivered again, Cat may not."""
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="redeliver_event"))
    get_user_model().objects.create_user("cat")


@pytest.fixture
def late(worker: LocalWorker) -> Any:
    """A run that waits, and an event with a wrong key."""
    run = Ask.start({"key": "k"})
    worker.run()
    flows.signal("e1", "t.asked", key=EVIL, payload={"n": 1})
    return run


def number(event_id: str = "e1") -> int:
    return Event.objects.get(event_id=event_id).pk


def test_the_inbox_is_listed(late: Any, cli: Any) -> None:
    flows.signal("e2", "t.nobody", key="k")
    flows.signal("e2", "t.nobody", key="k", payload={"other": 1})
    (first,) = cli("events", "list", "--place", "early", "--json").json
    assert (first["event_id"], first["status"], first["key"], first["number"]) == ("e1", "pending", EVIL, number())
    assert [row["place"] for row in cli("events", "list", "--alerts", "--json").json] == ["conflict"]
    assert [row["event_id"] for row in cli("events", "list", "--type", "t.asked", "--key", EVIL, "--json").json] == ["e1"]
    shown = cli("events", "list", "--limit", "1")
    assert (shown.code, "1 shown; there may be more (--limit)" in shown.err) == (0, True)
    assert "\u202e" not in cli("events", "list").out
    assert cli("events", "list", "--key", "k").code == 2


def test_one_is_shown_and_delivered_again(late: Any, cli: Any, worker: LocalWorker) -> None:
    wait = Wait.objects.get().pk
    done = cli("events", "redeliver", number(), "--to", wait, "--by", "ann", "--reason", "a wrong key")
    assert (done.code, done.out.strip(), "1 reached" in done.err) == (0, "accepted", True)
    worker.run()
    assert status(late)[2] == "again"
    found = cli("events", "show", number(), "--json").json
    assert (found["status"], found["place"], found["payload"]) == ("consumed", "redelivered", {"n": 1})
    assert [(one["by"], one["reason"], one["to"]) for one in found["redeliveries"]] == [("ann", "a wrong key", wait)]
    assert "a wrong key" in cli("events", "show", number()).out
    again = cli("events", "redeliver", number(), "--by", "ann", "--reason", "r")
    assert (again.code, "has been taken" in again.err) == (1, True)


def test_what_waits_for_nobody_waits_for_the_next(late: Any, cli: Any) -> None:
    done = cli("events", "redeliver", number(), "--by", "ann", "--reason", "r")
    assert (done.code, done.out.strip(), "nobody waits" in done.err) == (0, "kept", True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["EVENT", "--by", "cat", "--reason", "r"], 1, "redeliver_event"),
        (["EVENT", "--by", "ann", "--reason", " "], 1, "the reason must not be empty"),
        (["x", "--by", "ann", "--reason", "r"], 1, "is no number"),
        (["4711", "--by", "ann", "--reason", "r"], 1, "There is no event 4711"),
        (["EVENT", "--by", "ann", "--reason", "r", "--to", "4711"], 1, "which does not exist"),
    ],
)
def test_what_cannot_be_is_said(late: Any, cli: Any, arguments: list[str], code: int, said: str) -> None:
    done = cli("events", "redeliver", *[number() if one == "EVENT" else one for one in arguments])
    assert (done.code, said in done.err) == (code, True), done.err
    assert Event.objects.get().redelivered == 0


def test_how_long_wake_ups_take(late: Any, cli: Any, worker: LocalWorker, clock: Clock) -> None:
    assert cli("latency", "--json").json == []
    flows.signal("e2", "t.asked", key="k")
    clock.move(seconds=5)
    worker.run()
    (found,) = cli("latency", "--json").json
    assert (found["kind"], found["count"]) == ("event", 1)
    assert 5 <= found["p50"] == found["p99"] == found["longest"] < 60
    assert cli("latency", "--flow", "t-line", "--json").json == []
    shown = cli("latency")
    assert ("event" in shown.out, "of the last 7 days" in shown.err) == (True, True)
    clock.move(hours=49)
    assert cli("latency", "--days", "2", "--json").json == []
