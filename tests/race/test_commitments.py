"""Ends with debts, and the end of each debt: by a worker, by a person, by the clock, all at once. One closes, nothing is left over."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import COMPLETE, Activity, Commits, End, Flow, commitments
from flows.core.effects import Effect
from flows.models import Commitment, Operation, Timer, Transition
from flows.services import sweeps
from flows.testing import LocalWorker
from tests import factories
from tests.support import owing
from tests.support.obligations import broken, faults
from tests.support.owing import Case, statuses
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("A3", "B6", "D3", "J1")

USING = "default"
ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))  # 60 and more when something here is changed


class Holding(Flow):
    """A window that is released, and a thing that only a person can end."""

    class Meta:
        name = "t-held-in-races"

    book = Activity(
        factories.work,
        effect=Effect(request=owing.request, reconcile=owing.reconcile),
        commits=(owing.WINDOW, Commits("thing")),
        then="done",
    )
    done = End(COMPLETE)


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    owing.forget()
    yield
    owing.forget()


def once() -> None:
    """No release and no compensation was called twice."""
    assert set(Counter(owing.undone + owing.released).values()) <= {1}


def held(case: Case, name: str = "window") -> Commitment:
    return Commitment.objects.get(workflow_id=case.run.id, name=name)


def closes(case: Case) -> int:
    """How often the end was made true."""
    return Transition.objects.filter(
        workflow_id=case.run.id, to_status__in=["complete", "cancelled", "superseded", "failed"]
    ).count()


def fulfil(case: Case, name: str = "window") -> bool:
    return commitments.fulfil(held(case, name), by=None, reason="told by telephone")


def breach(case: Case) -> int:
    """The deadline has passed; the sweep says so."""
    return sweeps.fire_timers(USING)


def past(case: Case) -> Case:
    Timer.objects.filter(workflow_id=case.run.id, kind="commitment_deadline").update(due_at="2020-01-01T00:00Z")
    return case


def enter(case: Case) -> Any:
    return factories.enter(case.owned)


def cancel(case: Case) -> Any:
    return flows.cancel(case.run)


def supersede(case: Case) -> Any:
    return flows.supersede(case.run, goal="x")


#: name → (how the run is made ready, two or more actions, the ends that are right)
RACES: dict[str, tuple[Callable[[LocalWorker], Case], tuple[Callable[[Case], Any], ...], set[str]]] = {
    "end with debts, cancel": (lambda worker: owing.deciding(worker, "leave"), (enter, cancel), {"cancelled"}),
    "end with debts, supersede": (lambda worker: owing.deciding(worker, "leave"), (enter, supersede), {"superseded"}),
    "end with debts, signal": (
        lambda worker: owing.deciding(worker, "leave"),
        (enter, lambda case: owing.hear(case, "use")),
        {"complete"},
    ),
    "end with debts, fulfil": (lambda worker: owing.deciding(worker, "leave"), (enter, fulfil), {"complete"}),
    "end with debts, pause": (
        lambda worker: owing.deciding(worker, "leave"),
        (enter, lambda case: flows.pause(case.run)),
        {"complete", "paused"},
    ),
    "bad end with debts, cancel": (lambda worker: owing.deciding(worker, "fail"), (enter, cancel), {"cancelled"}),
    "bad end with debts, supersede": (lambda worker: owing.deciding(worker, "fail"), (enter, supersede), {"superseded"}),
    "bad end with debts, fulfil": (lambda worker: owing.deciding(worker, "fail"), (enter, fulfil), {"failed"}),
    "breach, fulfil": (lambda worker: past(owing.booked(worker)), (breach, fulfil), {"cancelled"}),
    "breach, cancel": (lambda worker: past(owing.booked(worker)), (breach, cancel), {"cancelled"}),
    "breach, end": (lambda worker: past(owing.deciding(worker, "leave")), (breach, enter), {"complete"}),
    "breach, release": (
        lambda worker: past(owing.releasing(worker)),
        (breach, lambda case: owing.service(case.worker)),
        {"complete"},
    ),
    "breach, signal": (
        lambda worker: past(owing.booked(worker)),
        (breach, lambda case: owing.hear(case, "leave")),
        {"complete"},
    ),
    "two breaches": (lambda worker: past(owing.booked(worker)), (breach, breach), {"cancelled"}),
    "fulfil twice": (owing.booked, (fulfil, fulfil), {"cancelled"}),
    "fulfil, the last debt": (owing.releasing, (fulfil, fulfil), {"complete"}),
    "cancel, release": (owing.releasing, (cancel, lambda case: owing.service(case.worker)), {"complete", "cancelled"}),
    "supersede, compensation": (
        owing.undoing,
        (supersede, lambda case: owing.service(case.worker)),
        {"cancelled", "superseded"},
    ),
    "supersede, cancel": (owing.booked, (supersede, cancel), {"cancelled", "superseded"}),
    "supersede, cancel, go on": (
        lambda worker: failing(worker),
        (supersede, cancel, lambda case: owing.service(case.worker)),
        {"cancelled", "superseded", "failed"},
    ),
    "supersede, supersede": (owing.booked, (supersede, lambda case: flows.supersede(case.run, goal="y")), {"superseded"}),
    "cancel of the intent, supersede": (
        owing.booked,
        (supersede, lambda case: flows.cancel_intent(case.run.intent_id)),
        {"cancelled", "superseded"},
    ),
}


def failing(worker: LocalWorker) -> Case:
    """On its way to failed: the compensation is due."""
    case = owing.deciding(worker, "fail")
    enter(case)
    assert factories.row(case.run).target == "failed"
    return case


def judge(case: Case, worker: LocalWorker, outcomes: list[Any], ends: set[str]) -> None:
    assert broken(outcomes) == []
    assert faults() == []
    if factories.row(case.run).status == "paused":
        flows.resume(case.run)
    assert owing.bring_home(case, worker) in ends
    assert faults() == []
    assert closes(case) == 1
    once()


@pytest.mark.parametrize("name", RACES)
def test_all_at_once(worker: LocalWorker, name: str) -> None:
    ready, actions, ends = RACES[name]
    with racers(len(actions)) as threads:
        for _ in range(ROUNDS):
            case = ready(worker)
            outcomes = together(*[(thread, lambda act=act: act(case)) for thread, act in zip(threads, actions, strict=True)])
            judge(case, worker, outcomes, ends)


@pytest.mark.parametrize("name", [name for name in RACES if len(RACES[name][1]) == 2])
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_one_behind_the_other(worker: LocalWorker, name: str, turned: bool) -> None:  # noqa: FBT001 - a parameter of the test
    ready, (one, two), ends = RACES[name]
    case = ready(worker)
    first, second = (two, one) if turned else (one, two)
    met = overtaken(lambda: first(case), lambda: second(case))
    judge(case, worker, [met.first, met.second], ends)


# ---------------------------------------------------------------- the last debts


def holding(worker: LocalWorker) -> Case:
    """At its good end, which waits for a release and for a person."""
    case = owing.flying(worker, Holding)
    case.done()
    assert (factories.row(case.run).status, factories.row(case.run).owed) == ("reconciling", 2)
    return case


def test_the_last_two_debts_are_settled_at_once_and_one_closes(worker: LocalWorker) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            case = holding(worker)
            outcomes = together((one, lambda: owing.service(worker)), (two, lambda: fulfil(case, "thing")))
            assert broken(outcomes) == []
            assert faults() == []
            assert (factories.row(case.run).status, closes(case)) == ("complete", 1)
    once()


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_who_settles_the_last_debt_behind_another_closes(worker: LocalWorker, turned: bool) -> None:  # noqa: FBT001
    case = holding(worker)
    taken = owing.take_look(worker)
    assert taken is not None
    actions = [lambda: owing.answer_look(worker, taken), lambda: fulfil(case, "thing")]
    met = overtaken(*(reversed(actions) if turned else actions))
    assert broken([met.first, met.second]) == []
    assert met.blocked
    assert faults() == []
    assert (factories.row(case.run).status, closes(case)) == ("complete", 1)


@pytest.mark.parametrize("verdict", ["happened", "did_not_happen"])
def test_a_compensation_in_doubt_is_settled_by_two(worker: LocalWorker, verdict: str) -> None:
    """The probe and a person at once; then the way goes on to the release, and it is undone once."""
    ann = get_user_model().objects.create_superuser("ann")
    with racers(2) as (probe, person):
        for _ in range(ROUNDS):
            case = owing.undoing(worker)
            owing.faults.append(ConnectionResetError())
            assert take_and_answer(worker)
            undoing = f"{case.operation}/compensate"
            assert owing.operation(undoing).status == "uncertain"
            taken = owing.take_look(worker)
            assert taken is not None
            outcomes = together(
                (probe, lambda: owing.answer_look(worker, taken)), (person, lambda: case.verdict(verdict, ann, undoing))
            )
            assert broken(outcomes) == []
            assert faults() == []
            assert owing.bring_home(case, worker) == "cancelled"
            assert statuses(case.run)["book/1"] == "compensated"
    assert faults() == []


def take_and_answer(worker: LocalWorker) -> bool:
    taken = owing.take_look(worker)
    if taken is not None:
        owing.answer_look(worker, taken)
    return taken is not None


# ---------------------------------------------------------------- a person's word against a worker's hand


def judge_taken(case: Case, worker: LocalWorker, ended: Any, taken: Any) -> None:
    """Either the person's word counts and no release is called, or the release is under way and the person hears no."""
    assert broken([ended, taken]) == []
    assert bool(ended) is (taken is None)
    assert faults() == []
    if taken is not None:
        owing.answer_look(worker, taken)
    assert (factories.row(case.run).status, closes(case)) == ("complete", 1)
    assert owing.released.count(f"{case.operation}/release/window") == (taken is not None)
    assert faults() == []


def test_a_person_ends_what_a_worker_takes(worker: LocalWorker) -> None:
    with racers(2) as (person, other):
        for _ in range(ROUNDS):
            case = owing.releasing(worker)
            ended, taken = together((person, lambda: fulfil(case)), (other, lambda: owing.take_look(worker)))
            judge_taken(case, worker, ended, taken)


def test_a_look_behind_a_persons_word_takes_nothing(worker: LocalWorker) -> None:
    case = owing.releasing(worker)
    met = overtaken(lambda: fulfil(case), lambda: owing.take_look(worker))
    judge_taken(case, worker, met.first, met.second)


def untried(worker: LocalWorker) -> Case:
    """Its release is due for the first time."""
    return owing.releasing(worker)


def lost_before(worker: LocalWorker) -> Case:
    """The answer of its release was lost, and the provider says that it did not happen: it is due again."""
    case = owing.releasing(worker)
    owing.faults.append(ConnectionResetError())
    assert take_and_answer(worker)
    assert take_and_answer(worker)
    return case


def failed_before(worker: LocalWorker) -> Case:
    """Its release has failed for certain, and is due again."""
    case = owing.releasing(worker)
    owing.faults.append(flows.errors.PolicyDenied())
    assert take_and_answer(worker)
    return case


@pytest.mark.parametrize("ready", [untried, lost_before, failed_before])
def test_a_persons_word_behind_a_look_is_refused(worker: LocalWorker, ready: Callable[[LocalWorker], Case]) -> None:
    case = ready(worker)
    met = overtaken(lambda: owing.take_look(worker), lambda: fulfil(case))
    assert met.first is not None
    judge_taken(case, worker, met.second, met.first)


@pytest.mark.parametrize("verdict", ["retry", "give_up", "happened"])
def test_a_person_decides_on_a_failed_release_that_a_worker_takes(worker: LocalWorker, verdict: str) -> None:
    """It failed and is due again; a person gives it up, has it tried or did it by hand in the moment in which a worker takes it."""
    ann = get_user_model().objects.create_superuser("ann")
    with racers(2) as (person, other):
        for _ in range(ROUNDS):
            case = failed_before(worker)
            name = f"{case.operation}/release/window"
            assert owing.operation(name).status == "failed"
            said, taken = together((person, lambda: case.verdict(verdict, ann, name)), (other, lambda: owing.take_look(worker)))
            assert broken([said, taken]) == []
            assert faults() == []
            if taken is not None:
                owing.answer_look(worker, taken)
            assert owing.bring_home(case, worker) == "complete"
            assert faults() == []
            assert not Operation.objects.filter(pk=name, status="failed").exists()
            if verdict == "happened":  # refused where a worker has it; else nobody calls
                assert said in ({"accepted"} if taken is None else {"moved", "not_offered"})
                assert owing.released.count(name) == (taken is not None)
