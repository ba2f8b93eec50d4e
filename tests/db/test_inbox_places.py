"""Every place of the inbox once, as it comes about, and what a redelivery makes of it (decision 0006, table of A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission

import flows
from flows import About
from flows.core.inbox import Place
from flows.models import Event, Redelivery, Wait
from flows.services import placing, sweeps
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Ask, row, status

pytestmark = pytest.mark.req("E2")


def send(event_id: str = "e1", event_type: str = "t.asked", key: str = "k", **more: Any) -> Any:
    return flows.signal(event_id, event_type, key=key, **more)


def waiting(worker: LocalWorker, **options: Any) -> Any:
    run = Ask.start({"key": "k"}, **options)
    worker.run()
    return run


def ended(worker: LocalWorker) -> Any:
    """A run that has waited for t.asked k, got it, and has ended."""
    run = waiting(worker)
    send("first")
    worker.run()
    send("second", "t.again")
    worker.run()
    assert status(run)[0] == "complete"
    return run


def found() -> list[str]:
    """What a tick finds of watches."""
    look = sweeps.run_tick("default")
    assert look is not None
    return look.watches


def early(worker: LocalWorker) -> None:
    send()


def between(worker: LocalWorker) -> None:
    waiting(worker)
    send("first")
    worker.run()
    send()


def unknown(worker: LocalWorker) -> None:
    send(event_type="t.nobody-knows")


def late(worker: LocalWorker) -> None:
    ended(worker)
    send()


def superseded(worker: LocalWorker) -> None:
    flows.supersede(waiting(worker), goal="another")
    send()


def about_superseded(worker: LocalWorker) -> None:
    run = waiting(worker)
    flows.supersede(run, goal="another")
    send(about=About(workflow=run.id))


def earlier_wait(worker: LocalWorker) -> None:
    run = waiting(worker)
    number = Wait.objects.get().pk
    send("first")
    worker.run()
    send(about=About(workflow=run.id, wait=number))


def earlier_epoch(worker: LocalWorker) -> None:
    run = waiting(worker)
    row(run)
    from django.db import connection

    with connection.cursor() as cursor:  # what a migration does
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE outlast_workflow SET epoch = 1 WHERE id = %s", [run.id])
        cursor.execute("UPDATE outlast_wait SET epoch = 1")
        cursor.execute("UPDATE outlast_transition SET epoch = 1")
        cursor.execute("SET session_replication_role = DEFAULT")
    send(about=About(workflow=run.id, epoch=0))


def earlier_run(worker: LocalWorker) -> None:
    old = ended(worker)
    waiting(worker)
    send(about=About(workflow=old.id))


def misdirected(worker: LocalWorker) -> None:
    send(about=About(workflow=uuid4()))


def misdirected_to_who_never_waits(worker: LocalWorker) -> None:
    run = factories.Line.start({})
    send(about=About(workflow=run.id))


PLACES: list[tuple[Callable[[LocalWorker], None], str, Place]] = [
    (early, "pending", Place.EARLY),
    (between, "pending", Place.BETWEEN),
    (unknown, "pending", Place.UNKNOWN),
    (late, "aside", Place.ENDED),
    (superseded, "aside", Place.SUPERSEDED),
    (about_superseded, "aside", Place.SUPERSEDED),
    (earlier_wait, "aside", Place.EARLIER_WAIT),
    (earlier_epoch, "aside", Place.EARLIER_EPOCH),
    (earlier_run, "aside", Place.EARLIER_RUN),
    (misdirected, "aside", Place.MISDIRECTED),
    (misdirected_to_who_never_waits, "aside", Place.MISDIRECTED),
]


@pytest.mark.parametrize(("arrange", "state", "place"), PLACES, ids=[one[0].__name__ for one in PLACES])
def test_where_it_stands_and_that_it_moves_nothing(
    worker: LocalWorker, arrange: Callable[[LocalWorker], None], state: str, place: Place
) -> None:
    arrange(worker)
    event = Event.objects.get(event_id="e1")
    assert (event.status, event.place) == (state, place)
    before = {run.pk: (run.status, run.wake_seq) for run in flows.list()}
    assert worker.run() == 0 or place is Place.MISDIRECTED  # the run that never waits has steps of its own
    assert {pk: seen for pk, seen in before.items() if row(pk).wake_seq != seen[1]} == {}


@pytest.mark.parametrize(("arrange", "state", "place"), PLACES, ids=[one[0].__name__ for one in PLACES])
def test_a_redelivery_gives_it_to_who_waits(
    worker: LocalWorker, arrange: Callable[[LocalWorker], None], state: str, place: Place, declare: Any
) -> None:
    arrange(worker)
    event = Event.objects.get(event_id="e1")
    if event.type != "t.asked":
        deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
        nodes = {"ask": flows.Wait(event.type, key="k", deadline=deadline, then="done"), "done": flows.End(flows.COMPLETE)}
        declare("t-late-known", **nodes).start({})
        worker.run()
        assert Event.objects.get(event_id="e1").status == "consumed", "a wait takes it by itself"
        return
    if not Wait.objects.filter(status="open", node="ask").exists():
        held = flows.redeliver(event, by=None, reason="it is for the next run")
        assert (held.answer, bool(held)) == ("kept", True)
        run = waiting(worker)
    else:
        run = Wait.objects.get(status="open", node="ask").workflow
        assert flows.redeliver(event, by=None, reason="it is for this run").woken == (run.pk,)
        worker.run()
    taken = Event.objects.get(event_id="e1")
    assert (taken.status, taken.place, taken.redelivered, taken.workflow_id) == ("consumed", "redelivered", 1, row(run).pk)
    assert status(run)[2] == "again"


def test_what_was_observed_after_a_run_began_may_be_for_it(worker: LocalWorker) -> None:
    ended(worker)
    run = Ask.start({"key": "k"})
    assert send().place == "ended", "nobody waits, and the last who did has ended"
    worker.run()
    assert status(run)[2] == "again"
    event = Event.objects.get(event_id="e1")
    assert (event.status, event.place, event.workflow_id) == ("consumed", "taken", run.id)


def test_a_run_of_next_week_does_not_take_the_answer_of_last_week(worker: LocalWorker) -> None:
    ended(worker)
    send()
    run = waiting(worker)
    assert status(run) == ("waiting", "WAITING", "ask")
    assert send("e2").woken == (run.id,)


def test_what_says_what_it_is_about_wakes_that_run_alone(worker: LocalWorker) -> None:
    one, two = waiting(worker), waiting(worker)
    received = send(about=About(workflow=one.id, epoch=0, intent=1, wait=Wait.objects.get(workflow_id=one.id).pk))
    assert (received.answer, received.woken) == ("accepted", (one.id,))
    worker.run()
    assert (status(one)[2], status(two)[2]) == ("again", "ask")


def test_an_answer_that_is_quicker_than_the_wait_is_not_lost(worker: LocalWorker) -> None:
    one, two = Ask.start({"key": "k"}), Ask.start({"key": "k"})
    assert send(about=About(workflow=two.id)).place == "early"
    worker.run()
    assert (status(one)[2], status(two)[2]) == ("ask", "again")


def test_the_next_wait_of_the_run_takes_what_came_between(worker: LocalWorker, declare: Any) -> None:
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    run = declare(
        "t-next",
        one=flows.Wait("t.n", key="k", deadline=deadline, then="two"),
        two=flows.Wait("t.n", key="k", deadline=deadline, then="done"),
        done=flows.End(flows.COMPLETE),
    ).start({})
    worker.run()
    assert (send("n1", "t.n").answer, send("n2", "t.n").place) == ("accepted", "between")
    worker.run()
    assert status(run)[0] == "complete"


def test_nobody_takes_it_for_a_day(worker: LocalWorker, clock: Clock) -> None:
    send()
    clock.move(hours=23)
    assert not found()
    clock.move(hours=2)
    assert found() == ["unclaimed-events"]
    assert Event.objects.get().place == "unclaimed"
    assert not found(), "it is marked once"
    assert send().answer == "already"
    run = waiting(worker)
    assert status(run)[2] == "again"


def test_what_is_marked_is_bounded(worker: LocalWorker, clock: Clock, settings: Any) -> None:
    for number in range(3):
        send(f"e{number}")
    clock.move(hours=25)
    settings.OUTLAST = {**settings.OUTLAST, "SWEEP_BATCH": 2}
    assert (placing.mark_unclaimed("default"), placing.mark_unclaimed("default"), placing.mark_unclaimed("default")) == (2, 1, 0)


# ---------------------------------------------------------------- redelivery


def test_a_redelivery_says_who_and_why(worker: LocalWorker) -> None:
    ended(worker)
    send()
    user = factories.person("t-redeliverer")
    with pytest.raises(flows.errors.NotPermitted):
        flows.redeliver("e1", by=user, reason="because")
    user.user_permissions.add(Permission.objects.get(codename="redeliver_event"))
    with pytest.raises(flows.errors.ReasonMissing):
        flows.redeliver("e1", by=user, reason=" ")
    flows.redeliver("e1", by=user, reason="the provider sent it late")
    made = Redelivery.objects.get()
    assert (made.status, made.place, made.reason, made.by, made.woken) == ("aside", "ended", "the provider sent it late", user, 0)
    user.delete()
    made.refresh_from_db()
    assert (made.by, made.by_label) == (None, "t-redeliverer")


def test_twice_is_once(worker: LocalWorker) -> None:
    ended(worker)
    send()
    run = waiting(worker)
    seen = Event.objects.get(event_id="e1")
    answers = [flows.redeliver(seen.pk, by=None, reason="r", seen=("aside", 0)).answer for _ in range(2)]
    assert answers == ["accepted", "already"]
    assert (row(run).wake_seq, Redelivery.objects.count()) == (1, 1)
    assert flows.redeliver("e1", by=None, reason="r").answer == "already", "it was taken"


def test_a_conflict_is_delivered_as_a_copy(worker: LocalWorker) -> None:
    run = waiting(worker)
    send(payload={"n": 1})
    worker.run()
    send(event_type="t.again", payload={"n": 2})
    conflict = Event.objects.get(status="conflict")
    assert conflict.place == "conflict"
    answers = [flows.redeliver(conflict.pk, by=None, reason="the second was right").answer for _ in range(2)]
    assert answers == ["accepted", "already"]
    copy = Event.objects.get(copy_of=conflict.pk)
    assert copy.event_id.startswith("e1~")
    assert (copy.status, copy.place, copy.payload) == ("consumed", "redelivered", {"n": 2})
    worker.run()
    assert status(run)[0] == "complete"
    conflict.refresh_from_db()
    assert (conflict.status, conflict.workflow_id) == ("conflict", None)


def test_a_redelivery_to_one_wait_whatever_its_key(worker: LocalWorker) -> None:
    run = waiting(worker)
    send(key="K", payload={"n": 1})
    wait = Wait.objects.get()
    assert flows.redeliver("e1", by=None, reason="a wrong key", to=wait).woken == (run.id,)
    worker.run()
    assert status(run)[2] == "again"
    assert (Event.objects.get().place, Redelivery.objects.get().wait_id) == ("redelivered", wait.pk)


def test_a_redelivery_to_one_part(worker: LocalWorker, declare: Any) -> None:
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    events = [flows.On("t.p", key="a"), flows.On("t.q", key="b")]
    run = declare("t-parts", both=flows.Wait(any=events, deadline=deadline, then="done"), done=flows.End(flows.COMPLETE)).start(
        {}
    )
    worker.run()
    send(event_type="t.q", key="B")
    assert flows.redeliver("e1", by=None, reason="a wrong key", to=Wait.objects.get().pk).woken == (run.id,)
    worker.run()
    assert status(run)[0] == "complete"
    assert flows.get(run).waits.get().result["events"] == [{"name": "t.q", "id": "e1", "type": "t.q", "key": "B"}]


def test_a_redelivery_to_a_wait_that_is_over_changes_nothing(worker: LocalWorker) -> None:
    waiting(worker)
    wait = Wait.objects.get()
    send("usual")
    send(key="K")
    assert flows.redeliver("e1", by=None, reason="a wrong key", to=wait).answer == "too_late"
    event = Event.objects.get(event_id="e1")
    assert (event.status, event.redelivered, Redelivery.objects.count()) == ("pending", 0, 0)


@pytest.mark.parametrize(("to", "said"), [(0, "does not exist"), ("x", "does not exist"), (None, "no event of the type t.other")])
def test_a_wait_that_cannot_take_it_is_refused(worker: LocalWorker, to: Any, said: str) -> None:
    waiting(worker)
    send(event_type="t.other")
    with pytest.raises(flows.errors.CannotRedeliver, match=said):
        flows.redeliver("e1", by=None, reason="r", to=Wait.objects.get() if to is None else to)


@pytest.mark.parametrize("event", ["gone", 0, 2**70, True])
def test_an_event_that_is_not_there_is_named(worker: LocalWorker, event: Any) -> None:
    with pytest.raises(flows.errors.UnknownEvent):
        flows.redeliver(event, by=None, reason="r")


@pytest.mark.parametrize("statement", ["event again", "lock workflows", "wake"])
def test_a_redelivery_that_dies_within_leaves_the_event_as_it_was(
    worker: LocalWorker, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting(worker)
    send(key="K")

    def seam(when: str, name: str) -> None:
        if (when, name) == ("within", statement):
            raise SystemExit

    monkeypatch.setattr(sql, "seam", seam)
    with pytest.raises(SystemExit):
        flows.redeliver("e1", by=None, reason="a wrong key", to=Wait.objects.get())
    monkeypatch.setattr(sql, "seam", None)
    event = Event.objects.get()
    assert (event.status, event.redelivered, Redelivery.objects.count(), row(run).wake_seq) == ("pending", 0, 0, 0)
    assert flows.redeliver("e1", by=None, reason="a wrong key", to=Wait.objects.get()).woken == (run.id,)
    worker.run()
    assert status(run)[2] == "again"
