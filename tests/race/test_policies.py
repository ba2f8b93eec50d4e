"""A policy published and adopted while others move the run; what a person says of an envelope while runs burn it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Flow, Wait, policies
from flows.models import Competence, Policy, Transition
from flows.services.competence import open_again
from flows.services.control import Answer
from flows.services.proceed import Progress
from flows.store import gate, sql
from flows.testing import LocalWorker
from tests import factories
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("H1", "A3")

ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))
USING = "default"


class Bound(Flow):
    """Waits under a policy."""

    class Meta:
        name = "t-bound-to"
        policy = "t-raced"

    hear = Wait("t.raced", key=lambda state: state.key, deadline=Deadline(hours=1, then=ESCALATE), then="act")
    act = Activity(factories.work, then="done")
    done = End(COMPLETE)


def stopped(worker: LocalWorker, key: str) -> Any:
    """A run that the newest version has stopped, with the event that woke it."""
    policies.publish("t-raced", {"n": 0})
    run = Bound.start({}, key=key)
    worker.run()
    policies.publish("t-raced", {"n": key})
    flows.signal(f"{key}/e", "t.raced", key=key, payload={})
    worker.run()
    assert factories.row(run).outcome == "POLICY_BLOCKED"
    return run


#: What somebody else does meanwhile, and the ends that may follow.
OTHERS: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "cancel": (lambda run: flows.cancel(run), {"cancelled"}),
    "supersede": (lambda run: flows.supersede(run, goal="x"), {"superseded"}),
    "resume": (lambda run: flows.resume(run), {"complete"}),
    "pause": (lambda run: flows.pause(run), {"complete"}),
    "adopt": (lambda run: policies.adopt(run, reason="me too"), {"complete"}),
}


def judge(run: Any, worker: LocalWorker, outcomes: list[Any], ends: set[str]) -> None:
    """Adopted at most once, and the run comes to its end, with its event."""
    assert not [one for one in outcomes if isinstance(one, Exception)], outcomes
    assert Transition.objects.filter(workflow_id=run.id, trigger="policy").count() <= 1
    worker.run()
    if factories.row(run).status in ("waiting", "paused"):
        policies.adopt(run, reason="again")
        flows.resume(run)
        worker.run()
    assert factories.row(run).status in ends


@pytest.mark.parametrize("other", OTHERS)
def test_adopted_while_somebody_else_moves_it(worker: LocalWorker, other: str) -> None:
    theirs, ends = OTHERS[other]
    with racers(2) as (one, two):
        for number in range(ROUNDS // 4):
            run = stopped(worker, f"{other}-{number}")
            adopting = (one, lambda r=run: policies.adopt(r, reason="read"))
            judge(run, worker, together(adopting, (two, lambda r=run: theirs(r))), ends)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("first", [True, False], ids=["adopt first", "other first"])
def test_one_behind_the_other(worker: LocalWorker, other: str, *, first: bool) -> None:
    theirs, ends = OTHERS[other]
    run = stopped(worker, other)
    adopt = lambda: policies.adopt(run, reason="read")  # noqa: E731
    met = overtaken(adopt, lambda: theirs(run)) if first else overtaken(lambda: theirs(run), adopt)
    judge(run, worker, [met.first, met.second], ends)


def test_a_run_that_is_computing_is_left_alone(worker: LocalWorker) -> None:
    """Its owner would lose it; its next wake-up is stopped, and then it can be adopted."""
    policies.publish("t-raced", {"n": 0})
    run = Bound.start({}, key="owned")
    worker.run()
    flows.signal("owned/e", "t.raced", key="owned", payload={})
    owned = factories.take_one(worker)
    policies.publish("t-raced", {"n": 1})
    assert policies.adopt(run, reason="read").answer is Answer.TOO_LATE
    assert factories.enter(owned) is Progress.RUN
    assert factories.complete(owned) is Progress.LEFT
    assert (factories.row(run).status, factories.row(run).policy_version) == ("complete", "t-raced@1")


def test_two_publishers_make_two_versions_in_order(transactional_db: None) -> None:
    with racers(2) as (one, two):
        for number in range(ROUNDS):
            made = together(
                (one, lambda n=number: policies.publish("t-raced", {"one": n})),
                (two, lambda n=number: policies.publish("t-raced", {"two": n})),
            )
            assert sorted(found.version for found in made) == [2 * number + 1, 2 * number + 2]
    assert Policy.objects.count() == 2 * ROUNDS


def test_every_failure_is_counted_and_an_envelope_is_opened_once(transactional_db: None) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            together(*((racer, lambda: gate.burn("t-raced", "propose", "", 1, USING)) for racer in (one, two)))
            row = Competence.objects.get()
            assert (row.burned, row.closed_at is not None) == (2, True)
            opened = together(*((racer, lambda: open_again("t-raced", "propose", reason="x")) for racer in (one, two)))
            assert sorted(map(bool, opened)) == [False, True]


def test_an_adoption_is_whole_or_not_at_all(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost at each point of it in turn: told again, it ends as if told once."""
    points: list[tuple[str, str]] = []
    monkeypatch.setattr(sql, "seam", lambda when, name: points.append((when, name)))
    assert policies.adopt(stopped_quietly(worker, "counted", monkeypatch), reason="read").answer is Answer.ACCEPTED
    monkeypatch.setattr(sql, "seam", None)
    mine = [point for point in points if point[1] in ("lock workflows", "adopt policy", "resume")]
    assert ("within", "adopt policy") in mine and ("within", "resume") in mine and ("after", "adopt policy") in mine
    for number, fatal in enumerate(dict.fromkeys(mine)):
        run = stopped(worker, f"cut-{number}")

        def cut(when: str, name: str, fatal: tuple[str, str] = fatal) -> None:
            if (when, name) == fatal:
                raise ConnectionResetError

        monkeypatch.setattr(sql, "seam", cut)
        with pytest.raises(ConnectionResetError):
            policies.adopt(run, reason="read")
        monkeypatch.setattr(sql, "seam", None)
        adopted = Transition.objects.filter(workflow_id=run.id, trigger="policy").exists()
        assert adopted == (fatal == ("after", "adopt policy"))
        assert (factories.row(run).outcome == "POLICY_BLOCKED") == (not adopted)
        policies.adopt(run, reason="read")
        worker.run()
        assert factories.row(run).status == "complete"


def stopped_quietly(worker: LocalWorker, key: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, without its points being counted."""
    counting, found = sql.seam, None
    monkeypatch.setattr(sql, "seam", None)
    found = stopped(worker, key)
    monkeypatch.setattr(sql, "seam", counting)
    return found
