"""Decision artifacts: one row an attempt of a Decision, with the arrow that ends it; nothing is overwritten, and no text is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, transaction

import flows
from flows import COMPLETE, Activity, Candidate, Deadline, Decision, End, Pipeline, Step, hours
from flows.core import canonical
from flows.core.artifact import hash_of
from flows.errors import ActivityTimeout, DefinitionError, InvalidCandidate, PayloadError, Transient, VerificationFailed
from flows.models import Attempt
from flows.models import Candidate as Row
from flows.services import artifacts, attempting
from flows.services.proceed import Progress
from flows.store import candidates as store
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Line, does, row, status
from tests.support.deciding import HASH, Decide, patch, rows

pytestmark = pytest.mark.req("O1")


def begin(worker: LocalWorker, **given: Any) -> Any:
    """A run that has been told what it waits for."""
    run = Decide.start({"key": "k", **given})
    worker.run()
    flows.signal(f"e-{run.id}", "t.decide", key="k", payload={"n": 1})
    return run


def test_an_accepted_candidate_is_recorded_with_what_it_was_made_of(worker: LocalWorker) -> None:
    def choose(attempt: Any) -> Candidate:
        made = attempt.context(max_tokens=2000)
        attempt.record_model(
            "m-1", prompt=made.text, output={"choice": "patch"}, usage={"input_tokens": 10, "output_tokens": 3, "cost": "0.01"}
        )
        seen.append(made)
        return patch(attempt)

    seen: list[Any] = []
    does["choose"] = choose
    run = begin(worker)
    worker.run()
    (found,) = rows(run)
    body = {"choice": "patch", "value": {"visit": 1}}
    assert (found.node, found.activity_seq, found.attempt, found.revision) == ("choose", 2, 1, 1)
    assert (found.choice, found.digest, found.refused) == ("patch", canonical.digest(body), "")
    assert (found.model, found.prompt_hash, found.output_hash) == (
        "m-1",
        hash_of(seen[0].text, ""),
        hash_of({"choice": "patch"}, ""),
    )
    assert (found.context_hash, found.evidence_digest) == (seen[0].hash, canonical.digest([{"seen": "this"}]))
    call = {"model": "m-1", "prompt_hash": found.prompt_hash, "output_hash": found.output_hash, "context_hash": seen[0].hash}
    used = {"input_tokens": 10, "output_tokens": 3, "cost": "0.01"}
    assert found.usage == {**used, "count": 1, "calls": [{**call, **used}]}
    assert found.release == row(run).release


def test_a_second_call_is_a_new_attempt_and_overwrites_nothing(worker: LocalWorker, clock: Clock) -> None:
    def choose(attempt: Any) -> Any:
        attempt.record_model(f"m-{attempt.number}", output=f"answer {attempt.number}")
        if attempt.number == 1:
            raise InvalidCandidate("malformed")
        if attempt.number == 2:
            return Candidate("undeclared", None)
        return patch(attempt, number=attempt.number)

    does["choose"] = choose
    does["check"] = factories.failing(1, VerificationFailed)
    run = begin(worker)
    factories.drive(worker, clock)
    assert status(run)[0] == "complete"
    found = [(one.activity_seq, one.attempt, one.revision, one.model, one.choice, one.refused) for one in rows(run)]
    assert found == [
        (2, 1, 1, "m-1", "", "INVALID_CANDIDATE"),
        (2, 2, 1, "m-2", "", "INVALID_CANDIDATE"),
        (2, 3, 1, "m-3", "patch", ""),
        (4, 1, 2, "m-1", "", "INVALID_CANDIDATE"),
        (4, 2, 2, "m-2", "", "INVALID_CANDIDATE"),
        (4, 3, 2, "m-3", "patch", ""),
    ]
    assert len({one.output_hash for one in rows(run)}) == 3
    assert all(not one.digest for one in rows(run) if one.refused)


def test_an_attempt_that_tells_nothing_of_its_model_has_a_row_all_the_same(worker: LocalWorker) -> None:
    does["choose"] = lambda attempt: Candidate("stop")
    run = begin(worker)
    worker.run()
    (found,) = rows(run)
    assert (found.choice, found.refused, found.model, found.prompt_hash, found.context_hash) == ("stop", "", "", "", "")
    assert (found.usage, found.evidence_digest) == ({}, "")
    assert found.digest == canonical.digest({"choice": "stop", "value": None})


def test_several_calls_of_one_attempt_are_listed_and_the_last_gave_the_candidate(worker: LocalWorker) -> None:
    def choose(attempt: Any) -> Candidate:
        attempt.record_model("draft", prompt_hash=HASH, usage={"input_tokens": 1})
        attempt.context(max_tokens=500)
        attempt.record_model("critic", usage={"input_tokens": 2})
        return patch(attempt)

    does["choose"] = choose
    run = begin(worker)
    worker.run()
    (found,) = rows(run)
    assert [call["model"] for call in found.usage["calls"]] == ["draft", "critic"]
    assert (found.model, found.prompt_hash, found.usage["input_tokens"]) == ("critic", "", 3)
    assert "context_hash" not in found.usage["calls"][0]
    assert found.usage["calls"][1]["context_hash"] == found.context_hash != ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (lambda: Transient("x"), "TRANSIENT"),
        (ActivityTimeout, "ACTIVITY_TIMEOUT"),
        (lambda: RuntimeError("x"), "UNCLASSIFIED_ERROR"),
        (lambda: PayloadError("x", "y"), "PAYLOAD_INVALID"),
    ],
)
def test_whatever_ended_the_attempt_is_why_nothing_was_accepted(worker: LocalWorker, error: Any, code: str) -> None:
    def choose(attempt: Any) -> Any:
        attempt.record_model("m-1", output="half an answer")
        raise error()

    does["choose"] = choose
    run = begin(worker)
    worker.run()
    (found,) = rows(run)
    assert (found.refused, found.model, found.choice, found.digest) == (code, "m-1", "", "")


def test_a_lost_attempt_has_no_row_and_the_one_after_it_has(worker: LocalWorker) -> None:
    def choose(attempt: Any) -> Any:
        attempt.record_model("m-1")
        if attempt.number == 1:
            factories.lose(worker)
        return patch(attempt)

    does["choose"] = choose
    run = begin(worker)
    worker.run()
    other = factories.another_worker()
    other.run()
    assert [(one.attempt, one.refused) for one in rows(run)] == [(2, "")]
    tried = Attempt.objects.filter(workflow_id=run.id, node="choose").order_by("number").values_list("number", "outcome")
    assert list(tried) == [(1, "lost"), (2, "succeeded")]


def test_a_candidate_that_came_after_a_cancel_has_no_row_and_stays_as_evidence(worker: LocalWorker) -> None:
    def choose(attempt: Any) -> Any:
        flows.cancel(attempt.workflow_id, reason="not wanted")
        return patch(attempt)

    does["choose"] = choose
    run = begin(worker)
    worker.run()
    assert rows(run) == []
    kept = Attempt.objects.get(workflow_id=run.id, node="choose")
    assert (kept.outcome, kept.late_result["choice"]) == ("fenced", "patch")


def test_a_candidate_that_comes_after_the_flows_deadline_is_refused_by_it(
    worker: LocalWorker, clock: Clock, declare: Callable[..., type[flows.Flow]]
) -> None:
    flow = declare(
        "t-late",
        meta={"deadline": Deadline(hours=1, then=flows.CANCEL)},
        choose=Decision(factories.work, choices={"patch": "check"}, timeout=hours(5)),
        check=Activity(factories.work, then="done"),
        done=End(COMPLETE),
    )
    other = factories.another_worker()

    def choose(attempt: Any) -> Any:
        clock.move(hours=2)
        other.tick()
        return patch(attempt)

    does["choose"] = choose
    run = flow.start({})
    worker.run(["agents"])
    assert status(run)[0] == "cancelled"
    assert [(one.refused, one.digest != "") for one in rows(run)] == [("DEADLINE_EXPIRED", True)]


def test_the_row_and_the_arrow_are_one_commit(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens between the two, both are there or neither."""
    does["choose"] = patch
    run = begin(worker)
    owned = factories.take_one(worker)
    assert factories.enter(owned) is Progress.RUN
    trigger, ending = attempting.run(owned, worker, taken_over=False)

    class Gone(Exception):
        """The connection broke."""

    def broken(when: str, name: str) -> None:
        if (when, name) == ("within", "advance"):
            raise Gone

    monkeypatch.setattr(sql, "seam", broken)
    with pytest.raises(Gone):
        factories.proceed(owned, trigger, factories.STAY, ending)
    monkeypatch.setattr(sql, "seam", None)
    assert (rows(run), row(run).node) == ([], "choose")
    assert factories.proceed(owned, trigger, factories.STAY, ending) is Progress.RUN
    assert ([one.attempt for one in rows(run)], row(run).node) == ([1], "check")
    factories.complete(owned)


def test_a_row_is_there_once_and_never_changed(worker: LocalWorker) -> None:
    does["choose"] = lambda attempt: Candidate("stop")
    run = begin(worker)
    worker.run()
    (found,) = rows(run)
    for act in (
        lambda: Row.objects.filter(pk=found.pk).update(choice="other"),
        lambda: Row.objects.filter(pk=found.pk).delete(),
        lambda: store.record(
            store.Artifact(run.id, "choose", found.activity_seq, 1, 1, "", "", "X", "", "", "", "", "", "{}", ""), "default"
        ),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()
    assert rows(run) == [found]


def test_only_decisions_have_artifacts(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> None:
    flow = declare(
        "t-none",
        one=Activity(factories.work, then="line"),
        line=Pipeline(Step("a", factories.work), then="done"),
        done=End(COMPLETE),
    )

    def act(attempt: Any) -> None:
        with pytest.raises(DefinitionError, match=r"t-(none|line).one is no Decision, so nothing keeps its model calls"):
            attempt.record_model("m-1")

    does["one"] = act
    run = flow.start({})
    line = Line.start({})
    worker.run()
    assert (status(run)[0], status(line)[0], Row.objects.count()) == ("complete", "complete", 0)


@pytest.mark.req("O7")
def test_what_is_refused_of_a_call_ends_the_attempt_and_is_nowhere(worker: LocalWorker) -> None:
    does["choose"] = lambda attempt: attempt.record_model("m-1", reasoning="a secret thought")
    run = begin(worker)
    worker.run()
    assert (status(run)[1], row(run).error_code) == ("HUMAN_REQUIRED", "PAYLOAD_INVALID")
    assert [(one.refused, one.usage) for one in rows(run)] == [("PAYLOAD_INVALID", {})]


def test_they_are_told_in_order_and_bounded(worker: LocalWorker, clock: Clock) -> None:
    does["choose"] = patch
    does["check"] = factories.failing(3, VerificationFailed)
    run = begin(worker)
    factories.drive(worker, clock)
    told = artifacts.of(run.id, "default")
    assert [one["revision"] for one in told] == [1, 2, 3, 4]
    assert set(told[0]) == set(artifacts.FIELDS)
