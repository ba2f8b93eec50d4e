"""Holds when things race, and when a process dies between two commits: held once, lifted once, and no run is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows.core.errors import LostOwnership
from flows.models import Hold, Workflow
from flows.services.proceed import Keeping, Progress
from flows.store import holds as store
from flows.store import sql
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Line, row
from tests.support.races import all_of, overtaken, racers, together
from tests.support.trace import Died

USING = "default"
ROUNDS = 25
WHY = "stop"


def hold() -> Any:
    return flows.hold("flow", "t-line", reason=WHY)


def lift() -> Any:
    return flows.lift("flow", "t-line", reason=WHY)


def held(owned: Any, node: str) -> bool:
    return bool(store.of(owned.row.id, USING, node))


LOOKING = Keeping(lambda queue, placement: True, held=held)


def test_of_two_who_hold_the_same_one_is_told_already(worker: LocalWorker) -> None:
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            answers = [found.answer for found in together((one, hold), (two, hold))]
            assert sorted(answers) == ["accepted", "already"]
            lifted = [found.answer for found in together((one, lift), (two, lift))]
            assert sorted(lifted) == ["accepted", "already"]
    assert Hold.objects.count() == ROUNDS
    assert flows.holds() == []


def test_a_hold_that_is_not_committed_yet_is_waited_for_by_the_second(worker: LocalWorker) -> None:
    met = overtaken(hold, hold)
    assert (met.first.answer, met.second.answer, met.blocked) == ("accepted", "already", True)


def test_a_claim_that_has_not_seen_the_hold_lets_go_at_the_next_step(worker: LocalWorker) -> None:
    """The hold comes while the claim is not committed: nobody waits for anybody, and the run that was taken does one step at most."""
    run = Line.start({})
    met = overtaken(lambda: factories.take_one(worker), hold)
    assert (met.blocked, met.second.answer) == (False, "accepted")
    assert factories.enter(met.first, LOOKING) is Progress.LEFT
    assert (row(run).status, row(run).node) == ("runnable", "one")
    assert factories.take_up_to(worker, 1) == []
    lift()
    worker.run()
    assert row(run).status == "complete"


def test_a_claim_meets_hold_and_lift_and_every_run_ends(worker: LocalWorker) -> None:
    """Three claim while one holds and lifts, again and again: each run is taken once, none is left."""
    team = [factories.another_worker() for _ in range(3)]
    for one in team:
        one.looks_for_holds = True
    Line.start_many([(None, {}) for _ in range(60)])

    def hold_and_lift() -> None:
        for _ in range(ROUNDS):
            hold()
            lift()

    all_of([hold_and_lift, *[lambda one=one: one.run() for one in team]])
    worker.run()
    assert set(Workflow.objects.values_list("status", flat=True)) == {"complete"}


def test_letting_go_meets_a_cancel(worker: LocalWorker) -> None:
    """One wins; the run is cancelled either way, for a held run can be."""
    for number in range(20):
        run = Line.start({}, key=f"k{number}")
        owned = factories.take_one(worker)
        factories.enter(owned)
        hold()
        with racers(2) as (one, two):
            let, cancelled = together(
                (one, lambda owned=owned: factories.complete(owned, keeping=LOOKING)), (two, lambda run=run: flows.cancel(run))
            )
        assert let in (Progress.LEFT, Progress.LOST) or isinstance(let, LostOwnership)
        assert (cancelled.answer, row(run).status) == ("accepted", "cancelled")
        lift()


@pytest.mark.parametrize("arrow", ["hold", "lift", "let go"])
@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_a_process_that_dies_at_a_commit_leaves_the_record_whole(worker: LocalWorker, arrow: str, when: str) -> None:
    run = Line.start({})
    owned = factories.take_one(worker) if arrow == "let go" else None
    if owned is not None:
        factories.enter(owned)
    if arrow != "hold":
        hold()
    acts = {"hold": hold, "lift": lift, "let go": lambda: factories.complete(owned, keeping=LOOKING)}  # type: ignore[arg-type]
    assert _dying(when, "move" if arrow == "let go" else arrow, acts[arrow]), "it came so far"
    done = when == "after"
    if arrow == "let go":
        assert row(run).status == ("runnable" if done else "running")
        assert len(flows.holds()) == 1
        worker.stop()
    else:
        assert (len(flows.holds()) == 1) is (done if arrow == "hold" else not done)
    lift()
    other = factories.another_worker()
    other.tick()  # whoever died told nobody: the clock finds what is ready
    other.run()
    assert row(run).status == "complete"


def _dying(when: str, commit: str, act: Any) -> bool:
    """Ends at the last commit of an act, or after the last statement inside it; whether it came so far."""

    def die(at: str, name: str) -> None:
        if (at, name) == (when, commit):
            raise Died

    sql.seam = die
    try:
        act()
    except Died:
        return True
    finally:
        sql.seam = None
    return False
