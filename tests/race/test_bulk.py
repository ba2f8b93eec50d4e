"""Bulk operations when things race, and when a process dies between two commits: each run is done once, and none after the stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import bulk
from flows.models import BulkItem, Transition, Workflow
from flows.services import bulk as service
from flows.store import sql
from flows.testing import LocalWorker
from tests.factories import Line, row
from tests.support.races import all_of, overtaken
from tests.support.trace import Died

USING = "default"
WHY = "over"


def test_many_looks_at_once_do_each_run_once(worker: LocalWorker) -> None:
    Line.start_many([(None, {}) for _ in range(40)])
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    counts = all_of([lambda: service.carry_out(USING)] * 3)
    while bulk.show(made.id).status == "running":
        counts.append(service.carry_out(USING))
    assert sum(counts) == 40
    assert bulk.show(made.id).counts == {"accepted": 40}
    tries = Counter(Transition.objects.filter(trigger="cancel", to_status="cancelled").values_list("workflow_id", flat=True))
    assert set(tries.values()) <= {1}


def test_a_stop_waits_for_the_item_that_is_being_done_and_no_other_follows(worker: LocalWorker) -> None:
    Line.start_many([(None, {}) for _ in range(5)])
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    met = overtaken(lambda: service.carry_out(USING, 1), lambda: bulk.stop(made.id, reason="no"))
    assert (met.first, met.second, met.blocked) == (1, True, True)
    assert service.carry_out(USING) == 0
    assert (bulk.show(made.id).counts, bulk.show(made.id).left) == ({"accepted": 1}, 4)


def test_an_item_that_comes_while_somebody_stops_is_not_done(worker: LocalWorker) -> None:
    Line.start_many([(None, {}) for _ in range(2)])
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    met = overtaken(lambda: bulk.stop(made.id, reason="no"), lambda: service.carry_out(USING))
    assert (met.first, met.second) == (True, 0)
    assert set(Workflow.objects.values_list("status", flat=True)) == {"runnable"}


def test_who_holds_a_run_for_long_holds_up_no_bulk(worker: LocalWorker) -> None:
    """It is worked off by the clock, which waits for nobody: that run is done by the next look."""
    held, other = Line.start({}), Line.start({})
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    met = overtaken(lambda: flows.pause(held), lambda: service.carry_out(USING))
    assert (bool(met.first), met.second, met.blocked) == (True, 1, False)
    assert (row(other).status, row(held).status) == ("cancelled", "paused")
    assert service.carry_out(USING) == 1
    assert (bulk.show(made.id).counts, row(held).status) == ({"accepted": 2}, "cancelled")


def test_one_stop_of_two_counts(worker: LocalWorker) -> None:
    Line.start({})
    made = bulk.make("cancel", flow="t-line", reason=WHY)
    assert sorted(all_of([lambda: bulk.stop(made.id, reason="no")] * 2)) == [False, True]


def test_a_bulk_meets_the_worker_and_another_cancel(worker: LocalWorker) -> None:
    """Each run is cancelled once, or has ended; the bulk says which."""
    runs = Line.start_many([(None, {}) for _ in range(12)])
    made = bulk.make("cancel", flow="t-line", reason=WHY)

    def others() -> None:
        for run in runs:
            flows.cancel(run)

    all_of([lambda: service.carry_out(USING), others, worker.run])
    worker.tick()
    shown = bulk.show(made.id)
    assert (shown.status, sum(shown.counts.values())) == ("done", 12)
    assert set(shown.counts) <= {"accepted", "already", "too_late"}
    assert set(Workflow.objects.values_list("status", flat=True)) <= {"cancelled", "complete"}


ACTS: dict[str, Callable[[int], Any]] = {
    "make bulk": lambda number: bulk.make("cancel", flow="t-line", reason=WHY),
    "bulk": lambda number: service.carry_out(USING),
    "end bulk": lambda number: service.carry_out(USING),
    "stop bulk": lambda number: bulk.stop(number, reason="no"),
}


@pytest.mark.parametrize("arrow", list(ACTS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_a_commit_leaves_the_rest_to_the_next_look(worker: LocalWorker, arrow: str, when: str) -> None:
    runs = Line.start_many([(None, {}) for _ in range(2)])
    number = 0 if arrow == "make bulk" else bulk.make("cancel", flow="t-line", reason=WHY).id

    def die(at: str, name: str) -> None:
        if (at, name) == (when, arrow):
            raise Died

    sql.seam = die
    try:
        with pytest.raises(Died):
            ACTS[arrow](number)
    finally:
        sql.seam = None
    done = when == "after"
    if arrow == "make bulk":
        assert BulkItem.objects.count() == (2 if done else 0)
    if arrow == "stop bulk":
        assert bulk.show(number).status == ("stopped" if done else "running")
    if arrow == "bulk":
        assert bulk.show(number).left == (1 if done else 2)
        assert [row(run).status for run in runs].count("cancelled") == (1 if done else 0)
    worker.tick()  # what was committed goes on
    statuses = {row(run).status for run in runs}
    nothing = (arrow == "make bulk" and not done) or (arrow == "stop bulk" and done)
    assert statuses == ({"runnable"} if nothing else {"cancelled"})
    for item in BulkItem.objects.exclude(done_at=None):
        assert item.code == "accepted"
