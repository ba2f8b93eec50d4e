"""What `show` says of a wait that is not the cause: it was answered, or something else than its own end lets the run go on."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from approvals.api import decide
from approvals.models import Request
from flows import COMPLETE, ESCALATE, Activity, Approval, Budget, Deadline, Decision, End, Wait, budgets, policies
from flows.core.nodes import Candidate
from flows.management import words
from flows.models import Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import row, work
from tests.support import releasing, waking
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("Q3", "C5")

DAY = Deadline(days=1, then=ESCALATE)


def waiting_for(run: Any) -> str:
    (line,) = [line for line in words.description(flows.describe(run)).splitlines() if line.startswith("Waiting for")]
    return line


def test_an_answer_that_is_still_to_be_decided_on_is_said_to_be_there(declare: Any, worker: LocalWorker) -> None:
    policies.publish("t-changes", {"n": 1}, note="first")
    flow = declare(
        "t-answered",
        meta={"policy": "t-changes"},
        think=Decision(lambda attempt: Candidate("go", 1), choices={"go": "ask"}),
        ask=Approval(candidate="think", role=waking.ROLE, expires=DAY, approved="done", denied="done", self_approval=True),
        done=End(COMPLETE),
    )
    user = waking.make_user()
    run = flow.start({}, by=user)
    worker.run()
    request = Request.objects.get(workflow_id=run.id)
    assert decide(request, verdict="approve", digest=request.digest, by=user)
    policies.publish("t-changes", {"n": 2}, note="second")
    worker.run()
    assert (row(run).outcome, row(run).node) == ("POLICY_BLOCKED", "ask")
    (told,) = flows.describe(run).waits
    assert (told.answered, told.ends) == (True, "what lets the run go on")
    said = waiting_for(run)
    assert f"waiting for an answer of {waking.ROLE}, at ask: it has come, and is decided on when the run goes on" in said
    assert "then escalate" not in said


def test_an_event_that_came_is_said_to_be_there(declare: Any, worker: LocalWorker) -> None:
    policies.publish("t-changes", {"n": 1}, note="first")
    flow = declare(
        "t-heard", meta={"policy": "t-changes"}, wait=Wait("t.x", key="k", deadline=DAY, then="done"), done=End(COMPLETE)
    )
    run = flow.start({})
    worker.run()
    assert "until" in waiting_for(run)
    policies.publish("t-changes", {"n": 2}, note="second")
    flows.signal("e-1", "t.x", key="k")
    worker.run()
    assert "event t.x with key k, at wait: it has come" in waiting_for(run)


def twice_short(declare: Any, worker: LocalWorker) -> Any:
    """A run with neither calls nor money left."""
    flow = declare(
        "t-twice-short",
        meta={"budget": Budget(model_calls=1, cost="1.00")},
        one=Activity(work, spends=flows.Spend(model_calls=1, cost="1.00"), then="two"),
        two=Activity(work, spends=flows.Spend(model_calls=1, cost="1.00"), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert row(run).error_code == "BUDGET_EXHAUSTED"
    return run


def test_a_budget_that_was_raised_is_no_longer_what_is_lacking(declare: Any, worker: LocalWorker) -> None:
    run = twice_short(declare, worker)
    ann = factories.person("ann")
    ann.is_superuser = True
    ann.save()
    first, second = ("model_calls", "cost") if "model_calls" in waiting_for(run) else ("cost", "model_calls")
    assert not budgets.raise_(run, first, to=5, by=ann, reason="more").resumed
    assert f"budget of {second} is used up" in waiting_for(run)
    assert first not in waiting_for(run)


def test_what_a_person_does_is_said_the_same_way_twice(declare: Any, worker: LocalWorker) -> None:
    run = twice_short(declare, worker)
    assert "from a person, by raise or cancel;" in waiting_for(run)
    assert flows.describe(run).ways_on == ["raise", "cancel"]


def test_nobody_needs_to_offer_the_release_of_a_run_that_has_ended(cli: Any, worker: LocalWorker) -> None:
    releasing.both()
    run = factories.Line.start({})
    worker.run()
    assert Workflow.objects.get(pk=run.id).status == "complete"
    assert "R17 (the current one)\n" in cli("show", run.id).out
    assert "offer" not in cli("show", run.id).out
