"""The finite protocol: statuses, outcomes, legal moves and wait kinds, each in one table.

The same tables are written into the database (constraints and the move trigger, see `flows/store/schema.py`) and checked
against it by a test. A status outside `Status` or a move outside `MOVES` does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Where a workflow is. One column; the kind of a wait stands on the wait's own row."""

    RUNNABLE = "runnable"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    RECONCILING = "reconciling"
    CANCELLING = "cancelling"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class Outcome(StrEnum):
    """How a workflow ended, or why it is suspended. Never collapse them: operationally they differ."""

    COMPLETE = "COMPLETE"
    COMPLETE_WITH_DEFERRED_COMMITMENTS = "COMPLETE_WITH_DEFERRED_COMMITMENTS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"
    WAITING = "WAITING"
    HUMAN_REQUIRED = "HUMAN_REQUIRED"
    REVALIDATION_REQUIRED = "REVALIDATION_REQUIRED"
    RECONCILIATION_REQUIRED = "RECONCILIATION_REQUIRED"
    WORKFLOW_MIGRATION_REQUIRED = "WORKFLOW_MIGRATION_REQUIRED"
    POLICY_BLOCKED = "POLICY_BLOCKED"


TERMINAL = frozenset({Status.COMPLETE, Status.FAILED, Status.CANCELLED, Status.SUPERSEDED})
LIVE = frozenset(Status) - TERMINAL

SUSPENDED = frozenset(
    {
        Outcome.HUMAN_REQUIRED,
        Outcome.REVALIDATION_REQUIRED,
        Outcome.RECONCILIATION_REQUIRED,
        Outcome.WORKFLOW_MIGRATION_REQUIRED,
        Outcome.POLICY_BLOCKED,
    }
)

_LEAVE = {Status.CANCELLING, Status.SUPERSEDED}

#: From each status, the statuses that one arrow may lead to. An empty source is the start. One that leads to the same status changes
#: something else of a workflow that is not computing: the release that it is pinned to.
MOVES: dict[Status | None, frozenset[Status]] = {
    None: frozenset({Status.RUNNABLE}),
    Status.RUNNABLE: frozenset({Status.RUNNABLE, Status.RUNNING, Status.PAUSED} | _LEAVE),
    Status.RUNNING: frozenset(
        {
            Status.RUNNING,
            Status.RUNNABLE,
            Status.WAITING,
            Status.PAUSED,
            Status.RECONCILING,
            Status.COMPLETE,
            Status.FAILED,
        }
        | _LEAVE
    ),
    Status.WAITING: frozenset({Status.WAITING, Status.RUNNABLE, Status.PAUSED} | _LEAVE),
    Status.PAUSED: frozenset({Status.PAUSED, Status.RUNNABLE} | _LEAVE),
    Status.RECONCILING: frozenset({Status.RUNNABLE, Status.WAITING, Status.PAUSED, Status.COMPLETE, Status.FAILED} | _LEAVE),
    Status.CANCELLING: frozenset({Status.CANCELLING, Status.CANCELLED, Status.SUPERSEDED, Status.FAILED}),
    Status.COMPLETE: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
    Status.SUPERSEDED: frozenset(),
}

#: Which outcome a status may carry; None stands for "no outcome".
OUTCOMES: dict[Status, frozenset[Outcome | None]] = {
    Status.RUNNABLE: frozenset({None}),
    Status.RUNNING: frozenset({None}),
    Status.WAITING: frozenset({Outcome.WAITING} | SUSPENDED),
    Status.PAUSED: frozenset({Outcome.WAITING} | SUSPENDED),
    Status.RECONCILING: frozenset({Outcome.RECONCILIATION_REQUIRED}),
    Status.CANCELLING: frozenset({None, Outcome.HUMAN_REQUIRED}),
    Status.COMPLETE: frozenset({Outcome.COMPLETE, Outcome.COMPLETE_WITH_DEFERRED_COMMITMENTS}),
    Status.FAILED: frozenset({Outcome.FAILED}),
    Status.CANCELLED: frozenset({Outcome.CANCELLED}),
    Status.SUPERSEDED: frozenset({Outcome.SUPERSEDED}),
}


class WaitStatus(StrEnum):
    """A wait is open until it is satisfied, expired, or withdrawn with its workflow."""

    OPEN = "open"
    SATISFIED = "satisfied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class ActivityStatus(StrEnum):
    """One visit of an activity node: scheduled, running (an attempt is on the row), done, failed, or fenced."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    FENCED = "fenced"


class AttemptOutcome(StrEnum):
    """How one physical try ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    FENCED = "fenced"
    REFUSED = "refused"
    RETURNED = "returned"


class IntentStatus(StrEnum):
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


class TimerKind(StrEnum):
    """Why a moment must be looked at. All share one table and one sweep."""

    SLEEP = "sleep"
    RETRY = "retry"
    WAIT_DEADLINE = "wait_deadline"
    WORKFLOW_DEADLINE = "workflow_deadline"
    COMMITMENT_DEADLINE = "commitment_deadline"
    FRESHNESS = "freshness"
    SLA = "sla"


class WakeCause(StrEnum):
    """What brought a workflow before the gate. `step`: it was under way, and went on to the next node."""

    START = "start"
    STEP = "step"
    EVENT = "event"
    TIMER = "timer"
    APPROVAL = "approval"
    RETRY = "retry"
    RECOVERY = "recovery"
    RESUME = "resume"


class BudgetKind(StrEnum):
    """What is counted (N1): tokens, calls and expansions in pieces, compute in seconds of attempts, cost in the currency of the project."""

    MODEL_TOKENS = "model_tokens"
    MODEL_CALLS = "model_calls"
    TOOL_CALLS = "tool_calls"
    SEARCH_EXPANSIONS = "search_expansions"
    COMPUTE_SECONDS = "compute_seconds"
    COST = "cost"
    HUMAN_REVIEWS = "human_reviews"


class BudgetEntryKind(StrEnum):
    """How a ledger changed."""

    RESERVED = "reserved"
    SETTLED = "settled"
    SPENT = "spent"
    RAISED = "raised"
    CARRIED = "carried"


class CommitmentStatus(StrEnum):
    """Where an obligation to the outside is. Breached: over its deadline and still owed. Void: what should have begun it did not happen."""

    PLANNED = "planned"
    ACTIVE = "active"
    BREACHED = "breached"
    RELEASING = "releasing"
    FULFILLED = "fulfilled"
    RELEASED = "released"
    VOID = "void"
    DEFERRED = "deferred"
    TRANSFERRED = "transferred"


@dataclass(frozen=True, slots=True)
class WaitKind:
    """One row of the table that says what a kind of wait means to operations.

    `ends`: who or what may end it. `alert`: which team looks first. `slo`: the bucket its time counts in.
    `on_cancel`: what happens to it when the workflow is cancelled. `clock`: whether active-compute budget runs.
    """

    name: str
    ends: str
    alert: str
    slo: str
    on_cancel: str
    clock: str = "stopped"


WAIT_KINDS: dict[str, WaitKind] = {
    kind.name: kind
    for kind in (
        WaitKind("timer", "the clock", "operators", "timer", "withdraw"),
        WaitKind("human", "a person, by resume or cancel", "accountable user", "human", "withdraw"),
        WaitKind("approval", "an eligible reviewer", "reviewers", "human", "withdraw with notice"),
        WaitKind("external_job", "the job's event or poll", "operators", "external job", "cancel the job"),
        WaitKind("resource", "the resource's owner", "operators", "capacity", "withdraw"),
        WaitKind("dependency_health", "recovery of the dependency", "operators", "capacity", "withdraw"),
        WaitKind("event", "the event's sender", "operators", "external job", "withdraw"),
        WaitKind("retry_window", "the clock", "operators", "retry delay", "withdraw"),
        WaitKind("reconciliation", "the reconcile function or a person", "operators", "reconciliation", "keep"),
    )
}


def is_legal(source: Status | None, target: Status) -> bool:
    """Whether one arrow may lead from `source` to `target`."""
    return target in MOVES[source]
