"""Webhooks that meet: each is kept once and wakes once, none is lost between the inbox and a wait, and none waits for another in a circle."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

import flows
from flows import COMPLETE, ESCALATE, Deadline, End, On, Wait
from flows.models import Event, Transition, WebhookDelivery, Workflow
from flows.services.proceed import Progress
from flows.services.webhooks import mapping, sources
from flows.services.webhooks.receiving import receive
from flows.store import locks, sql
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, status
from tests.support import hooking, signing
from tests.support.races import PATIENCE, all_of, is_blocked, overtaken, racers, together, wait_for

pytestmark = pytest.mark.req("E4", "A3")

USING = "default"
ROUNDS = 150


@pytest.fixture(autouse=True)
def settings_of_sources(transactional_db: None, settings: Any) -> Iterator[None]:
    settings.HOOK_SECRET = signing.SECRET
    given = {
        hooking.SOURCE: hooking.SETTING,
        "several": {**hooking.SETTING, "EVENT": "tests.support.hooking.by_function", "KEY": ""},
    }
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": given}
    sources.forget()
    hooking.broken = False
    yield
    sources.forget()


def send(body: dict[str, Any], sent_id: str = "d-1", name: str = hooking.SOURCE) -> bool:
    """Whether it was the first of its kind."""
    source, raw, now = sources.find(name, USING), json.dumps(body).encode(), int(time.time())
    assert isinstance(source, sources.Source)
    reply = receive(source, signing.signed("standard", raw, signing.SECRET, now=now, sent_id=sent_id), raw, now=now, using=USING)
    assert reply.refused is None
    return reply.first


def test_one_delivery_many_times_at_once_is_one(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    answers = Counter(all_of([lambda: send({"key": "k"})] * 8))
    assert answers == {True: 1, False: 7}
    assert (WebhookDelivery.objects.get().times, Event.objects.get().deliveries) == (8, 1)
    assert Transition.objects.filter(workflow_id=run.id, trigger="event").count() == 1


def test_the_second_waits_for_the_end_of_the_first(worker: LocalWorker) -> None:
    met = overtaken(lambda: send({"key": "k"}), lambda: send({"key": "k"}))
    assert (met.first, met.second, met.blocked) == (True, False, True)


def test_the_second_is_the_first_where_that_was_rolled_back() -> None:
    def dropped() -> None:
        send({"key": "k"})
        transaction.set_rollback(True)

    met = overtaken(dropped, lambda: send({"key": "k"}))
    assert (met.second, met.blocked) == (True, True)
    assert WebhookDelivery.objects.get().times == 1


def test_a_park_against_a_delivery_loses_no_event(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Aligned at the channel, as a signal is."""
    Ask.start_many([(f"n-{number}", {"key": f"k{number}"}) for number in range(ROUNDS)])
    owned = factories.take_up_to(worker, ROUNDS)
    assert len(owned) == ROUNDS
    line, channel = threading.Barrier(2), locks.channel

    def aligned(*args: Any) -> None:
        line.wait(PATIENCE)
        channel(*args)

    monkeypatch.setattr(locks, "channel", aligned)
    with racers(2) as (turn, sender):
        for one in owned:
            key = one.state.input["key"]
            parked, first = together(
                (turn, lambda one=one: factories.enter(one, factories.LET_GO)),
                (sender, lambda key=key: send({"key": key}, sent_id=key)),
            )
            assert (parked, first) == (Progress.LEFT, True)
    monkeypatch.setattr(locks, "channel", channel)
    assert Workflow.objects.filter(status="waiting", waits__status="open", waits__evidence=None).count() == 0
    assert set(Event.objects.values_list("status", flat=True)) == {"consumed"}


def locked_by_delivery(monkeypatch: pytest.MonkeyPatch, runs: Any, keys: Any, statement: str) -> None:
    """Send a delivery that means these keys; after its first `statement` somebody else locks all these runs, in the order of their ids."""
    main = threading.get_ident()
    with racers(1) as (other,):
        second: list[Any] = []

        def both() -> int:
            with transaction.atomic():
                return len(locks.workflows([run.id for run in runs], USING))

        def hold(when: str, name: str) -> None:
            if threading.get_ident() == main and (when, name) == ("within", statement) and not second:
                second.append(other.do(both))
                wait_for(lambda: second[0].done() or is_blocked(other.pid))

        monkeypatch.setattr(sql, "seam", hold)
        assert send({"keys": keys}, name="several")
        assert second[0].result(PATIENCE) == 2
        monkeypatch.setattr(sql, "seam", None)


def test_the_events_of_one_delivery_lock_who_waits_in_the_order_of_all(
    worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It means the later run first. Whoever locks both, as supersede does, begins with the earlier one."""
    runs = sorted((Ask.start({"key": key}) for key in ("a", "b")), key=lambda run: run.id)
    keys = [Workflow.objects.get(pk=run.id).input["key"] for run in reversed(runs)]
    worker.run()
    locked_by_delivery(monkeypatch, runs, keys, "wake")
    assert [status(run)[0] for run in runs] == ["runnable"] * 2


def test_two_who_map_a_delivery_anew_do_it_once() -> None:
    hooking.broken = True
    send({"key": "k"}, name="several")
    hooking.broken = False
    number = WebhookDelivery.objects.get().pk
    met = overtaken(lambda: mapping.map_anew(number, reason="one"), lambda: mapping.map_anew(number, reason="two"))
    assert (bool(met.first), bool(met.second), met.blocked) == (True, False, True)
    assert (WebhookDelivery.objects.get().reason, Event.objects.get().deliveries) == ("one", 1)


def test_so_do_they_where_a_run_waits_for_several(worker: LocalWorker, declare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that waits for parts is known by none of its channels alone."""
    flow = declare(
        "t-both",
        both=Wait(
            all=[On("t.asked", key=factories.key_of), On("t.more", key="x")],
            deadline=Deadline(hours=1, then=ESCALATE),
            then="done",
        ),
        done=End(COMPLETE),
    )
    runs = sorted((flow.start({"key": key}) for key in ("a", "b")), key=lambda run: run.id)
    keys = [Workflow.objects.get(pk=run.id).input["key"] for run in reversed(runs)]
    worker.run()
    locked_by_delivery(monkeypatch, runs, keys, "fill parts")
    flows.signal("more", "t.more", key="x")
    worker.run()
    assert [status(run)[0] for run in runs] == ["complete"] * 2
