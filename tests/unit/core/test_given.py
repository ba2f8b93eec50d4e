"""What the arrows of capacity, children and jobs leave of a workflow, followed from its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

from flows.core import given, legal
from flows.core.course import ENGINE, Course
from flows.core.history import History, Logged, Tried, Visited, Waited

pytestmark = pytest.mark.req("S1")

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def logged(seq: int, trigger: str, way: str, **more: Any) -> Logged:
    source, target = way.split(">")
    values = {
        "outcome": "WAITING" if target == "waiting" else "", "epoch": 0, "ref": "", "intent_version": 1, "policy_version": "",
        "activity_seq": None, "attempt": None, "error_code": None, "note": MappingProxyType({}), "at": NOON + timedelta(minutes=seq), **more,
    }  # fmt: skip
    return Logged(seq, source, target, "" if seq == 1 else "one", "one", trigger=trigger, **values)


def followed(*log: Logged, kind: str, visits: bool = True, **waited: Any) -> Course:
    """The course after this log; no row of it is a fault."""
    wait = Waited(7, "one", 0, kind, "", "gpu", "", "satisfied", None, None, due=False, **waited)
    last = log[-1]
    row = {"version": last.seq, "status": last.to_status}
    tried = {(1, 1): Tried("returned", None, None)}
    seen = {1: Visited(1, "one", "", 1, "scheduled", None)} if visits else {}
    course = Course(History("w", "t-given", 1, "", None, {}, row, tuple(log), seen, tried, (wait,)))
    for t in log:
        assert list(legal.faults(course, t)) == []
        course.follow(t)
    return course


OPENED = (
    logged(1, "start", ">runnable", activity_seq=1),
    logged(2, "claim", "runnable>running", activity_seq=1, attempt=1),
    logged(3, "parked", "running>waiting", activity_seq=1, attempt=1),
)


def test_a_parked_attempt_leaves_its_activity_with_a_wait_beside_it() -> None:
    course = followed(*OPENED, kind="resource")
    assert course.wait is not None
    assert course.activity is not None
    assert (course.wait.id, course.activity.number, course.activity.failures) == (7, 1, 0)


def test_readmitted_it_waits_no_more_and_tries_again() -> None:
    log = (
        *OPENED,
        logged(4, "readmit", "waiting>runnable", activity_seq=1),
        logged(5, "claim", "runnable>running", activity_seq=1, attempt=2),
    )
    course = followed(*log, kind="resource", closed_at=NOON + timedelta(minutes=4))
    assert course.wait is None
    assert course.activity is not None
    assert course.activity.number == 2


def test_a_run_that_is_deferred_waits_before_it_has_run() -> None:
    log = (logged(1, "start", ">runnable"), logged(2, "defer", "runnable>waiting"))
    course = followed(*log, kind="resource", visits=False)
    assert course.status == "waiting"
    assert course.wait is not None
    assert course.activity is None


def test_the_ends_of_children_are_evidence() -> None:
    log = (logged(1, "start", ">runnable"), logged(2, "defer", "runnable>waiting"), logged(3, "children", "waiting>runnable"))
    assert followed(*log, kind="children", visits=False).heard


def test_a_poll_is_due_as_the_end_of_a_sleep_is() -> None:
    log = (
        logged(1, "start", ">runnable"),
        logged(2, "defer", "runnable>waiting"),
        logged(3, "timer", "waiting>runnable", ref="poll:9"),
    )
    course = followed(*log, kind="external_job", visits=False)
    assert course.rang
    assert course.rung == {9}


def test_every_given_trigger_has_its_row() -> None:
    """Or it would be followed as an arrow of somebody unknown."""
    assert [trigger for trigger in legal.GIVEN if given.of(trigger) is given.of("somebody else's")] == []
    assert not ENGINE & set(legal.GIVEN)
