"""The servicing turn: hinted at, bounded by its slice, one look at a time; a look that is lost is made again by somebody else."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Effect, End, minutes
from flows.core.effects import DidNotHappen, Happened
from flows.models import Operation
from flows.services import sweeps
from flows.services.attempt import Attempt
from flows.services.servicing import run_servicing
from flows.store import looks
from flows.testing import Clock, LocalWorker, local_worker
from tests import factories
from tests.db.test_compensation import Trip, booked, faults, name, says, undone
from tests.factories import does, row, status, work
from tests.support import owing
from tests.support.record import Counting

pytestmark = pytest.mark.req("B5", "K2")


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    undone.clear()
    faults.clear()
    says.clear()
    owing.forget()


def cut(attempt: Attempt) -> Any:
    raise ConnectionResetError


def doubtful(worker: LocalWorker) -> Any:
    """A trip whose hotel is in doubt; nobody has looked yet."""
    does["hotel"] = cut
    run = Trip.start({})
    worker.run(["agents"])
    assert (status(run)[0], Operation.objects.get(pk=name(run, "hotel")).looks) == ("reconciling", 0)
    return run


def taken(worker: LocalWorker) -> list[tuple[str, int]]:
    assert worker.incarnation is not None
    return looks.look(worker.incarnation, worker.pid, worker.flows, worker.versions, 5, worker.using)


def test_a_doubt_and_a_planned_compensation_ask_for_a_servicing_turn(worker: LocalWorker, hints: Counting) -> None:
    hints.clear()
    run = doubtful(worker)
    assert hints.services == 1
    flows.cancel(run)
    says.append(Happened())
    hints.clear()
    run_servicing(worker, worker.using)
    assert hints.services == 2, "one for each compensation"
    assert status(run)[0] == "cancelled"


def test_the_clock_finds_what_a_lost_hint_was_for(worker: LocalWorker, hints: Counting) -> None:
    doubtful(worker)
    hints.clear()
    worker.tick()
    assert hints.services == 1
    says.append(Happened())
    run_servicing(worker, worker.using)
    hints.clear()
    worker.tick()
    assert hints.services == 0, "nothing is due any more"


def test_a_turn_lets_go_after_its_slice_and_asks_for_the_next(worker: LocalWorker, hints: Counting, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "SLICE_SECONDS": 0}
    runs = [doubtful(worker) for _ in range(2)]
    assert Operation.objects.filter(status="uncertain").count() == 2
    says.extend([Happened(), Happened()])
    hints.clear()
    assert run_servicing(worker, worker.using) == 1
    assert hints.services == 1
    assert run_servicing(worker, worker.using) == 1
    assert [status(run)[0] for run in runs] == ["runnable", "runnable"]


def test_a_stopping_worker_and_one_without_a_lease_look_at_nothing(worker: LocalWorker) -> None:
    doubtful(worker)
    worker.asked_to_stop = True
    assert run_servicing(worker, worker.using) == 0
    worker.asked_to_stop = False
    worker.stop()
    assert run_servicing(worker, worker.using) == 0
    assert Operation.objects.get(status="uncertain").looks == 0


def test_only_who_knows_the_flow_looks(worker: LocalWorker) -> None:
    doubtful(worker)
    worker.flows, worker.versions = ["t-line"], [1]
    assert run_servicing(worker, worker.using) == 0


def test_a_look_whose_worker_died_is_made_by_another_and_counts_no_try(worker: LocalWorker) -> None:
    run = doubtful(worker)
    assert [operation for operation, _ in taken(worker)] == [name(run, "hotel")]
    worker.stop()
    with local_worker() as other:
        sweeps.run_tick(other.using)
        found = Operation.objects.get(status="uncertain")
        assert (found.worker_id, found.tries, found.lost, found.looks) == (None, 0, 1, 2)
        says.append(Happened({"room": 1}))
        other.run()
    assert status(run)[0] == "waiting"


def test_a_call_whose_worker_died_is_in_doubt_and_its_own_late_answer_is_fenced(worker: LocalWorker) -> None:
    run = booked(worker)
    flows.cancel(run)
    ((operation, number),) = taken(worker)
    assert (operation, Operation.objects.get(pk=operation).status) == (name(run, "hotel") + "/compensate", "in_flight")
    worker.stop()
    with local_worker() as other:
        sweeps.run_tick(other.using)
        found = Operation.objects.get(pk=operation)
        assert (found.status, found.attempt, found.lost) == ("uncertain", 0, 1)
        assert not looks.may_take(operation, number, 1.0, other.using), "whoever had it is fenced"
        says.append(DidNotHappen())
        other.run()
    assert (status(run)[0], undone) == ("cancelled", [name(run, "hotel"), name(run, "flight")])


def test_workers_that_keep_dying_under_a_look_need_a_person(worker: LocalWorker, clock: Clock) -> None:
    run = doubtful(worker)
    Operation.objects.filter(status="uncertain").update(lost=26)
    worker.run()
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "LOOKS_LOST")


def test_a_child_that_is_gone_gives_its_look_back_at_once(worker: LocalWorker, hints: Counting) -> None:
    doubtful(worker)
    taken(worker)
    assert worker.incarnation is not None
    hints.clear()
    sweeps.put_back_children(worker.incarnation, [worker.pid], worker.using)
    assert (Operation.objects.get(status="uncertain").worker_id, hints.services) == (None, 1)


@pytest.mark.parametrize("gone", ["worker", "child"])
def test_a_call_whose_process_is_gone_is_asked_about_after_its_grace(
    worker: LocalWorker, clock: Clock, declare: Any, gone: str
) -> None:
    """It was sent a moment ago, and the provider may still carry it out: that its process has died changes nothing of that."""
    effect = Effect(request=owing.request, reconcile=owing.reconcile, grace=minutes(5))
    flow = declare("t-graceful", book=Activity(work, effect=effect, then="done"), done=End(COMPLETE))
    caller = factories.another_worker()
    case = owing.flying(caller, flow)
    flows.cancel(case.run)
    if gone == "worker":
        case.kill_owner()
        worker.tick()
    else:
        assert caller.incarnation is not None
        sweeps.put_back_children(caller.incarnation, [caller.pid], caller.using)
        sweeps.put_back_children(caller.incarnation, [caller.pid], caller.using)
    assert Operation.objects.get().flown_by is None
    clock.move(minutes=4)
    assert run_servicing(worker, worker.using) == 0
    clock.move(minutes=2)
    assert run_servicing(worker, worker.using) == 1
    assert (status(case.run)[0], Operation.objects.get().status) == ("cancelled", "succeeded")
    caller.stop()
