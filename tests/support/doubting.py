"""Flows whose effects fall in doubt, and short ways to bring an operation there, for the tests of what people say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flows
from flows import COMPLETE, ESCALATE, Activity, Commits, Deadline, End, Flow, Retry, Wait, seconds
from flows.core.effects import DidNotHappen, Effect, Happened, Servicing, Unknown
from flows.errors import PolicyDenied
from flows.models import Operation
from flows.services.start import Started
from flows.testing import LocalWorker
from tests.factories import does, row, work

#: What the probe says, one answer after another (a callable is asked); then "unknown". What a refund does; then it succeeds.
probe_says: list[Any] = []
refund_does: list[Callable[[Any], Any]] = []


def probe(operation: Any) -> Any:
    """The provider's answer."""
    answer = probe_says.pop(0) if probe_says else Unknown("the provider is busy")
    return answer(operation) if callable(answer) else answer


def refund(operation: Any) -> Any:
    """What undoes a payment."""
    return refund_does.pop(0)(operation) if refund_does else {"refunded": operation.of.id}


def release(operation: Any) -> Any:
    """What gives back what is held."""
    return {"released": operation.reference}


def denied(operation: Any) -> Any:
    """For certain nothing happened."""
    raise PolicyDenied


def lost(operation: Any) -> Any:
    """Nobody knows."""
    raise ConnectionResetError


def request_of(state: Any) -> Any:
    return state.input.get("request", {"amount": 7})


ONCE = Retry(max_attempts=1, initial=seconds(1), maximum=seconds(1), jitter=0)
TWICE = Retry(max_attempts=2, initial=seconds(1), maximum=seconds(1), jitter=0)
SOON = Deadline(hours=9, then=ESCALATE)


class Pay(Flow):
    """Nobody can be asked about the payment; it can be given back, by a call that is made once."""

    class Meta:
        name = "t-doubt"

    pay = Activity(work, effect=Effect(compensate=Servicing(refund, probes=ONCE), request=request_of), then="wait")
    wait = Wait("t.paid", key=lambda state: str(state.key), deadline=SOON, then="done")
    done = End(COMPLETE)


class PayByTwo(Flow):
    """What a person says of the payment counts when another says the same."""

    class Meta:
        name = "t-doubt-two"

    pay = Activity(work, effect=Effect(second_person=True, request=request_of), then="done")
    done = End(COMPLETE, result=lambda state: state.results["pay"])


class PayProbed(Flow):
    """The provider can be asked about the payment."""

    class Meta:
        name = "t-doubt-probed"

    pay = Activity(work, effect=Effect(reconcile=probe, request=request_of), then="done")
    done = End(COMPLETE, result=lambda state: state.results["pay"])


class PayMended(Flow):
    """The provider can be asked, twice, about the payment and about the refund."""

    class Meta:
        name = "t-doubt-mended"

    pay = Activity(
        work,
        effect=Effect(
            reconcile=probe, probes=TWICE, compensate=Servicing(refund, reconcile=probe, probes=TWICE), request=request_of
        ),
        then="wait",
    )
    wait = Wait("t.mended", key=lambda state: str(state.key), deadline=SOON, then="done")
    done = End(COMPLETE)


class HoldThenPay(Flow):
    """Holds a room, pays in it, and waits; the refund is made once."""

    class Meta:
        name = "t-doubt-holding"

    hold = Activity(
        work, commits=Commits("room", release=Servicing(release, probes=ONCE), reference=lambda result: "room 7"), then="pay"
    )
    pay = Activity(work, effect=Effect(idempotent=True, compensate=Servicing(refund, probes=ONCE)), then="wait")
    wait = Wait("t.held", key=lambda state: str(state.key), deadline=SOON, then="done")
    done = End(COMPLETE)


class PayPlain(Flow):
    """Nobody can be asked, nothing can be undone."""

    class Meta:
        name = "t-doubt-plain"

    pay = Activity(work, effect=Effect(request=request_of), then="done")
    done = End(COMPLETE, result=lambda state: state.results["pay"])


def forget() -> None:
    """Back to the plain behaviour."""
    probe_says.clear()
    refund_does.clear()


def losing(attempt: Any) -> Any:
    """The answer of the call is lost, the first time."""
    del does["pay"]
    raise ConnectionResetError


def in_doubt(worker: LocalWorker, flow: type[Flow] = PayPlain, **start: Any) -> Operation:
    """A run whose payment nobody knows about."""
    does["pay"] = losing
    asked = {"request": start.pop("request", {"amount": 7})}
    run = flow.start(asked, **start)
    worker.run()
    return operation_of(run)


def undoing(worker: LocalWorker, how: Callable[[Any], Any] = denied, **start: Any) -> Operation:
    """The refund, of a cancelled run, that went wrong: it failed for certain (`denied`) or is in doubt (`lost`)."""
    refund_does.append(how)
    run = Pay.start({}, **start)
    worker.run()
    flows.cancel(run)
    worker.run()
    return operation_of(run, kind="compensation")


def operation_of(run: Started, kind: str = "effect") -> Operation:
    """The operation of a run, as it is now."""
    return Operation.objects.select_related("workflow").get(workflow_id=row(run).pk, kind=kind)


__all__ = [
    "DidNotHappen",
    "Happened",
    "HoldThenPay",
    "Pay",
    "PayByTwo",
    "PayMended",
    "PayPlain",
    "PayProbed",
    "Unknown",
    "denied",
    "forget",
    "in_doubt",
    "losing",
    "lost",
    "operation_of",
    "probe_says",
    "refund_does",
    "undoing",
]
