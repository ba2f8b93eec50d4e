"""Capacity when things race: the last slot goes to one, nobody is let in twice, and whoever waits is never forgotten."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

import flows
from flows import COMPLETE, Activity, Dependency, End, Limit, Ramp, dependencies, seconds
from flows.core import capacity as core
from flows.core import declared as declarations
from flows.core.capacity import DependencyStatus
from flows.core.errors import CapacityUnavailable
from flows.core.ids import new_id
from flows.models import Dependency as Row
from flows.models import Limit as LimitRow
from flows.models import Slot, Transition, Workflow
from flows.services import attempting as attempts
from flows.services import gating
from flows.services.capacity import pump, taking
from flows.services.owned import Owned
from flows.services.proceed import Progress, proceed
from flows.store import limits, slots
from flows.testing import LocalWorker
from tests import factories
from tests.factories import does, row, status, work
from tests.support.races import PATIENCE, overtaken, racers, together

pytestmark = pytest.mark.req("R1", "R2")

USING = "default"
ROUNDS = 25


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("payments", rate=10_000, ceiling=3, ramp=Ramp(start=10_000), fails=1)
    Limit("gpu", concurrency=1)
    yield
    declarations.DECLARED[:] = before


@pytest.fixture
def flow(declare: Callable[..., type[flows.Flow]]) -> type[flows.Flow]:
    return declare("t-scarce", one=Activity(work, limits="gpu", then="done"), done=End(COMPLETE))


@pytest.fixture
def paying(declare: Callable[..., type[flows.Flow]]) -> type[flows.Flow]:
    return declare("t-paying", pay=Activity(work, needs="payments", then="done"), done=End(COMPLETE))


def run_to_end(owned: Owned, worker: LocalWorker) -> Any:
    trigger, ending = attempts.run(owned, worker, taken_over=False)
    return ending.outcome, proceed(owned, trigger, factories.LET_GO, ending)


def entered(worker: LocalWorker, count: int) -> list[Owned]:
    batch = factories.take_up_to(worker, count)
    assert len(batch) == count
    for owned in batch:
        assert factories.enter(owned) is Progress.RUN
    return batch


def waiting(paying: Any, worker: LocalWorker, count: int) -> list[Any]:
    """So many runs that wait for a dependency which has just come back."""
    does["pay"] = lambda attempt: _raise()
    runs = [paying.start({}) for _ in range(count)]
    worker.run()
    does.clear()
    dependencies.up("payments", reason="it is back")
    return runs


def _raise() -> None:
    raise CapacityUnavailable


def test_of_two_who_want_the_last_slot_one_gets_it_every_time(transactional_db: None) -> None:
    """A thousand times, by the statement that takes it."""
    gpu = limits.ensure(core.want_limit(Limit("one", concurrency=1), ""), 1, USING)
    ids = [new_id(), new_id()]
    winners: Counter[int] = Counter()
    with racers(2) as (one, two):
        for _ in range(1_000):
            takes = [lambda me=me: slots.take(gpu, 1, me, 1, 1, USING) for me in ids]
            outcomes = together((one, takes[0]), (two, takes[1]))
            assert sorted(outcomes) == [False, True], outcomes
            winner = outcomes.index(True)
            winners[winner] += 1
            assert slots.free(ids[winner], 1, USING) == [gpu]
    assert sum(winners.values()) == 1_000


def test_a_limit_that_two_make_at_once_is_one(transactional_db: None) -> None:
    """The first use of a key: the limit is unique by its name and key, and by its label."""
    limit = Limit("tenants", concurrency=2)
    with racers(2) as (one, two):
        for number in range(150):
            want = core.want_limit(limit, f"tenant-{number}")
            made = [lambda want=want: limits.ensure(want, 2, USING) for _ in range(2)]
            first, second = together((one, made[0]), (two, made[1]))
            assert first == second
    assert LimitRow.objects.count() == 150
    assert Slot.objects.count() == 300


def test_limits_that_are_made_larger_and_tokens_that_are_spent_lock_in_one_order(transactional_db: None) -> None:
    """The first of them has the later name."""
    declared = [core.want_limit(Limit(name, rate=1000, burst=1000), "") for name in ("zz", "aa")]
    ids = [limits.ensure(want, want.size, USING) for want in declared]

    def larger(burst: int) -> None:
        wants = [dataclasses.replace(want, burst=float(burst)) for want in declared]
        with transaction.atomic():
            taking.found_of(wants, new_id(), None, USING)

    def spend() -> None:
        with transaction.atomic():
            for one in sorted(ids):
                limits.token(one, 1000, 1000, USING)

    with racers(2) as (one, two):
        for number in range(ROUNDS):
            assert together((one, lambda number=number: larger(2000 + number)), (two, spend)) == [None, None]


def test_the_one_who_does_not_get_it_waits_and_is_let_in(worker: LocalWorker, flow: Any) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            runs = [flow.start({}), flow.start({})]
            a, b = entered(worker, 2)
            together((one, lambda a=a: run_to_end(a, worker)), (two, lambda b=b: run_to_end(b, worker)))
            pump.run(USING)
            worker.run()
            assert [status(run)[0] for run in runs] == ["complete"] * 2
            assert not Slot.objects.filter(workflow_id__isnull=False).exists()


def test_two_pumps_let_in_no_more_than_there_is(worker: LocalWorker, paying: Any) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            runs = waiting(paying, worker, 5)
            counts = together((one, lambda: pump.run(USING)), (two, lambda: pump.run(USING)))
            assert all(isinstance(count, int) for count in counts), counts
            assert sum(counts) <= 3
            assert Workflow.objects.filter(status="runnable").count() == sum(counts)
            while any(status(run)[0] != "complete" for run in runs):
                worker.run()
                pump.run(USING)


def test_a_cancel_against_the_pump(worker: LocalWorker, paying: Any) -> None:
    for _ in range(3):
        (run,) = waiting(paying, worker, 1)
        met = overtaken(lambda run=run: flows.cancel(run), lambda: pump.run(USING))
        assert (bool(met.first), met.second, met.blocked) == (True, 0, False), "it is passed over"
        assert status(run)[0] == "cancelled"
        (run,) = waiting(paying, worker, 1)
        met = overtaken(lambda: pump.run(USING), lambda run=run: flows.cancel(run))
        assert (met.first, bool(met.second), met.blocked) == (1, True, True)
        assert status(run)[0] == "cancelled"
        assert not Workflow.objects.filter(status="runnable").exists()


def test_down_against_the_pump(worker: LocalWorker, paying: Any) -> None:
    waiting(paying, worker, 3)
    met = overtaken(lambda: dependencies.down("payments", reason="again"), lambda: pump.run(USING))
    assert (met.first, met.second, met.blocked) == ("down", 0, True), "the pump reads the row under its lock"
    dependencies.up("payments", reason="back")
    met = overtaken(lambda: pump.run(USING), lambda: dependencies.down("payments", reason="again"))
    assert (met.first, met.second, met.blocked) == (3, "down", True)
    worker.run()
    assert factories.called("pay") == 1, "those that were let in asked again, and wait"
    assert Workflow.objects.filter(status="waiting").count() == 3


def test_two_failures_count_one_after_the_other(worker: LocalWorker, paying: Any) -> None:
    declarations.DECLARED[:] = [one for one in declarations.DECLARED if one.name != "payments"]
    Dependency("payments", ceiling=3, fails=2, within=seconds(1_000))
    line = threading.Barrier(2)

    def fail(attempt: Any) -> None:
        line.wait(PATIENCE)  # both have passed, and hold a slot
        raise CapacityUnavailable

    does["pay"] = fail
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            [paying.start({}) for _ in range(2)]
            a, b = entered(worker, 2)
            outcomes = together((one, lambda a=a: run_to_end(a, worker)), (two, lambda b=b: run_to_end(b, worker)))
            assert [one[1] for one in outcomes] == [Progress.LEFT] * 2, outcomes
            assert Row.objects.get().status == DependencyStatus.DOWN
            Row.objects.update(status="healthy", fails=0, failed_at=None, probe_at=None)
            flows_of = Workflow.objects.filter(status="waiting")
            for run in flows_of:
                flows.cancel(run.pk)


def test_a_slot_that_is_freed_while_somebody_parks_is_found(worker: LocalWorker, flow: Any) -> None:
    """Free and park at once: whoever commits last, a look after it lets the waiter in."""
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            first, second = flow.start({}), flow.start({})
            a, b = entered(worker, 2)
            gating.pass_gate(a, attempts.Attempt(a, worker), [])
            together((one, lambda a=a: factories.complete(a)), (two, lambda b=b: run_to_end(b, worker)))
            pump.run(USING)
            worker.run()
            assert (status(first)[0], status(second)[0]) == ("complete", "complete")
            LimitRow.objects.update(look_at=None)


def test_nobody_is_let_in_twice(worker: LocalWorker, paying: Any) -> None:
    runs = waiting(paying, worker, 9)
    with racers(4) as threads:
        for _ in range(12):
            together(*((thread, lambda: pump.run(USING)) for thread in threads))
            worker.run()
    for run in runs:
        assert status(run)[0] == "complete"
        assert Transition.objects.filter(workflow_id=run.id, trigger="readmit").count() == 1
        assert row(run).slots == 0
