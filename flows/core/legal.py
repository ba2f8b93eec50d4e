"""Arrows that somebody else than the engine made are taken as given; what a row of the log may say of them is in one table.

Every row must go on where the one before it ended, by a move of the protocol; of the known triggers also between these statuses, at the same
node, and about the activity that is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flows.core.course import ENDED, ENGINE, Course
from flows.core.history import Drift, Logged
from flows.core.protocol import OUTCOMES, SUSPENDED, TERMINAL, Outcome, Status, is_legal

_STATUSES, _OUTCOMES = frozenset(Status), frozenset(Outcome)
_LEAVES = frozenset({Status.RUNNABLE, Status.RUNNING, Status.WAITING, Status.PAUSED, Status.RECONCILING})
_HELD = frozenset({Status.WAITING, Status.PAUSED})
_AT_REST = _HELD | {Status.RUNNABLE}

#: Trigger → from which statuses to which.
GIVEN: dict[str, tuple[frozenset[Status], frozenset[Status]]] = {
    "claim": (frozenset({Status.RUNNABLE}), frozenset({Status.RUNNING})),
    "release": (frozenset({Status.RUNNING}), frozenset({Status.RUNNABLE, Status.PAUSED})),
    "lost": (frozenset({Status.RUNNING}), frozenset({Status.RUNNABLE, Status.PAUSED, Status.RECONCILING})),
    "returned": (frozenset({Status.RUNNING}), frozenset({Status.PAUSED})),
    "asked": (frozenset({Status.RUNNING}), _HELD),
    "parked": (frozenset({Status.RUNNING}), _HELD),
    "defer": (frozenset({Status.RUNNABLE}), frozenset({Status.WAITING})),
    "pause": (frozenset({Status.RUNNABLE, Status.WAITING}), frozenset({Status.PAUSED})),
    "resume": (_HELD, frozenset({Status.RUNNABLE})),
    "pin": (_AT_REST | {Status.RUNNING}, _AT_REST | {Status.RUNNING}),
    "policy": (_AT_REST, _AT_REST),
    "migrate": (_HELD | {Status.RUNNING}, frozenset({Status.RUNNABLE, Status.PAUSED})),
    "cancel": (_LEAVES, frozenset({Status.CANCELLING})),
    "supersede": (_LEAVES, frozenset({Status.CANCELLING, Status.SUPERSEDED})),
    "event": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "approval": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "answer": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "timer": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "children": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "readmit": (frozenset({Status.WAITING}), frozenset({Status.RUNNABLE})),
    "reconciled": (frozenset({Status.RECONCILING, Status.WAITING}), frozenset({Status.RUNNABLE, *_HELD})),
    "unsettled": (frozenset({Status.RECONCILING, Status.CANCELLING}), frozenset({*_HELD, Status.CANCELLING})),
    "resolved": (frozenset({Status.CANCELLING}), frozenset({Status.CANCELLING})),
    "settled": (frozenset({Status.RECONCILING, Status.CANCELLING}), TERMINAL),
    "erase": (TERMINAL, TERMINAL),
}

#: Trigger → the code that its arrow always records.
CODES: dict[str, str | None] = {
    "cancel": "CANCEL_REQUESTED",
    "supersede": "INTENT_SUPERSEDED",
    **dict.fromkeys(("start", "claim", "release", "pause", "resume", "event", "approval", "answer", "timer", "rest", "returned")),
    **dict.fromkeys(("children", "readmit", "defer")),
}
_RAISES_EPOCH = frozenset({"cancel", "supersede", "migrate"})
#: These bind a workflow to something else, and leave it where it is.
_STAYS = frozenset({"pin", "policy", "erase"})
#: These may have it go on at another node: as the migration says, and where a person has what its gate stands on done anew.
_MOVES = frozenset({"migrate", "resume"})
#: These say which attempt they began or ended, and these that it has ended, and how.
_NAMES_ATTEMPT = ENDED | {"claim", "returned", "asked", "parked", "lost", "cancel", "supersede"}
_OUTCOME = {
    "completed": "succeeded",
    "asked": "returned",
    "parked": "returned",
    **{one: one for one in ("failed", "timed_out", "refused", "returned", "lost")},
}


def faults(course: Course, t: Logged) -> Iterator[Drift]:
    """What cannot be about this row of the log, looked at where the one before it ended."""
    yield from _chain(course, t)
    given = GIVEN.get(t.trigger)
    if given is not None:
        if t.from_status not in given[0] or t.to_status not in given[1]:
            yield Drift(t.seq, "trigger", t.trigger, f"no arrow of it leads from {t.from_status} to {t.to_status}")
        if t.trigger in _STAYS and t.to_status != t.from_status:
            yield Drift(t.seq, "to_status", t.to_status, t.from_status)
        if t.to_node != t.from_node and t.trigger not in _MOVES:
            yield Drift(t.seq, "to_node", t.to_node, t.from_node)
    if t.trigger in CODES and t.error_code != (code := _code(course, t)):
        yield Drift(t.seq, "error_code", t.error_code, code)
    if t.trigger in GIVEN or t.trigger in ENGINE:
        yield from _activity(course, t)


def _code(course: Course, t: Logged) -> str | None:
    """What a run is given back with, after its attempt had begun, is the code that it had."""
    handed_over = t.trigger == "release" and t.attempt is not None
    return course.error_code if handed_over else CODES[t.trigger]


def _chain(course: Course, t: Logged) -> Iterator[Drift]:
    if t.seq != course.seq + 1:
        yield Drift(course.seq + 1, "seq", "no row" if t.seq > course.seq else t.seq, course.seq + 1)
    for name, found, expected in (
        ("from_status", t.from_status, course.status),
        ("from_node", t.from_node, course.node),
    ):
        if found != expected:
            yield Drift(t.seq, name, found, expected)
    if t.to_status not in _STATUSES or not is_legal(Status(course.status) if course.status else None, Status(t.to_status)):
        yield Drift(t.seq, "to_status", t.to_status, f"no move of the protocol from {course.status or 'the start'}")
    elif not _may_carry(Status(t.to_status), t.outcome):
        yield Drift(t.seq, "outcome", t.outcome, f"no outcome of {t.to_status}")
    if t.trigger in _RAISES_EPOCH and t.epoch != course.epoch + 1:
        yield Drift(t.seq, "epoch", t.epoch, course.epoch + 1)
    elif t.epoch < course.epoch or (t.trigger in GIVEN and t.trigger not in _RAISES_EPOCH and t.epoch != course.epoch):
        yield Drift(t.seq, "epoch", t.epoch, course.epoch)
    if course.seq and (t.trigger in GIVEN or t.trigger in ENGINE) and t.intent_version != course.intent_version:
        yield Drift(t.seq, "intent_version", t.intent_version, course.intent_version)


def _may_carry(status: Status, outcome: str) -> bool:
    if outcome and outcome not in _OUTCOMES:
        return False
    return (Outcome(outcome) if outcome else None) in OUTCOMES[status]


def _activity(course: Course, t: Logged) -> Iterator[Drift]:
    """The activity that the row names is the open one, and what the row says of its attempt is what the attempt says."""
    activity = course.activity
    expected: Any = activity.seq if activity is not None else None
    if t.trigger == "migrate" and "activity" not in t.words("kept"):
        expected = activity = None
    if (
        t.trigger == "decided" and t.outcome in SUSPENDED and course.wait is not None and t.activity_seq is None
    ):  # all of it stays open
        activity = expected = None
    if t.activity_seq != expected:
        yield Drift(t.seq, "activity_seq", t.activity_seq, expected)
        return
    if activity is None:
        if t.trigger in ENDED:
            yield Drift(t.seq, "trigger", t.trigger, "no activity was open")
        return
    number = activity.number + (1 if t.trigger == "claim" else 0)
    if t.trigger in _NAMES_ATTEMPT and t.attempt != number:
        yield Drift(t.seq, "attempt", t.attempt, number)
        return
    wanted = _OUTCOME.get(t.trigger)
    if wanted is None:
        return
    tried = course.history.attempts.get((activity.seq, number))
    if tried is None or tried.outcome != wanted:
        yield Drift(t.seq, "trigger", t.trigger, f"attempt {number} of {activity.node}: {tried.outcome if tried else 'no row'}")
