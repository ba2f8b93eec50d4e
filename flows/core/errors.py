"""Every error that Outlast raises or understands, with a stable code.

    OutlastError
    ├── UsageError            the caller asked for something that cannot be: UnknownFlow, KeyConflict, … (`misuse`)
    ├── CannotMigrate         a run of an older version has no place in the newer one (raised in a function of migrate_from)
    ├── DefinitionError       a flow is written wrongly (also reported by the system checks)
    ├── PayloadError          a value that may not be stored; names its producer; never retried
    │   └── CheckpointTooLarge
    ├── HalfMove              a statement moved one row and missed its partner; it was rolled back
    └── ActivityError         what activity code raises to say what kind of failure it was
        ├── Transient             infrastructure hiccup             → the same operation again
        │   └── ActivityTimeout   one attempt took too long         → the same operation again
        ├── CapacityUnavailable   a provider is out of capacity     → capacity wait
        ├── StateConflict         the world moved                   → replan
        ├── IntentSuperseded      the goal is gone                  → stop
        ├── VerificationFailed    the candidate does not hold       → its own route
        ├── PolicyDenied          not allowed                       → stop, visible
        ├── CompetenceFailure     beyond what the agent can do      → a person
        ├── ToolFailed            a tool of an agent turn raised    → an answer to the model; let out, a person
        ├── TurnStopped           a stopping rule of an agent turn  → `stopped=`, or a person
        ├── OperationConflict     one operation asked for two things → a person
        ├── InvalidCandidate      the model's answer is malformed   → replan
        └── AmbiguousOutcome      nobody knows whether it happened  → reconcile

Codes are stored; messages are logged, never stored in a workflow row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


class OutlastError(Exception):
    """Base of all errors of this package. `code` is stable and may be stored."""

    code: ClassVar[str] = "OUTLAST_ERROR"


class CannotMigrate(OutlastError):
    """A run of an older version has no place in the newer one. Raised by a function of `Meta.migrate_from`, its text is the reason that
    people are shown; it is kept with the run.
    """

    code = "CANNOT_MIGRATE"


class DefinitionError(OutlastError):
    """A flow is written in a way that cannot run. `manage.py check` lists all of them with hints."""

    code = "DEFINITION_ERROR"


class PayloadError(OutlastError):
    """A value cannot be stored as it is. `producer` names whose value it is; retrying would give the same."""

    code = "PAYLOAD_INVALID"

    def __init__(self, producer: str, problem: str) -> None:
        self.producer = producer
        self.problem = problem
        super().__init__(f"{producer}: {problem}")


class CheckpointTooLarge(PayloadError):
    """The checkpoint is over its bound; the previous one is kept."""

    code = "CHECKPOINT_TOO_LARGE"


class HalfMove(OutlastError):
    """A fused statement moved the workflow but missed a row that belongs to the move; all of it was rolled back."""

    code = "HALF_MOVE"


class LostOwnership(OutlastError):
    """This worker no longer owns the work it is doing: stop, do not commit."""

    code = "LOST_OWNERSHIP"


class TurnEnds(BaseException):
    """The turn of an activity's code ends here for now, and a later one goes on.

    No `Exception`, so that an agent's `except Exception` does not take it for a failure of a tool. Let it out.
    """

    code: ClassVar[str] = "TURN_ENDS"


class ApprovalPending(TurnEnds):
    """A tool waits for an answer of people: the turn ends here, and the next one reissues the call."""

    code = "APPROVAL_PENDING"


class BudgetPending(TurnEnds):
    """There is no budget for the next call of an agent turn: it ends as one that the gate refuses, and goes on when somebody raises it."""

    code = "BUDGET_PENDING"


class Route(StrEnum):
    """What a class of failure leads to."""

    RETRY = "retry"
    CAPACITY = "capacity"
    REPLAN = "replan"
    STOP = "stop"
    VERIFY = "verification"
    POLICY = "policy"
    HUMAN = "human"
    RECONCILE = "reconcile"


class ActivityError(OutlastError):
    """Raise a subclass from an activity to say what kind of failure it was.

    Args:
        message: for the log of the worker; it is not stored in the workflow.
        retry_after: seconds to wait at least before the next attempt, where the provider said so.
        details: small, safe facts for the worker's log.
    """

    code = "ACTIVITY_ERROR"
    route: ClassVar[Route] = Route.RETRY

    def __init__(self, message: str = "", *, retry_after: float | None = None, **details: Any) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.details = details


class Transient(ActivityError):
    """Infrastructure hiccup: the same operation again."""

    code = "TRANSIENT"


class ActivityTimeout(Transient):
    """One attempt took longer than the node's timeout."""

    code = "ACTIVITY_TIMEOUT"


class CapacityUnavailable(ActivityError):
    """The provider has no capacity now: the activity waits until it has.

    Args:
        dependency: whose capacity it is; default: what the node says that it needs first. The rest as for every such error.
    """

    code = "CAPACITY_UNAVAILABLE"
    route = Route.CAPACITY

    def __init__(self, message: str = "", *, dependency: str = "", retry_after: float | None = None, **details: Any) -> None:
        super().__init__(message, retry_after=retry_after, **details)
        self.dependency = dependency


class StateConflict(ActivityError):
    """The world is not in the state that the work was planned for: replan."""

    code = "STATE_CONFLICT"
    route = Route.REPLAN


class IntentSuperseded(ActivityError):
    """The goal is no longer wanted: stop."""

    code = "INTENT_SUPERSEDED"
    route = Route.STOP


class VerificationFailed(ActivityError):
    """A verifier says that the candidate does not hold."""

    code = "VERIFICATION_FAILED"
    route = Route.VERIFY


class PolicyDenied(ActivityError):
    """Not allowed by policy: stop, visibly."""

    code = "POLICY_DENIED"
    route = Route.POLICY


class CompetenceFailure(ActivityError):
    """Beyond what this agent can do: a person."""

    code = "COMPETENCE_FAILURE"
    route = Route.HUMAN


class InvalidCandidate(ActivityError):
    """A model's answer is not a well-formed candidate: ask again, within bounds."""

    code = "INVALID_CANDIDATE"
    route = Route.REPLAN


class OperationConflict(ActivityError):
    """One operation was asked for with two requests, or twice in one attempt: it asks for one thing, once."""

    code = "OPERATION_CONFLICT"
    route = Route.HUMAN


class AmbiguousOutcome(ActivityError):
    """Nobody knows whether the effect happened: reconcile before anything else."""

    code = "AMBIGUOUS_OUTCOME"
    route = Route.RECONCILE


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as the engine sees it: code, route, class names (for `on=` and retry lists), the provider's wish, whose capacity it lacked."""

    code: str
    route: Route
    classes: tuple[str, ...] = ()
    retry_after: float | None = None
    dependency: str = ""


UNCLASSIFIED = "UNCLASSIFIED_ERROR"


def classify(error: BaseException) -> Failure:
    """The failure that an exception stands for. Anything unclassified may be tried again within the node's policy."""
    classes = tuple(c.__name__ for c in type(error).__mro__ if c not in (object, BaseException))
    if isinstance(error, ActivityError):
        return Failure(error.code, error.route, classes, error.retry_after, str(getattr(error, "dependency", "") or ""))
    if isinstance(error, PayloadError | DefinitionError):
        return Failure(error.code, Route.HUMAN, classes)
    return Failure(UNCLASSIFIED, Route.RETRY, classes)
