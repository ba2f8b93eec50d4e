"""A decision beside the arrow that was recorded for it: where they differ, in the order in which a person would look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flows.core.course import CLOSED, FAILURES, HUMAN, RECONCILIATION, RETRY_WINDOW, Course, looks_again, visit_of
from flows.core.decide import Decided
from flows.core.definition import Definition
from flows.core.history import Drift, Logged, Waited
from flows.core.moves import CancelSelf, Finish, Move, Open, Park, Reconcile, Rest, RetryLater, Suspend
from flows.core.nodes.activity import Activity
from flows.core.nodes.job import polls
from flows.core.protocol import AT_ONCE, Outcome, Status


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the arrow of a move says. `statuses`: the usual one first; the others where a pause was asked, or something is owed."""

    statuses: tuple[Status, ...]
    node: str
    code: str | None = None
    outcome: str = ""


def described(move: Move) -> str:
    """A move in a few words."""
    name = type(move).__name__.lower()
    return " ".join(part for part in (name, getattr(move, "node", ""), getattr(move, "code", None) or "") if part)


def differences(course: Course, t: Logged, decided: Decided, definition: Definition, *, strict: bool) -> Iterator[Drift]:
    """Where this decision is not what the arrow recorded; `strict`: also in the rows that the arrow opened and closed."""
    move = decided.move
    if decided.fault is not None:
        yield Drift(t.seq, "fault", None, f"{type(decided.fault).__name__}: {decided.fault}"[:300])
    expected = _expected(course, t, move)
    if t.to_status not in expected.statuses:
        yield Drift(t.seq, "to_status", t.to_status, f"{(*expected.statuses, t.from_status)[0]} ({described(move)})")
    if t.to_node != expected.node:
        yield Drift(t.seq, "to_node", t.to_node, expected.node)
    outcome = expected.outcome or (Outcome.WAITING if t.to_status in (Status.WAITING, Status.PAUSED) else "")
    if t.outcome != outcome:
        yield Drift(t.seq, "outcome", t.outcome, str(outcome))
    if t.error_code != expected.code:
        yield Drift(t.seq, "error_code", t.error_code, expected.code)
    epoch = course.epoch + (1 if isinstance(move, CancelSelf) or _supersedes(move) else 0)
    if t.epoch != epoch:
        yield Drift(t.seq, "epoch", t.epoch, epoch)
    yield from _trigger(course, t, decided)
    yield from _release(course, t, decided)
    if isinstance(move, Open | Park | Suspend | Finish):
        yield from _note(t, decided, move)
        if strict:
            yield from _closed(course, t, decided)
    if not _stays(course, t, decided):
        yield from _opened(course, t, move, definition, strict=strict)
    if strict and isinstance(move, Finish):
        yield from _result(course, t, move)


def _supersedes(move: Move) -> bool:
    return isinstance(move, Finish) and move.status is Status.SUPERSEDED


def _expected(course: Course, t: Logged, move: Move) -> _Expected:
    match move:
        case Open():
            return _Expected((Status.RUNNING, Status.RUNNABLE, Status.PAUSED), move.node)
        case Park():
            coming = course.coming_wait()
            answered = bool(move.channels or move.kind in AT_ONCE) and coming is not None and coming.evidence is not None
            early = (Status.RUNNING,) if answered else ()
            return _Expected((Status.WAITING, Status.PAUSED, *early), move.node)
        case RetryLater():
            return _Expected((Status.WAITING, Status.PAUSED), course.node, move.code)
        case Reconcile():
            return _Expected((Status.RECONCILING,), course.node, move.code, Outcome.RECONCILIATION_REQUIRED)
        case Suspend():
            return _Expected((Status.WAITING,), move.node, move.code, move.outcome)
        case Finish():
            way = Status.RECONCILING if move.status is Status.COMPLETE else Status.CANCELLING
            outcome = move.outcome if t.to_status == move.status else ""
            if t.to_status == Status.RECONCILING:
                outcome = Outcome.RECONCILIATION_REQUIRED
            return _Expected((move.status, way), move.node, move.code, outcome)
        case Rest():
            return _Expected((Status.WAITING, Status.PAUSED), course.node)
        case CancelSelf():
            return _Expected((Status.CANCELLING,), course.node, "CANCEL_REQUESTED")
    return _Expected((), course.node)  # the open activity is run: nothing would have been written


def _release(course: Course, t: Logged, decided: Decided) -> Iterator[Drift]:
    """The release that the workflow is pinned to with this decision is the one that it was pinned to."""
    if decided.release and decided.release != course.pinned:
        yield Drift(t.seq, "release", course.pinned, decided.release)


def _trigger(course: Course, t: Logged, decided: Decided) -> Iterator[Drift]:
    """Why the arrow was made, where that follows from the state: an attempt's end is compared with the attempt elsewhere."""
    expected, move = None, decided.move
    if isinstance(move, Rest):
        expected = "rest"
    elif isinstance(move, CancelSelf):
        if t.note.get("reason") != move.code:
            yield Drift(t.seq, "note reason", t.note.get("reason"), move.code)
        expected = "cancel"
    elif _stays(course, t, decided):
        expected = "decided"
    elif t.trigger in FAILURES or t.trigger == "completed":
        pass  # an attempt ended beside the wait of a person, which its arrow closes
    elif (wait := course.open_wait(t)) is not None:
        expected = "woken" if wait.evidence is not None or wait.kind == "timer" or polls(wait.kind, move) else "expired"
        if t.ref != str(wait.id):
            yield Drift(t.seq, "trigger_ref", t.ref, str(wait.id))
    elif course.activity is None:
        expected = "decided"
    if expected is not None and t.trigger != expected:
        yield Drift(t.seq, "trigger", t.trigger, expected)


def _stays(course: Course, t: Logged, decided: Decided) -> bool:
    """Whether the open wait stays open."""
    wait, move = course.open_wait(t), decided.move
    return wait is not None and isinstance(move, Suspend) and looks_again(wait.kind, course, decided, move)


def _note(t: Logged, decided: Decided, move: Open | Park | Suspend | Finish) -> Iterator[Drift]:
    verdict = decided.refusal.verdict.value if decided.refusal is not None else None
    for name, found, expected in (
        ("via", list(t.words("via")), list(move.via)),
        ("dropped", list(t.words("dropped")), list(decided.dropped)),
        ("verdict", t.note.get("verdict"), verdict),
        ("deadline", list(t.words("deadline")), decided.handled_words),
    ):
        if found != expected:
            yield Drift(t.seq, name, found, expected)


def _closed(course: Course, t: Logged, decided: Decided) -> Iterator[Drift]:
    """What `read=` made of the evidence is what was stored as the node's result."""
    if t.trigger in CLOSED and course.wait is not None and not same(course.wait.result, decided.wait_result):
        yield Drift(t.seq, f"result of {course.wait.node}", course.wait.result, decided.wait_result)


def _opened(course: Course, t: Logged, move: Move, definition: Definition, *, strict: bool) -> Iterator[Drift]:
    """The activity or wait that the move opens is the next one that was opened."""
    match move:
        case Open():
            yield from _activity_opened(course, t, move, definition, strict=strict)
        case Park() if not strict:
            if isinstance(node := definition.nodes.get(t.to_node), Activity) and node.kind != move.kind:
                yield Drift(t.seq, "to_node", t.to_node, described(move))
        case Park():
            yield from _wait_opened(course, t, move)
        case RetryLater():
            yield from _beside(course, t, RETRY_WINDOW)
        case Reconcile():
            yield from _beside(course, t, RECONCILIATION)
        case Suspend():
            yield from _beside(course, t, HUMAN)


def _activity_opened(course: Course, t: Logged, move: Open, definition: Definition, *, strict: bool) -> Iterator[Drift]:
    seq = course.opened + 1
    row = course.history.visits.get(seq)
    if row is None:
        yield Drift(t.seq, f"activity {seq}", "no row", described(move))
        return
    if (row.node, row.step) != (move.node, move.step):
        yield Drift(t.seq, f"activity {seq}", f"{row.node} {row.step}".strip(), f"{move.node} {move.step}".strip())
    visit = visit_of(course, move, definition.nodes[move.node])
    if strict and row.visit != visit:
        yield Drift(t.seq, f"visit of activity {seq}", row.visit, visit)


def _wait_opened(course: Course, t: Logged, move: Park) -> Iterator[Drift]:
    row = course.coming_wait()
    if row is None:
        yield Drift(t.seq, "wait", "no row", described(move))
        return
    expected = {
        "node": move.node,
        "visit": move.visit_after(course.visits),
        "kind": move.kind,
        "event_type": move.event_type,
        "key": move.keys[0] if move.keys else "",
        "on_expiry": move.on_expiry,
    }
    if course.carried:  # a migration that takes a wait over gives it the policy of the new version
        del expected["on_expiry"]
    for name, value in expected.items():
        if getattr(row, name) != value:
            yield Drift(t.seq, f"{name} of wait {row.id}", getattr(row, name), value)
    starts = move.detail.get("starts")
    if t.note.get("starts") != starts:
        yield Drift(t.seq, f"what {move.node} starts", t.note.get("starts"), starts)
    candidate = move.detail.get("candidate")
    asked = _question(course, row)
    if asked is not None and candidate is not None and asked != candidate["digest"]:
        yield Drift(t.seq, f"digest of the question behind wait {row.id}", asked, candidate["digest"])


def _question(course: Course, row: Waited) -> str | None:
    return next((one.digest for one in course.history.asked if one.wait == row.id), None)


def _beside(course: Course, t: Logged, kind: str) -> Iterator[Drift]:
    row = course.coming_wait()
    if row is None or row.kind != kind:
        yield Drift(t.seq, "wait", row.kind if row is not None else "no row", kind)


def _result(course: Course, t: Logged, move: Finish) -> Iterator[Drift]:
    """The workflow's result, unless a later cancel took it away."""
    later = (one.trigger for one in course.history.log if one.seq > t.seq)
    if not any(trigger in ("cancel", "supersede") for trigger in later) and not same(course.history.result, move.result):
        yield Drift(t.seq, "result", course.history.result, move.result)


def same(recorded: Any, replayed: Any) -> bool:
    """Whether a value is what was stored, as JSON keeps it."""
    if recorded == replayed:
        return True
    try:
        return bool(recorded == json.loads(json.dumps(replayed, default=dict)))
    except (TypeError, ValueError, RecursionError):
        return False
