"""What is owed stays exact when the database is away for a moment, and a run that needs a person says so whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError

import flows
from flows import COMPLETE, FAILED, Activity, Commits, Effect, End, Flow, commitments
from flows import errors as kinds
from flows.core.effects import OperationStatus
from flows.models import Operation
from flows.services import effects, proceed
from flows.store import operations as store
from flows.testing import LocalWorker
from tests.factories import does, row, status, work
from tests.support import owing
from tests.support.obligations import faults

pytestmark = pytest.mark.req("B2", "B5", "J1")


class Several(Flow):
    """A named effect; what it answers is the result."""

    class Meta:
        name = "t-owed-named"

    work = Activity(work, effects={"charge": Effect(reconcile=owing.reconcile)}, retry=owing.AT_ONCE, then="done")
    done = End(COMPLETE, result=lambda state: state.results["work"])


class Keeping(Flow):
    """Something that must be released by a person, and an effect that may be refused; nothing of it can be undone."""

    class Meta:
        name = "t-owed-held"

    take = Activity(work, commits=Commits("thing"), then="pay")
    pay = Activity(work, effect=Effect(reconcile=owing.reconcile), on={kinds.PolicyDenied: "gave_up"}, then="done")
    done = End(COMPLETE)
    gave_up = End(FAILED)


class Asking(Flow):
    """Nobody can be asked about its effect but a person."""

    class Meta:
        name = "t-owed-asking"

    pay = Activity(work, effect=Effect(compensate=owing.undo), then="done")
    done = End(COMPLETE)


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    owing.forget()
    yield
    owing.forget()


def once(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """The same function, whose connection is lost the first time: before it acts, or after, when nobody hears its answer."""
    left = [OperationalError("the server has closed the connection")]

    def act(*args: Any, **kwargs: Any) -> Any:
        if left and not after:
            raise left.pop()
        answer = function(*args, **kwargs)
        if left:
            raise left.pop()
        return answer

    return act


def charging(attempt: Any) -> Any:
    with attempt.effect("charge", request={"amount": 1}) as op:
        return op.call(lambda: owing.outside.setdefault(op.id, {"charged": 1}))


def carry_on(worker: LocalWorker, run: Any) -> None:
    for _ in range(4):
        worker.run()
        worker.tick()
        assert faults() == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_named_effect_whose_end_cannot_be_recorded_is_a_doubt(
    worker: LocalWorker,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The call was made, and the database is away when that is to be recorded: the operation is known or asked about, never left in flight."""
    monkeypatch.setattr(effects, "record", once(effects.record, after=after))
    does["work"] = charging
    run = Several.start({})
    carry_on(worker, run)
    assert (row(run).status, row(run).result, Operation.objects.get().status) == ("complete", {"charged": 1}, "succeeded")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_flight_whose_answer_is_lost_is_a_doubt(
    worker: LocalWorker,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Put in flight, and the answer of that commit is lost: no call was made, and it is found out that it did not happen."""
    monkeypatch.setattr(store, "fly", once(store.fly, after=after))
    does["work"] = charging
    run = Several.start({})
    carry_on(worker, run)
    assert (row(run).status, row(run).result, Operation.objects.get().status) == ("complete", {"charged": 1}, "succeeded")


def test_an_arrow_that_is_made_again_after_a_lost_connection_owes_the_same(
    worker: LocalWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effect was refused, which leads to a bad end; the first try to record it is rolled back. What is held is still owed."""

    def refuse(attempt: Any) -> Any:
        monkeypatch.setattr(proceed, "_commit", once(proceed._commit, after=False))
        raise kinds.PolicyDenied

    does["pay"] = refuse
    run = Keeping.start({})
    worker.run()
    assert faults() == []
    assert (status(run)[0], row(run).owed) == ("cancelling", 1)


def in_need_of_a_person(worker: LocalWorker) -> Any:
    def cut(attempt: Any) -> Any:
        raise ConnectionResetError

    does["pay"] = cut
    run = Asking.start({})
    worker.run()
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "NOT_RECONCILABLE")
    return run


@pytest.mark.parametrize("act", [flows.cancel, lambda run: flows.supersede(run, goal="x")], ids=["cancel", "supersede"])
def test_on_its_way_to_an_end_it_still_says_that_it_needs_a_person(worker: LocalWorker, act: Callable[[Any], Any]) -> None:
    run = in_need_of_a_person(worker)
    act(run)
    worker.run()
    assert status(run)[:2] == ("cancelling", "HUMAN_REQUIRED")
    assert faults() == []


def test_when_a_late_result_ends_the_doubt_it_needs_nobody_any_more(worker: LocalWorker) -> None:
    run = in_need_of_a_person(worker)
    flows.cancel(run)
    worker.run()
    assert owing.settle(Operation.objects.get().pk, run, OperationStatus.SUCCEEDED, source="attempt")
    assert status(run)[:2] == ("cancelling", "")
    worker.run()
    assert (status(run)[0], Operation.objects.get(kind="effect").status) == ("cancelled", "compensated")


def test_what_a_person_deferred_before_the_end_is_named_in_its_outcome(worker: LocalWorker) -> None:
    case = owing.booked(worker)
    (held,) = commitments.active(workflow=case.run)
    assert commitments.defer(held, by=None, reason="The night shift looks after it")
    owing.hear(case, "leave")
    worker.run()
    assert status(case.run)[:2] == ("complete", "COMPLETE_WITH_DEFERRED_COMMITMENTS")
