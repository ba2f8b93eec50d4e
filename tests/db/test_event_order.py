"""Types that come in an order: each event in its turn, a gap that ends, and the newest that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flows
from flows import EventType, Order, hours, minutes
from flows.core import declared
from flows.models import Event, Stream
from flows.services import sweeps
from flows.testing import Clock, LocalWorker
from tests.factories import status

pytestmark = pytest.mark.req("E2")

LONG = flows.Deadline(days=3, then=flows.ESCALATE)


@pytest.fixture
def ordered() -> Iterator[Any]:
    """Declare the type t.seq."""
    before = list(declared.DECLARED)
    yield lambda policy, **more: EventType("t.seq", order="seq", policy=policy, **more)
    declared.DECLARED[:] = before


@pytest.fixture
def follower(declare: Any) -> Any:
    """Takes three events of t.seq one after the other."""
    nodes = {f"w{n}": flows.Wait("t.seq", key="k", deadline=LONG, then=f"w{n + 1}" if n < 3 else "done") for n in (1, 2, 3)}
    took = flows.End(flows.COMPLETE, result=lambda state: [state.results[f"w{n}"]["payload"]["seq"] for n in (1, 2, 3)])
    return declare("t-follows", **nodes, done=took)


def send(*positions: int, prefix: str = "p") -> list[str]:
    return [flows.signal(f"{prefix}{at}", "t.seq", key="k", payload={"seq": at}).place for at in positions]


def found() -> list[str]:
    """What a tick finds of watches."""
    look = sweeps.run_tick("default")
    assert look is not None
    return look.watches


def where() -> dict[str, tuple[str, str]]:
    return {event.event_id: (event.status, event.place) for event in Event.objects.all()}


@pytest.mark.parametrize("parked", [True, False], ids=["waited for", "early"])
def test_in_order_whatever_comes_first(worker: LocalWorker, ordered: Any, follower: Any, parked: bool) -> None:  # noqa: FBT001
    ordered(Order.IN_ORDER)
    if parked:
        run = follower.start({})
        worker.run()
    assert send(3, 2) == ["gap", "gap"]
    assert worker.run() == 0
    assert send(1) == (["taken"] if parked else ["early"])
    if not parked:
        run = follower.start({})
    worker.run()
    assert (status(run)[0], flows.get(run).result) == ("complete", [1, 2, 3])
    assert Stream.objects.get().position == 3
    assert send(2, prefix="again") == ["out_of_order"]
    assert send(5) == ["gap"]


def test_the_gap_ends(worker: LocalWorker, ordered: Any, follower: Any, clock: Clock) -> None:
    ordered(Order.IN_ORDER, first=0, gap=minutes(5))
    run = follower.start({})
    worker.run()
    send(0, 2, 3, 5)
    assert where()["p3"] == ("held", "gap")
    worker.run()
    clock.move(minutes=4)
    assert not found()
    clock.move(minutes=2)
    assert found() == ["event-gaps"]
    worker.run()
    assert (status(run)[0], flows.get(run).result) == ("complete", [0, 2, 3])
    assert where()["p5"] == ("pending", "gap"), "it has waited long enough, too; it was passed on out of its turn"
    assert send(1) == ["out_of_order"]
    assert where()["p1"] == ("aside", "out_of_order")
    assert not found()


def test_a_held_event_is_counted_and_its_conflict_is_one(ordered: Any, worker: LocalWorker) -> None:
    ordered(Order.IN_ORDER)
    send(2)
    assert flows.signal("p2", "t.seq", key="k", payload={"seq": 2}).answer == "already"
    assert flows.signal("p2", "t.seq", key="k", payload={"seq": 3}).answer == "conflict"
    assert Event.objects.get(status="held").deliveries == 3


def test_the_newest_counts(worker: LocalWorker, ordered: Any, follower: Any) -> None:
    ordered(Order.NEWEST)
    assert send(2, 1, 5, 4, 5) == ["early", "out_of_order", "early", "out_of_order", ""]
    assert where()["p2"] == ("aside", "out_of_order"), "overtaken before anybody took it"
    run = follower.start({})
    worker.run()
    assert status(run)[2] == "w2"
    assert send(3, 6) == ["out_of_order", "taken"]


def test_streams_are_apart(worker: LocalWorker, ordered: Any) -> None:
    ordered(Order.IN_ORDER)
    send(1)
    assert flows.signal("q2", "t.seq", key="other", payload={"seq": 2}).place == "gap"
    assert flows.signal("q1", "t.seq", key="other", payload={"seq": 1}).answer == "kept"
    assert set(Stream.objects.values_list("key", "position")) == {("k", 1), ("other", 2)}


def test_a_position_beside_the_payload_goes_first_and_one_is_needed(worker: LocalWorker, ordered: Any) -> None:
    ordered(Order.IN_ORDER)
    assert flows.signal("a", "t.seq", key="k", payload={"seq": 9}, position=1).answer == "kept"
    with pytest.raises(flows.errors.PayloadError, match=r"the position of an event t\.seq: is missing"):
        flows.signal("b", "t.seq", key="k", payload={"n": 1})
    assert list(where()) == ["a"]


def test_a_redelivery_of_a_held_one_takes_its_stream_along(worker: LocalWorker, ordered: Any, follower: Any) -> None:
    ordered(Order.IN_ORDER)
    run = follower.start({})
    worker.run()
    send(3, 4)
    assert flows.redeliver("p3", by=None, reason="1 and 2 will never come").woken == (run.id,)
    worker.run()
    assert status(run)[2] == "w3", "4 followed by itself"
    assert send(1) == ["out_of_order"]
    assert send(5) == ["taken"]


def test_a_type_without_an_order_takes_positions_as_they_are(worker: LocalWorker, follower: Any) -> None:
    for number in (3, 1, 2):
        assert flows.signal(f"p{number}", "t.seq", key="k", payload={"seq": number}, position=number).answer == "kept"
    run = follower.start({})
    worker.run()
    assert flows.get(run).result == [1, 2, 3]


def test_a_very_long_gap_does_not_hold_up_others(worker: LocalWorker, ordered: Any, clock: Clock) -> None:
    ordered(Order.IN_ORDER, gap=hours(2))
    send(2)
    flows.signal("q2", "t.seq", key="other", payload={"seq": 2})
    clock.move(hours=3)
    assert found() == ["event-gaps"]
    assert {status for status, _ in where().values()} == {"pending"}
