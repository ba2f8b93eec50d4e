"""Every error that Outlast raises or understands, with a stable code.

    OutlastError
    ├── UsageError            the caller asked for something that cannot be: UnknownFlow, KeyConflict, IntentClosed, OutcomeUnknown,
    │                         ReasonMissing, NotPermitted, AdmissionRefused, …
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


class UsageError(OutlastError):
    """The caller asked for something that cannot be; the text ends in the way out."""

    code = "USAGE_ERROR"


class UnknownFlow(UsageError):
    """No flow of that name (or version) is registered in this process."""

    code = "UNKNOWN_FLOW"

    def __init__(self, name: str, known: list[str]) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"No flow {name!r} is registered here (known: {listed}). "
            "Flows are found in flows.py of each installed app; is the app in INSTALLED_APPS?"
        )


class UnknownWorkflow(UsageError):
    """No workflow with that id."""

    code = "UNKNOWN_WORKFLOW"

    def __init__(self, workflow: object) -> None:
        super().__init__(f"There is no workflow {workflow}. `manage.py flows list` shows those that exist.")


class UnknownIntent(UsageError):
    """No intent with that id."""

    code = "UNKNOWN_INTENT"

    def __init__(self, intent: object) -> None:
        super().__init__(f"There is no intent {intent}. `flows.describe(workflow)` names the intent of a workflow.")


class NotAUser(UsageError):
    """`by=` is somebody whom the record cannot name: nobody would be told, and two of them could not be told apart."""

    code = "NOT_A_USER"

    def __init__(self, given: object, model: str, why: str) -> None:
        super().__init__(
            f"by= is {given!r:.80}, {why}. Pass a user of this project ({model}) as the database has it, "
            "or by=None for work that no person answers for."
        )


class NobodyAccountable(UsageError):
    """A run that a schedule or an event was to begin, and nobody to answer for it."""

    code = "NOBODY_ACCOUNTABLE"

    def __init__(self, user: object, why: str) -> None:
        super().__init__(
            f"The run was to begin for the user {user!s:.80}, who {why}. "
            "Name a user of this project who is active, where the schedule or the flow says for whom."
        )


class UnknownEvent(UsageError):
    """No event with that id or number."""

    code = "UNKNOWN_EVENT"

    def __init__(self, event: object) -> None:
        super().__init__(f"There is no event {event!s:.80}. `manage.py flows events list` shows those that are in the inbox.")


class CannotRedeliver(UsageError):
    """The wait that is named is none of this event's type."""

    code = "CANNOT_REDELIVER"

    def __init__(self, wait: object, why: str) -> None:
        super().__init__(
            f"The event cannot be delivered to wait {wait!s:.80}, which {why}. `manage.py flows show RUN` names its open wait."
        )


class KeyConflict(UsageError):
    """The key is taken by a run with another input."""

    code = "KEY_CONFLICT"

    def __init__(self, flow: str, key: str) -> None:
        super().__init__(
            f"{flow!r} was already started with key {key!r} and another input. "
            "A key names one run for ever: use another key, or the same input to get the existing run."
        )


class AdmissionRefused(UsageError):
    """There is no room for a new run, and the flow says that it is refused then (`Admission(over=REFUSE)`)."""

    code = "ADMISSION_REFUSED"

    def __init__(self, flow: str, label: str, size: int) -> None:
        self.label = label
        super().__init__(
            f"{flow!r} takes no new run now: {label} has its {size} live. Nothing was stored. "
            "Start it again later, or let it wait for its turn: Admission(over=DEFER)."
        )


class UnknownDependency(UsageError):
    """No dependency of that name is declared, and none is on record."""

    code = "UNKNOWN_DEPENDENCY"

    def __init__(self, name: object, known: list[str]) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f'There is no dependency {name!r:.80} (known: {listed}). Declare it in flows.py: Dependency("payments").'
        )


class IntentClosed(UsageError):
    """Work cannot be started for an intent that is superseded or cancelled."""

    code = "INTENT_CLOSED"

    def __init__(self, intent: object, status: str) -> None:
        super().__init__(f"Intent {intent} is {status}; start under its current version or under a new intent.")


class OutcomeUnknown(UsageError):
    """Nothing may pass an effect of which nobody knows whether it happened."""

    code = "OUTCOME_UNKNOWN"

    def __init__(self, workflow: object, operations: list[str]) -> None:
        super().__init__(
            f"Workflow {workflow} cannot go on: nobody knows whether {', '.join(operations)} happened. "
            "Say what became of it first (Operations in the admin, or `manage.py flows resolve`)."
        )


class CannotResumeAt(UsageError):
    """A person may have a run go on only where it stands, or at what the gate of that node stands on."""

    code = "CANNOT_RESUME_AT"


class ReasonMissing(UsageError):
    """Who decides for others says why: people read it later."""

    code = "REASON_MISSING"

    def __init__(self, what: str) -> None:
        super().__init__(f"Say {what}: the reason must not be empty; people read it later.")


class NotPermitted(UsageError):
    """Who is named for a decision has no right to it, or not any more."""

    code = "NOT_PERMITTED"

    def __init__(self, who: str, permission: str) -> None:
        super().__init__(f"{who or 'This user'} may not do this: it needs the permission {permission}, and an active account.")


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
