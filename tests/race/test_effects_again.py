"""What only asking again, the end of a call, or one more try can settle, against everybody else: one counts, and nothing is called twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows.core.protocol import TERMINAL
from flows.models import Operation, Transition
from flows.services import sweeps
from flows.testing import LocalWorker
from tests import factories
from tests.support import asking, owing
from tests.support.asking import Asked
from tests.support.obligations import broken, faults
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("A3", "B2", "B5", "D3")

#: Whether an effect was in doubt when the engine looked is not on record where the answer comes in the same moment as the deadline.
STRAYS = {"test_both_at_once", "test_one_behind_the_other"}

USING = "default"
ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "3"))  # 60 and more when something here is changed

Action = Callable[[Asked, Any], Any]
#: What makes ready, the two that race, and the ends that are right.
Race = tuple[Callable[[LocalWorker], Asked], Action, Action, set[str]]


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    asking.forget()
    yield
    asking.forget()


@pytest.fixture
def ann(transactional_db: None) -> Any:
    return get_user_model().objects.create_superuser("ann")


def answer(case: Asked, ann: Any) -> Any:
    return case.answer()


def cancel(case: Asked, ann: Any) -> Any:
    return flows.cancel(case.run)


def supersede(case: Asked, ann: Any) -> Any:
    return flows.supersede(case.run, goal="x")


def look(case: Asked, ann: Any) -> Any:
    return owing.service(factories.another_worker())


def says(verdict: str) -> Action:
    """A person says so of whatever is in doubt, or has failed."""
    return lambda case, ann: case.verdict(verdict, ann, case.taken[0] if case.taken else None)


#: Against an effect that is, or will be, asked for again. The deadline waits until the outcome is known.
OTHERS: dict[str, tuple[Action, str]] = {
    "cancel": (cancel, "cancelled"),
    "supersede": (supersede, "superseded"),
    "deadline": (lambda case, ann: case.hurry("workflow_deadline"), "complete"),
    "deadline and a turn": (lambda case, ann: (case.hurry("workflow_deadline"), case.worker.run(["agents"])), "complete"),
    "pause": (lambda case, ann: flows.pause(case.run), "complete"),
    "pause and resume": (lambda case, ann: (flows.pause(case.run), flows.resume(case.run)), "complete"),
    "resume": (lambda case, ann: flows.resume(case.run), "complete"),
    "happened": (says("happened"), "complete"),
    "did not happen": (says("did_not_happen"), "complete"),
    "cannot tell": (says("cannot_tell"), "complete"),
    "late": (lambda case, ann: case.late(), "complete"),
    "put back": (lambda case, ann: (case.put_back_look(), case.put_back()), "complete"),
}

ASKS: dict[str, tuple[Callable[[LocalWorker], Asked], Action]] = {
    "ask again": (asking.asking, answer),
    "ask again, later": (lambda worker: asking.asking(worker, asking.SendingLater), answer),
    "ask no more": (lambda worker: asking.asking(worker, asking.SendingOnce), answer),
    "a person answers": (asking.telling, says("happened")),
    "its time has come": (asking.window, lambda case, ann: case.hurry("retry")),
    "fly again": (asking.opened, lambda case, ann: case.fly()),
}

RACES: dict[str, Race] = {
    f"{name}, {other}": (
        ready,
        own,
        act,
        {"failed"} if name in ("ask no more", "a person answers") and other.startswith("deadline") else {end},
    )
    for name, (ready, own) in ASKS.items()
    for other, (act, end) in OTHERS.items()
}

#: What becomes of a call whose caller was fenced, of a compensation or a release that fails, and of one that has failed.
KNOWS: dict[str, tuple[Action, set[str]]] = {
    "late": (lambda case, ann: case.late(), {"cancelled"}),
    "cancel again": (cancel, {"cancelled"}),
    "supersede": (supersede, {"superseded", "cancelled"}),
    "happened": (says("happened"), {"cancelled"}),
    "did not happen": (says("did_not_happen"), {"cancelled"}),
    "look": (look, {"cancelled"}),
    "calls over": (lambda case, ann: case.over(), {"cancelled"}),
    "tick": (lambda case, ann: case.gone(), {"cancelled"}),
}
RACES |= {f"calls over, {name}": (asking.fenced, lambda case, ann: case.over(), act, ends) for name, (act, ends) in KNOWS.items()}
RACES |= {
    f"caller gone, {name}": (asking.orphaned, lambda case, ann: case.gone(), act, ends) for name, (act, ends) in KNOWS.items()
}
RACES["tick, cancel"] = (asking.dying, lambda case, ann: sweeps.run_tick(USING), cancel, {"cancelled"})
RACES["tick, supersede"] = (asking.dying, lambda case, ann: sweeps.run_tick(USING), supersede, {"superseded"})

#: Against a compensation or a release that is failing, and (the first four) against one that has failed, or is due again.
FAILS: dict[str, tuple[Action, set[str]]] = {
    "try again": (says("retry"), {"cancelled"}),
    "give up": (says("give_up"), {"cancelled"}),
    "try again and look": (lambda case, ann: (says("retry")(case, ann), look(case, ann)), {"cancelled"}),
    "supersede": (supersede, {"superseded", "cancelled"}),
    "cancel again": (cancel, {"cancelled"}),
    "put back": (lambda case, ann: case.put_back_look(), {"cancelled"}),
}
for _what in ("compensate", "release"):
    _fails, _failed, _due = (partial(ready, what=_what) for ready in (asking.failing, asking.failed, asking.due_again))
    RACES |= {f"{_what} fails, {name}": (_fails, answer, act, ends) for name, (act, ends) in FAILS.items()}
    for _name in list(FAILS)[:4]:
        RACES[f"{_what} failed, give up, {_name}"] = (_failed, says("give_up"), *FAILS[_name])
        RACES[f"{_what} due again, taken, {_name}"] = (_due, lambda case, ann: case.take(), *FAILS[_name])


def judge(case: Asked, worker: LocalWorker, ann: Any, outcomes: list[Any], ends: set[str], name: str = "") -> None:
    """Sound at once, home, sound again; each attempt has called at most once, and nobody after it was known that it had happened."""
    assert broken(outcomes) == []
    assert faults() == []
    if name.startswith(("calls over", "caller gone")):
        assert not Operation.objects.filter(pk=case.operation, status="uncertain", flown_by__isnull=False).exists()
    if "deadline and a turn" in name:  # whichever comes first: an end that is reached meanwhile is reached
        ends = ends | {"complete", "failed"}
    known = case.now.status == "succeeded"
    before = len(asking.sent)
    assert asking.bring_home(case, worker, ann) in ends
    assert faults() == []
    assert not known or len(asking.sent) == before
    assert max(Counter(asking.sent).values()) == 1
    assert Transition.objects.filter(workflow_id=case.run.id, to_status__in=TERMINAL).count() == 1
    assert set(Counter(owing.undone + owing.released).values()) <= {1}


@pytest.mark.parametrize("name", RACES)
def test_both_at_once(worker: LocalWorker, ann: Any, name: str) -> None:
    ready, one, two, ends = RACES[name]
    with racers(2) as (first, second):
        for _ in range(ROUNDS):
            case = ready(worker)
            outcomes = together((first, lambda: one(case, ann)), (second, lambda: two(case, ann)))
            judge(case, worker, ann, outcomes, ends, name)


@pytest.mark.parametrize("name", RACES)
def test_one_behind_the_other(worker: LocalWorker, ann: Any, name: str) -> None:
    ready, one, two, ends = RACES[name]
    for first, second in ((one, two), (two, one)):
        case = ready(worker)
        met = overtaken(lambda: first(case, ann), lambda: second(case, ann))
        judge(case, worker, ann, [met.first, met.second], ends, name)


def test_a_stale_look_does_not_have_it_asked_for_again(worker: LocalWorker, ann: Any) -> None:
    """Its look was put back, another had it asked for again, and that call is lost too: this doubt has a look of its own to come."""
    with racers(2) as (owner, frozen):
        for _ in range(ROUNDS):
            stale = asking.asking(worker)
            stale.put_back_look()
            asking.looking(replace(stale)).answer()
            case = asking.opened_by(factories.another_worker(), stale.run)
            case.fly()
            outcomes = together((owner, case.lose_answer), (frozen, stale.have_asked_again))
            stale.have_asked_again()
            assert (case.now.status, case.now.again, case.now.due_at is None) == ("uncertain", False, False)
            judge(case, worker, ann, outcomes, {"complete"})
    assert len(asking.sent) == 3 * ROUNDS


def test_of_two_ticks_one_finds_the_call_of_a_dead_worker(worker: LocalWorker, ann: Any) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            case = asking.orphaned(worker)
            outcomes = together((one, case.gone), (two, case.gone))
            assert sorted(outcomes) == [False, True]
            judge(case, worker, ann, outcomes, {"cancelled"})


def test_a_tick_does_not_wait_for_another(worker: LocalWorker, ann: Any) -> None:
    case = asking.orphaned(worker)
    met = overtaken(case.gone, case.gone)
    assert (met.first, met.second, met.blocked) == (True, False, False)
    judge(case, worker, ann, [met.first, met.second], {"cancelled"})


@pytest.mark.parametrize("ended", ["over", "gone"])
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_the_end_of_a_call_asks_nobody_who_has_given_up(worker: LocalWorker, ann: Any, ended: str, turned: bool) -> None:  # noqa: FBT001
    """Its time was over before it came back, and a look found that only a person can tell: nobody looks once more."""
    case = asking.orphaned(worker, asking.Telling)
    Operation.objects.filter(pk=case.operation).update(due_at="2020-01-01T00:00Z")
    first, second = (lambda: look(case, ann)), getattr(case, ended)
    met = overtaken(second, first) if turned else overtaken(first, second)
    look(case, ann)
    assert (case.now.looks, case.now.due_at, factories.row(case.run).outcome) == (1, None, "HUMAN_REQUIRED")
    judge(case, worker, ann, [met.first, met.second], {"cancelled"})
