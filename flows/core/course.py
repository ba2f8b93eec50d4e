"""Where a workflow stood after each of its recorded arrows: followed from the record alone, nothing is decided here.

    seq, status, node, outcome, epoch … ─┐
    open activity, open wait             ├─ `follow(row of the log)` ─► the same, after it
    results, visits, error code          ┘
An arrow that somebody else than the engine made is followed as `flows.core.given` says.
What a row of the log does not say (which activity or wait its arrow opened) follows from their order: activities are numbered, and a workflow's
waits are opened one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from flows.core import given, moves
from flows.core.deadlines import WORKFLOWS
from flows.core.decide import Decided
from flows.core.history import BEGUN, COUNTED_BY, KNOWN, Asked, History, Logged, Passed, Waited
from flows.core.nodes.base import Node
from flows.core.nodes.job import EXTERNAL_JOB, PENDING, START, polls
from flows.core.nodes.pipeline import first_step
from flows.core.policies import DEGRADE, RELEASE
from flows.core.protocol import CAPACITY, RESUMED, SELF_CLOSING, SUSPENDED, Outcome, Status
from flows.core.state import GIVEN, ActivityState, State, WaitState

#: What the log says of the engine's arrows: they end an attempt, close a wait, or follow from the state alone.
ENDED = frozenset({"completed", "failed", "timed_out", "refused"})
CLOSED = frozenset({"woken", "expired"})
ENGINE = ENDED | CLOSED | {"decided", "rest"}
FAILURES = frozenset({"failed", "timed_out"})

#: Kinds of waits that stand beside an activity or a suspension, not for a node.
RETRY_WINDOW, RECONCILIATION, HUMAN = "retry_window", "reconciliation", "human"
BESIDE = frozenset(RESUMED) | CAPACITY


class Kind(StrEnum):
    """What an arrow of the engine is, as its row of the log and the rows beside it tell."""

    OPEN = "open"
    PARK = "park"
    RETRY = "retry"
    DOUBT = "doubt"
    SUSPEND = "suspend"
    END = "end"
    REST = "rest"


def visit_of(where: State | Course, move: moves.Open, node: Node) -> int:
    """Which visit of its node an activity is that is opened now: the steps of a pipeline share one, and its first step begins the next;
    a job is asked about in the visit that has started it.
    """
    activity = where.activity
    if activity is not None and activity.node == move.node and move.step != first_step(node):
        return activity.visit
    wait = where.wait
    if wait is not None and wait.node == move.node and polls(wait.kind, move):
        return wait.visit
    return where.visits.get(move.node, 0) + 1


def looks_again(wait_kind: str, where: State | Course, decided: Decided, move: moves.Suspend) -> bool:
    """Whether the open wait stays at a suspension, with what has arrived for it: nobody has decided on that yet, and resuming does.

    Not beside an open activity: that is tried again, or a person is asked about it. For a person's wait nothing arrives but their resume;
    the next one says anew what they are wanted for.
    """
    if wait_kind == HUMAN or where.activity is not None:
        return False
    unseen = decided.refusal is not None and decided.wait_result is None and move.node == where.node
    return decided.fault is not None or unseen or move.outcome is Outcome.WORKFLOW_MIGRATION_REQUIRED


class Course:
    """A workflow on its recorded way. `replace`d activity and wait are the engine's own frozen values."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.seq, self.epoch, self.intent_version, self.policy_version = 0, 0, 1, ""
        self.status, self.node, self.outcome = "", "", ""
        self.at: datetime | None = None
        self.version = first_version(history)
        self.error_code: str | None = None
        self.activity: ActivityState | None = None
        self.wait: Waited | None = None
        self.heard = self.rang = False
        self.results: dict[str, Any] = {}
        self.visits: dict[str, int] = {}
        self.doubted: set[int] = set()
        self.opened = 0
        self.waits_opened = 0
        self.pinned = first_release(history)
        self.pin: Logged | None = None
        self.carried = any(t.trigger == "migrate" and "wait" in t.words("kept") for t in history.log)
        self.rung: set[int] = set()
        self.retired: set[str] = set()
        self._handled_by = dict(_handled(history))
        self._activity_nodes = {row.node for row in history.visits.values() if row.step != GIVEN}

    # ------------------------------------------------------------ what the engine was asked about

    def state(self, t: Logged, *, closing: bool, doubt: bool = False, ended: Logged | None = None) -> State:
        """The state at that moment.

        `closing`: the open wait is closed by the arrow, so all that ever arrived for it had arrived. Else only what the log says: an arrow that
        leaves a wait open is guarded against arrivals that it has not seen.
        """
        history, activity = self.history, self.activity
        if activity is not None:
            note = (ended or t).note
            activity = replace(activity, doubt=doubt or activity.doubt, known=bool(note.get(KNOWN)), begun=bool(note.get(BEGUN)))
        wait = self.open_wait(t)
        return State(
            workflow_id=history.id,
            flow=history.flow,
            version=self.version,
            key=history.key,
            node=self.node,
            input=MappingProxyType(dict(history.input)),
            now=t.at,
            results=MappingProxyType(self.results),
            visits=MappingProxyType(self.visits),
            intent_version=self.intent_version,
            epoch=self.epoch,
            activity=activity,
            wait=None
            if wait is None
            else WaitState(
                wait.id,
                wait.node,
                wait.kind,
                wait.visit,
                wait.evidence if closing or self.heard else None,
                wait.due if closing else self.rang,
                on_expiry=wait.on_expiry,
            ),
            passed=self.passed(t),
            words=MappingProxyType({(one.kind, one.name): one.on_expiry for one in self.history.deadlines}),
            calendars={one.name: one for name in t.words(COUNTED_BY) if (one := history.calendars.get(name)) is not None},
        )

    def asked(self) -> list[Asked]:
        """What people had been asked by then."""
        waits = self.history.waits
        last = waits[self.waits_opened - 1].id if 0 < self.waits_opened <= len(waits) else -1
        return [one for one in self.history.asked if one.wait <= last]

    def open_wait(self, t: Logged) -> Waited | None:
        """The wait that was still open when the engine was asked: what stands beside an activity ends by itself, without an arrow."""
        wait = self.wait
        if wait is None or wait.kind not in SELF_CLOSING or wait.status != "satisfied" or wait.closed_at is None:
            return wait
        if t.trigger in CLOSED and t.ref == str(wait.id):
            return wait
        return wait if wait.closed_at > t.at or (wait.closed_at == t.at and t.trigger == "rest") else None

    def passed(self, t: Logged) -> tuple[tuple[str, str], ...]:
        """The deadlines that the engine knew, at that arrow, to have passed and not to be handled.

        An arrow is guarded against a deadline that fires meanwhile, so the two moments are in order; if they are one, an arrow says it. One that
        was handled without an arrow (the sweep released what it says, or it changed nothing any more) was nobody's decision.
        """
        found: dict[tuple[str, str], None] = {}
        for one in self.history.deadlines:
            by = self._handled_by.get(one.id)
            if (
                (one.handled and by is None)
                or (by is not None and by < t.seq)
                or (one.wait is not None and not self._is_own(one))
            ):
                continue
            if by != t.seq and (one.on_expiry == RELEASE.value or one.kind not in WORKFLOWS):
                continue
            if one.at < t.at or one.id in self.rung or by == t.seq:
                found[one.kind, one.name] = None
        return tuple(found)

    def _is_own(self, one: Passed) -> bool:
        return one.on_expiry == RELEASE.value and self.wait is not None and self.wait.id == one.wait

    def degraded(self, t: Logged) -> bool:
        """Whether a deadline had passed by then after which what is optional is dropped."""
        return any(
            one.on_expiry.startswith(DEGRADE.value) and (one.at < t.at or one.id in self.rung) for one in self.history.deadlines
        )

    # ------------------------------------------------------------ what an arrow opened

    def kind(self, t: Logged) -> Kind:
        """What this arrow of the engine was."""
        if t.trigger == "rest":
            return Kind.REST
        if t.to_status == Status.RUNNABLE:
            return Kind.OPEN
        if t.to_status == Status.RECONCILING:
            following = self.coming_wait()
            return Kind.DOUBT if following is not None and following.kind == "reconciliation" else Kind.END
        if t.to_status not in (Status.RUNNING, Status.WAITING, Status.PAUSED):
            return Kind.END
        if t.outcome in SUSPENDED:
            return Kind.SUSPEND
        if t.error_code is not None:
            return Kind.RETRY
        if self._waits_for_job(t):
            return Kind.PARK
        coming = self.history.visits.get(self.opened + 1)
        opens = t.to_node in self._activity_nodes and coming is not None and coming.node == t.to_node
        return Kind.OPEN if opens and t.to_status != Status.WAITING else Kind.PARK

    def _waits_for_job(self, t: Logged) -> bool:
        """Whether a step of a Job has ended and its wait was opened, also where the answer was there before it."""
        activity, coming = self.activity, self.coming_wait()
        if activity is None or coming is None or coming.kind != EXTERNAL_JOB or t.trigger != "completed":
            return False
        row = self.history.visits.get(activity.seq)
        goes_on = activity.step == START or (row is not None and isinstance(row.result, dict) and PENDING in row.result)
        return goes_on and activity.node == t.to_node == coming.node

    def coming_wait(self) -> Waited | None:
        """The wait that is opened next."""
        waits = self.history.waits
        return waits[self.waits_opened] if self.waits_opened < len(waits) else None

    # ------------------------------------------------------------ going on

    def follow(self, t: Logged) -> None:
        """Go on to where this arrow led."""
        if t.trigger in ENGINE:
            self._decided(t)
        else:
            given.of(t.trigger)(self, t)
        if t.trigger != "pin":
            self.pin = None
        self.at = t.at
        self.seq, self.status, self.node, self.outcome = t.seq, t.to_status, t.to_node, t.outcome
        self.epoch, self.intent_version, self.policy_version = t.epoch, t.intent_version, t.policy_version

    def _decided(self, t: Logged) -> None:
        kind = self.kind(t)
        self.wait = self.open_wait(t)
        if kind is Kind.REST:
            if self.activity is not None:
                self.activity = replace(self.activity, number=self.activity.number - 1)
            return
        if kind is Kind.SUSPEND and self.wait is not None and t.trigger == "decided":  # it stays, with what has arrived
            self.error_code = t.error_code
            return
        same = kind is Kind.SUSPEND and t.trigger != "completed" and t.to_node == self.node
        self._end_attempt(t, keep=same or kind in (Kind.RETRY, Kind.DOUBT))
        if self.wait is not None:
            if self.wait.result is not None:
                self.results[self.wait.node] = self.wait.result
            self.wait = None
        if kind is Kind.OPEN:
            self.open_next(t)
        elif kind is not Kind.END:
            made = self.next_wait()
            if kind is not Kind.DOUBT and made is not None:
                self.wait, self.heard, self.rang = made, False, False
            if kind is Kind.PARK and made is not None:
                self.visits[made.node] = max(self.visits.get(made.node, 0), made.visit)
        self.error_code = t.error_code

    def _end_attempt(self, t: Logged, *, keep: bool) -> None:
        activity = self.activity
        if activity is None:
            return
        if t.trigger == "completed":
            row = self.history.visits.get(activity.seq)
            result = row.result if row is not None else None
            if activity.step:
                result = {**(self.results.get(activity.node) or {}), activity.step: result}
            self.results[activity.node] = result
        if not keep:
            self.activity = None
        elif t.trigger in FAILURES:
            self.activity = replace(activity, failures=activity.failures + 1, last_error=t.error_code)
        elif t.trigger == "refused" or t.trigger in CLOSED:
            self.activity = replace(activity, lost=0)
        if keep and t.to_status == Status.RECONCILING:
            self.doubted.add(activity.seq)

    def open_next(self, t: Logged) -> None:
        """The activity that this arrow opened."""
        self.opened += 1
        row = self.history.visits.get(self.opened)
        if row is None:
            self.activity = None
            return
        if row.step and row.visit > self.visits.get(row.node, 0):
            self.results.pop(row.node, None)  # the results of a pipeline are those of its newest visit
        self.visits[row.node] = max(self.visits.get(row.node, 0), row.visit)
        number = 1 if t.to_status == Status.RUNNING else 0
        self.activity = ActivityState(self.opened, row.node, row.step, row.visit, number, 0)

    def next_wait(self) -> Waited | None:
        """The wait that this arrow opened."""
        made = self.coming_wait()
        self.waits_opened += 1
        return made


def _handled(history: History) -> Iterator[tuple[int, int]]:
    """Timer → the arrow that says that what it says is done: of several of one kind and name the newest that had fired."""
    for t in history.log:
        for said in t.words("deadline"):
            kind, _, name = said.partition(" ")
            fired = [one for one in history.deadlines if (one.kind, one.name) == (kind, name) and one.handled and one.at <= t.at]
            if fired:
                yield max(fired, key=lambda one: (one.at, one.id)).id, t.seq


def first_release(history: History) -> str:
    """The release that the workflow was pinned to at its start: each pin says from which it came."""
    for t in history.log:
        if t.trigger == "pin" and isinstance(t.note.get("release"), dict):
            return str(t.note["release"].get("from", ""))
    return history.release or ""


def first_version(history: History) -> int:
    """The version that the workflow was started under: each migration says from which it came."""
    for t in history.log:
        if t.trigger == "migrate" and (version := t.version("from")) is not None:
            return version
    return history.version
