"""Whatever the order, and however often each is delivered: the same events are taken, each once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flows
from flows import COMPLETE, ESCALATE, Deadline, End, On, Wait
from flows.models import Event, Part
from flows.testing import local_worker
from tests.factories import status
from tests.support.record import wipe

pytestmark = pytest.mark.req("E1", "E2")

END = Deadline(hours=1, then=ESCALATE)
EVENTS = [("a", "t.a"), ("b", "t.b"), ("c", "t.c"), ("d", "t.a"), ("e", "t.b")]
#: Deliveries by number, each event at least once; the place of the start among them.
DELIVERIES = st.permutations([*range(len(EVENTS)), *range(len(EVENTS))])


class Both(flows.Flow):
    class Meta:
        name = "t-property-events"

    both = Wait(all=[On("t.a", key="k"), On("t.b", key="k")], deadline=END, then="one")
    one = Wait("t.c", key="k", deadline=END, then="rest")
    rest = Wait(any=[On("t.a", key="k"), On("t.b", key="k")], need=2, deadline=END, then="done")
    done = End(COMPLETE)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=DELIVERIES, start=st.integers(0, 10), turns=st.sets(st.integers(0, 10)))
def test_any_order_and_any_repeats_take_the_same(transactional_db: None, order: list[int], start: int, turns: set[int]) -> None:
    with local_worker() as worker:
        for at, number in enumerate([*order, -1]):
            if at == start:
                run = Both.start({})
            if at in turns:
                worker.run()
            if number >= 0:
                name, event_type = EVENTS[number]
                flows.signal(name, event_type, key="k", payload={"name": name})
        worker.run()
    assert status(run)[0] == "complete"
    taken = {(event.event_id, event.status, event.deliveries) for event in Event.objects.all()}
    assert taken == {(name, "consumed", 2) for name, _ in EVENTS}
    assert not Part.objects.filter(open=True).exists()
    wipe()
