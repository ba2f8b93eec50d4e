"""Effects on the outside world: what is declared of one, what its operation may become, and what an answer about it leads to. Pure.

    planned ──► in_flight ──► succeeded ──► compensated
       ▲            ├───────► failed ─────► in_flight (the next attempt, the same operation id)
       │            └───────► uncertain ──► succeeded | planned | abandoned
       └──────────────────────────┘ it did not happen

Unknown is a state: nothing here turns "nobody knows" into a yes or a no. Guards and races: docs/decisions/0003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from flows.core.errors import ActivityError, ActivityTimeout, AmbiguousOutcome, DefinitionError
from flows.core.policies import Retry
from flows.core.retry import delay_before

Function = Callable[..., Any] | str


class OperationStatus(StrEnum):
    """Where one external effect is."""

    PLANNED = "planned"
    IN_FLIGHT = "in_flight"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    COMPENSATED = "compensated"
    ABANDONED = "abandoned"


#: From each status, those that one guarded statement may lead to. A late result may come in flight or in doubt.
OPERATION_MOVES: dict[OperationStatus, frozenset[OperationStatus]] = {
    OperationStatus.PLANNED: frozenset({OperationStatus.IN_FLIGHT, OperationStatus.ABANDONED}),
    OperationStatus.IN_FLIGHT: frozenset({OperationStatus.SUCCEEDED, OperationStatus.FAILED, OperationStatus.UNCERTAIN}),
    OperationStatus.FAILED: frozenset({OperationStatus.IN_FLIGHT, OperationStatus.ABANDONED}),
    OperationStatus.UNCERTAIN: frozenset({OperationStatus.SUCCEEDED, OperationStatus.PLANNED, OperationStatus.ABANDONED}),
    OperationStatus.SUCCEEDED: frozenset({OperationStatus.COMPENSATED}),
    OperationStatus.COMPENSATED: frozenset(),
    OperationStatus.ABANDONED: frozenset(),
}

#: Nothing may replan, restart or compensate past one of these.
UNSETTLED = frozenset({OperationStatus.IN_FLIGHT, OperationStatus.UNCERTAIN})

PROBES = Retry(max_attempts=6, initial=timedelta(seconds=2), maximum=timedelta(minutes=10), backoff=3.0)


@dataclass(frozen=True)
class Effect:
    """That an activity changes the outside world, and what can be asked and done about it afterwards.

    Args:
        reconcile: a function of the operation that asks the provider what became of it and returns `Happened`, `DidNotHappen` or `Unknown`.
        compensate: a function of the operation that mitigates the effect when the workflow does not end well.
        idempotent: the provider takes the same operation id twice for once, so a doubt is settled by asking for the same again.
        probes: how often and how far apart `reconcile` is tried. timeout: of one try of `reconcile` or `compensate`.
    """

    reconcile: Function | None = None
    compensate: Function | None = None
    idempotent: bool = False
    probes: Retry = field(default=PROBES)
    timeout: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        if self.timeout <= timedelta(0):
            raise DefinitionError("Effect(timeout=…) must be a positive span.")


@dataclass(frozen=True, slots=True)
class Happened:
    """The provider has it. `evidence` becomes the activity's result; `external_id` is the provider's own name for it."""

    evidence: Any = None
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """The provider does not have it and will not do it any more on the request that was sent."""

    evidence: Any = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider cannot say now."""

    reason: str = ""


Answer = Happened | DidNotHappen | Unknown


@dataclass(frozen=True, slots=True)
class Settle:
    """The doubt is over."""

    status: OperationStatus


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The same question later."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Nobody but a person can settle it; the code says why."""

    code: str


Next = Settle | AskAgain | AskPerson

#: Codes of a doubt that only a person can settle.
NOT_RECONCILABLE, OUTCOME_UNKNOWN = "NOT_RECONCILABLE", "OUTCOME_UNKNOWN"


def after_error(error: BaseException) -> OperationStatus:
    """What an exception that was raised after the call may have been made says about the operation.

    Only an author who says what kind of failure it was says that the effect did not happen; a time-out and anything unclassified leave it open.
    """
    certain = isinstance(error, ActivityError) and not isinstance(error, AmbiguousOutcome | ActivityTimeout)
    return OperationStatus.FAILED if certain else OperationStatus.UNCERTAIN


def at_doubt(effect: Effect) -> Next:
    """What follows when an operation has become uncertain."""
    if effect.reconcile is not None:
        return AskAgain(timedelta(0))
    if effect.idempotent:
        return Settle(OperationStatus.PLANNED)
    return AskPerson(NOT_RECONCILABLE)


def after_probe(effect: Effect, answer: Answer, tries: int, dice: float = 0.5) -> Next:
    """What follows from the answer to the `tries`-th question (1 or more)."""
    match answer:
        case Happened():
            return Settle(OperationStatus.SUCCEEDED)
        case DidNotHappen():
            return Settle(OperationStatus.PLANNED)
        case Unknown():
            if tries >= effect.probes.max_attempts:
                return AskPerson(OUTCOME_UNKNOWN)
            return AskAgain(delay_before(effect.probes, tries, dice))
    raise TypeError(f"a reconcile function answers Happened, DidNotHappen or Unknown, not {type(answer).__name__}")
