"""ContinueAsNew: what the next run has of the one before it, and what stops it (G4)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, WAIT, Budget, Child, Commits, ContinueAsNew, End, On, Spend, Wait, budgets
from flows.models import Branch, Event, Fan, Workflow
from flows.services.replay import replay
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status
from tests.support.branching import DAY, Slow, agree, children, counters, settle
from tests.support.continuing import Declare, chain, chaining, further

pytestmark = pytest.mark.req("G4")

FIRST = {"key": "a"}


@pytest.fixture(autouse=True)
def _plain(worker: LocalWorker) -> Any:
    factories.offer(worker)
    yield
    assert agree() == []
    assert [one.drift for one in replay(list(Workflow.objects.all())) if one.drift is not None] == []


def say(number: int, what: str = "on", key: str = "a") -> None:
    flows.signal(f"e{number}", "t.chain", key=key, payload={"say": what})


def test_the_next_run_has_what_the_one_before_it_had(worker: LocalWorker, declare: Declare) -> None:
    flow = chaining(declare)
    user = factories.person("ann")
    run = flow.start(FIRST, key="k", by=user, subject="case 7", priority=3, session="chat")
    worker.run()
    say(1)
    say(2)
    worker.run()
    first, second, third = chain(run)
    assert [(one.status, one.outcome) for one in (first, second)] == [("complete", "CONTINUED")] * 2
    assert (third.status, third.input["number"], third.key) == ("waiting", 2, "k")
    assert (first.key, second.key, first.result, second.result) == (None, None, second.input, third.input)
    assert (first.chain, second.chain, third.chain) == (None, first.pk, first.pk)
    for one in (second, third):
        assert (one.intent_id, one.user_id, one.subject, one.priority) == (run.intent_id, user.pk, "case 7", 3)
        assert list(one.sessions.values_list("session", flat=True)) == ["chat"]
    assert Workflow.objects.filter(chain=first.pk).count() == 2


def test_the_key_finds_the_run_that_lives_by_the_input_of_the_first(worker: LocalWorker, declare: Declare) -> None:
    flow = chaining(declare)
    run = flow.start(FIRST, key="k")
    worker.run()
    say(1)
    worker.run()
    again = flow.start(FIRST, key="k")
    assert (again.created, again.id) == (False, chain(run)[-1].pk)
    with pytest.raises(flows.errors.KeyConflict):
        flow.start({"key": "a", "number": 1}, key="k")


def test_events_between_two_runs_stay_for_the_next_one(worker: LocalWorker, declare: Declare) -> None:
    run = chaining(declare).start(FIRST)
    worker.run()
    say(1)
    owned = factories.take_one(worker)
    factories.enter(owned)
    say(2, "stop")
    assert Event.objects.get(event_id="e2").place == "between"
    factories.complete(owned, keeping=factories.LET_GO)
    worker.run()
    assert [one.outcome for one in chain(run)] == ["CONTINUED", "COMPLETE"]
    assert chain(run)[-1].result == {"number": 1}


def test_an_event_about_the_older_run_is_for_the_next_one(worker: LocalWorker, declare: Declare) -> None:
    run = chaining(declare).start(FIRST)
    worker.run()
    say(1)
    worker.run()
    flows.signal("late", "t.chain", key="a", payload={"say": "stop"}, about=flows.About(workflow=run.id))
    worker.run()
    assert chain(run)[-1].outcome == "COMPLETE"


def test_a_child_that_continues_is_the_same_child(worker: LocalWorker, declare: Declare) -> None:
    flow = chaining(declare)
    parent = declare(
        "t-parent", kid=Child(flow, input=lambda state: FIRST, completed="done", failed="done", deadline=DAY),
        done=End(COMPLETE, result=lambda state: state.results["kid"]),
    ).start({})  # fmt: skip
    worker.run()
    (old,) = children(parent)
    say(1)
    settle(worker)
    (new,) = children(parent)
    assert (new.pk, new.parent_id, new.depth, counters(parent)) == (chain(old)[-1].pk, parent.id, 1, {"running": 1})
    assert status(parent)[0] == "waiting"
    say(2, "stop")
    settle(worker)
    assert (status(parent)[0], counters(parent)) == ("complete", {"succeeded": 1})
    assert row(parent).result["result"] == {"number": 1}


def test_a_stop_reaches_the_run_that_continued(worker: LocalWorker, declare: Declare) -> None:
    flow = chaining(declare)
    parent = declare(
        "t-parent", kid=Child(flow, input=lambda state: FIRST, completed="done", failed="done", deadline=DAY), done=End(COMPLETE)
    ).start({})  # fmt: skip
    worker.run()
    (old,) = children(parent)
    say(1)
    settle(worker)
    flows.cancel(parent)
    settle(worker)
    assert [one.outcome for one in chain(old)] == ["CONTINUED", "CANCELLED"]
    assert counters(parent) == {"cancelled": 1}


def test_a_parent_that_does_not_wait_hears_of_the_end_by_the_id_that_it_knows(worker: LocalWorker, declare: Declare) -> None:
    flow = chaining(declare)
    parent = declare(
        "t-parent", kid=Child(flow, input=lambda state: FIRST, wait=False, then="wait"),
        wait=Wait(any=[On.ended("kid")], need=1, deadline=DAY, then="done"), done=End(COMPLETE),
    ).start({})  # fmt: skip
    settle(worker)
    say(1)
    settle(worker)
    assert status(parent)[0] == "waiting"
    say(2, "stop")
    settle(worker)
    assert status(parent)[0] == "complete"


def test_who_holds_a_commitment_does_not_continue(worker: LocalWorker, declare: Declare) -> None:
    run = chaining(declare, commits=Commits("window")).start(FIRST, key="k")
    worker.run()
    say(1)
    worker.run()
    assert (status(run), row(run).error_code) == (("waiting", "HUMAN_REQUIRED", "next"), "COMMITMENT_OPEN")
    assert row(run).key == "k"
    assert not Workflow.objects.filter(chain__isnull=False).exists()


def test_who_has_children_does_not_continue_until_they_have_ended(worker: LocalWorker, declare: Declare) -> None:
    run = declare(
        "t-parent", kid=Child(Slow, input=lambda state: FIRST, wait=False, then="next", on_cancel=WAIT),
        next=ContinueAsNew(input=further), done=End(COMPLETE),
    ).start(FIRST)  # fmt: skip
    settle(worker)
    assert (status(run), row(run).error_code) == (("waiting", "HUMAN_REQUIRED", "next"), "CHILDREN_OPEN")
    flows.signal("e", "t.slow", key="a")
    worker.run()
    flows.resume(run)
    worker.run()
    assert row(run).outcome == "CONTINUED"
    assert Fan.objects.filter(workflow_id=run.id).values_list("running", flat=True)[0] == 0
    assert Branch.objects.get(parent_id=run.id).status == "succeeded"


@pytest.mark.parametrize("given", ["text", {"x": 99 * "x"}, {"x": object()}])
def test_what_cannot_be_an_input_is_a_fault_of_the_flow(worker: LocalWorker, declare: Declare, settings: Any, given: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "MAX_INPUT_BYTES": 80}
    run = chaining(declare, input=lambda state: given).start(FIRST)
    worker.run()
    say(1)
    worker.run()
    assert (status(run)[1], row(run).error_code) == ("HUMAN_REQUIRED", "DEFINITION_FAULT")
    assert Workflow.objects.count() == 1


def test_deadlines_begin_anew(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = chaining(declare, meta={"deadline": DAY}).start(FIRST)
    worker.run()
    clock.move(hours=5)
    say(1)
    worker.run()
    first, second = chain(run)
    assert (second.deadline_at - first.deadline_at).total_seconds() >= 5 * 3600


def test_nothing_becomes_free_and_a_raise_of_the_first_run_lets_the_newest_go_on(worker: LocalWorker, declare: Declare) -> None:
    user = factories.person("ann")
    user.user_permissions.add(Permission.objects.get(codename="raise_budget"))
    user = type(user).objects.get(pk=user.pk)
    flow = chaining(declare, meta={"budget": Budget(model_calls=2)}, spends=Spend(model_calls=1))
    run = flow.start(FIRST)
    worker.run()
    for number in range(3):
        say(number)
        worker.run()
    runs = chain(run)
    assert [one.outcome for one in runs] == ["CONTINUED", "CONTINUED", "HUMAN_REQUIRED"]
    assert (runs[-1].error_code, runs[-1].ledgers) == ("BUDGET_EXHAUSTED", [runs[0].pk, runs[-1].pk])
    raised = budgets.raise_(run, "model_calls", by_amount=1, by=user, reason="It goes on")
    assert raised.resumed == (runs[-1].pk,)
    worker.run()
    assert [one.outcome for one in chain(run)] == ["CONTINUED"] * 3 + ["WAITING"]


def test_a_pause_that_was_asked_of_the_older_run_holds_the_next_one(worker: LocalWorker, declare: Declare) -> None:
    run = chaining(declare).start(FIRST)
    worker.run()
    say(1)
    factories.does["step"] = lambda attempt: flows.pause(run).status
    worker.run()
    first, second = chain(run)
    assert (first.outcome, second.status) == ("CONTINUED", "paused")
    flows.resume(second)
    worker.run()
    assert row(second).status == "waiting"
