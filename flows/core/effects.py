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

from flows.core import typed
from flows.core.errors import ActivityError, ActivityTimeout, AmbiguousOutcome, DefinitionError
from flows.core.policies import Retry
from flows.core.retry import delay_before
from flows.core.spans import bounded

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
    OperationStatus.UNCERTAIN: frozenset(
        {
            OperationStatus.SUCCEEDED,
            OperationStatus.FAILED,
            OperationStatus.PLANNED,
            OperationStatus.ABANDONED,
            OperationStatus.IN_FLIGHT,  # what may be asked for twice: still in doubt, it is asked for again
        }
    ),
    OperationStatus.SUCCEEDED: frozenset({OperationStatus.COMPENSATED}),
    OperationStatus.COMPENSATED: frozenset(),
    OperationStatus.ABANDONED: frozenset(),
}

#: Nothing may replan, restart or compensate past one of these.
UNSETTLED = frozenset({OperationStatus.IN_FLIGHT, OperationStatus.UNCERTAIN})

PROBES = Retry(max_attempts=6, initial=timedelta(seconds=2), maximum=timedelta(minutes=10), backoff=3.0, max_lost=25)


class OperationKind(StrEnum):
    """What an operation is to its workflow."""

    EFFECT = "effect"
    COMPENSATION = "compensation"
    RELEASE = "release"


@dataclass(frozen=True)
class Servicing:
    """A call that mitigates an effect or ends a commitment, made by the cleanup worker: itself a durable operation with an id of its own.

    Args:
        do: a function of the operation. reconcile: asks the provider what became of this call, as for an effect.
        idempotent: the provider takes the same operation id twice for once; then a doubt is settled by calling again.
        probes: how often and how far apart the call, and likewise the question, is tried. timeout: of one try.
    """

    do: Function
    reconcile: Function | None = None
    idempotent: bool = False
    probes: Retry = field(default=PROBES)
    timeout: timedelta = timedelta(minutes=2)
    grace: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _check("Servicing", self)


@dataclass(frozen=True)
class Effect:
    """That an activity changes the outside world, and what can be asked and done about it afterwards.

    Args:
        reconcile: a function of the operation that asks the provider what became of it and returns `Happened`, `DidNotHappen` or `Unknown`.
        compensate: a function of the operation (or a `Servicing`) that mitigates the effect when the workflow does not end well.
        idempotent: the provider takes the same operation id twice for once, so a doubt is settled by asking for the same again.
        request: a pure function of the state that says what will be asked for; it is recorded with its digest before the call.
        probes: how often and how far apart `reconcile` is tried. timeout: of one try of `reconcile`.
        grace: how long after the doubt the provider may still carry out what it was sent; nobody asks before that.
        second_person: what a person says of it counts only when another person says the same.
    """

    reconcile: Function | None = None
    compensate: Function | Servicing | None = None
    idempotent: bool = False
    request: Callable[[Any], Any] | None = None
    probes: Retry = field(default=PROBES)
    timeout: timedelta = timedelta(minutes=2)
    grace: timedelta = timedelta(0)
    second_person: bool = False

    def __post_init__(self) -> None:
        _check("Effect", self)

    @property
    def compensation(self) -> Servicing | None:
        """How it is mitigated, in its full form."""
        given = self.compensate
        return given if given is None or isinstance(given, Servicing) else Servicing(given)


#: How the calls of a guarded tool are named among the effects of an activity: `tool:NAME:…`.
TOOL = "tool:"
#: Tool → what can be asked about a call of it, of everything declared in this process.
TOOLS: dict[str, Effect] = {}


def tool_effect(name: str) -> Effect | None:
    """The effect behind a call of a guarded tool, by the name of that effect; None: it is none, or this process does not know the tool."""
    return TOOLS.get(name.split(":")[1]) if name.startswith(TOOL) else None


def _check(what: str, given: Effect | Servicing) -> None:
    typed.span(f"{what}(timeout=…)", given.timeout, f"{what}(…, timeout=minutes(2))")
    typed.span(f"{what}(grace=…)", given.grace, f"{what}(…, grace=seconds(30))")
    typed.must(f"{what}(probes=…)", given.probes, (Retry,), f"{what}(…, probes=Retry(max_attempts=6))")
    if given.timeout <= timedelta(0) or given.grace < timedelta(0):
        raise DefinitionError(f"{what}(timeout=…) must be a positive span, and grace= must not be negative.")
    bounded(f"{what}(timeout=…)", given.timeout)
    bounded(f"{what}(grace=…)", given.grace)


#: What can be asked about an operation, whatever its kind.
Askable = Effect | Servicing


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
#: Workers keep dying while they look at it.
LOOKS_LOST = "LOOKS_LOST"
#: The call that should have mitigated or ended something failed, for certain, as often as it may be tried.
SERVICING_FAILED = "SERVICING_FAILED"


def after_error(error: BaseException) -> OperationStatus:
    """What an exception that was raised after the call may have been made says about the operation.

    Only an author who says what kind of failure it was says that the effect did not happen; a time-out and anything unclassified leave it open.
    """
    certain = isinstance(error, ActivityError) and not isinstance(error, AmbiguousOutcome | ActivityTimeout)
    return OperationStatus.FAILED if certain else OperationStatus.UNCERTAIN


def at_doubt(effect: Askable, tries: int = 0, lost: int = 0) -> Next:
    """What follows when somebody looks at an uncertain operation that was asked about `tries` times before.

    `lost`: looks that went down with their worker; they had no answer, and are bounded apart.
    """
    if lost > effect.probes.max_lost:
        return AskPerson(LOOKS_LOST)
    if tries >= effect.probes.max_attempts:
        return AskPerson(OUTCOME_UNKNOWN)
    if effect.reconcile is not None:
        return AskAgain(timedelta(0))
    if effect.idempotent:
        return Settle(OperationStatus.PLANNED)
    return AskPerson(NOT_RECONCILABLE)


def after_call(servicing: Servicing, tries: int, dice: float = 0.5) -> Next:
    """What follows when the `tries`-th call of a compensation or a release is known to have failed."""
    if tries >= servicing.probes.max_attempts:
        return AskPerson(SERVICING_FAILED)
    return AskAgain(delay_before(servicing.probes, tries, dice))


def after_probe(effect: Askable, answer: Answer, tries: int, dice: float = 0.5) -> Next:
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
