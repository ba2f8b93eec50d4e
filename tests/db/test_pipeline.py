"""Pipelines: each step's result is persisted, code enforces the order, the first failure stops it, and it goes on at that step."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, End, Pipeline, Step
from flows.errors import CompetenceFailure, VerificationFailed
from flows.models import Activity as ActivityRow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Pipe, calls, does, failing, row, status


def steps(run: Any) -> list[tuple[str, int, str]]:
    return list(ActivityRow.objects.filter(workflow_id=run.id).order_by("seq").values_list("step", "visit", "status"))


def test_each_step_reads_the_results_before_it(worker: LocalWorker) -> None:
    seen: list[Any] = []
    does["line.a"] = lambda attempt: seen.append(dict(attempt.results)) or 1
    does["line.b"] = lambda attempt: seen.append(dict(attempt.results)) or 2
    does["line.c"] = lambda attempt: seen.append(dict(attempt.results)) or 3
    run = Pipe.start({})
    worker.run()
    assert seen == [{}, {"line": {"a": 1}}, {"line": {"a": 1, "b": 2}}]
    assert row(run).result == {"a": 1, "b": 2, "c": 3}
    assert steps(run) == [("a", 1, "done"), ("b", 1, "done"), ("c", 1, "done")]


def test_every_step_has_an_operation_of_its_own(worker: LocalWorker) -> None:
    operations = []
    for name in "abc":
        does[f"line.{name}"] = lambda attempt: operations.append(attempt.operation_id)
    run = Pipe.start({})
    worker.run()
    assert operations == [f"{run.id}/line.{name}/1" for name in "abc"]


def test_one_turn_a_step(worker: LocalWorker) -> None:
    run = Pipe.start({})
    for name in "abc":
        owned = factories.take_one(worker)
        assert owned.state.activity is not None
        assert owned.state.activity.step == name
        factories.enter(owned)
        factories.complete(owned, name.upper(), factories.LET_GO)
    assert row(run).result == {"a": "A", "b": "B", "c": "C"}


def test_a_failing_step_stops_the_pipeline_and_a_resume_goes_on_at_it(worker: LocalWorker, clock: Clock) -> None:
    does["line.b"] = failing(1, CompetenceFailure)
    run = Pipe.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "line")
    assert steps(run) == [("a", 1, "done"), ("b", 1, "scheduled")]
    worker.stop()
    other = factories.another_worker()
    flows.resume(run)
    other.run()
    assert status(run)[0] == "complete"
    assert calls == [("line.a", 1, 1), ("line.b", 1, 1), ("line.b", 1, 2), ("line.c", 1, 1)]
    assert row(run).result["a"] == {"by": "line.a", "visit": 1, "number": 1}


def test_a_step_is_retried_alone(worker: LocalWorker, clock: Clock) -> None:
    does["line.c"] = failing(2)
    run = Pipe.start({})
    factories.drive(worker, clock)
    assert status(run)[0] == "complete"
    assert [call[0] for call in calls] == ["line.a", "line.b", "line.c", "line.c", "line.c"]


def test_a_worker_that_dies_in_a_step_loses_that_step_only(worker: LocalWorker) -> None:
    run = Pipe.start({})
    owned = factories.take_one(worker)
    factories.enter(owned)
    factories.complete(owned, 1)
    factories.lose(worker)
    other = factories.another_worker()
    other.run()
    assert [call[0] for call in calls] == ["line.b", "line.c"]
    assert row(run).result["a"] == 1


@pytest.mark.parametrize("workers", [1, 9], ids=["one turn", "a worker a step"])
def test_a_second_visit_begins_anew(worker: LocalWorker, declare: Any, workers: int) -> None:
    flow = declare(
        "t-again",
        line=Pipeline(Step("a", factories.work), Step("b", factories.work), on={VerificationFailed: "mend"}, then="check"),
        check=Activity(factories.work, on={VerificationFailed: "mend"}, then="done"),
        mend=Activity(factories.work, visits=flows.Visits(5, then="done"), then="line"),
        done=End(COMPLETE, result=lambda state: dict(state.results["line"])),
    )
    seen = []
    does["line.b"] = lambda attempt: seen.append(dict(attempt.results["line"])) or f"b{attempt.visit}"
    does["line.a"] = lambda attempt: f"a{attempt.visit}"
    does["check"] = failing(1, VerificationFailed)
    run = flow.start({})
    if workers == 1:
        worker.run()
    else:
        for _ in range(workers):
            if row(run).status != "complete":
                owned = factories.take_one(worker)
                factories.run_alone(owned, worker)
    assert status(run)[0] == "complete"
    assert seen == [{"a": "a1"}, {"a": "a2"}]
    assert row(run).result == {"a": "a2", "b": "b2"}
    assert [call[:2] for call in calls][:3] == [("line.a", 1), ("line.b", 1), ("check", 1)]
