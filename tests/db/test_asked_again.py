"""An effect in doubt that only asking again, or a person, can settle: nothing goes past it, neither a route nor an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import CANCEL, COMPLETE, ESCALATE, FAIL, FAILED, Activity, Deadline, Effect, End, Retry
from flows import errors as kinds
from flows.models import Operation, Transition
from flows.services import sweeps
from flows.services.attempt import Attempt
from flows.services.resolve import resolve
from flows.services.servicing import run_servicing
from flows.testing import Clock, LocalWorker, local_worker
from tests import factories
from tests.factories import SLOWLY, called, does, row, status, work
from tests.support.obligations import faults

Declare = Callable[..., type[flows.Flow]]


@pytest.fixture
def ann(db: None) -> Any:
    return get_user_model().objects.create_superuser("ann")


pytestmark = pytest.mark.req("B2", "B5")


def sending(declare: Declare, *, then: Any = None, **options: Any) -> type[flows.Flow]:
    """One effect that may be asked for twice, in a flow that has (perhaps) an hour."""
    return declare(
        "t-sending",
        meta={"deadline": Deadline(hours=1, then=then)} if then is not None else {},
        send=Activity(work, retry=SLOWLY, then="done", **options),
        gave_up=End(FAILED),
        done=End(COMPLETE),
    )


def answers(*given: Any) -> Callable[[Attempt], Any]:
    """One answer for each call: an error is raised."""
    left = list(given)

    def act(attempt: Attempt) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return act


def left_in_doubt(worker: LocalWorker, run: Any) -> None:
    worker.run(["agents"])
    run_servicing(worker, worker.using)
    found = Operation.objects.get()
    assert (found.status, found.again, row(run).owed, status(run)[0]) == ("uncertain", True, 1, "waiting")


@pytest.mark.parametrize("then", [ESCALATE, CANCEL, FAIL, "gave_up"], ids=str)
def test_a_deadline_waits_until_the_effect_is_known(worker: LocalWorker, clock: Clock, declare: Declare, then: Any) -> None:
    does["send"] = answers(ConnectionResetError(), {"sent": 1})
    run = sending(declare, then=then, effect=Effect(idempotent=True)).start({})
    left_in_doubt(worker, run)
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (called("send"), Operation.objects.get().status) == (2, "succeeded")
    assert (status(run)[:2], row(run).owed) == (("complete", "COMPLETE"), 0)


@pytest.mark.parametrize("then", [ESCALATE, CANCEL, FAIL, "gave_up", "other"], ids=str)
@pytest.mark.parametrize("idempotent", [False, True], ids=["nobody to ask", "asked for often enough"])
def test_a_deadline_waits_until_a_person_has_answered(
    worker: LocalWorker,
    clock: Clock,
    declare: Declare,
    ann: Any,
    then: Any,
    idempotent: bool,  # noqa: FBT001
) -> None:
    """It has fired, and wakes nobody; the answer does, and then the deadline is obeyed."""
    does["send"] = answers(ConnectionResetError())
    flow = declare(
        "t-sending",
        meta={"deadline": Deadline(hours=1, then=then)},
        send=Activity(work, retry=Retry(max_attempts=1), effect=Effect(idempotent=idempotent), then="done"),
        other=Activity(work, then="done"),
        gave_up=End(FAILED),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    asks = (("waiting", "HUMAN_REQUIRED", "send"), "RETRIES_EXHAUSTED" if idempotent else "NOT_RECONCILABLE")
    assert (status(run), row(run).error_code) == asks
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (status(run), row(run).error_code) == asks
    assert (called("other"), Operation.objects.get().status, faults()) == (0, "uncertain", [])
    resolve(Operation.objects.get().pk, verdict="happened", by=ann, reason="it is there")
    worker.run()
    ends = {ESCALATE: "waiting", CANCEL: "cancelled", FAIL: "failed", "gave_up": "failed", "other": "complete"}
    assert (status(run)[0], called("send"), row(run).owed, faults()) == (ends[then], 1, 0, [])


def test_a_failure_before_the_call_is_no_way_past_it(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """The next attempt fails before it asks again: its failure counts, and its route is for a known outcome only."""
    body = {"n": 0}

    def act(attempt: Attempt) -> Any:
        body["n"] += 1
        if body["n"] > 1:
            raise kinds.PolicyDenied("not now")
        with attempt.effect("mail", request=None) as mail:
            mail.call(lambda: (_ for _ in ()).throw(ConnectionResetError()))

    does["send"] = act
    flow = sending(declare, effects={"mail": Effect(idempotent=True)}, on={kinds.PolicyDenied: "gave_up"})
    run = flow.start({})
    left_in_doubt(worker, run)
    for _ in range(4):
        clock.move(minutes=1)
        worker.tick()
        worker.run()
        run_servicing(worker, worker.using)
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "RETRIES_EXHAUSTED")
    assert (row(run).node, Operation.objects.get().again, body["n"]) == ("send", False, 3)


def test_a_worker_that_dies_before_it_asks_again_leaves_the_doubt(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    does["send"] = answers(ConnectionResetError(), {"sent": 1})
    run = sending(declare, then="gave_up", effect=Effect(idempotent=True)).start({})
    left_in_doubt(worker, run)
    clock.move(hours=2)
    worker.tick()
    factories.enter(factories.take_one(worker))
    worker.stop()
    with local_worker() as other:
        sweeps.run_tick(other.using)
        assert (status(run)[0], Operation.objects.get().status) == ("reconciling", "uncertain")
        other.run()
        clock.move(minutes=1)
        other.tick()
        other.run()
    assert (called("send"), Operation.objects.get().status, status(run)[0]) == (2, "succeeded", "complete")


def test_an_end_that_is_reached_without_asking_again_asks_a_person(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any
) -> None:
    """The author's code leaves it out the second time; the end waits for it, and says so."""
    body = {"n": 0}

    def act(attempt: Attempt) -> Any:
        body["n"] += 1
        if body["n"] == 1:
            with attempt.effect("mail", request=None) as mail:
                mail.call(lambda: (_ for _ in ()).throw(ConnectionResetError()))
        return {}

    does["send"] = act
    run = sending(declare, effects={"mail": Effect(idempotent=True)}).start({})
    left_in_doubt(worker, run)
    clock.move(minutes=1)
    worker.tick()
    worker.run()
    run_servicing(worker, worker.using)
    found = Operation.objects.get()
    assert (found.status, found.again, found.error_code) == ("uncertain", False, "NOT_RECONCILABLE")
    assert Transition.objects.filter(workflow_id=run.id).latest("seq").to_status == "reconciling"
    resolve(found.id, verdict="happened", by=ann, reason="the mail is there")
    assert (status(run)[:2], row(run).owed) == (("complete", "COMPLETE"), 0)
