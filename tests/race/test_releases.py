"""Releases when things race: a person's move against claim, signal, cancel and another move; another one becomes current while runs wake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import flows
from flows import MIGRATE, Flow, releases
from flows.core.protocol import Status
from flows.models import Transition
from flows.services import control
from flows.services.proceed import Progress
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, another_worker, row
from tests.support.races import all_of, overtaken, racers, together
from tests.support.releasing import answer, begin, both, flow_of, is_at, now_is, pins, register

pytestmark = pytest.mark.req("I1", "A3")

ROUNDS = 60


def move(run: Any, to: str = "R18") -> releases.Moved:
    return releases.move(run, to=to, by=None, reason="a race")


# ------------------------------------------------------------------ move against the others


def test_a_move_behind_a_claim_is_told_that_it_is_busy(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    met = overtaken(lambda: factories.take_one(worker), lambda: move(run))
    assert (met.second.code, met.blocked) == ("busy", True)
    assert (row(run).release, pins(run)) == ("R17", [])
    factories.lose(worker)


def test_a_claim_behind_a_move_passes_it_by(worker: LocalWorker) -> None:
    """SKIP LOCKED: the row is taken by the next claim, under its new release."""
    both()
    run = Line.start({})
    met = overtaken(lambda: move(run), lambda: factories.take_up_to(worker, 1))
    assert (met.first.code, met.second, met.blocked) == ("moved", [], False)
    owned = factories.take_one(worker)
    assert owned.row.release == "R18"
    factories.lose(worker)


def test_a_worker_of_the_old_release_never_gets_what_was_moved(worker: LocalWorker) -> None:
    both()
    worker.stop()
    seen: Counter[str] = Counter()
    with racers(2) as (person, other):
        for _ in range(ROUNDS):
            old = another_worker(releases=["R17"])
            run = Line.start({})
            moved, taken = together((person, lambda: move(run)), (other, lambda: factories.take_up_to(old, 1)))
            assert not isinstance(moved, Exception)
            assert not isinstance(taken, Exception)
            assert (moved.code, [one.row.release for one in taken]) in (("moved", []), ("busy", ["R17"]))
            seen[moved.code] += 1
            flows.cancel(run)
            old.stop()
    assert set(seen) <= {"moved", "busy"}


@pytest.mark.parametrize("first", ["move", "signal"])
def test_a_move_and_an_event_are_both_kept(worker: LocalWorker, first: str) -> None:
    both()
    run = Ask.start({"key": "x"})
    worker.run()
    acts: dict[str, Callable[[], Any]] = {"move": lambda: move(run), "signal": lambda: flows.signal("e1", "t.asked", key="x")}
    second = "signal" if first == "move" else "move"
    met = overtaken(acts[first], acts[second])
    assert met.blocked
    assert (row(run).status, row(run).release) == ("runnable", "R18")
    worker.run()
    assert row(run).node == "again"


@pytest.mark.parametrize("first", ["move", "cancel", "pause", "supersede"])
def test_a_move_and_another_word_of_a_person(worker: LocalWorker, first: str) -> None:
    both()
    run = Ask.start({"key": "x"})
    worker.run()
    words: dict[str, Callable[[], Any]] = {
        "cancel": lambda: flows.cancel(run), "pause": lambda: flows.pause(run), "supersede": lambda: flows.supersede(run, goal="y"),
    }  # fmt: skip
    if first == "move":
        met = overtaken(lambda: move(run), words["cancel"])
        assert (met.first.code, met.second.answer, row(run).status, row(run).release) == ("moved", "accepted", "cancelled", "R18")
    else:
        met = overtaken(words[first], lambda: move(run))
        assert met.second.code == ("moved" if first == "pause" else "too_late")
        assert row(run).release == ("R18" if first == "pause" else "R17")
    assert met.blocked


def test_of_two_moves_the_second_is_told_what_it_found(worker: LocalWorker) -> None:
    both()
    run = Line.start({})
    met = overtaken(lambda: move(run), lambda: move(run))
    assert (met.first.code, met.second.code, met.blocked) == ("moved", "already", True)
    assert len(pins(run)) == 1
    others = all_of([lambda: releases.move(run, to="R17", by=None, reason="x", source="R18")] * 4)
    assert sorted(one.code for one in others) == ["elsewhere", "elsewhere", "elsewhere", "moved"]


# ------------------------------------------------------------------ make_current against runs that wake


def test_once_another_one_is_current_no_run_is_pinned_to_the_one_before(
    worker: LocalWorker, declare: Callable[..., type[Flow]]
) -> None:
    """The run decided on R18 and is about to be pinned to it; R19 becomes current first: it decides anew."""
    both(compatible=True)
    register("R19", ["R17"])
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    owned = factories.take_one(worker)
    met = overtaken(lambda: now_is("R19"), lambda: factories.enter(owned))
    assert (met.second, met.blocked) == (Progress.LEFT, True)
    assert (is_at(run), pins(run)) == (("waiting", "nap", "R19", None), [("running", "R17", "R19")])


def test_becoming_current_waits_for_a_run_that_is_being_pinned(worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    both(compatible=True)
    register("R19", ["R17", "R18"])
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    owned = factories.take_one(worker)
    met = overtaken(lambda: factories.enter(owned), lambda: now_is("R19"))
    assert met.blocked
    assert row(run).release == "R18"


def test_a_cancel_first_leaves_nothing_to_pin(worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    owned = factories.take_one(worker)
    met = overtaken(lambda: flows.cancel(run), lambda: factories.enter(owned))
    assert (met.second, met.blocked) == (Progress.LOST, True)
    assert (row(run).status, row(run).release, pins(run)) == ("cancelled", "R17", [])
    assert (owned.row.release, owned.facts.release and owned.facts.release.pins) == ("R17", "R18"), (
        "nothing is believed that was rolled back"
    )


def test_what_arrives_meanwhile_is_decided_on_in_the_same_turn(worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    """A pause that was asked for between the decision and its commit: decided again, pinned once."""
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    owned = factories.take_one(worker)
    met = overtaken(lambda: control.pause(run), lambda: factories.enter(owned))
    assert (met.second, met.blocked) == (Progress.LEFT, True)
    assert (is_at(run), pins(run)) == (("paused", "nap", "R18", None), [("running", "R17", "R18")])


def test_everything_at_once(worker: LocalWorker, declare: Callable[..., type[Flow]]) -> None:
    """Workers, persons and deployments at the same time: each run ends, each pin is in its log, and the log says what the row says."""
    both(compatible=True)
    register("R19", ["R17", "R18"])
    flow = flow_of(declare, MIGRATE)
    runs = [flow.start({"key": f"k{number}"}) for number in range(12)]
    worker.run()
    others = [another_worker() for _ in range(4)]
    for other in (worker, *others):
        factories.offer(other)

    def deploy() -> None:
        for name in ("R18", "R17", "R19") * 3:
            now_is(name)

    def wake() -> None:
        for run in runs:
            answer(run)

    def person() -> list[str]:
        return [str(move(run, name).code) for name in ("R18", "R19") for run in runs]

    outcomes = all_of([deploy, wake, person, *(other.run for other in others)])
    assert not [one for one in outcomes if isinstance(one, Exception)], outcomes
    worker.run()
    for run in runs:
        found = row(run)
        assert (found.status, found.node) in {("waiting", "nap"), ("waiting", "ask")}, found
        last = Transition.objects.filter(workflow_id=run.id, trigger="pin").order_by("-seq").first()
        assert found.release == (last.note["release"]["to"] if last else "R17")
        chain = [(start, end) for _status, start, end in pins(run)]
        assert all(before[1] == after[0] for before, after in pairwise(chain)), chain
        assert Status(found.status) is Status.WAITING
