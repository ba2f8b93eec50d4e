"""Forensic replay: what is recorded of a workflow goes through the engine once more, arrow by arrow, and must come out where the record says.

    row of the log ──► legal after the one before? ──► made by the engine? ─ no ─► given: taken as it is
                                                              └─ yes ─► the state as it was recorded then ──► decide ──► the same?

Nothing is done again: results, evidence, answers and passed deadlines are read, and of the author's functions only pure ones are called
(`key=`, `read=`, `until=`, branches, the result of an End).

What the record does not hold, and how it is met:
- dice: a delay is not compared. The moment of a sleep neither; `state.now` is the arrow's own moment.
- overload: an optional node that was dropped is in the arrow's note; what is not noted was not dropped.
- another intent or definition than the recorded one at that moment: as the note (or the code) of the arrow says.
- what an author's function raised: an arrow with a `fault` is given, for the function has been mended since. A fault that only the replay
  finds is a drift.
- a pause that was asked, a queue that was changed, a debt that stood before an end: the recorded status is one of those that the move may have.
- an attempt's failure: code and class of the attempt, and the classes where they do not follow from these (the arrow's note).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flows.core import canonical, legal
from flows.core.compare import described, differences
from flows.core.course import ENGINE, FAILURES, Course, Kind
from flows.core.decide import DEFINITION_FAULT, Decided, decide
from flows.core.definition import Definition
from flows.core.failures import recorded
from flows.core.fold import FIELDS
from flows.core.history import BY_ENGINE, IN_DOUBT, Asked, Drift, History, Logged, Step
from flows.core.moves import Move, Run
from flows.core.nodes.activity import Activity, Decision
from flows.core.protocol import IntentStatus
from flows.core.state import ApprovalFact, Completed, Entered, Facts, Failed, State, Trigger, Woken
from flows.core.verdicts import Verdict


class Replay:
    """One replay of one workflow under one definition.

    Args:
        strict: also compare what is not the path: the rows that arrows opened, results of waits and of the workflow, candidates' digests, and
            the workflow's row with its log. Not strict is the question whether another definition goes the same way.
    """

    def __init__(self, history: History, definition: Definition, *, strict: bool = True) -> None:
        self.history, self.definition, self.strict = history, definition, strict
        self.course = Course(history)
        self.decided = 0

    def steps(self) -> Iterator[Step]:
        """Every arrow in order, up to the first that drifts; what differs at the end is a step of the last arrow."""
        course = self.course
        before: Logged | None = None
        for t in self.history.log:
            decides = self._is_decided(t)
            drift = self._drift(t, before, decides=decides)
            self.decided += decides
            yield Step(t, "decided" if decides else "given", drift)
            if drift is not None:
                return
            course.follow(t)
            before = t
        drift = self._at_the_end() if self.strict else None
        if drift is not None:
            yield Step(before, "given", drift)

    def first_drift(self) -> Drift | None:
        """Replay it all; where record and replay part first."""
        drift = None
        for step in self.steps():
            drift = step.drift
        return drift

    def _is_decided(self, t: Logged) -> bool:
        if t.trigger == "cancel":
            return bool(t.note.get(BY_ENGINE))
        given = "fault" in t.note or t.error_code == Verdict.WORKFLOW_MIGRATION_REQUIRED
        return t.trigger in ENGINE and not given

    def _drift(self, t: Logged, before: Logged | None, *, decides: bool) -> Drift | None:
        if (found := next(legal.faults(self.course, t), None)) is not None:
            return found
        if t.trigger == "start":
            return self._start(t)
        if self.strict and t.trigger == "completed" and (found := self._candidate(t)) is not None:
            return found
        if not decides:
            return None
        if before is not None and before.trigger == "claim" and t.trigger in ("completed", "failed"):
            taken_up = self._taken_up(before)
            if taken_up is not None:
                return taken_up
        return next(differences(self.course, t, self._decide(t), self.definition, strict=self.strict), None)

    def _start(self, t: Logged) -> Drift | None:
        start = self.definition.start
        if t.to_node != start:
            return Drift(t.seq, "to_node", t.to_node, start)
        first = self.definition.nodes[start]
        opens = isinstance(first, Activity) and first.gate is None
        if opens != (t.activity_seq is not None):
            return Drift(t.seq, "activity_seq", t.activity_seq, 1 if opens else None)
        return None

    # ------------------------------------------------------------ the engine's inputs

    def _decide(self, t: Logged) -> Decided:
        course = self.course
        closing = t.trigger != "rest"
        state = course.state(t.at, closing=closing, deadline_passed=course.deadline_passed(t), doubt=bool(t.note.get(IN_DOUBT)))
        return decide(self.definition, state, self._trigger(t, state), self._facts(t, t.note, closing=closing))

    def _trigger(self, t: Logged, state: State) -> Trigger:
        if t.trigger == "completed":
            assert state.activity is not None
            row = self.history.visits.get(state.activity.seq)
            return Completed(row.result if row is not None else None)
        if t.trigger in FAILURES:
            assert state.activity is not None
            tried = self.history.attempts[state.activity.seq, state.activity.number]
            failure = recorded(tried.error_code, tried.error_class, t.note.get("failure"))
            return Failed(failure, doubtful=self.course.kind(t) is Kind.DOUBT)
        if state.activity is not None or state.wait is not None:
            return Woken()
        code = self.course.error_code
        if code == DEFINITION_FAULT and state.node in state.results:
            return Completed(state.results[state.node])
        return Entered(code)

    def _facts(self, t: Logged, note: Mapping[str, Any], *, closing: bool) -> Facts:
        nodes = self.definition.nodes
        dropped = [nodes.get(name) for name in note.get("dropped", ())]
        superseded = note.get("verdict") == Verdict.INTENT_SUPERSEDED
        return Facts(
            intent_version=t.intent_version + superseded,
            intent_status=IntentStatus.ACTIVE,
            fingerprint=self.definition.fingerprint,
            approvals={name: self._approval(name, t, closing=closing) for name in self.definition.approvals},
            overloaded=frozenset(node.queue for node in dropped if isinstance(node, Activity)),
        )

    def _approval(self, name: str, t: Logged, *, closing: bool) -> ApprovalFact | None:
        """What the human plane said then of the newest request of that node."""
        course = self.course
        last = self.history.waits[course.waits_opened - 1].id if 0 < course.waits_opened <= len(self.history.waits) else -1
        asked = next((one for one in reversed(self.history.asked) if one.node == name and one.wait <= last), None)
        if asked is None:
            return None
        used = asked.used_by if asked.used_by is not None and asked.used_by <= course.opened else None
        return ApprovalFact(
            request_id=asked.request_id,
            status="consumed" if used is not None else self._status(asked, closing=closing),
            digest=asked.digest,
            intent_version=asked.intent_version,
            expired=asked.expires_at is not None and asked.expires_at <= t.at,
            used_by=used,
        )

    def _status(self, asked: Asked, *, closing: bool) -> str:
        wait = self.course.wait
        still_open = wait is not None and wait.id == asked.wait
        return asked.answered if asked.answered and (closing or self.course.heard or not still_open) else "pending"

    # ------------------------------------------------------------ what is not an arrow

    def _taken_up(self, claim: Logged) -> Drift | None:
        """The attempt ran, so the engine had said that it may: nothing was written then, and it must say so again."""
        course = self.course
        facts, passed = self._facts(claim, {}, closing=True), course.deadline_passed(claim)
        doubtful = course.activity is not None and course.activity.seq in course.doubted
        move: Move = Run()
        for doubt in (False, True) if doubtful else (False,):
            state = course.state(claim.at, closing=True, deadline_passed=passed, doubt=doubt)
            move = decide(self.definition, state, Woken(), facts).move
            if isinstance(move, Run):
                return None
        return Drift(claim.seq, "taken up", "its activity ran", described(move))

    def _candidate(self, t: Logged) -> Drift | None:
        """A decision's artifact hashes to its own digest."""
        activity = self.course.activity
        row = self.history.visits.get(activity.seq) if activity is not None else None
        if row is None or not isinstance(self.definition.nodes.get(row.node), Decision):
            return None
        result = row.result
        if not isinstance(result, dict) or not {"choice", "value", "digest"} <= set(result):
            return None
        found = canonical.digest({"choice": result["choice"], "value": result["value"]}, f"the candidate of {row.node}")
        return Drift(t.seq, f"digest of {row.node}", result["digest"], found) if found != result["digest"] else None

    def _at_the_end(self) -> Drift | None:
        """The row says what the log came to."""
        course = self.course
        if not course.seq:
            return Drift(1, "seq", "no row", 1)
        log = {
            "version": course.seq,
            "status": course.status,
            "node": course.node,
            "outcome": course.outcome,
            "epoch": course.epoch,
            "intent_version": course.intent_version,
            "policy_version": course.policy_version,
        }
        for field in FIELDS:
            if (log[field] or "") != (self.history.row[field] or ""):
                return Drift(course.seq, f"row {field}", self.history.row[field], log[field])
        return None
