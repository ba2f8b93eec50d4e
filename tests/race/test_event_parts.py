"""Waits for several events, streams and redeliveries, where things come at once: nothing is lost, taken twice, or waited for in a ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Deadline, End, EventType, On, Order, Wait
from flows.core import declared
from flows.models import Event, Part, Redelivery, Stream, Workflow
from flows.services.proceed import Progress
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, row, status
from tests.support.races import overtaken, racers, together
from tests.support.versions import version

pytestmark = pytest.mark.req("E2", "C3")

ROUNDS = 150
END = Deadline(hours=1, then=ESCALATE)


@pytest.fixture
def both(declare: Any) -> Any:
    """Waits for a and b of its key."""
    events = [On("t.a", key=factories.key_of), On("t.b", key=factories.key_of)]
    return declare("t-both", both=Wait(all=events, deadline=END, then="done"), done=End(COMPLETE))


def runs(flow: Any, count: int) -> list[Any]:
    return list(flow.start_many([(f"{number}", {"key": f"k{number}"}) for number in range(count)]))


def test_two_events_for_two_parts_at_once_wake_once(worker: LocalWorker, both: Any) -> None:
    made = runs(both, ROUNDS)
    worker.run()
    with racers(2) as (one, two):
        for number in range(ROUNDS):
            answers = together(
                (one, lambda number=number: flows.signal(f"a{number}", "t.a", key=f"k{number}").answer),
                (two, lambda number=number: flows.signal(f"b{number}", "t.b", key=f"k{number}").answer),
            )
            assert answers == ["accepted", "accepted"]
    assert Counter(Workflow.objects.values_list("status", "wake_seq")) == {("runnable", 1): ROUNDS}
    worker.run()
    assert {status(run)[0] for run in made} == {"complete"}


def test_a_park_against_its_events_loses_none(worker: LocalWorker, both: Any) -> None:
    made = {run.id: run for run in runs(both, ROUNDS)}
    owned = factories.take_up_to(worker, ROUNDS)
    met: Counter[str] = Counter()
    with racers(3) as (turn, one, two):
        for held in owned:
            key = held.state.input["key"]
            parked, *received = together(
                (turn, lambda held=held: factories.enter(held, factories.LET_GO)),
                (one, lambda key=key: flows.signal(f"a-{key}", "t.a", key=key)),
                (two, lambda key=key: flows.signal(f"b-{key}", "t.b", key=key)),
            )
            assert parked is Progress.LEFT, parked
            met.update(one.answer for one in received)
    assert len(made) == ROUNDS
    assert set(met) == {"accepted", "kept"}, "they never really met"
    worker.run()
    assert set(Workflow.objects.values_list("status", flat=True)) == {"complete"}
    assert set(Event.objects.values_list("status", flat=True)) == {"consumed"}
    assert not Part.objects.filter(open=True).exists()


def test_channels_in_both_orders_meet_no_ring(worker: LocalWorker, declare: Any) -> None:
    def flow(name: str, first: str, second: str) -> Any:
        events = [On(first, key="k"), On(second, key="k")]
        return declare(name, both=Wait(any=events, need=2, deadline=END, then="done"), done=End(COMPLETE))

    there, back = flow("t-there", "t.a", "t.b"), flow("t-back", "t.b", "t.a")
    for number in range(20):
        made = [there.start({}), back.start({})]
        one, two = factories.take_up_to(worker, 2)
        with_signals = [
            lambda one=one: factories.enter(one, factories.LET_GO),
            lambda two=two: factories.enter(two, factories.LET_GO),
            lambda number=number: flows.signal(f"a{number}", "t.a", key="k"),
            lambda number=number: flows.signal(f"b{number}", "t.b", key="k"),
        ]
        with racers(4) as threads:
            answers = together(*zip(threads, with_signals, strict=True))
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
        for run in made:
            flows.cancel(run)


def test_an_event_that_fills_against_the_end_of_the_run(worker: LocalWorker, both: Any) -> None:
    first, second = runs(both, 2)
    worker.run()
    met = overtaken(lambda: flows.cancel(first), lambda: flows.signal("a0", "t.a", key="k0"))
    assert (met.blocked, met.second.answer, met.second.woken) == (True, "kept", ())
    assert Event.objects.get().place == "ended"
    met = overtaken(lambda: flows.signal("a1", "t.a", key="k1"), lambda: flows.cancel(second))
    assert (met.first.answer, met.second.answer, met.blocked) == ("accepted", "accepted", True)
    assert not Part.objects.filter(open=True).exists()


def test_a_redelivery_against_the_usual_event(worker: LocalWorker) -> None:
    """Whichever is first wakes the wait; the other one stays in the inbox."""
    for number in range(20):
        run = Ask.start({"key": f"k{number}"})
        flows.signal(f"x{number}", "t.asked", key=f"wrong-{number}")
        worker.run()
        wait = flows.get(run).waits.get()
        with racers(2) as (one, two):
            answers = together(
                (one, lambda number=number, wait=wait: flows.redeliver(f"x{number}", by=None, reason="r", to=wait).answer),
                (two, lambda number=number: flows.signal(f"u{number}", "t.asked", key=f"k{number}").answer),
            )
        assert answers in (["accepted", "kept"], ["too_late", "accepted"]), answers
        assert row(run).wake_seq == 1
        flows.cancel(run)


def test_two_redeliveries_of_one_event_are_one(worker: LocalWorker) -> None:
    for number in range(20):
        run = Ask.start({"key": f"k{number}"})
        flows.signal(f"x{number}", "t.asked", key=f"k{number}")
        flows.signal(f"x{number}", "t.asked", key=f"k{number}", payload={"other": 1})
        worker.run()
        flows.signal(f"y{number}", "t.again", key=f"k{number}", about=flows.About(workflow=run.id, epoch=7))
        seen = [(Event.objects.get(event_id=f"x{number}", status="conflict"), 0), (Event.objects.get(event_id=f"y{number}"), 0)]
        for event, count in seen:
            again = [
                lambda event=event, count=count: flows.redeliver(event.pk, by=None, reason="r", seen=(event.status, count))
            ] * 2
            with racers(2) as threads:
                answers = [answer.answer for answer in together(*zip(threads, again, strict=True))]
            assert answers.count("already") == 1, answers
        flows.cancel(run)
    assert Redelivery.objects.count() == 40


def test_a_redelivery_behind_the_end_of_the_wait_is_too_late(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    flows.signal("x", "t.asked", key="K")
    worker.run()
    wait = flows.get(run).waits.get()
    met = overtaken(lambda: flows.cancel(run), lambda: flows.redeliver("x", by=None, reason="r", to=wait).answer)
    assert (met.second, met.blocked) == ("too_late", True)
    assert Event.objects.get().redelivered == 0


@pytest.fixture
def in_order() -> Iterator[None]:
    before = list(declared.DECLARED)
    EventType("t.seq", order="seq", policy=Order.IN_ORDER)
    yield
    declared.DECLARED[:] = before


def test_a_shuffled_stream_from_several_senders_is_taken_in_order(worker: LocalWorker, declare: Any, in_order: None) -> None:
    count = 12
    names = [f"w{number}" for number in range(count)]
    nodes = {
        name: Wait("t.seq", key=factories.key_of, deadline=END, then=after)
        for name, after in zip(names, [*names[1:], "done"], strict=True)
    }
    took = End(COMPLETE, result=lambda state: [state.results[name]["payload"]["seq"] for name in names])
    flow = version(declare, "t-stream", 1, {**nodes, "done": took})
    made = [flow.start({"key": f"s{number}"}) for number in range(8)]
    with racers(4) as threads:
        for number, run in enumerate(made):
            for first in range(count, 0, -4):
                positions = [first, first - 1, first - 2, first - 3]
                sent = [
                    lambda at=at, number=number: flows.signal(f"{number}-{at}", "t.seq", key=f"s{number}", payload={"seq": at})
                    for at in positions
                ]
                together(*zip(threads, sent, strict=True))
            worker.run()
            assert (status(run)[0], flows.get(run).result) == ("complete", list(range(1, count + 1)))
    assert set(Stream.objects.values_list("position", flat=True)) == {count}


def test_one_event_of_two_senders_begins_one_run(worker: LocalWorker, declare: Any) -> None:
    factories.person("t-ops")
    begins = flows.StartedBy("t.begin", key=lambda event: event["key"], user="t-ops", input=lambda event: {})
    version(declare, "t-begun", 1, {"done": End(COMPLETE)}, started_by=begins)
    with racers(2) as (one, two):
        for number in range(20):
            answers = together(
                (one, lambda number=number: flows.signal(f"e{number}", "t.begin", key=f"k{number}").answer),
                (two, lambda number=number: flows.signal(f"f{number}", "t.begin", key=f"k{number}").answer),
            )
            assert answers == ["accepted", "accepted"], answers
    assert Workflow.objects.count() == 20
