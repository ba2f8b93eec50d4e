"""Who meets a run that is just being deleted: nobody is left without an answer, and nothing is deleted that somebody began to need."""

from __future__ import annotations

import pytest
from django.db import OperationalError, transaction

from flows.core.misuse import UnknownIntent, UnknownWorkflow
from flows.core.retention import Retention
from flows.models import Intent, KeptKey, Workflow
from flows.services import control
from flows.services.retention import looking
from flows.services.retention.archiving import Archiving
from flows.testing import LocalWorker
from tests.factories import Line
from tests.support.keeping import COMMITMENT, once, query
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("A4")


def test_a_start_by_the_key_waits_and_is_answered_with_the_deleted_run(worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    worker.run()
    met = overtaken(once, lambda: Line.start({}, key="k"))
    assert met.blocked
    assert (met.first, met.second.id, met.second.created) == (1, run.id, False)
    assert not Workflow.objects.exists()


def test_in_a_transaction_of_the_caller_it_is_a_serialization_failure(worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    worker.run()

    def started() -> object:
        with transaction.atomic():
            return Line.start({}, key="k")

    met = overtaken(once, started)
    assert isinstance(met.second, OperationalError)
    assert "start again" in str(met.second)
    assert started().id == run.id  # type: ignore[attr-defined]


def test_a_deletion_that_is_taken_back_leaves_the_key_with_its_run(worker: LocalWorker) -> None:
    run = Line.start({}, key="k")
    worker.run()

    def taken_back() -> None:
        with transaction.atomic():
            once()
            transaction.set_rollback(True)

    met = overtaken(taken_back, lambda: Line.start({}, key="k"))
    assert (met.second.id, met.second.created) == (run.id, False)
    assert not KeptKey.objects.exists()
    assert Workflow.objects.count() == 1


def test_a_run_that_somebody_holds_is_left_for_the_next_look(worker: LocalWorker) -> None:
    Line.start({})
    worker.run()

    def held() -> None:
        with transaction.atomic():
            query("SELECT FROM outlast_workflow FOR NO KEY UPDATE")

    met = overtaken(held, once)
    assert (met.blocked, met.second) == (False, 0)
    assert once() == 1


def test_what_comes_to_be_needed_before_the_lock_stays(worker: LocalWorker) -> None:
    """The candidate was chosen before: under the lock it is looked at anew."""
    run = Line.start({})
    worker.run()
    rules = Retention(days=1e-9)
    query(COMMITMENT, run.id)
    assert looking._gone([run.id], rules, Archiving(rules, "default"), "default") == 0
    query("DELETE FROM outlast_commitment")
    assert looking._gone([run.id], rules, Archiving(rules, "default"), "default") == 1


def test_a_run_of_the_same_goal_or_its_deletion_wins(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    met = overtaken(once, lambda: Line.start({}, intent=run))
    assert isinstance(met.second, UnknownIntent)
    other = Line.start({})
    worker.run()
    met = overtaken(lambda: Line.start({}, intent=other), once)
    assert Intent.objects.count() == 1
    assert Workflow.objects.filter(intent_id=other.intent_id).exists()


def test_of_two_looks_each_run_is_deleted_by_one(worker: LocalWorker) -> None:
    with racers(2) as threads:
        for _ in range(5):
            for number in range(20):
                Line.start({"n": number})
            worker.run()
            counts = together(*((one, once) for one in threads))
            assert sum(counts) + once() == 20, counts
    assert not Workflow.objects.exists()


def test_who_acts_on_a_deleted_run_is_told_that_it_is_not_there(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    assert once() == 1
    with pytest.raises(UnknownWorkflow):
        control.cancel(run)
