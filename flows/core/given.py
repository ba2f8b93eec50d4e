"""What an arrow that somebody else than the engine made leaves of a workflow: trigger → function, each in the table by its own line.

    row of the log ──► of(trigger) ──► activity, wait, heard, rang, error code, version of the course

Whoever adds an arrow adds its rows here, or in a file of its own that `flows.core.course` imports. A trigger that is in no row is an arrow of
somebody else: what is still open of the workflow its row says itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from flows.core.history import Logged
from flows.core.protocol import RESUMED, Status

if TYPE_CHECKING:
    from flows.core.course import Course

Given = Callable[["Course", Logged], None]

_TABLE: dict[str, Given] = {}

#: Timers whose end is one of the open wait: what the engine sees of it is due.
OF_WAITS = ("wait_deadline:", "sleep:", "poll:")


def given(*triggers: str) -> Callable[[Given], Given]:
    """The decorated function follows arrows of these triggers."""

    def put(function: Given) -> Given:
        _TABLE.update(dict.fromkeys(triggers, function))
        return function

    return put


def of(trigger: str) -> Given:
    """The function that follows an arrow of that trigger."""
    return _TABLE.get(trigger, _another)


def _another(course: Course, t: Logged) -> None:
    if course.activity is not None and t.activity_seq != course.activity.seq:
        course.activity = None
    if t.to_node != course.node:
        course.wait = None


@given("start")
def _start(course: Course, t: Logged) -> None:
    if t.activity_seq is not None:
        course.open_next(t)


@given("claim", "release")
def _claim(course: Course, t: Logged) -> None:
    """A claim adds an attempt, and giving it back takes it away. One that is given back with its row counts."""
    if course.activity is not None:
        begun = 1 if t.trigger == "claim" else 0 if t.attempt is not None else -1
        course.activity = replace(course.activity, number=course.activity.number + begun)


@given("lost")
def _lost(course: Course, t: Logged) -> None:
    activity = course.activity
    if activity is not None:
        course.activity = replace(activity, lost=activity.lost + 1)
        course.doubted |= {activity.seq} if t.to_status == Status.RECONCILING else set()
    if t.to_status == Status.RECONCILING:
        course.next_wait()
    course.error_code = t.error_code


@given("event", "approval", "answer", "children")
def _heard(course: Course, _t: Logged) -> None:
    """Evidence has arrived for the open wait."""
    course.heard = True


@given("asked", "parked", "defer")
def _waits(course: Course, t: Logged) -> None:
    """What is open stays so, and a wait stands beside it."""
    course.wait, course.heard, course.rang = course.next_wait(), False, False
    course.error_code = t.error_code


@given("readmit")
def _readmit(course: Course, _t: Logged) -> None:
    """The wait for capacity is closed by what ends it."""
    course.wait = None


@given("timer")
def _timer(course: Course, t: Logged) -> None:
    timer = t.ref.rpartition(":")[2]
    course.rung |= {int(timer)} if timer.isdecimal() else set()
    course.rang = course.rang or t.ref.startswith(OF_WAITS)


@given("cancel", "supersede")
def _leave(course: Course, t: Logged) -> None:
    course.activity = course.wait = None
    course.error_code = t.error_code


@given("reconciled", "unsettled", "resolved", "settled")
def _settle(course: Course, t: Logged) -> None:
    if t.to_status == Status.WAITING and t.trigger == "reconciled":
        course.wait, course.heard, course.rang = course.next_wait(), False, False
    course.error_code = t.error_code


@given("returned")
def _returned(course: Course, t: Logged) -> None:
    course.error_code = t.error_code


@given("resume")
def _resume(course: Course, t: Logged) -> None:
    if course.wait is not None and course.wait.kind in RESUMED:
        course.wait = None
    if t.to_node != t.from_node:  # a person has it go on at what the gate stands on
        course.activity = course.error_code = None


@given("pin")
def _pin(course: Course, t: Logged) -> None:
    course.pinned = t.ref
    course.pin = t if t.from_status == Status.RUNNING else None


@given("pause", "policy", "erase")
def _stay(course: Course, t: Logged) -> None:
    """Nothing that is open changes."""


@given("migrate")
def _migrate(course: Course, t: Logged) -> None:
    """What went over the log says; results that the migration gave stand among the activities, in order."""
    kept, to = t.words("kept"), t.version("to")
    course.version = course.version if to is None else to
    if "activity" not in kept:
        course.activity = None
    elif course.activity is not None and t.from_status == Status.RUNNING:
        course.activity = replace(course.activity, number=course.activity.number - 1)
    if "wait" not in kept:
        course.wait = None
    for _ in t.words("results"):
        course.opened += 1
        row = course.history.visits.get(course.opened)
        if row is not None:
            course.results[row.node] = row.result
    course.error_code = t.error_code
