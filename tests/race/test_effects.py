"""The arrows of an effect against everybody else's: whoever is first counts, the other is evidence, and what is owed is exact."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows.core.effects import OperationStatus
from flows.core.errors import LostOwnership
from flows.models import Operation, Resolution
from flows.services import sweeps
from flows.services.proceed import Progress
from flows.store import looks
from flows.store.sql import run as execute
from flows.testing import LocalWorker
from tests import factories
from tests.support import owing
from tests.support.obligations import broken, faults
from tests.support.owing import Case, Charging, outside, statuses
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("A3", "B2", "B5", "D3")

USING = "default"
ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))  # 60 and more when something here is changed


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    owing.forget()
    yield
    owing.forget()


@pytest.fixture
def ann(transactional_db: None) -> Any:
    return get_user_model().objects.create_superuser("ann")


def overdue(case: Case) -> None:
    execute(
        "overdue", "UPDATE outlast_activity SET timeout_at = 'epoch' WHERE workflow_id = %(id)s::uuid", {"id": case.run.id}, USING
    )


#: What somebody else does to a run, what makes ready for it, and how the run then ends when everybody has gone on.
OTHERS: dict[str, tuple[Callable[[Case], Any], Callable[[Case], Any], str]] = {
    "cancel": (lambda case: None, lambda case: flows.cancel(case.run), "cancelled"),
    "supersede": (lambda case: None, lambda case: flows.supersede(case.run, goal="x"), "superseded"),
    "put back": (Case.kill_owner, lambda case: sweeps.put_back([case.run.id], USING), "complete"),
    "time out": (overdue, lambda case: sweeps.time_out(USING), "complete"),
    "pause and resume": (lambda case: None, lambda case: (flows.pause(case.run), flows.resume(case.run)), "complete"),
}

#: What the owner does.
OWNERS: dict[str, tuple[Callable[..., Case], Callable[[Case], Any]]] = {
    "fly": (owing.claimed, Case.fly),
    "done": (owing.flying, Case.done),
    "doubt": (owing.flying, Case.lose_answer),
    "refused": (owing.flying, Case.refused),
}


@dataclass
class Round:
    """One run, raced about, judged at once, and brought to its end."""

    worker: LocalWorker
    owner: str
    other: str

    def __post_init__(self) -> None:
        ready, self.own = OWNERS[self.owner]
        prepare, self.act, self.end = OTHERS[self.other]
        self.holder = factories.another_worker()
        self.case = ready(self.holder, owing.Owing if self.end != "complete" else Charging)
        prepare(self.case)

    def judge(self, outcomes: list[Any]) -> None:
        """A plain `LostOwnership` is how the owner hears of it."""
        assert broken(outcomes) == []
        assert faults() == []
        flown = Operation.objects.filter(workflow_id=self.case.run.id).exists()
        if self.owner == "fly":
            assert flown == (not isinstance(outcomes[0], LostOwnership)), "a call that is not on record, or a record of no call"
        if factories.row(self.case.run).status == "running" and self.owner == "fly":
            assert self.case.done() is Progress.LEFT
        found = owing.bring_home(self.case, self.worker)
        assert found == self.end
        assert faults() == []
        self.holder.stop()
        repeated = {name: count for name, count in Counter(owing.undone + owing.released).items() if count > 1}
        assert not repeated
        last = statuses(self.case.run)
        if self.case.operation in outside and self.end != "complete":
            assert last["book/1"] == "compensated"
            assert last["window"] == "released"
        elif self.end == "complete":
            assert last["book/1"] == "succeeded"


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("owner", OWNERS)
def test_the_owner_against_another_many_times(worker: LocalWorker, owner: str, other: str) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS // 2):
            now = Round(worker, owner, other)
            now.judge(together((one, lambda: now.own(now.case)), (two, lambda: now.act(now.case))))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "other first"])
def test_the_owner_behind_or_before_another(worker: LocalWorker, owner: str, other: str, owner_first: bool) -> None:  # noqa: FBT001
    now = Round(worker, owner, other)
    own, act = lambda: now.own(now.case), lambda: now.act(now.case)
    met = overtaken(own, act) if owner_first else overtaken(act, own)
    now.judge([met.first, met.second] if owner_first else [met.second, met.first])


def test_no_row_no_call_behind_a_cancel(worker: LocalWorker) -> None:
    now = Round(worker, "fly", "cancel")
    met = overtaken(lambda: flows.cancel(now.case.run), now.case.fly)
    assert isinstance(met.second, LostOwnership)
    assert met.blocked
    assert not Operation.objects.exists()


def test_a_cancel_behind_a_flight_finds_the_effect_and_asks_about_it(worker: LocalWorker) -> None:
    now = Round(worker, "fly", "cancel")
    met = overtaken(now.case.fly, lambda: flows.cancel(now.case.run))
    assert met.blocked
    assert (met.second.answer, met.second.status) == ("accepted", "cancelling")
    assert statuses(now.case.run) == {"book/1": "uncertain", "window": "planned"}


# ---------------------------------------------------------------- three answers to one question


VERDICTS = ["happened", "did_not_happen"]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_of_three_answers_one_counts(worker: LocalWorker, ann: Any, verdict: str) -> None:
    """Its late attempt, the probe and a person, all at once: one settles it, the others are kept, and it ends with one result."""
    firsts: Counter[str] = Counter()
    with racers(3) as (attempt, probe, person):
        for _ in range(ROUNDS):
            case = owing.doubtful(worker, Charging)
            taken = owing.take_look(worker)
            assert taken is not None
            outcomes = together(
                (attempt, case.late),
                (probe, lambda: owing.answer_look(worker, taken)),
                (person, lambda: case.verdict(verdict, ann)),
            )
            assert broken(outcomes) == []
            assert faults() == []
            assert not isinstance(outcomes[2], Exception)
            kept = Resolution.objects.filter(operation_id=case.operation)
            counted = kept.get(counted=True)
            assert kept.count() == 1 + owing.asked.count(case.operation) + (outcomes[2] == "accepted")
            assert outcomes[0] is (counted.source == "attempt")
            firsts[counted.source] += 1
            assert owing.bring_home(case, worker) == "complete"
            assert faults() == []
    assert sum(firsts.values()) == ROUNDS


@pytest.mark.parametrize("first", ["late", "probe", "person"])
@pytest.mark.parametrize("second", ["late", "probe", "person"])
def test_the_second_answer_is_evidence(worker: LocalWorker, ann: Any, first: str, second: str) -> None:
    case = owing.doubtful(worker, Charging)
    taken = owing.take_look(worker)
    assert taken is not None
    give = {
        "late": case.late,
        "probe": lambda: owing.answer_look(worker, taken),
        "person": lambda: case.verdict("did_not_happen", ann),
    }
    met = overtaken(give[first], give[second])
    assert broken([met.first, met.second]) == []
    assert met.blocked
    assert faults() == []
    assert Resolution.objects.filter(counted=True).count() == 1
    assert Resolution.objects.get(counted=True).source == {"late": "attempt"}.get(first, first)
    assert owing.bring_home(case, worker) == "complete"


# ---------------------------------------------------------------- looks


@pytest.mark.parametrize("what", ["doubtful", "undoing", "releasing"])
def test_of_two_servicing_turns_one_takes_it(worker: LocalWorker, what: str) -> None:
    other = factories.another_worker()
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            case = getattr(owing, what)(worker)
            outcomes = together((one, lambda: owing.service(worker)), (two, lambda: owing.service(other)))
            assert broken(outcomes) == []
            assert faults() == []
            owing.bring_home(case, worker)
    assert faults() == []
    assert set(Counter(owing.undone).values()) <= {1}
    assert set(Counter(owing.released).values()) == {1}


@pytest.mark.parametrize("what", ["doubtful", "undoing", "releasing"])
def test_a_look_whose_owner_is_taken_for_dead(worker: LocalWorker, what: str) -> None:
    """It answers while its look is put back: the number of the look lets one of the two through, and nothing is done twice."""
    with racers(2) as (looker, sweep):
        for _ in range(ROUNDS):
            case = getattr(owing, what)(worker)
            frozen = factories.another_worker()
            taken = owing.take_look(frozen)
            assert taken is not None
            execute(
                "dead", "UPDATE outlast_worker SET status = 'dead' WHERE id = %(id)s::uuid", {"id": frozen.incarnation}, USING
            )
            outcomes = together((looker, lambda: owing.answer_look(frozen, taken)), (sweep, lambda: looks.put_back(0.0, USING)))
            assert broken(outcomes) == []
            assert faults() == []
            owing.bring_home(case, worker)
    assert faults() == []
    assert set(Counter(owing.undone + owing.released).values()) == {1}


def retried(worker: LocalWorker) -> tuple[Case, int]:
    """It did not happen, says the second looker, and the next attempt is at it; the first looker, frozen, has the same answer yet to give."""
    case = owing.doubtful(worker, Charging, happened=False)
    frozen = factories.another_worker()
    taken = owing.take_look(frozen)
    assert taken is not None
    frozen.stop()
    assert looks.put_back(0.0, USING) == [case.operation]
    assert owing.service(worker) == 1
    owned = factories.take_one(worker)
    assert factories.enter(owned) is Progress.RUN
    return Case(worker, case.run, owned), taken[1]


def stale_answer(case: Case, number: int) -> bool:
    return owing.settle(case.operation, case.run, OperationStatus.PLANNED, source="probe", look=number)


def test_a_stale_answer_does_not_undo_the_next_flight(worker: LocalWorker) -> None:
    with racers(2) as (owner, frozen):
        for _ in range(ROUNDS):
            case, number = retried(worker)
            outcomes = together((owner, case.fly), (frozen, lambda: stale_answer(case, number)))
            assert broken(outcomes) == []
            assert outcomes[1] is False
            assert (owing.operation(case.operation).status, factories.row(case.run).owed) == ("in_flight", 1)
            assert faults() == []
            assert case.done() is Progress.LEFT
            assert factories.row(case.run).status == "complete"
    assert faults() == []


def test_a_refusal_of_the_first_attempt_does_not_end_the_second(worker: LocalWorker) -> None:
    """The old attempt hears late that its request was refused; the new one has asked again meanwhile."""
    with racers(2) as (owner, old):
        for _ in range(ROUNDS):
            case, _ = retried(worker)

            def late_refusal(case: Case = case) -> bool:
                return owing.settle(case.operation, case.run, OperationStatus.FAILED, source="attempt", late=1)

            outcomes = together((owner, case.fly), (old, late_refusal))
            assert broken(outcomes) == []
            assert outcomes[1] is False
            assert owing.operation(case.operation).status == "in_flight"
            assert case.done() is Progress.LEFT
            assert factories.row(case.run).status == "complete"
    assert faults() == []


# ---------------------------------------------------------------- pause and resume


LOST_RESUME = (
    "a pause asked in doubt stays asked when the doubt is over, and a resume answers already: the run is paused at its next claim"
)


def doubt_ends(worker: LocalWorker, case: Case) -> None:
    """The probe answers."""
    assert owing.service(worker) == 1
    assert not Operation.objects.filter(pk=case.operation, status="uncertain").exists()


def test_a_pause_in_doubt_and_a_resume_after_it(worker: LocalWorker) -> None:
    case = owing.doubtful(worker, Charging)
    assert flows.pause(case.run).answer == "accepted"
    doubt_ends(worker, case)
    flows.resume(case.run)
    worker.run()
    assert factories.row(case.run).status == "complete"


def test_two_pauses_around_the_end_of_a_doubt_need_one_resume(worker: LocalWorker) -> None:
    case = owing.doubtful(worker, Charging)
    flows.pause(case.run)
    doubt_ends(worker, case)
    flows.pause(case.run)
    assert flows.resume(case.run).answer == "accepted"
    worker.run()
    assert factories.row(case.run).status == "complete"


def test_a_resume_against_the_end_of_a_doubt_is_not_lost(worker: LocalWorker) -> None:
    """Paused in doubt; resumed while the probe answers: the last word was resume, so it goes on by itself."""
    with racers(2) as (person, probe):
        for _ in range(ROUNDS):
            case = owing.doubtful(worker, Charging)
            taken = owing.take_look(worker)
            assert taken is not None
            flows.pause(case.run)
            outcomes = together(
                (person, lambda: flows.resume(case.run).answer), (probe, lambda: owing.answer_look(worker, taken))
            )
            assert broken(outcomes) == []
            worker.run()
            assert factories.row(case.run).status == "complete", outcomes[0]
            assert faults() == []


def test_a_pause_against_the_end_of_a_doubt_holds(worker: LocalWorker) -> None:
    """Whichever comes first, nothing runs before somebody resumes it."""
    with racers(2) as (person, probe):
        for _ in range(ROUNDS):
            case = owing.doubtful(worker, Charging)
            taken = owing.take_look(worker)
            assert taken is not None
            outcomes = together((person, lambda: flows.pause(case.run).answer), (probe, lambda: owing.answer_look(worker, taken)))
            assert broken(outcomes) == []
            assert outcomes[0] == "accepted"
            worker.run()
            assert factories.row(case.run).status == "paused"
            flows.resume(case.run)
            worker.run()
            assert factories.row(case.run).status == "complete"
            assert faults() == []


def test_resume_does_not_pass_a_doubt(worker: LocalWorker, ann: Any) -> None:
    """A person resumes while another settles what only a person can: one attempt follows, never two."""
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            case = owing.doubtful(worker, Charging)
            Operation.objects.filter(pk=case.operation).update(due_at=None)
            execute_ask_person(case)
            outcomes = together((one, lambda: flows.resume(case.run)), (two, lambda: case.verdict("happened", ann)))
            assert broken(outcomes) == []
            assert outcomes[1] == "accepted"
            assert faults() == []
            worker.run()
            assert factories.row(case.run).status == "complete"
    assert Operation.objects.filter(attempt__gt=1).count() == 0


def execute_ask_person(case: Case) -> None:
    from flows.store import obligations

    assert obligations.ask_person(case.run.id, "NOT_RECONCILABLE", case.operation, USING)


@pytest.mark.parametrize("other", ["ask_again", "happened", "did_not_happen"])
def test_two_people_at_once_about_one_that_nobody_asks_about_any_more(worker: LocalWorker, ann: Any, other: str) -> None:
    """One has the provider asked again; the other likewise, or knows already. Whatever the order, the provider is asked at most once more."""
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            case = owing.doubtful(worker)
            Operation.objects.filter(pk=case.operation).update(due_at=None)
            execute_ask_person(case)
            owing.asked.clear()
            said = together((one, lambda: case.verdict("ask_again", ann)), (two, lambda: case.verdict(other, ann)))
            assert broken(said) == []
            assert "accepted" in said
            assert set(said) <= {"accepted", "moved", "not_offered", "asked_anyway"}
            assert other != "ask_again" or said.count("accepted") == 1
            assert faults() == []
            owing.bring_home(case, worker)
            assert faults() == []
            assert owing.asked.count(case.operation) <= 1
