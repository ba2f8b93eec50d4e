"""The replay as a pure function: a history in frozen values, the engine, and the first place where they part."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Deadline, End, Flow, Wait
from flows.core import definition as declared
from flows.core import errors, legal
from flows.core.course import ENGINE, Course
from flows.core.errors import classify
from flows.core.failures import recalled, recorded, unlisted
from flows.core.history import Drift, History, Logged, Tried, Visited, Waited
from flows.core.protocol import MOVES
from flows.core.replay import Replay

pytestmark = pytest.mark.req("S1")

ROOT = Path(flows.__file__).parent
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def flow() -> Any:
    before = list(declared.DECLARED)

    class Asking(Flow):
        class Meta:
            name = "t-pure-replay"

        one = Activity(str, then="ask")
        ask = Wait("t.pure", key="k", deadline=Deadline(hours=1, then="late"), then="done")
        late = End(COMPLETE)
        done = End(COMPLETE)

    yield Asking.definition
    declared.DECLARED[:] = before


def logged(seq: int, trigger: str, way: str, nodes: str, **more: Any) -> Logged:
    source, target = way.split(">")
    first, _, second = nodes.partition(">")
    values = {
        "outcome": "", "epoch": 0, "ref": "", "intent_version": 1, "policy_version": "", "activity_seq": None, "attempt": None,
        "error_code": None, "note": MappingProxyType({}), "at": NOON + timedelta(minutes=seq), **more,
    }  # fmt: skip
    return Logged(seq, source, target, first, second or first, trigger=trigger, **values)


#: One step, a wait whose hour passes, the end.
LOG = (
    logged(1, "start", ">runnable", ">one", activity_seq=1),
    logged(2, "claim", "runnable>running", "one", activity_seq=1, attempt=1),
    logged(3, "completed", "running>waiting", "one>ask", outcome="WAITING", activity_seq=1, attempt=1),
    logged(4, "timer", "waiting>runnable", "ask", ref="wait_deadline:9"),
    logged(5, "claim", "runnable>running", "ask"),
    logged(6, "expired", "running>complete", "ask>late", outcome="COMPLETE", ref="7"),
)


def history(log: tuple[Logged, ...] = LOG, **more: Any) -> History:
    last = log[-1]
    row = {
        "version": last.seq, "status": last.to_status, "node": last.to_node, "outcome": last.outcome, "epoch": last.epoch,
        "intent_version": 1, "policy_version": "",
    }  # fmt: skip
    found = {
        "visits": {1: Visited(1, "one", "", 1, "done", "text")},
        "attempts": {(1, 1): Tried("succeeded", None, None)},
        "waits": (Waited(7, "ask", 1, "event", "t.pure", "k", "node:late", "expired", None, None, due=True),),
        **more,
    }
    return History("w", "t-pure-replay", 1, "", None, {}, row, log, **found)


def first_drift(replaying: Replay) -> Drift | None:
    """Replayed to where record and replay part first."""
    return [step.drift for step in replaying.steps()][-1]


def test_it_arrives_where_the_record_does(flow: Any) -> None:
    replaying = Replay(history(), flow)
    steps = list(replaying.steps())
    assert [(step.how, step.drift) for step in steps] == [("given", None)] * 2 + [("decided", None)] + [("given", None)] * 2 + [
        ("decided", None)
    ]
    assert replaying.decided == 2


def test_it_stops_where_they_part(flow: Any) -> None:
    waits = (Waited(7, "ask", 1, "event", "t.pure", "k", "node:late", "expired", {"payload": 1}, None, due=True),)
    replaying = Replay(history(waits=waits), flow)
    drift = first_drift(replaying)
    assert drift == Drift(6, "to_node", "late", "done")
    assert str(drift) == "arrow 6, to_node: recorded 'late', replayed 'done'"
    assert replaying.course.seq == 5


def test_a_course_follows_without_deciding() -> None:
    course = Course(history())
    for row in LOG:
        course.follow(row)
    assert (course.seq, course.status, course.node, course.opened, course.waits_opened) == (6, "complete", "late", 1, 1)
    assert (course.results, course.visits, course.activity, course.wait) == ({"one": "text"}, {"one": 1, "ask": 1}, None, None)


def test_an_arrow_of_somebody_unknown_is_given_if_it_is_a_move_of_the_protocol(flow: Any) -> None:
    """A trigger that this version does not know yet: taken as it is, with the node that it names."""
    log = (*LOG[:3], logged(4, "moved", "waiting>runnable", "ask>one"), logged(5, "claim", "runnable>running", "one"))
    found = Replay(history(log), flow)
    assert first_drift(found) is None
    assert found.course.wait is None
    log = (*LOG[:3], logged(4, "moved", "waiting>complete", "ask", outcome="COMPLETE"))
    assert first_drift(Replay(history(log), flow)) == Drift(4, "to_status", "complete", "no move of the protocol from waiting")


def test_the_table_of_given_arrows_names_moves_of_the_protocol() -> None:
    """Some source of each may lead to some target, and each target is reached."""
    for trigger, (sources, targets) in legal.GIVEN.items():
        reached = {target for source in sources for target in MOVES[source]}
        assert targets <= reached, trigger
        assert all(MOVES[source] & targets for source in sources), trigger


def test_every_trigger_that_is_written_is_known() -> None:
    """A new arrow must say here whether the engine decides it."""
    text = "\n".join(path.read_text() for folder in ("store", "services") for path in (ROOT / folder).glob("*.py"))
    named = set(re.findall(r"trigger(?:=|\": )\"([a-z_]+)\"", text)) | set(re.findall(r"m\.epoch, '([a-z_]+)'", text))
    named |= set(re.findall(r"epoch, '([a-z_]+)'", text)) | set(re.findall(r" 0, '(start)'", text))
    assert {"start", "claim", "release", "timer", "pause", "resume", "rest", "event", "settled"} <= named
    assert named - {"start"} <= set(legal.GIVEN) | ENGINE


# ---------------------------------------------------------------- failures


class Own(errors.Transient):
    """An author's class."""


@pytest.mark.parametrize(
    "error",
    [
        *(cls() for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.ActivityError)),
        ValueError(), KeyError(), TimeoutError(), errors.PayloadError("it", "is wrong"), errors.DefinitionError(), Own(),
        type("Unknown", (RuntimeError,), {})(), type("ValueError", (errors.PolicyDenied,), {})(),
    ],
    ids=lambda error: type(error).__qualname__,
)  # fmt: skip
def test_a_failure_comes_back_from_what_is_recorded_of_it(error: Exception) -> None:
    failure = classify(error)
    found = recorded(failure.code, failure.classes[0], unlisted(failure))
    assert (found.code, found.route, found.classes) == (failure.code, failure.route, failure.classes)


def test_only_what_does_not_follow_is_recorded_beside_it() -> None:
    assert unlisted(classify(errors.PolicyDenied())) is None
    assert unlisted(classify(KeyError())) is None
    assert unlisted(classify(Own())) == {
        "route": "retry",
        "classes": ["Own", "Transient", "ActivityError", "OutlastError", "Exception"],
    }
    assert recalled("TRANSIENT", None).route == "retry"
