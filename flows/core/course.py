"""Where a workflow stood after each of its recorded arrows: followed from the record alone, nothing is decided here.

    seq, status, node, outcome, epoch … ─┐
    open activity, open wait             ├─ `follow(row of the log)` ─► the same, after it
    results, visits, error code          ┘
What a row of the log does not say (which activity or wait its arrow opened) follows from their order: activities are numbered, and a workflow's
waits are opened one after another.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from flows.core import moves
from flows.core.history import History, Logged, Waited
from flows.core.nodes.base import Node
from flows.core.nodes.pipeline import first_step
from flows.core.protocol import SUSPENDED, Status
from flows.core.state import ActivityState, State, WaitState

#: What the log says of the engine's arrows: they end an attempt, close a wait, or follow from the state alone.
ENDED = frozenset({"completed", "failed", "timed_out", "refused"})
CLOSED = frozenset({"woken", "expired"})
ENGINE = ENDED | CLOSED | {"decided", "rest"}
FAILURES = frozenset({"failed", "timed_out"})


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
    """Which visit of its node an activity is that is opened now: the steps of a pipeline share one, and its first step begins the next."""
    activity = where.activity
    if activity is not None and activity.node == move.node and move.step != first_step(node):
        return activity.visit
    return where.visits.get(move.node, 0) + 1


class Course:
    """A workflow on its recorded way. `replace`d activity and wait are the engine's own frozen values."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.seq, self.epoch, self.intent_version, self.policy_version = 0, 0, 1, ""
        self.status, self.node, self.outcome = "", "", ""
        self.error_code: str | None = None
        self.activity: ActivityState | None = None
        self.wait: Waited | None = None
        self.heard = self.rang = False
        self.results: dict[str, Any] = {}
        self.visits: dict[str, int] = {}
        self.doubted: set[int] = set()
        self.opened = 0
        self.waits_opened = 0
        self.deadline_seen = self.deadline_handled = False
        self._activity_nodes = {row.node for row in history.visits.values()}

    # ------------------------------------------------------------ what the engine was asked about

    def state(self, at: datetime, *, closing: bool, deadline_passed: bool, doubt: bool = False) -> State:
        """The state at that moment.

        `closing`: the open wait is closed by the arrow, so all that ever arrived for it had arrived. Else only what the log says: an arrow that
        leaves a wait open is guarded against arrivals that it has not seen.
        """
        history, activity = self.history, self.activity
        if doubt and activity is not None:
            activity = replace(activity, doubt=True)
        wait = self.wait
        return State(
            workflow_id=history.id,
            flow=history.flow,
            version=history.version,
            key=history.key,
            node=self.node,
            input=MappingProxyType(dict(history.input)),
            now=at,
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
            ),
            deadline_passed=deadline_passed,
        )

    def deadline_passed(self, t: Logged) -> bool:
        """Whether the engine knew, at that arrow, that the workflow's own deadline had passed.

        An arrow is guarded against a deadline that fires meanwhile, so the two moments are in order; if they are one, the arrow says it.
        """
        fired = self.history.deadline_at
        if fired is None or self.deadline_handled:
            return False
        if fired == t.at and not self.deadline_seen:
            return "deadline" in t.note
        return self.deadline_seen or fired < t.at

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
        return Kind.OPEN if t.to_node in self._activity_nodes else Kind.PARK

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
            self._given(t)
        self.seq, self.status, self.node, self.outcome = t.seq, t.to_status, t.to_node, t.outcome
        self.epoch, self.intent_version, self.policy_version = t.epoch, t.intent_version, t.policy_version

    def _decided(self, t: Logged) -> None:
        kind = self.kind(t)
        if kind is Kind.REST:
            return
        stays = kind is Kind.SUSPEND and self.wait is not None and "fault" in t.note
        same = kind is Kind.SUSPEND and t.trigger != "completed" and t.to_node == self.node
        self._end_attempt(t, keep=same or kind in (Kind.RETRY, Kind.DOUBT))
        if self.wait is not None and not stays:
            if self.wait.result is not None:
                self.results[self.wait.node] = self.wait.result
            self.wait = None
        if kind is Kind.OPEN:
            self._open(t)
        elif kind is not Kind.END and not stays:
            made = self.next_wait()
            if kind is Kind.PARK and made is not None:
                self.wait, self.heard, self.rang = made, False, False
                self.visits[made.node] = max(self.visits.get(made.node, 0), made.visit)
        self.error_code = t.error_code
        self.deadline_handled = self.deadline_handled or "deadline" in t.note

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
        elif t.trigger == "refused":
            self.activity = replace(activity, lost=0)
        if keep and t.to_status == Status.RECONCILING:
            self.doubted.add(activity.seq)

    def _open(self, t: Logged) -> None:
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

    def _given(self, t: Logged) -> None:
        activity = self.activity
        match t.trigger:
            case "start":
                if t.activity_seq is not None:
                    self._open(t)
            case "claim" | "release":
                if activity is not None:
                    self.activity = replace(activity, number=activity.number + (1 if t.trigger == "claim" else -1))
            case "lost":
                if activity is not None:
                    self.activity = replace(activity, lost=activity.lost + 1)
                    self.doubted |= {activity.seq} if t.to_status == Status.RECONCILING else set()
                if t.to_status == Status.RECONCILING:
                    self.next_wait()
                self.error_code = t.error_code
            case "event" | "approval":
                self.heard = True
            case "timer":
                if t.ref.startswith("workflow_deadline:"):
                    self.deadline_seen = True
                else:
                    self.rang = True
            case "cancel" | "supersede":
                self.activity = self.wait = None
                self.error_code = t.error_code
            case "reconciled" | "unsettled" | "resolved" | "settled":
                if t.to_status == Status.WAITING and t.trigger == "reconciled":
                    self.next_wait()
                self.error_code = t.error_code
            case "returned":
                self.error_code = t.error_code
            case "pause" | "resume":
                pass
            case _:  # an arrow of somebody else: what is still open of the workflow it says itself
                if activity is not None and t.activity_seq != activity.seq:
                    self.activity = None
                if t.to_node != self.node:
                    self.wait = None
