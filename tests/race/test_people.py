"""Two people before the same page: of two decisions about one state, one counts, and the other is told so."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Competence, Deadline, Decision, End, Flow, Gate, Wait, policies
from flows.models import CompetenceOpening, Transition
from flows.services import control
from flows.services.competence import open_again
from flows.services.control import Answer
from flows.store import gate
from flows.testing import LocalWorker
from tests import factories
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("H1", "A3")

ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))


class Watched(Flow):
    """Waits under a policy."""

    class Meta:
        name = "t-watched"
        policy = "t-watched"

    hear = Wait("t.watched", key=lambda state: state.key, deadline=Deadline(hours=1, then=ESCALATE), then="act")
    act = Activity(factories.work, then="done")
    done = End(COMPLETE)


class Enveloped(Flow):
    """Asks for an envelope before anything else."""

    class Meta:
        name = "t-enveloped"

    act = Activity(factories.work, gate=Gate(competence=Competence("propose", errors=0)), then="done")
    propose = Decision(factories.work, choices={"go": "act"})
    done = End(COMPLETE)


#: What people do about a state that they have seen.
VERBS: dict[str, Callable[[Any, str], Any]] = {
    "resume": lambda run, seen: flows.resume(run, seen=seen),
    "pause": lambda run, seen: flows.pause(run, seen=seen),
    "cancel": lambda run, seen: flows.cancel(run, seen=seen),
    "adopt": lambda run, seen: policies.adopt(run, reason="read", seen=seen),
}


def stopped(worker: LocalWorker, key: str) -> tuple[Any, str]:
    """A run that the newest version of its policy has stopped, and what a page shows of it."""
    policies.publish("t-watched", {"n": 0})
    run = Watched.start({}, key=key)
    worker.run()
    policies.publish("t-watched", {"n": key})
    flows.signal(f"{key}/e", "t.watched", key=key)
    worker.run()
    assert factories.row(run).outcome == "POLICY_BLOCKED"
    return run, control.seen_of(factories.row(run))


@pytest.mark.parametrize("one", VERBS)
@pytest.mark.parametrize("other", VERBS)
def test_of_two_who_saw_the_same_one_counts(worker: LocalWorker, one: str, other: str) -> None:
    with racers(2) as (first, second):
        for number in range(max(2, ROUNDS // 8)):
            run, seen = stopped(worker, f"{one}-{other}-{number}")
            before = factories.row(run).version
            met = together((first, lambda r=run, s=seen: VERBS[one](r, s)), (second, lambda r=run, s=seen: VERBS[other](r, s)))
            answers = [found.answer for found in met]
            assert answers.count(Answer.ACCEPTED) == 1, answers
            assert set(answers) <= {Answer.ACCEPTED, Answer.ALREADY, Answer.MOVED, Answer.TOO_LATE}
            people = Transition.objects.filter(
                workflow_id=run.id, seq__gt=before, trigger__in=["resume", "pause", "cancel", "policy"]
            )
            assert len({entry.trigger for entry in people} - {"resume"}) <= 1, "nobody else's decision is in the log"
            flows.cancel(run)
            worker.run()


@pytest.mark.parametrize("late", VERBS)
def test_who_waits_behind_an_adoption_loses(worker: LocalWorker, late: str) -> None:
    run, seen = stopped(worker, late)
    met = overtaken(lambda: VERBS["adopt"](run, seen), lambda: VERBS[late](run, seen))
    assert met.first.answer is Answer.ACCEPTED
    assert met.second.answer in (Answer.MOVED, Answer.ALREADY)
    worker.run()
    assert factories.row(run).status == "complete"


def test_an_envelope_that_two_open_at_once_lets_each_run_go_on_once(worker: LocalWorker) -> None:
    with racers(2) as (first, second):
        for number in range(ROUNDS // 2):
            gate.burn("t-enveloped", "propose", "", 0, "default")
            runs = [Enveloped.start({}) for _ in range(3)]
            worker.run()
            assert {factories.row(run).error_code for run in runs} == {"COMPETENCE_EXCEEDED"}
            act = lambda: open_again("t-enveloped", "propose", reason="mended", resume=True)  # noqa: E731
            met = together((first, act), (second, act))
            assert sorted(map(bool, met)) == [False, True]
            resumed = sorted(run for found in met for run in found.resumed)
            assert resumed == sorted(run.id for run in runs), "each by one of them"
            assert CompetenceOpening.objects.count() == number + 1
            worker.run()
            assert {factories.row(run).status for run in runs} == {"complete"}
