"""Effects: in flight before the call, uncertain when nobody knows, asked about, and only then repeated or taken as done."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, FAILED, Activity, End, Flow, Retry, seconds
from flows import errors as kinds
from flows.core.effects import DidNotHappen, Effect, Happened, OperationStatus, Unknown
from flows.models import Notice, Operation, Resolution, Transition, Wait
from flows.services import effects, sweeps
from flows.services.arrows import Settlement
from flows.services.attempt import Attempt
from flows.services.effects import Effects
from flows.services.servicing import run_servicing
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import SLOWLY, called, does, row, status, work

pytestmark = pytest.mark.req("B2", "B5", "B7")

#: What the outside has done, by operation id; and what it says when it is asked.
provider: dict[str, Any] = {}
says: list[Any] = []
asked: list[str] = []


def reconcile(operation: Any) -> Any:
    asked.append(operation.id)
    if says:
        answer = says.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
    return Happened(provider[operation.id], external_id="ext-1") if operation.id in provider else DidNotHappen()


class Pay(Flow):
    """One effect that can be asked about."""

    class Meta:
        name = "t-pay"

    pay = Activity(
        work,
        effect=Effect(reconcile=reconcile, request=lambda state: {"amount": state.input.get("amount", 1)}),
        retry=SLOWLY,
        then="done",
        on={kinds.PolicyDenied: "gave_up"},
    )
    done = End(COMPLETE, result=lambda state: state.results["pay"])
    gave_up = End(FAILED)


class Send(Flow):
    """An effect that nobody can be asked about, and one that may be asked for twice."""

    class Meta:
        name = "t-send"

    send = Activity(work, effect=Effect(), retry=SLOWLY, then="again")
    again = Activity(work, effect=Effect(idempotent=True), retry=SLOWLY, then="done")
    done = End(COMPLETE)


class Several(Flow):
    """Three effects in one activity."""

    class Meta:
        name = "t-several"

    work = Activity(
        work,
        effects={"charge": Effect(reconcile=reconcile), "label": Effect(idempotent=True), "mail": Effect(reconcile=reconcile)},
        retry=Retry(max_attempts=3, initial=seconds(0), maximum=seconds(0), jitter=0),
        then="done",
    )
    done = End(COMPLETE, result=lambda state: state.results["work"])


@pytest.fixture(autouse=True)
def _outside() -> None:
    provider.clear()
    says.clear()
    asked.clear()


def paying(error: Exception | None = None, *, happens: bool = True) -> Callable[[Attempt], Any]:
    """Makes the call once; then raises, if told so."""
    errors = [error] if error else []

    def act(attempt: Attempt) -> Any:
        if happens:
            provider[attempt.operation_id] = {"paid": attempt.input.get("amount", 1)}
        if errors:
            raise errors.pop()
        provider[attempt.operation_id] = {"paid": attempt.input.get("amount", 1)}
        return provider[attempt.operation_id]

    return act


def operation() -> Operation:
    return Operation.objects.get()


def log(run: Any) -> list[str]:
    return list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("to_status", flat=True))


def test_the_operation_is_in_flight_before_the_call_and_settled_with_the_result(worker: LocalWorker) -> None:
    seen: list[Any] = []

    def look(attempt: Attempt) -> Any:
        seen.append((operation().status, operation().request, row(run).owed, attempt.headers["Idempotency-Key"]))
        return {"paid": 7}

    does["pay"] = look
    run = Pay.start({"amount": 7})
    worker.run()
    name = f"{run.id}/pay/1"
    assert seen == [("in_flight", {"amount": 7}, 1, name)]
    done = operation()
    assert (done.id, done.status, done.evidence, done.attempt, done.settled_by) == (name, "succeeded", {"paid": 7}, 1, "attempt")
    assert (*status(run), row(run).owed) == ("complete", "COMPLETE", "done", 0)
    assert not Resolution.objects.exists()


def test_after_a_doubt_that_it_happened_the_evidence_is_the_result_and_nothing_is_called_again(worker: LocalWorker) -> None:
    does["pay"] = paying(ConnectionResetError())
    run = Pay.start({"amount": 3})
    worker.run()
    assert (called("pay"), asked) == (1, [f"{run.id}/pay/1"])
    assert (row(run).status, row(run).result, row(run).owed) == ("complete", {"paid": 3}, 0)
    assert (operation().status, operation().external_id, operation().settled_by) == ("succeeded", "ext-1", "probe")
    assert list(Resolution.objects.values_list("source", "answer", "counted")) == [("probe", "happened", True)]
    assert log(run) == ["runnable", "running", "reconciling", "runnable", "running", "complete"]
    assert list(Wait.objects.values_list("kind", "status")) == [("reconciliation", "satisfied")]


def test_after_a_doubt_that_it_did_not_happen_the_same_operation_is_tried_again(worker: LocalWorker, clock: Clock) -> None:
    does["pay"] = paying(TimeoutError(), happens=False)
    run = Pay.start({})
    worker.run()
    assert (status(run)[:2], called("pay")) == (("waiting", "WAITING"), 1), "not before the node's policy says"
    assert Wait.objects.get(status="open").kind == "retry_window"
    clock.move(seconds=11)
    worker.tick()
    worker.run()
    assert called("pay") == 2
    assert [call[1:] for call in factories.calls] == [(1, 1), (1, 2)], "the same visit, the next attempt"
    assert (row(run).status, operation().status, operation().attempt) == ("complete", "succeeded", 2)


def test_unknown_is_asked_again_in_time_and_in_the_end_by_a_person(worker: LocalWorker, clock: Clock) -> None:
    does["pay"] = paying(ConnectionResetError())
    says.extend([Unknown("busy"), RuntimeError("probe broke"), "no answer at all", *[Unknown()] * 3])
    run = Pay.start({})
    worker.run()
    assert (status(run)[:2], operation().status, len(asked)) == (("reconciling", "RECONCILIATION_REQUIRED"), "uncertain", 1)
    worker.run()
    assert len(asked) == 1, "not before its time"
    for _ in range(8):
        clock.move(minutes=11)
        worker.tick()
        worker.run()
    assert (len(asked), called("pay")) == (6, 1)
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "OUTCOME_UNKNOWN")
    found = operation()
    assert (found.status, found.due_at, found.worker_id) == ("uncertain", None, None)
    assert [r.reason for r in Resolution.objects.order_by("pk")][:3] == ["busy", "RuntimeError", "TypeError"]


def test_what_nobody_can_be_asked_about_needs_a_person_at_once_and_resume_does_not_pass_it(worker: LocalWorker) -> None:
    does["send"] = paying(ConnectionResetError())
    run = Send.start({})
    worker.run()
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "NOT_RECONCILABLE")
    with pytest.raises(kinds.OutcomeUnknown, match=f"{run.id}/send/1"):
        flows.resume(run)
    worker.run()
    assert called("send") == 1


def test_what_may_be_asked_for_twice_is(worker: LocalWorker, clock: Clock) -> None:
    does["again"] = paying(ConnectionResetError())
    run = Send.start({})
    worker.run()
    clock.move(seconds=11)
    worker.tick()
    worker.run()
    assert (row(run).status, called("again")) == ("complete", 2)
    assert Operation.objects.get(node="again").attempt == 2


def test_doubts_about_what_never_happens_end(worker: LocalWorker, clock: Clock) -> None:
    def broken(attempt: Attempt) -> Any:
        raise ConnectionResetError

    does["pay"] = broken
    run = Pay.start({})
    for _ in range(10):
        clock.move(minutes=1)
        worker.tick()
        worker.run()
    assert called("pay") == 3
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "RETRIES_EXHAUSTED")


def test_an_error_that_says_that_nothing_happened_is_no_doubt(worker: LocalWorker, clock: Clock) -> None:
    does["pay"] = paying(kinds.Transient(), happens=False)
    run = Pay.start({})
    worker.run()
    assert (status(run)[0], operation().status, asked, row(run).owed) == ("waiting", "failed", [], 0)
    clock.move(minutes=1)
    worker.tick()
    worker.run()
    assert (row(run).status, operation().status, called("pay")) == ("complete", "succeeded", 2)


def test_a_route_is_taken_only_with_a_known_outcome(worker: LocalWorker) -> None:
    does["pay"] = paying(kinds.PolicyDenied(), happens=False)
    run = Pay.start({})
    worker.run()
    assert (row(run).status, operation().status) == ("failed", "failed")


def test_a_worker_that_dies_after_the_call_leaves_a_doubt(worker: LocalWorker) -> None:
    run = Pay.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    call = Effects(owned, worker.owns).begin("", {"amount": 1})
    provider[call.id] = {"paid": 1}
    worker.stop()
    with flows_worker() as other:
        sweeps.run_tick(other.using)
        assert (status(run)[:2], operation().status) == (("reconciling", "RECONCILIATION_REQUIRED"), "uncertain")
        other.run()
    assert (row(run).status, row(run).result, called("pay")) == ("complete", {"paid": 1}, 0)


def flows_worker() -> Any:
    from flows.testing import local_worker

    return local_worker()


def test_a_late_result_is_known_to_have_happened(worker: LocalWorker) -> None:
    def slow(attempt: Attempt) -> Any:
        flows.cancel(run)
        return {"paid": 5}

    does["pay"] = slow
    run = Pay.start({})
    worker.run()
    assert (row(run).status, operation().status, operation().evidence) == ("cancelled", "succeeded", {"paid": 5})
    assert list(Resolution.objects.values_list("source", "answer", "counted")) == [("attempt", "happened", True)]
    assert (asked, row(run).owed) == ([], 0)


def test_what_happened_after_everybody_was_sure_that_it_had_not_is_told(worker: LocalWorker, django_user_model: Any) -> None:
    """The provider said no before the call arrived there: nothing is undone by itself, and a person learns of it."""
    run = Pay.start({}, by=django_user_model.objects.create_user("robin"))
    owned = factories.take_one(worker)
    factories.enter(owned)
    call = Effects(owned, worker.owns).begin("", {"amount": 1})
    worker.stop()
    with flows_worker() as other:
        flows.cancel(run)
        sweeps.run_tick(other.using)
        other.run()
        assert (status(run)[0], operation().status) == ("cancelled", "abandoned")
    assert not Notice.objects.exists()
    for _ in range(2):
        assert not effects.record(Settlement(call.id, OperationStatus.SUCCEEDED, 1, '{"paid": 1}'), owned, late=True)
    assert list(Resolution.objects.values_list("source", "answer", "counted"))[-1] == ("attempt", "happened", False)
    assert (status(run)[0], operation().status) == ("cancelled", "abandoned")
    assert [(one.code, one.user.username) for one in Notice.objects.all()] == [("LATE_EFFECT", "robin")], "once"


def test_after_a_cancel_no_row_no_call(worker: LocalWorker) -> None:
    run = Pay.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    flows.cancel(run)
    with pytest.raises(kinds.LostOwnership):
        Effects(owned, worker.owns).begin("", {"amount": 1})
    assert not Operation.objects.exists()


def test_one_operation_asks_for_one_thing(worker: LocalWorker, clock: Clock) -> None:
    amounts = iter([1, 2])

    def charge(attempt: Attempt) -> Any:
        with attempt.effect("charge", request={"amount": next(amounts)}):
            raise kinds.Transient

    does["work"] = charge
    run = Several.start({})
    for _ in range(3):
        worker.run()
        clock.move(minutes=1)
        worker.tick()
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "OPERATION_CONFLICT")
    assert operation().status == "failed"


def test_several_effects_each_once(worker: LocalWorker) -> None:
    made: list[str] = []
    faults = [ConnectionResetError()]

    def several(attempt: Attempt) -> Any:
        receipts = {}
        for name in ("charge", "label", "mail"):
            with attempt.effect(name, request={"what": name}) as op:

                def call(name: str = name, key: str = op.id) -> Any:
                    made.append(name)
                    provider[key] = {"receipt": name}
                    if name == "mail" and faults:
                        raise faults.pop()
                    return provider[key]

                receipts[name] = op.call(call)
        return receipts

    does["work"] = several
    run = Several.start({})
    worker.run()
    assert made == ["charge", "label", "mail"]
    assert row(run).result == {name: {"receipt": name} for name in ("charge", "label", "mail")}
    assert {(o.name, o.status, o.settled_by) for o in Operation.objects.all()} == {
        ("charge", "succeeded", "attempt"),
        ("label", "succeeded", "attempt"),
        ("mail", "succeeded", "probe"),
    }
    assert (called("work"), row(run).owed) == (2, 0)
    assert list(Resolution.objects.values_list("operation__name", "source")) == [("mail", "probe")], (
        "what was never in doubt needs no answer"
    )


def test_an_undeclared_effect_is_refused(worker: LocalWorker) -> None:
    def wrong(attempt: Attempt) -> Any:
        with attempt.effect("fly"):
            return None

    does["work"] = wrong
    run = Several.start({})
    worker.run()
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    assert not Operation.objects.exists()


# ---------------------------------------------------------------- what only asking again can tell


def clean(error: Exception) -> Callable[[Attempt], Any]:
    """Does it and loses the answer the first time; every later call fails for certain."""
    first = [True]

    def act(attempt: Attempt) -> Any:
        if first.pop() if first else False:
            provider[attempt.operation_id] = {"sent": 1}
            raise ConnectionResetError
        raise error

    return act


@pytest.mark.parametrize("then", [kinds.Transient(), ConnectionResetError(), kinds.PolicyDenied()])
def test_a_later_failure_says_nothing_of_an_earlier_call(worker: LocalWorker, clock: Clock, then: Exception) -> None:
    does["again"] = clean(then)
    run = Send.start({})
    for _ in range(5):
        worker.run()
        clock.move(minutes=1)
        worker.tick()
    found = Operation.objects.get(node="again")
    assert (found.status, found.again, called("again")) == ("uncertain", False, 3)
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "RETRIES_EXHAUSTED")
    with pytest.raises(kinds.OutcomeUnknown):
        flows.resume(run)


def test_what_was_to_be_asked_for_again_is_a_persons_when_nobody_will(worker: LocalWorker) -> None:
    does["again"] = paying(ConnectionResetError())
    run = Send.start({})
    worker.run(["agents"])
    run_servicing(worker, worker.using)
    assert (status(run)[0], Operation.objects.get(node="again").again, row(run).owed) == ("waiting", True, 1)
    flows.cancel(run)
    worker.run()
    assert (status(run)[:2], row(run).error_code, row(run).owed) == (("cancelling", "HUMAN_REQUIRED"), "NOT_RECONCILABLE", 1)


# ---------------------------------------------------------------- a call that is still being made


def test_a_cancel_does_not_ask_about_a_call_that_is_still_being_made(worker: LocalWorker) -> None:
    def slow(attempt: Attempt) -> Any:
        flows.cancel(run)
        run_servicing(worker, worker.using)
        assert asked == [], "the provider would say, rightly, that it did not happen"
        provider[attempt.operation_id] = {"paid": 1}
        raise ConnectionResetError

    does["pay"] = slow
    run = Pay.start({})
    worker.run()
    assert asked == [f"{run.id}/pay/1"], "now that it is over"
    assert (row(run).status, operation().status) == ("cancelled", "succeeded")


def test_a_call_whose_worker_died_is_asked_about_at_once(worker: LocalWorker) -> None:
    run = Pay.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    Effects(owned, worker.owns).begin("", {"amount": 1})
    flows.cancel(run)
    with flows_worker() as other:
        other.run()
        assert (asked, status(run)[0]) == ([], "cancelling")
        worker.stop()
        sweeps.run_tick(other.using)
        other.run()
    assert (asked, row(run).status, operation().status) == ([f"{run.id}/pay/1"], "cancelled", "abandoned")


# ---------------------------------------------------------------- several calls


def in_block(body: Callable[[Any], Any]) -> Callable[[Attempt], Any]:
    def act(attempt: Attempt) -> Any:
        with attempt.effect("charge", request={"n": 1}) as op:
            body(op)
        return {"went": "on"}

    return act


def lost() -> Any:
    raise ConnectionResetError


def test_a_call_that_raised_is_in_doubt_also_where_the_error_is_caught(worker: LocalWorker) -> None:
    def caught(op: Any) -> None:
        with contextlib.suppress(ConnectionResetError):
            op.call(lost)

    does["work"] = in_block(caught)
    says.append(Happened({"receipt": 1}))
    run = Several.start({})
    worker.run()
    assert (row(run).status, asked, operation().settled_by) == ("complete", [f"{run.id}/work/1/charge"], "probe")


def test_one_block_is_one_call_and_one_name_one_block(worker: LocalWorker) -> None:
    def twice(op: Any) -> None:
        op.call(dict)
        op.call(dict)

    does["work"] = in_block(twice)
    run = Several.start({})
    worker.run()
    assert row(run).error_code == "OPERATION_CONFLICT"

    def loop(attempt: Attempt) -> Any:
        for number in range(2):
            with attempt.effect("charge", request={"n": number}) as op:
                op.call(dict)

    does["work"] = loop
    second = Several.start({})
    worker.run()
    assert row(second).error_code == "OPERATION_CONFLICT"


def test_another_request_is_refused_also_after_it_has_succeeded(worker: LocalWorker, clock: Clock) -> None:
    numbers = iter(range(9))

    def changing(attempt: Attempt) -> Any:
        with attempt.effect("charge", request={"n": next(numbers)}) as op:
            op.call(dict)
        raise kinds.Transient

    does["work"] = changing
    run = Several.start({})
    for _ in range(3):
        worker.run()
        clock.move(minutes=1)
        worker.tick()
    assert row(run).error_code == "OPERATION_CONFLICT"
