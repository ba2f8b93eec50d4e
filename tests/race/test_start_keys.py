"""Start keys when things race: the lock order with an intent, and one start that cannot be made beside others that can."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Admission, Deadline, End, Overlap, Wait, seconds
from flows.models import Event, StartKey, Workflow
from flows.services import debounced
from flows.services.schedules import planning, starting
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import status
from tests.support.races import PATIENCE, is_blocked, racers, wait_for
from tests.support.scheduling import made, told

pytestmark = pytest.mark.req("R2", "A3")

Declare = Callable[..., type[flows.Flow]]
USING = "default"
DAY = Deadline(days=1, then=ESCALATE)


def of_key(given: Any) -> Any:
    return given["key"]


def newest(declare: Declare, name: str = "t-newest") -> type[flows.Flow]:
    return declare(
        name,
        meta={"admission": Admission(newest=of_key)},
        ask=Wait("t.never", key="k", deadline=DAY, then="done"),
        done=End(COMPLETE),
    )


def late(declare: Declare) -> type[flows.Flow]:
    admission = Admission(debounce=seconds(30), key=of_key)
    return declare("t-late", meta={"admission": admission}, one=Activity(factories.work, then="done"), done=End(COMPLETE))


def while_held(monkeypatch: pytest.MonkeyPatch, at: str, first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """`first` goes on from the statement of that name when `second`, in another transaction, waits for it or is through; what both answer."""
    main = threading.get_ident()
    behind: list[Any] = []
    with racers(1) as (other,):

        def hold(when: str, name: str) -> None:
            if threading.get_ident() == main and (when, name) == ("within", at) and not behind:
                behind.append(other.do(second))
                wait_for(lambda: behind[0].done() or is_blocked(other.pid))

        monkeypatch.setattr(sql, "seam", hold)
        answers = [first(), behind[0].result(PATIENCE)]
        monkeypatch.setattr(sql, "seam", None)
    return answers


def test_a_start_under_an_intent_and_its_supersede_with_a_run_of_the_same_key(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = newest(declare)
    run = flow.start({"key": "a"})
    intent = Workflow.objects.values_list("intent_id", flat=True).get(pk=run.id)
    given = {"key": "a"}
    started, ended = while_held(
        monkeypatch,
        "lock start key",
        lambda: flow.start(given, intent=intent),
        lambda: flows.supersede(intent, goal="another", flow=flow, input=given),
    )
    assert {*ended.ended} == {run.id, started.id}
    assert StartKey.objects.get().workflow_id == ended.started.id


def test_a_start_that_is_due_and_the_supersede_of_its_intent(
    worker: LocalWorker, declare: Declare, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = late(declare)
    intent = Workflow.objects.values_list("intent_id", flat=True).get(pk=newest(declare).start({"key": "x"}).id)
    promised = flow.start({"key": "a"}, intent=intent)
    clock.move(seconds=31)
    _, ended = while_held(
        monkeypatch,
        "lock due start",
        lambda: debounced.fire(USING),
        lambda: flows.supersede(intent, goal="another", flow=flow, input={"key": "a"}),
    )
    assert promised.id in ended.ended
    assert ended.started.status == "debounced"


def test_a_schedule_that_supersedes_locks_the_key_before_the_intent(
    worker: LocalWorker, declare: Declare, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = newest(declare)
    made(flow, overlap=Overlap.SUPERSEDE, input={"key": "a"})
    clock.move(seconds=61)
    planning.plan_due(USING)
    starting.start_due(USING)
    intent = Workflow.objects.get().intent_id
    clock.move(seconds=60)
    planning.plan_due(USING)
    while_held(
        monkeypatch,
        "lock start key",
        lambda: flow.start({"key": "a"}, intent=intent),
        lambda: starting.start_due(USING),
    )
    assert told() == [("started", ""), ("started", "")]


def test_a_start_that_cannot_be_made_holds_up_no_other(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """The function of the flow fails when the start is made: it is logged, tried again after a minute, and given up after a day."""
    broken = declare(
        "t-broken",
        meta={"admission": Admission(debounce=seconds(1), key=lambda given: "k", newest=of_key)},
        one=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    broken.start({"no": "key"})
    other = late(declare).start({"key": "a"})
    clock.move(seconds=31)
    worker.tick()
    worker.run()
    assert status(other)[0] == "complete"
    assert StartKey.objects.get(flow="t-broken").input == {"no": "key"}, "it is kept"
    clock.move(days=1)
    worker.tick()
    assert StartKey.objects.get(flow="t-broken").due_at is None


def test_an_occurrence_whose_flow_cannot_say_its_key_is_told_so_and_holds_up_no_other(
    worker: LocalWorker, declare: Declare, clock: Clock
) -> None:
    made(newest(declare), "broken", input={"no": "key"})
    made(newest(declare, "t-sound"), "sound", input={"key": "a"})
    clock.move(seconds=61)
    worker.tick()
    assert told("broken") == [("pending", "ERROR")]
    assert told("sound") == [("started", "")]


def begins(declare: Declare, name: str = "t-begins-newest", event: str = "t.begins") -> type[flows.Flow]:
    """Begun by an event, the newest of its key; its run waits on the channel of the event that began it."""
    return declare(
        name,
        meta={
            "admission": Admission(newest=of_key),
            "started_by": flows.StartedBy(event, key=lambda event: event["payload"]["run"], user="t-ops"),
        },
        ask=Wait("t.begins", key="c", deadline=DAY, then="done"),
        done=End(COMPLETE),
    )


def begin(event: str, run: str = "r", key: str = "a") -> Any:
    return flows.signal(event, "t.begins", key="c", payload={"key": key, "run": run})


def test_an_event_that_begins_a_run_and_a_new_goal_of_the_run_that_waits_on_its_channel(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event locks the run of its channel, and then the start key; the new goal had the key, and then the run: each waited for the other."""
    factories.person("t-ops")
    flow = begins(declare)
    begin("e1")
    worker.run()
    assert begin("e2").place == "taken", "from now on its run has its evidence, and takes no other"
    run = Workflow.objects.get()
    begun, ended = while_held(
        monkeypatch,
        "record event",
        lambda: begin("e3", run="other"),
        lambda: flows.supersede(run.intent_id, goal="another", flow=flow, input={"key": "a", "run": "r"}),
    )
    assert (begun.place, ended.ended) == ("started", (run.pk,))
    assert StartKey.objects.get(flow=flow.definition.name).workflow_id == ended.started.id


def test_what_was_held_begins_its_run_in_a_transaction_of_its_own(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """Whoever passes it on holds its channel: the start key, which comes first, would be locked too late."""
    factories.person("t-ops")
    flows.EventType("t.begins.ordered", order="position", policy=flows.Order.IN_ORDER)
    begins(declare, "t-begins-ordered", "t.begins.ordered")

    def send(number: int) -> Any:
        payload = {"key": "a", "run": f"r{number}", "position": number}
        return flows.signal(f"e{number}", "t.begins.ordered", key="held", payload=payload)

    assert [send(2).place, send(1).place] == ["gap", "started"]
    assert Event.objects.get(event_id="e2").place == "unknown"
    worker.tick()
    assert Event.objects.get(event_id="e2").place == "started"
    assert set(Workflow.objects.values_list("key", flat=True)) == {"r1", "r2"}
