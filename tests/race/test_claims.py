"""Who gets the work: one winner each time, every row once, and nothing for the dead."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from flows.core.ids import new_id
from flows.models import Transition, Worker, Workflow
from flows.services import sweeps
from flows.store import workers
from flows.store.claim import begin, release
from flows.store.recover import unstarted_of_child
from flows.store.workers import Process
from flows.testing import LocalWorker
from tasks.keeper import Keeper, NameTaken, Offer
from tasks.shared import Shared
from tests import factories
from tests.factories import Line, row, status
from tests.support.races import all_of, overtaken, racers, together

pytestmark = pytest.mark.req("A3")

USING = "default"
ROUNDS = 1000


def test_the_second_claim_of_one_row_loses(worker: LocalWorker) -> None:
    """1,000 rounds, two workers, one row: one winner each time."""
    other = factories.another_worker()
    runs = Line.start_many([(None, {}) for _ in range(ROUNDS)])
    Workflow.objects.exclude(pk=None).update(queue="later")
    wins: Counter[int] = Counter()
    with racers(2) as (one, two):
        for run in runs:
            Workflow.objects.filter(pk=run.id).update(queue="agents")
            taken = together((one, lambda: factories.take_up_to(worker, 1)), (two, lambda: factories.take_up_to(other, 1)))
            assert sorted(len(batch) for batch in taken) == [0, 1]
            wins[len(taken[0])] += 1
    assert Transition.objects.filter(trigger="claim").count() == ROUNDS
    assert set(Workflow.objects.values_list("version", "status")) == {(2, "running")}
    assert min(wins[0], wins[1]) > 0  # it was a race


def test_many_claimers_of_many_rows_get_each_row_once(transactional_db: None) -> None:
    claimers = [factories.another_worker() for _ in range(6)]
    runs = {run.id for run in Line.start_many([(None, {}) for _ in range(600)])}

    def take_all(worker: LocalWorker) -> list[Any]:
        found: list[Any] = []
        while batch := factories.take_up_to(worker, 7):
            found += [owned.row.id for owned in batch]
        return found

    taken = all_of([lambda worker=worker: take_all(worker) for worker in claimers])
    assert sum(len(ids) for ids in taken) == 600
    assert {row_id for ids in taken for row_id in ids} == runs
    assert set(Workflow.objects.values_list("version", flat=True)) == {2}


def test_many_workers_run_many_workflows_to_their_end(transactional_db: None) -> None:
    team = [factories.another_worker() for _ in range(4)]
    for worker in team:
        worker.batch_size = 5
    Line.start_many([(None, {"n": number}) for number in range(80)])
    lock, seen = threading.Lock(), []

    def note(attempt: Any) -> dict[str, Any]:
        with lock:
            seen.append(attempt.operation_id)
        return {"n": attempt.input["n"]}

    factories.does.update(one=note, two=note, three=note)
    all_of([lambda worker=worker: worker.run() for worker in team])
    assert set(Workflow.objects.values_list("status", flat=True)) == {"complete"}
    assert len(seen) == len(set(seen)) == 240


def test_a_claim_behind_a_claim_skips_and_loses(worker: LocalWorker) -> None:
    Line.start({})
    other = factories.another_worker()
    met = overtaken(lambda: factories.take_up_to(worker, 1), lambda: factories.take_up_to(other, 1))
    assert (len(met.first), len(met.second), met.blocked) == (1, 0, False)


def test_a_claim_of_a_worker_that_is_buried_meanwhile_loses_its_work(worker: LocalWorker) -> None:
    """The claim's snapshot saw the worker alive. What it claimed is found by the next sweep, which asks every time."""
    run = Line.start({})
    met = overtaken(lambda: workers.bury(USING, worker.incarnation), lambda: factories.take_up_to(worker, 1))
    assert not met.blocked
    assert len(met.second) == 1
    sweeps.run_tick(USING)
    assert status(run) == ("runnable", "", "one")
    assert factories.take_up_to(worker, 1) == []


def test_burying_behind_a_claim_loses_nothing(worker: LocalWorker) -> None:
    run = Line.start({})
    met = overtaken(lambda: factories.take_up_to(worker, 1), lambda: workers.bury(USING, worker.incarnation))
    assert (len(met.first), len(met.second)) == (1, 1)
    sweeps.run_tick(USING)
    assert status(run) == ("runnable", "", "one")


def test_a_give_back_against_a_begin_loses(worker: LocalWorker) -> None:
    """The parent gives back what its child has not begun; the child begins it. One of them."""
    begun = given = 0
    with racers(2) as (parent, child):
        for _ in range(150):
            run = Line.start({})
            owned = factories.take_one(worker)
            hoarded = [entry for entry in unstarted_of_child(owned.worker, owned.pid, None, USING) if entry[0] == run.id]
            results = together(
                (parent, lambda: release(hoarded, owned.worker, USING)),
                (child, lambda: begin(owned.row.id, owned.row.version, owned.worker, USING)),
            )
            assert bool(results[0]) != results[1]
            begun, given = begun + results[1], given + bool(results[0])
            assert row(run).status == ("running" if results[1] else "runnable")
            Workflow.objects.filter(pk=run.id).update(queue="done")
    assert begun + given == 150


@pytest.mark.parametrize("begins_first", [True, False], ids=["begin first", "give back first"])
def test_the_later_of_begin_and_give_back_loses(worker: LocalWorker, begins_first: bool) -> None:  # noqa: FBT001
    run = Line.start({})
    owned = factories.take_one(worker)
    hoarded = unstarted_of_child(owned.worker, owned.pid, None, USING)

    def give() -> Any:
        return release(hoarded, owned.worker, USING)

    def start() -> bool:
        return begin(owned.row.id, owned.row.version, owned.worker, USING)

    met = overtaken(start, give) if begins_first else overtaken(give, start)
    assert met.blocked
    assert (bool(met.first), bool(met.second)) == (True, False)
    assert row(run).status == ("running" if begins_first else "runnable")


def register(name: str) -> bool:
    params = {
        "id": new_id(), "name": name, "region": "", "host_class": "", "placements": [], "queues": [], "definitions": [], "concurrency": 1,
        "lease": 10.0,
    }  # fmt: skip
    return workers.register(params, Process("h", "b", "n", 1, "s"), USING) is not None


def test_the_second_worker_of_one_name_loses(transactional_db: None) -> None:
    with racers(4) as threads:
        for number in range(100):
            answers = together(*[(racer, lambda number=number: register(f"w{number}")) for racer in threads])
            assert sorted(answers) == [False, False, False, True]
    assert Worker.objects.filter(status="alive").count() == 100


def test_a_renewal_behind_a_burial_loses(worker: LocalWorker) -> None:
    incarnation = worker.incarnation
    assert incarnation is not None
    met = overtaken(lambda: workers.bury(USING, incarnation), lambda: workers.renew(incarnation, 10.0, USING))
    assert (met.second, met.blocked) == (None, True)


def test_two_sweeps_put_back_once(worker: LocalWorker) -> None:
    runs = Line.start_many([(None, {}) for _ in range(60)])
    factories.take_up_to(worker, 60)
    worker.stop()
    counts = all_of([lambda: sweeps.put_back_lost(USING)] * 3)
    assert sum(counts) == 60
    assert {status(run)[0] for run in runs} == {"runnable"}
    assert Transition.objects.filter(trigger="lost").count() == 60


def test_the_second_keeper_of_one_name_loses(transactional_db: None) -> None:
    """Both find the same dead predecessor, both may bury it; one of them is the worker of that name."""
    offer = Offer("celery@host", ["agents"], [("t-line", 1)], [], 1)
    with racers(2) as threads:
        for _ in range(30):
            keepers = [Keeper(offer, Shared(), forked=False, using=USING) for _ in threads]
            outcomes = together(*[(racer, keeper.register) for racer, keeper in zip(threads, keepers, strict=True)])
            assert sorted(isinstance(outcome, NameTaken) for outcome in outcomes) == [False, True]
            (winner,) = [outcome for outcome in outcomes if not isinstance(outcome, NameTaken)]
            assert list(Worker.objects.filter(status="alive").values_list("pk", flat=True)) == [winner]
            Worker.objects.filter(status="alive").update(process_started="1")  # of a process that had this number before
