"""Forensic replay: what is recorded of a workflow goes through the engine once more, arrow by arrow, and must come out where the record says.

    row of the log ──► legal after the one before? ──► made by the engine? ─ no ─► given: taken as it is
                                                              └─ yes ─► the state as it was recorded then ──► decide ──► the same?

Nothing is done again: results, evidence, answers and passed deadlines are read, and of the author's functions only pure ones are called
(`key=`, `read=`, `until=`, branches, the result of an End).

What the record does not hold, and how it is met:
- dice: a delay is not compared. The moment of a sleep neither; `state.now` is the arrow's own moment.
- overload: an optional node that was dropped is in the arrow's note; what is not noted was not dropped, except after a deadline with DEGRADE.
- the gate (`flows.core.recalled`): intent, definition, candidate, approval, what is fresh and what is verified are judged again. Policy,
  release, budget, commitments and what providers answer are given: where the arrow's note says that one of them refused, it refuses just so;
  elsewhere they hold. What passes and refusals have recorded beside the log is compared with it (`flows.core.looked`).
- another intent or definition than the recorded one at that moment: as the note (or the code) of the arrow says.
- passed deadlines: by the moments at which their timers fired; where an arrow has the same moment, its note says it. One that was handled
  without an arrow changed nothing, and is left out.
- a release that the workflow was pinned to with a decision: the arrow `pin` before it says which, and where it began again.
- a migration: given, with what it took over. Before it the older definition decides; where that is not known, the arrow is not judged.
- what an author's function raised: an arrow with a `fault` is given, for the function has been mended since. A fault that only the replay
  finds is a drift.
- a pause that was asked, a queue that was changed, a debt that stood before an end: the recorded status is one of those that the move may have.
- what tools asked people: the arrow `asked` is given, for the calls come out of an attempt's code; that the activity is run again after the
  answers is judged.
- an attempt's failure: code and class of the attempt, and the classes where they do not follow from these (the arrow's note).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from flows.core import canonical, legal, looked, recalled
from flows.core.commitments import COMMITMENT_OPEN
from flows.core.compare import described, differences
from flows.core.course import ENGINE, FAILURES, Course, Kind
from flows.core.decide import DEFINITION_FAULT, Decided, decide
from flows.core.definition import Definition
from flows.core.errors import PayloadError
from flows.core.failures import recorded
from flows.core.fold import FIELDS
from flows.core.history import BY_ENGINE, IN_DOUBT, Drift, History, Logged, Step
from flows.core.moves import Finish, Move, Park, Run, Suspend
from flows.core.nodes.activity import Activity, Decision
from flows.core.nodes.approval import NOBODY_ELIGIBLE, Approval
from flows.core.nodes.continued import CHILDREN_OPEN
from flows.core.protocol import SUSPENDED, Outcome
from flows.core.state import Completed, Entered, Failed, State, Trigger, Woken
from flows.core.verdicts import Verdict

#: Arrows of an attempt whose code has ended by itself.
RETURNED = frozenset({"completed", "failed"})
#: What was still open, for which a run did not continue as new: the rows that said so have moved on.
NOT_CONTINUED = frozenset({COMMITMENT_OPEN, CHILDREN_OPEN})


class Replay:
    """One replay of one workflow under one definition.

    Args:
        strict: also compare what is not the path: the rows that arrows opened, results of waits and of the workflow, candidates' digests, and
            the workflow's row with its log. Not strict is the question whether another definition goes the same way: from the last migration
            on, for the way before it was that of an older one.
        older: the definitions, by version, under which it ran before it was migrated, as far as they are known.
    """

    def __init__(
        self, history: History, definition: Definition, *, strict: bool = True, older: Mapping[int, Definition] | None = None
    ) -> None:
        self.history, self.strict = history, strict
        self.course = Course(history)
        self.decided = self.unjudged = 0
        self._newest, self._older = definition, dict(older or {})

    @property
    def definition(self) -> Definition:
        """The one under which the workflow ran at this arrow."""
        return self._newest if self.course.version == self.history.version else self._older[self.course.version]

    @property
    def judges(self) -> bool:
        """Whether that is known here."""
        return self.course.version == self.history.version or self.course.version in self._older

    def steps(self) -> Iterator[Step]:
        """Every arrow in order, up to the first that drifts; what differs at the end is a step of the last arrow."""
        course = self.course
        before: Logged | None = None
        for t in self.history.log:
            decides = self._is_decided(t)
            drift = self._drift(t, before, decides=decides)
            unjudged = (decides or not before) and not self.judges
            self.decided += decides and not unjudged
            self.unjudged += unjudged
            yield Step(t, "not judged" if unjudged else "decided" if decides else "given", drift)
            if drift is not None:
                return
            course.follow(t)
            if t.trigger == "migrate":
                self._retire()
            before = t
        drift = self._at_the_end() if self.strict else None
        if drift is not None:
            yield Step(before, "given", drift)

    def _is_decided(self, t: Logged) -> bool:
        if t.trigger == "cancel":
            return bool(t.note.get(BY_ENGINE))
        given = "fault" in t.note or t.error_code == Verdict.WORKFLOW_MIGRATION_REQUIRED
        return t.trigger in ENGINE and not given

    def _drift(self, t: Logged, before: Logged | None, *, decides: bool) -> Drift | None:
        if (found := next(legal.faults(self.course, t), None)) is not None:
            return found
        if not self.judges:
            return None
        if t.trigger == "start":
            return self._start(t)
        if t.trigger == "migrate":
            return self._migration(t)
        if t.trigger == "resume" and t.to_node != t.from_node:
            return self._elsewhere(t)
        if self.strict and (found := recalled.contradiction(self.course, t)) is not None:
            return found
        if self.strict and t.trigger == "completed" and (found := self._candidate(t)) is not None:
            return found
        if self.strict and (found := self._looked(t)) is not None:
            return found
        if not decides:
            return None
        if before is not None and before.trigger in ("claim", "pin") and t.trigger in ("completed", "failed"):
            taken_up = self._taken_up(before, t)
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
        state = course.state(t, closing=closing, doubt=bool(t.note.get(IN_DOUBT)))
        known = recalled.facts(course, t, self.definition, state, closing=closing)
        decided = decide(self.definition, state, self._trigger(t, state), known)
        if isinstance(decided.move, Park) and _asked_nobody(t):
            nobody = Suspend(decided.move.node, Outcome.HUMAN_REQUIRED, str(t.error_code), via=decided.move.via)
            return replace(decided, move=nobody)
        if isinstance(decided.move, Finish) and decided.move.outcome is Outcome.CONTINUED and t.error_code in NOT_CONTINUED:
            stopped = Suspend(decided.move.node, Outcome.HUMAN_REQUIRED, str(t.error_code), via=decided.move.via)
            return replace(decided, move=stopped)
        return decided

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

    # ------------------------------------------------------------ what is not an arrow of the engine

    def _migration(self, t: Logged) -> Drift | None:
        """A migration came from the version that the workflow had; how it was taken over is given."""
        if t.version("from") != self.course.version:
            return Drift(t.seq, "note from", t.version("from"), self.course.version)
        target = t.version("to") or 0
        definition = self._newest if target == self.history.version else self._older.get(target)
        if definition is not None and t.to_node not in definition.nodes:
            return Drift(t.seq, "to_node", t.to_node, f"no node of version {target}")
        return None

    def _elsewhere(self, t: Logged) -> Drift | None:
        """A person had a suspended run go on at another node: at one on which the gate of the node stands where it stood."""
        if self.course.outcome not in SUSPENDED:
            return Drift(t.seq, "to_node", t.to_node, f"{t.from_node}: it was not suspended")
        known = sorted(self.definition.again_at(t.from_node))
        return None if t.to_node in known else Drift(t.seq, "to_node", t.to_node, " or ".join([t.from_node, *known]))

    def _retire(self) -> None:
        """After a migration: an approval that nobody used goes over only if the same people would be asked; a question only with its wait."""
        course = self.course
        nodes = self.definition.nodes if self.judges else {}
        for asked in course.asked():
            if asked.used_by is not None and asked.used_by <= course.opened:
                continue
            kept = course.wait is not None and course.wait.id == asked.wait
            node = nodes.get(asked.node)
            same = isinstance(node, Approval) and question_of(node) == asked.question
            if not (same if asked.answered else kept):
                course.retired.add(asked.request_id)

    def _taken_up(self, claim: Logged, ended: Logged) -> Drift | None:
        """The attempt ran, so the engine had said that it may: nothing was written then, and it must say so again."""
        course = self.course
        doubtful = course.activity is not None and course.activity.seq in course.doubted
        move: Move = Run()
        for doubt in (False, True) if doubtful else (False,):
            state = course.state(claim, closing=True, doubt=doubt, ended=ended)
            known = recalled.facts(course, claim, self.definition, state, closing=True, taken_up=True)
            move = decide(self.definition, state, Woken(), known).move
            if isinstance(move, Run):
                return None
        return Drift(claim.seq, "taken up", "its activity ran", described(move))

    def _looked(self, t: Logged) -> Drift | None:
        """What the attempt that this arrow ended has left beside the log; of flows without gates it is nothing."""
        activity, history = self.course.activity, self.history
        if activity is None or not (history.judged or history.verified or self.definition.looks):
            return None
        state = self.course.state(t, closing=True)
        trigger = self._trigger(t, state) if t.trigger in RETURNED else None
        return next(looked.drifts(self.course, t, self.definition, state, trigger), None)

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
        if self.history.release is not None and course.pinned != self.history.release:
            return Drift(course.seq, "row release", self.history.release, course.pinned)
        if course.version != self.history.version:
            return Drift(course.seq, "row flow_version", self.history.version, course.version)
        return None


def question_of(node: Approval) -> tuple[str, str, tuple[str, ...], bool]:
    """What an approval node asks of whom, as `Asked.question` has it."""
    asks = node.question
    return asks["candidate_node"], asks["ladder"], tuple(asks["answers"]), bool(asks["self_approval"])


def _asked_nobody(t: Logged) -> bool:
    """Whether a question was not asked, for what no row says: who could be asked then, and how much may be kept."""
    unkept = t.error_code == DEFINITION_FAULT and t.note.get("fault") == PayloadError.__name__
    return unkept or t.error_code == NOBODY_ELIGIBLE
