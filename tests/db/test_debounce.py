"""Starts that become one, and runs that replace older ones (R2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, REFUSE, Activity, Admission, Deadline, End, Wait, seconds
from flows.core.errors import PayloadError
from flows.core.misuse import UsageError
from flows.models import StartKey, Transition, Workflow
from flows.services import debounced
from flows.services.starting import Origin, start_runs
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status, work
from tests.support.races import overtaken, racers, together
from tests.support.record import Counting

pytestmark = pytest.mark.req("R2")

Declare = Callable[..., type[flows.Flow]]
USING = "default"


def of(given: Any) -> Any:
    return given.get("repo")


def late(declare: Declare, **options: Any) -> type[flows.Flow]:
    admission = Admission(debounce=seconds(30), key=of, **options)
    return declare("t-late", meta={"admission": admission}, one=Activity(work, then="done"), done=End(COMPLETE))


def test_starts_of_one_key_become_one_with_the_newest_input(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = late(declare)
    first = flow.start({"repo": "a", "n": 1})
    assert (first.status, first.created) == ("debounced", False)
    clock.move(seconds=20)
    again, other = flow.start_many([("k", {"repo": "a", "n": 2}), (None, {"repo": "b"})])
    assert (again.id, other.id != first.id) == (first.id, True)
    clock.move(seconds=20)
    worker.tick()
    assert not Workflow.objects.exists(), "the second call moved it"
    clock.move(seconds=11)
    worker.tick()
    worker.run()
    assert status(first)[0] == "complete"
    assert (row(first).input, row(first).key) == ({"repo": "a", "n": 2}, None)
    assert status(other)[0] == "complete"
    later = flow.start({"repo": "a", "n": 3})
    assert later.id != first.id
    clock.move(seconds=31)
    worker.tick()
    worker.run()
    assert Workflow.objects.count() == 3


def test_it_is_not_put_off_for_ever(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = late(declare)
    first = flow.start({"repo": "a"})
    for _ in range(14):
        clock.move(seconds=25)
        worker.tick()
        if Workflow.objects.exists():
            break
        flow.start({"repo": "a"})
    else:
        pytest.fail("it never began")
    assert row(first).pk == first.id


def test_what_else_the_start_said_is_kept(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    ann = factories.person("ann")
    flow = late(declare)
    old = factories.Line.start({})
    run = flow.start({"repo": "a"}, by=ann, intent=old.intent_id, subject="book:7", priority=3)
    clock.move(seconds=31)
    worker.tick()
    found = row(run)
    assert (found.user_id, found.user_label, found.intent_id, found.subject, found.priority) == (
        ann.pk, "ann", old.intent_id, "book:7", 3,
    )  # fmt: skip


def test_a_start_that_cannot_be_made_is_over_and_one_that_is_refused_is_tried_again(
    worker: LocalWorker, declare: Declare, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    flow = late(declare, total=1, over=REFUSE)
    held = flow.start({"repo": "x"}, admit=False)
    flows.pause(held)
    busy = start_runs(flow.definition, [(None, {})], Origin(ids=[held.id.__class__(int=7)]), USING)[0]
    run = flow.start({"repo": "a"})
    clock.move(seconds=31)
    worker.tick()
    assert not Workflow.objects.filter(pk=run.id).exists()
    flows.cancel(busy)
    clock.move(seconds=31)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    intent = factories.Line.start({})
    gone = flow.start({"repo": "b"}, intent=intent.intent_id)
    flows.cancel_intent(intent)
    clock.move(seconds=31)
    worker.tick()
    assert not Workflow.objects.filter(pk=gone.id).exists()
    assert not StartKey.objects.exclude(due_at=None).exists()
    assert "cannot be made" in caplog.text


def test_mistakes_are_the_callers(worker: LocalWorker, declare: Declare) -> None:
    flow = late(declare)
    with pytest.raises(PayloadError, match="must be an object"):
        flow.start([])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="puts its starts off"):
        flow.start({"repo": "a"}, session="s")
    assert not StartKey.objects.exists()


def test_a_short_pause_is_looked_at_in_its_moment(worker: LocalWorker, declare: Declare, hints: Counting) -> None:
    flow = declare(
        "t-short", meta={"admission": Admission(debounce=seconds(1))}, one=Activity(work, then="done"), done=End(COMPLETE)
    )
    flow.start({}, key="a")
    assert (hints.watched, StartKey.objects.get().key) == (["debounce"], "debounce:a")


def test_calls_and_the_firing_at_once(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = late(declare)
    with racers(3) as threads:
        for number in range(15):
            first = flow.start({"repo": "a", "n": number})
            clock.move(seconds=31)
            actions = [
                lambda: debounced.fire(USING),
                lambda: debounced.fire(USING),
                lambda number=number: flow.start({"repo": "a", "n": -number}),
            ]
            outcomes = together(*zip(threads, actions, strict=True))
            assert not [one for one in outcomes if isinstance(one, Exception)], outcomes
            call = outcomes[2]
            clock.move(seconds=31)
            debounced.fire(USING)
            made = 1 if call.id == first.id else 2
            assert Workflow.objects.filter(pk__in=[first.id, call.id]).count() == made
            worker.run()


# ---------------------------------------------------------------- the newest


def newest(declare: Declare) -> type[flows.Flow]:
    return declare(
        "t-newest", meta={"admission": Admission(newest=of)},
        ask=Wait("t.go", key="never", deadline=Deadline(days=9, then=ESCALATE), then="done"), done=End(COMPLETE),
    )  # fmt: skip


def test_a_newer_run_ends_the_older_one_of_its_key(worker: LocalWorker, declare: Declare, hints: Counting) -> None:
    flow = newest(declare)
    first, other, third = (flow.start({"repo": name} if name else {}) for name in ("a", "b", ""))
    worker.run()
    second = flow.start({"repo": "a"}, key="k")
    assert hints.watched[-1] == "newest"
    assert status(first)[0] == "waiting", "not in the start's transaction: nobody who starts locks another run"
    worker.tick()
    assert (status(first)[0], status(second)[0], status(other)[0], status(third)[0]) == (
        "cancelled", "runnable", "waiting", "waiting",
    )  # fmt: skip
    assert "NEWER_STARTED" in str(Transition.objects.filter(workflow_id=first.id, trigger="cancel").get().note)
    assert not StartKey.objects.exclude(replaces=[]).exists()
    assert flow.start({"repo": "a"}, key="k").id == second.id, "the same start again replaces nobody"
    worker.tick()
    assert status(second)[0] == "runnable"


def test_of_many_at_once_the_last_stays(worker: LocalWorker, declare: Declare) -> None:
    flow = newest(declare)
    runs = flow.start_many([(None, {"repo": "a"}) for _ in range(4)])
    worker.tick()
    assert [status(run)[0] for run in runs] == ["cancelled"] * 3 + ["runnable"]


def test_two_starts_at_once_leave_one(worker: LocalWorker, declare: Declare) -> None:
    flow = newest(declare)
    with racers(2) as (one, two):
        for _ in range(15):
            runs = together((one, lambda: flow.start({"repo": "a"})), (two, lambda: flow.start({"repo": "a"})))
            debounced.end_older(USING)
            live = [run for run in runs if status(run)[0] == "runnable"]
            assert len(live) == 1
            assert StartKey.objects.get().workflow_id == live[0].id


def test_the_end_of_the_older_against_a_newer_start(worker: LocalWorker, declare: Declare) -> None:
    flow = newest(declare)
    first = flow.start({"repo": "a"})
    second = flow.start({"repo": "a"})
    met = overtaken(lambda: flow.start({"repo": "a"}), lambda: debounced.end_older(USING))
    assert met.second == 1
    debounced.end_older(USING)
    assert [status(run)[0] for run in (first, second, met.first)] == ["cancelled", "cancelled", "runnable"]
