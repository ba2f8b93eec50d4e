"""Mistakes of nodes that start a job outside, and what the engine answers about one (no database)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.core import lint
from flows.core.definition import Definition
from flows.core.errors import DefinitionError
from flows.core.lint import PREFIX
from flows.core.moves import Goto, Open, Park, Rest, Suspend
from flows.core.nodes import COMPLETE, End, Job, Pending
from flows.core.policies import ESCALATE, RELEASE, Deadline
from flows.core.spans import hours, minutes, seconds
from flows.core.state import Woken
from tests.support.flow_values import NOW, activity, declare, state, wait, work

pytestmark = pytest.mark.req("G4", "G5")

DAY = Deadline(days=1, then=ESCALATE)


async def later(attempt: Any) -> None:
    """Work may be async."""


def flow(**options: Any) -> Definition:
    given = {"event": "t.done", "key": "k", "poll": later, "cancel": work, "deadline": DAY, "then": "done", **options}
    return declare(first=Job("some.module.start", **given), done=End(COMPLETE))


def job(**options: Any) -> Job:
    found = flow(**options).nodes["first"]
    assert isinstance(found, Job)
    return found


def at(*answers: Any, until: Any = None, **values: Any) -> Any:
    """A state in which the job was started, and asked about."""
    record = {"start": {"answer": 1, "until": until}, **({"answer": answers[-1]} if answers else {})}
    return state("first", results={"first": record}, visits={"first": 1}, **values)


WRONG: tuple[tuple[str, Callable[[], Definition]], ...] = (
    ("E093", lambda: flow(deadline=None)),
    ("E095", lambda: flow(event="", poll=None)),
    ("E095", lambda: flow(key="")),
    ("W006", lambda: flow(cancel=None)),
    ("E010", lambda: flow(then="")),
    ("E011", lambda: flow(then="", choices={"a": ""})),
    ("E030", lambda: flow(choices={"a": "done"})),
    ("E020", lambda: flow(poll=7)),
    ("E020", lambda: flow(cancel=7)),
    ("E021", lambda: flow(read=later)),
    ("E025", lambda: flow(every=seconds(0))),
    ("E027", lambda: flow(every=60)),
    ("E027", lambda: flow(deadline=60)),
    ("E052", lambda: flow(deadline=Deadline(days=1, then=RELEASE, to="done"), cancel=None)),
)


@pytest.mark.parametrize(("code", "made"), WRONG, ids=[f"{code}-{number}" for number, (code, _) in enumerate(WRONG)])
def test_what_is_wrong_is_found(code: str, made: Callable[[], Definition]) -> None:
    found = [one for one in lint.problems(made()) if one.node == "first"]
    assert PREFIX + code in [one.id for one in found]
    assert all(one.hint for one in found)


@pytest.mark.parametrize("options", [{}, {"event": "", "key": ""}, {"poll": None}, {"then": "", "choices": {"a": "done"}}])
def test_what_is_right_is_not(options: dict[str, Any]) -> None:
    assert [one for one in lint.problems(flow(**options)) if one.node == "first"] == []


@pytest.mark.parametrize("option", ["commits", "fulfils", "verifies", "optional", "effects", "do"])
def test_what_is_not_of_jobs_is_refused_where_it_is_written(option: str) -> None:
    with pytest.raises(DefinitionError, match=f"takes no {option}="):
        Job(work, then="done", **{option: "x"})


def test_what_it_begins_to_owe_is_known_by_its_name() -> None:
    assert [(one.name, one.kind) for one in job().commitments] == [("first", "job")]
    assert job(cancel=None).commitments == ()


def test_only_its_start_is_an_effect() -> None:
    assert job().effect_at("start") is not None
    assert job().effect_at("answer") is None


def test_its_time_begins_with_the_end_of_its_start() -> None:
    started = state("first", activity=activity("first", "start"))
    assert job().accept({"id": 7}, started) == {"answer": {"id": 7}, "until": "2026-03-02T12:00:00+00:00"}


def test_how_often_it_was_asked_is_counted() -> None:
    asked = at({"pending": 3}, activity=activity("first", "answer"))
    assert job().accept(Pending(), asked) == {"pending": 4}
    assert job().accept("ok", asked) == {"value": "ok", "event": None, "payload": "ok"}
    read = job(read=lambda seen: seen.event["payload"]["s"])
    assert read.accept({"s": "green"}, asked) == {"value": "green", "event": None, "payload": {"s": "green"}}


@pytest.mark.parametrize(("asked", "pause"), [(0, 60), (1, 90), (2, 135), (9, 900), (10**9, 900)])
def test_it_is_asked_more_and_more_rarely(asked: int, pause: int) -> None:
    move = job().waiting(at({"pending": asked}))
    assert isinstance(move, Park)
    assert round((move.wakes_at - NOW).total_seconds()) == pause if move.wakes_at else False


def test_a_wait_names_channel_moment_and_visit() -> None:
    until = (NOW + hours(1)).isoformat()
    found = job(poll=None).waiting(at(until=until))
    assert found == Park("first", "external_job", "waiting for t.done k", event_type="t.done", keys=("k",),
                         deadline_at=NOW + hours(1), on_expiry="escalate", same_visit=True)  # fmt: skip


def test_a_key_that_is_none_is_an_error_that_names_the_job() -> None:
    with pytest.raises(DefinitionError, match="key of job first"):
        job(key=lambda seen: None).waiting(at())


def test_when_it_is_due_the_moment_decides() -> None:
    due, before, after = wait("first", "external_job", due=True), NOW + minutes(1), NOW - minutes(1)
    assert job().resume(at(until=before.isoformat(), wait=due), Woken()) == Open("first", "answer")
    assert isinstance(job().resume(at(until=after.isoformat(), wait=due), Woken()), Suspend)
    assert job().resume(at(wait=wait("first", "external_job")), Woken()) == Rest()
    said = wait("first", "external_job", {"id": "e", "payload": {}}, due=True)
    assert job().resume(at(until=after.isoformat(), wait=said), Woken()) == Goto("done"), "what has come goes first"
