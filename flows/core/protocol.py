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
    """How a workflow ended, or why it is suspended. Never collapse them: operationally they differ. CONTINUED: by a run that goes on for it."""

    COMPLETE = "COMPLETE"
    COMPLETE_WITH_DEFERRED_COMMITMENTS = "COMPLETE_WITH_DEFERRED_COMMITMENTS"
    CONTINUED = "CONTINUED"
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

#: From each status, the statuses that one arrow may lead to. An empty source is the start. A run that is bound to another policy, release or
#: definition stays where it is, by an arrow of its own; so does one that has ended and whose values are erased. One that is not admitted yet
#: waits before it has run.
MOVES: dict[Status | None, frozenset[Status]] = {
    None: frozenset({Status.RUNNABLE}),
    Status.RUNNABLE: frozenset({Status.RUNNING, Status.RUNNABLE, Status.WAITING, Status.PAUSED} | _LEAVE),
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
    Status.WAITING: frozenset({Status.RUNNABLE, Status.WAITING, Status.PAUSED} | _LEAVE),
    Status.PAUSED: frozenset({Status.RUNNABLE, Status.PAUSED} | _LEAVE),
    Status.RECONCILING: frozenset({Status.RUNNABLE, Status.WAITING, Status.PAUSED, Status.COMPLETE, Status.FAILED} | _LEAVE),
    Status.CANCELLING: frozenset({Status.CANCELLING, Status.CANCELLED, Status.SUPERSEDED, Status.FAILED}),
    Status.COMPLETE: frozenset({Status.COMPLETE}),
    Status.FAILED: frozenset({Status.FAILED}),
    Status.CANCELLED: frozenset({Status.CANCELLED}),
    Status.SUPERSEDED: frozenset({Status.SUPERSEDED}),
}

#: Which outcome a status may carry; None stands for "no outcome".
OUTCOMES: dict[Status, frozenset[Outcome | None]] = {
    Status.RUNNABLE: frozenset({None}),
    Status.RUNNING: frozenset({None}),
    Status.WAITING: frozenset({Outcome.WAITING} | SUSPENDED),
    Status.PAUSED: frozenset({Outcome.WAITING} | SUSPENDED),
    Status.RECONCILING: frozenset({Outcome.RECONCILIATION_REQUIRED}),
    Status.CANCELLING: frozenset({None, Outcome.HUMAN_REQUIRED}),
    Status.COMPLETE: frozenset({Outcome.COMPLETE, Outcome.COMPLETE_WITH_DEFERRED_COMMITMENTS, Outcome.CONTINUED}),
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
    """Why a moment must be looked at. All share one table and one sweep. `poll`: a job is to be asked about."""

    SLEEP = "sleep"
    RETRY = "retry"
    WAIT_DEADLINE = "wait_deadline"
    WORKFLOW_DEADLINE = "workflow_deadline"
    COMMITMENT_DEADLINE = "commitment_deadline"
    FRESHNESS = "freshness"
    SLA = "sla"
    REMINDER = "reminder"
    ESCALATION = "escalation"
    REQUEST_EXPIRY = "request_expiry"
    POLL = "poll"


class WakeCause(StrEnum):
    """What brought a workflow before the gate. `step`: it was under way, and went on to the next node. `answer`: that of an Ask.

    `child`: the ends of its children. `capacity`: what it needs is to be had.
    """

    START = "start"
    STEP = "step"
    EVENT = "event"
    TIMER = "timer"
    APPROVAL = "approval"
    ANSWER = "answer"
    RETRY = "retry"
    RECOVERY = "recovery"
    RESUME = "resume"
    CHILD = "child"
    CAPACITY = "capacity"


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


class OnCancel(StrEnum):
    """What becomes of an open wait when its workflow is cancelled or superseded: it is withdrawn in any case, and …"""

    WITHDRAWN = "that is all"
    REQUEST = "its request can no longer be answered"
    SETTLED = "what became of the effect is found out first"
    JOB = "its job is cancelled"
    CHILDREN = "its children are cancelled, waited for or left, as declared"


@dataclass(frozen=True, slots=True)
class WaitKind:
    """One row of the table that says what a kind of wait means to operations (C5); docs/reference/waits.md shows it.

    Attributes:
        by: who or what ends it. right: the permission that a person needs for that; "": no person ends it.
        resumes: a person's resume ends it; else the run waits on. suspends: it stands for a suspension: nothing arrives for it but a person's
            word. on_cancel: what a cancel means to it.
        counts: the budget that opening it draws on; None: none. Computing is measured by attempts, so in every wait it stands still.
        alert: which team looks first. escalation: who decides when it lasts too long. slo: the bucket that its time counts in.
    """

    name: str
    by: str
    alert: str
    escalation: str
    slo: str
    on_cancel: OnCancel = OnCancel.WITHDRAWN
    right: str = ""
    resumes: bool = False
    suspends: bool = False
    counts: BudgetKind | None = None

    @property
    def ends(self) -> str:
        """Who or what may end it, in words."""
        return f"{self.by} (right {self.right})" if self.right else self.by


_OPERATE, _RESOLVE, _ANSWER = (
    "outlast_flows.operate_workflow",
    "outlast_flows.resolve_operation",
    "outlast_approvals.answer_request",
)
_NOBODY, _ACCOUNTABLE = "nobody", "the accountable user and escalate_to"

#: The wait of an activity whose tools asked people: it stands beside the activity, as a retry window does, and not for a node.
TOOL_APPROVAL = "tool_approval"

WAIT_KINDS: dict[str, WaitKind] = {
    kind.name: kind
    for kind in (
        WaitKind("timer", "the clock", "operators", _NOBODY, "timer"),
        WaitKind("retry_window", "the clock, or a person's resume", "operators", _NOBODY, "retry delay", right=_OPERATE, resumes=True),
        WaitKind("event", "the event's sender", "operators", _ACCOUNTABLE, "external job"),
        WaitKind(
            "approval", "an eligible reviewer", "reviewers", _ACCOUNTABLE, "human", OnCancel.REQUEST, right=_ANSWER,
            counts=BudgetKind.HUMAN_REVIEWS,
        ),
        WaitKind("ask", "who is asked", "those who are asked", _ACCOUNTABLE, "human", OnCancel.REQUEST, right=_ANSWER),
        WaitKind(
            TOOL_APPROVAL, "eligible reviewers, or the end of their time", "reviewers", _ACCOUNTABLE, "human", OnCancel.REQUEST,
            right=_ANSWER, counts=BudgetKind.HUMAN_REVIEWS,
        ),
        WaitKind(
            "human", "a person, by resume or cancel", "the accountable user", _ACCOUNTABLE, "human", right=_OPERATE, resumes=True,
            suspends=True,
        ),
        WaitKind(
            "reconciliation", "the reconcile function, or a person's word", "operators", "who may resolve operations", "reconciliation",
            OnCancel.SETTLED, right=_RESOLVE, resumes=True, suspends=True,
        ),
        WaitKind("external_job", "the job's event or poll", "operators", _ACCOUNTABLE, "external job", OnCancel.JOB),
        WaitKind("resource", "room for it", "operators", "who sets the limit", "capacity"),
        WaitKind("dependency_health", "recovery of the dependency", "operators", "the dependency's team", "capacity"),
        WaitKind("children", "the ends of its children", "operators", _ACCOUNTABLE, "children", OnCancel.CHILDREN),
    )
}  # fmt: skip

#: Moments at which the plane of a wait is told, and nobody is woken by the clock: people are reminded, others may answer too, the time of one
#: of several requests is over.
FOR_PEOPLE = (TimerKind.REMINDER.value, TimerKind.ESCALATION.value, TimerKind.REQUEST_EXPIRY.value)

#: Waits that the plane behind them may answer when they are opened.
AT_ONCE = frozenset({"children"})

#: Waits for capacity: beside an activity, or of a run that is not admitted yet. `key` says for what.
CAPACITY = frozenset({"resource", "dependency_health"})

#: Waits beside an activity that close themselves with what ends them; the activity is simply run again.
SELF_CLOSING = ("retry_window", TOOL_APPROVAL, *sorted(CAPACITY))

#: Kinds behind which there is a request to people, with a page of its own.
ASKING = tuple(name for name, kind in WAIT_KINDS.items() if kind.on_cancel is OnCancel.REQUEST)

#: Kinds that a person's resume ends, and those that stand for a suspension.
RESUMED = tuple(name for name, kind in WAIT_KINDS.items() if kind.resumes)
SUSPENDING = frozenset(name for name, kind in WAIT_KINDS.items() if kind.suspends)


def is_legal(source: Status | None, target: Status) -> bool:
    """Whether one arrow may lead from `source` to `target`."""
    return target in MOVES[source]
