"""Recorded workflows go through the engine once more, and arrive where the record says: every kind of flow, whatever happened to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

import flows
from approvals.models import Request
from approvals.services.decide import decide
from flows import (
    CANCEL,
    COMPLETE,
    ESCALATE,
    FAIL,
    FAILED,
    Activity,
    Approval,
    Branch,
    Candidate,
    Deadline,
    Decision,
    End,
    Flow,
    Gate,
    Pipeline,
    Retry,
    Sleep,
    Step,
    Verdict,
    Visits,
    Wait,
    hours,
    seconds,
)
from flows.core.failures import recalled
from flows.errors import ActivityError, CompetenceFailure, PolicyDenied, StateConflict, Transient
from flows.models import Transition
from flows.services.replay import Replayed, replay
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import Line, does, drive, failing, lose, row, status, take_one, work

pytestmark = pytest.mark.req("S1", "A4")

Declare = Callable[..., type[Flow]]


class Flaky(Transient):
    """An author's own error: its name tells nobody what it is."""


class Stale(StateConflict):
    """Another: a kind of StateConflict with a code of its own."""

    code = "STALE"


def replayed(run: Any) -> Replayed:
    """What replay says of one workflow, arrow by arrow."""
    (found,) = replay([run], keep_steps=True)
    assert not found.unknown
    return found


def same(run: Any) -> Replayed:
    """It goes the recorded way."""
    found = replayed(run)
    assert found.drift is None
    assert found.arrows == row(run).version
    return found


def notes(run: Any, trigger: str) -> list[Any]:
    """The notes of the arrows with that trigger."""
    rows = Transition.objects.filter(workflow_id=run.id, trigger=trigger).order_by("seq")
    return list(rows.values_list("note", flat=True))


# ---------------------------------------------------------------- what is decided again, and what is given


def test_the_arrows_of_the_engine_are_decided_again_and_the_others_given(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    found = same(run)
    how = [(step.logged.trigger, step.how) for step in found.steps if step.logged is not None]
    assert how == [("start", "given"), ("claim", "given"), *[("completed", "decided")] * 3]
    assert (found.arrows, found.decided) == (5, 3)


def test_replay_calls_no_activity(worker: LocalWorker) -> None:
    run = Line.start({})
    worker.run()
    before = list(factories.calls)
    same(run)
    assert factories.calls == before


def test_a_workflow_that_has_not_ended_is_replayed_as_far_as_it_is(worker: LocalWorker) -> None:
    run = Line.start({})
    assert same(run).arrows == 1
    owned = take_one(worker)
    assert same(run).arrows == 2
    factories.enter(owned)
    factories.complete(owned)
    assert same(run).arrows == 3


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (Transient, None),
        (ValueError, None),
        (PolicyDenied, None),
        (StateConflict, None),
        (Flaky, {"route": "retry", "classes": ["Flaky", "Transient", "ActivityError", "OutlastError", "Exception"]}),
        (Stale, {"route": "replan", "classes": ["Stale", "StateConflict", "ActivityError", "OutlastError", "Exception"]}),
    ],
)
def test_what_a_failure_was_is_recorded_where_code_and_class_do_not_tell(
    worker: LocalWorker, declare: Declare, error: type[Exception], noted: Any
) -> None:
    flow = declare("t-failing", one=Activity(work, retry=Retry(max_attempts=1), then="done"), done=End(COMPLETE))
    does["one"] = failing(9, error)
    run = flow.start({})
    worker.run()
    (note,) = notes(run, "failed")
    assert (note or {}).get("failure") == noted
    same(run)


@pytest.mark.parametrize("cause", [Flaky, Transient, ActivityError, Stale, StateConflict])
def test_routes_by_a_base_class_are_taken_again(worker: LocalWorker, declare: Declare, cause: type[Exception]) -> None:
    flow = declare(
        "t-routed",
        one=Activity(work, retry=Retry(max_attempts=1), on={cause: "other"}, then="done"),
        other=Activity(work, then="gave_up"),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )
    does["one"] = failing(1, Flaky if issubclass(Flaky, cause) else Stale)
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "failed"
    same(run)


def test_a_record_that_was_kept_before_failures_were_noted_is_recalled_as_far_as_it_goes() -> None:
    assert recalled("STALE", "Stale").classes == ("Stale",)
    assert recalled("STATE_CONFLICT", "Stale").route == "replan"


def test_retries_and_their_end(worker: LocalWorker, clock: Clock) -> None:
    does["two"] = failing(2)
    run = Line.start({})
    drive(worker, clock)
    assert status(run)[0] == "complete"
    same(run)
    does["two"] = failing(9)
    stopped = Line.start({})
    drive(worker, clock)
    assert row(stopped).error_code == "RETRIES_EXHAUSTED:TRANSIENT"
    flows.resume(stopped)
    does.clear()
    drive(worker, clock)
    assert status(stopped)[0] == "complete"
    same(stopped)


def test_a_retry_by_class_that_never_is(worker: LocalWorker, declare: Declare) -> None:
    flow = declare("t-never", one=Activity(work, retry=Retry(never_on=(Transient,)), then="done"), done=End(COMPLETE))
    does["one"] = failing(1, Flaky)
    run = flow.start({})
    worker.run()
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    same(run)


def test_workers_that_die_until_a_person_is_asked(worker: LocalWorker) -> None:
    run = Line.start({})
    for _ in range(3):
        another = factories.another_worker()
        factories.enter(take_one(another))
        lose(another)
    worker.run()
    assert row(run).error_code == "WORKER_LOST"
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    same(run)


# ---------------------------------------------------------------- deadlines


@pytest.mark.parametrize("then", [ESCALATE, CANCEL, FAIL, "late"])
@pytest.mark.parametrize("where", ["wait", "flow", "both"])
def test_deadlines_of_every_policy(worker: LocalWorker, clock: Clock, declare: Declare, then: Any, where: str) -> None:
    far = Deadline(days=90, then=ESCALATE)
    flow = declare(
        "t-deadline",
        meta={"deadline": Deadline(days=1, then=then) if where != "wait" else far},
        one=Activity(work, then="ask"),
        ask=Wait("t.deadline", key="k", deadline=Deadline(days=1, then=then) if where != "flow" else far, then="two"),
        two=Activity(work, then="done"),
        late=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    clock.move(days=2)
    worker.tick()
    worker.run()
    same(run)
    flows.resume(run)
    worker.run()
    same(run)


def test_a_cancel_that_a_deadline_decided_is_decided_again_and_one_of_a_person_is_given(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    ask = Wait("t.cancelled", key="k", deadline=Deadline(days=1, then=CANCEL), then="done")
    flow = declare("t-cancelled", ask=ask, done=End(COMPLETE))
    decided, given = flow.start({}), flow.start({})
    worker.run()
    flows.cancel(given, reason="WAIT_EXPIRED")
    clock.move(days=2)
    worker.tick()
    worker.run()
    for run, how in ((decided, "decided"), (given, "given")):
        assert status(run)[0] == "cancelled"
        (step,) = (step for step in same(run).steps if step.logged and step.logged.trigger == "cancel")
        assert step.how == how


@pytest.mark.parametrize("good", [True, False])
def test_a_deadline_that_passes_while_an_activity_runs(
    worker: LocalWorker,
    clock: Clock,
    declare: Declare,
    good: bool,  # noqa: FBT001 - a case
) -> None:
    flow = declare(
        "t-overrun",
        meta={"deadline": Deadline(hours=1, then="late")},
        one=Activity(work, timeout=hours(9), then="two"),
        two=Activity(work, then="done"),
        late=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    owned = take_one(worker)
    factories.enter(owned)
    clock.move(hours=2)
    worker.tick()
    if good:
        factories.reload_of(owned)
    worker.run()
    same(run)


def test_a_deadline_that_leads_to_a_wait_whose_event_came_before_is_applied_once(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    flow = declare(
        "t-once",
        meta={"deadline": Deadline(hours=1, then="late")},
        ask=Wait("t.once.ask", key="k", deadline=Deadline(days=9, then=ESCALATE), then="two"),
        late=Wait("t.once.late", key="k", deadline=Deadline(days=9, then=ESCALATE), then="two"),
        two=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    flows.signal("early", "t.once.late", key="k")
    clock.move(hours=2)
    worker.tick()
    worker.run()
    assert (status(run)[0], factories.called("two")) == ("complete", 1)
    same(run)


# ---------------------------------------------------------------- pipelines and loops


def test_the_results_of_a_pipeline_are_those_of_its_newest_visit(worker: LocalWorker, declare: Declare) -> None:
    """Also between the moment at which it is entered anew and its first step's result, in the memory of the same turn."""
    flow = declare(
        "t-newest",
        line=Pipeline(Step("a", work), Step("b", work), retry=Retry(max_attempts=1), on={Transient: "look"}, then="between"),
        between=Activity(work, then="line"),
        look=Branch(lambda state: "old" if "line" in state.results else "none", choices={"old": "had", "none": "done"}),
        had=End(FAILED),
        done=End(COMPLETE),
    )
    does["line.a"] = lambda attempt: failing(attempt.visit - 1)(attempt)
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "complete"
    same(run)


def test_a_pipeline_that_leads_to_itself_counts_its_visits(worker: LocalWorker, declare: Declare) -> None:
    steps = (Step("a", work), Step("b", work))
    flow = declare("t-round", line=Pipeline(*steps, visits=Visits(3, then="done"), then="line"), done=End(COMPLETE))
    run = flow.start({})
    for _ in range(6):  # not `worker.run()`: without the count it would never end
        factories.run_alone(take_one(worker), worker)
    assert [call[:2] for call in factories.calls] == [(f"line.{step}", visit) for visit in (1, 2, 3) for step in "ab"]
    assert status(run)[0] == "complete"
    same(run)


def test_a_pipeline_that_fails_into_itself_begins_a_new_visit(worker: LocalWorker, declare: Declare) -> None:
    steps = (Step("a", work), Step("b", work))
    line = Pipeline(*steps, visits=Visits(3, then="done"), retry=Retry(max_attempts=1), on={Transient: "line"}, then="done")
    run = declare("t-again", line=line, done=End(COMPLETE)).start({})
    does["line.b"] = lambda attempt: failing(1 if attempt.visit == 1 else 0)(attempt)
    for _ in range(4):
        factories.run_alone(take_one(worker), worker)
    assert [call[:2] for call in factories.calls] == [("line.a", 1), ("line.b", 1), ("line.a", 2), ("line.b", 2)]
    assert status(run)[0] == "complete"
    same(run)


def test_a_loop_with_visits_and_a_branch(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-lap",
        one=Activity(work, visits=Visits(3, then="spent"), then="which"),
        which=Branch(lambda state: "odd" if state.visits["one"] % 2 else "even", choices={"odd": "two", "even": "one"}),
        two=Pipeline(Step("a", work), Step("b", work), then="one"),
        spent=End(FAILED),
    )
    run = flow.start({})
    worker.run()
    assert status(run)[0] == "failed"
    assert any("via" in (note or {}) for note in notes(run, "completed"))
    same(run)


def test_a_result_that_cannot_be_stored_and_is_mended(worker: LocalWorker, declare: Declare) -> None:
    """What the function raised is given: it has been mended since."""
    ends: list[Callable[[Any], Any]] = [lambda state: {1, 2}, lambda state: "good"]
    flow = declare("t-unstorable", one=Activity(work, then="done"), done=End(COMPLETE, result=lambda state: ends[0](state)))
    run = flow.start({})
    worker.run()
    assert row(run).error_code == "DEFINITION_FAULT"
    ends.pop(0)
    flows.resume(run)
    worker.run()
    assert (status(run)[0], row(run).result) == ("complete", "good")
    same(run)


# ---------------------------------------------------------------- waits


def test_events_before_and_after_the_wait_and_while_it_is_paused(worker: LocalWorker, clock: Clock) -> None:
    early, paused, sleeping = (factories.Ask.start({"key": key}) for key in ("early", "paused", "later"))
    flows.signal("e1", "t.asked", key="early", payload={"n": 1})
    worker.run()
    flows.pause(paused)
    flows.signal("e2", "t.asked", key="paused")
    flows.resume(paused)
    for key in ("early", "paused", "later"):
        flows.signal(f"again-{key}", "t.again", key=key)
    flows.signal("e3", "t.asked", key="later")
    worker.run()
    for run in (early, paused, sleeping):
        assert status(run)[0] == "complete"
        same(run)


def test_a_turn_that_finds_nothing_rests(worker: LocalWorker) -> None:
    run = factories.Ask.start({"key": "k"})
    worker.run()
    flows.pause(run)
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "waiting"
    (step,) = (step for step in same(run).steps if step.logged and step.logged.trigger == "rest")
    assert step.how == "decided"


def test_sleeps_retries_and_pauses(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    flow = declare(
        "t-naps",
        one=Activity(work, retry=Retry(initial=seconds(30)), then="nap"),
        nap=Sleep(until=lambda state: state.now + hours(1), then="two"),
        two=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    does["one"] = failing(1)
    run = flow.start({})
    worker.run()
    flows.pause(run)
    clock.move(minutes=10)
    worker.tick()
    flows.resume(run)
    worker.run()
    owned = None
    clock.move(hours=2)
    worker.tick()
    owned = take_one(worker)
    flows.pause(run)
    factories.reload_of(owned)
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete"
    same(run)


# ---------------------------------------------------------------- people


@pytest.fixture
def robin(transactional_db: None) -> Any:
    user = get_user_model().objects.create_user("robin", password="x", is_staff=True)
    user.groups.add(Group.objects.create(name="merger"))
    user.user_permissions.add(Permission.objects.get(codename="answer_request"))
    return user


def asking(declare: Declare, **options: Any) -> type[Flow]:
    return declare(
        "t-approved",
        propose=Decision(lambda attempt: Candidate("go", {"visit": attempt.visit}), choices={"go": "ask"}),
        ask=Approval(candidate="propose", role="merger", expires=Deadline(hours=1, then=ESCALATE), approved="merge",
                     changes="propose", denied="gave_up"),
        merge=Activity(work, gate=Gate(approved_by="ask"), then="done", **options),
        done=End(COMPLETE),
        gave_up=End(FAILED),
    )  # fmt: skip


def answer(run: Any, user: Any, verdict: str) -> None:
    request = Request.objects.filter(workflow_id=run.id, status="pending").latest("id")
    assert decide(request, verdict=verdict, digest=request.digest, by=user, comment="because")


def test_approvals_of_every_answer(worker: LocalWorker, declare: Declare, robin: Any) -> None:
    flow = asking(declare)
    runs = {verdict: flow.start({}) for verdict in ("approve", "deny", "changes")}
    worker.run()
    for verdict, run in runs.items():
        answer(run, robin, verdict)
    worker.run()
    answer(runs["changes"], robin, "approve")
    worker.run()
    assert {verdict: status(run)[0] for verdict, run in runs.items()} == {
        "approve": "complete",
        "deny": "failed",
        "changes": "complete",
    }
    for run in runs.values():
        same(run)


def test_an_approval_that_expires_before_and_after_the_answer(
    worker: LocalWorker, clock: Clock, declare: Declare, robin: Any
) -> None:
    flow = asking(declare, on={Verdict.APPROVAL_REQUIRED: "propose"})
    never, late = flow.start({}), flow.start({})
    worker.run()
    flows.pause(late)
    answer(late, robin, "approve")
    clock.move(hours=2)
    worker.tick()
    flows.resume(late)
    worker.run()
    same(never)
    assert status(late)[2] == "ask"
    same(late)


def test_an_approved_node_that_is_tried_again_keeps_its_approval(
    worker: LocalWorker, clock: Clock, declare: Declare, robin: Any
) -> None:
    run = asking(declare, retry=Retry(initial=hours(2), maximum=hours(3))).start({})
    does["merge"] = failing(1)
    worker.run()
    answer(run, robin, "approve")
    worker.run()
    clock.move(hours=4)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    same(run)


def test_an_approval_is_asked_for_until_its_visits_are_spent(worker: LocalWorker, declare: Declare, robin: Any) -> None:
    run = asking(declare).start({})
    for _ in range(10):
        worker.run()
        answer(run, robin, "changes")
    worker.run()
    assert row(run).error_code == "VISITS_EXHAUSTED"
    flows.resume(run)
    worker.run()
    answer(run, robin, "approve")
    worker.run()
    assert status(run)[0] == "complete"
    same(run)


def test_what_is_not_for_the_agent_ends_with_a_person(worker: LocalWorker) -> None:
    does["two"] = failing(9, CompetenceFailure)
    run = Line.start({})
    worker.run()
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    same(run)


# ---------------------------------------------------------------- ends from outside


def test_cancel_and_supersede_wherever_it_is(worker: LocalWorker) -> None:
    for end in (flows.cancel, lambda run: flows.supersede(run, goal="another")):
        for before in (lambda: None, worker.run, lambda: take_one(worker)):
            run = factories.Ask.start({"key": "x"})
            before()
            end(run)
            assert status(run)[0] in ("cancelled", "superseded")
            same(run)


def test_an_unknown_definition_is_said_and_no_drift(worker: LocalWorker) -> None:
    with factories.declaring(worker) as declare:
        run = declare("t-forgotten", one=Activity(work, then="done"), done=End(COMPLETE)).start({})
    (found,) = replay([run])
    assert (found.drift, found.unknown) == (None, "t-forgotten@1 is not known to this process")
    assert not found
