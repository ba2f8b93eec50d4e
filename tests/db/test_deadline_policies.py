"""Every kind of deadline with every policy that it has, when it passes while the workflow waits, computes, is paused, or needs a person."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group

import flows
from flows import commitments
from flows.core import lint
from flows.core.deadlines import GOES_ON, KINDS
from flows.models import Event, Timer, Transition
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import called, does, row, status
from tests.support import dated
from tests.support.dated import Declare, events, pass_time, told
from tests.support.obligations import faults

pytestmark = pytest.mark.req("B8", "L1")

TIMERS = {row.name: kind if kind != "approval" else "wait_deadline" for kind, row in KINDS.items()}
ROWS = {row.name: row for row in KINDS.values()}
LEGAL = [(kind, policy) for kind in dated.KINDS for policy in dated.POLICIES if policy in ROWS[kind].legal]
ILLEGAL = [(kind, policy) for kind in dated.KINDS for policy in dated.POLICIES if policy not in ROWS[kind].legal]
#: Those that are the workflow's own: they may pass while it computes.
OWN = [(kind, policy) for kind, policy in LEGAL if kind in ("workflow", "SLA", "freshness")]
HOLDING = ("release", "release:")


@pytest.fixture(autouse=True)
def _afresh(worker: LocalWorker) -> Any:
    dated.forget()
    yield
    assert faults() == []


@pytest.fixture
def ann(worker: LocalWorker, django_user_model: Any) -> Any:
    leads = Group.objects.create(name="leads")
    for name in ("lee", "gone"):
        leads.user_set.add(django_user_model.objects.create_user(name, is_active=name != "gone"))
    return django_user_model.objects.create_user("ann")


def expect(run: Any, kind: str, policy: str, *, at: str = "ask") -> None:
    """What must be on record when it has passed, and everybody has acted."""
    found, of = row(run), ROWS[kind]
    goes_on = policy in GOES_ON or (kind == "commitment" and policy == "escalate")
    if goes_on:
        assert status(run) == ("waiting", "WAITING", at)
    elif policy in ("escalate", "human"):
        assert (*status(run)[:2], found.error_code) == ("waiting", "HUMAN_REQUIRED", of.code)
    else:
        ends = {"cancel": "cancelled", "fail": "failed"}
        assert (status(run)[0], called("other")) == (ends.get(policy, "complete"), 0 if policy in ends else 1)
    if (
        (policy == "release" and kind != "commitment")
        or policy in ("release:", "cancel")
        or (kind == "commitment" and policy == "release")
    ):
        assert (dated.window(), len(dated.released)) == ("released", 1)
    elif goes_on and kind != "commitment":
        assert dated.window() == "active"
    mails = [("ann", of.code)] if of.told else []
    mails += (
        [("ann", "COMMITMENT_BREACHED" if kind == "commitment" else of.code)]
        if policy in ("escalate", "human") and not goes_on
        else []
    )
    mails += [("lee", of.code)] if policy == "escalate" else []
    assert told() == sorted(mails) or policy in ("cancel", "fail")
    assert all(mail in told() for mail in mails)
    (event,) = Event.objects.filter(type__in=("deadline.expired", "commitment.breached"), key=str(run.id))
    assert (event.type, event.payload["workflow"]) == (of.event, str(run.id))
    if kind != "commitment":
        assert (event.payload["kind"], event.payload["flow"]) == (kind, "t-deadline")
        assert flows.describe(run).deadlines[0]["kind"] == kind
    (one,) = (
        Timer.objects.filter(kind=TIMERS[kind])
        .exclude(due_at__gt=row(run).created_at.replace(year=9000))
        .filter(fired_at__isnull=False)
    )
    if kind != "commitment":
        assert one.status == ("handled" if kind not in ("wait", "approval") or goes_on else "fired")


@pytest.mark.parametrize(("kind", "policy"), LEGAL)
def test_it_passes_while_the_workflow_waits(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    flow = dated.flow(declare, kind, policy)
    assert [one.message for one in lint.problems(flow.definition)] == []
    run = flow.start({}, by=ann)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "ask")
    pass_time(worker, clock, minutes=119)
    assert (status(run), told(), events()) == (("waiting", "WAITING", "ask"), [], [])
    pass_time(worker, clock, minutes=2)
    pass_time(worker, clock, minutes=2)
    expect(run, kind, policy)
    if status(run)[1] == "WAITING" and kind != "approval":
        flows.signal("e1", "t.dated", key="k")
        worker.run()
        stale = kind == "freshness"  # the budget is over, and the gate says so at the node
        assert status(run)[1] == ("REVALIDATION_REQUIRED" if stale else "COMPLETE")
        assert called("extra") == (0 if policy == "degrade" else 1)


@pytest.mark.parametrize(("kind", "policy"), OWN)
def test_it_passes_while_a_step_computes(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    """The step is not interrupted, and what is held is not taken from it; the next decision handles it."""

    def long(attempt: Any) -> Any:
        clock.move(hours=3)
        worker.tick()
        assert dated.window() == "active"
        return {"long": True}

    does["step"] = long
    run = dated.flow(declare, kind, policy, steps=True).start({}, by=ann)
    worker.run()
    expect(run, kind, policy)
    assert called("step") == 1
    if policy in ("escalate", "human"):
        flows.resume(run)
        worker.run()
        assert status(run) == ("waiting", "WAITING", "ask")


@pytest.mark.parametrize(("kind", "policy"), [case for case in LEGAL if case[0] != "commitment"])
def test_while_paused_it_is_recorded_and_acted_on_at_resume(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    run = dated.flow(declare, kind, policy).start({}, by=ann)
    worker.run()
    flows.pause(run)
    pass_time(worker, clock, hours=3)
    pass_time(worker, clock, minutes=1)
    assert (status(run)[0], dated.window(), called("other")) == ("paused", "active", 0)
    assert Timer.objects.filter(kind=TIMERS[kind], status__in=("fired", "handled")).count() == 1
    assert len(events()) == 1
    flows.resume(run)
    worker.run()
    expect(run, kind, policy)


@pytest.mark.parametrize(("kind", "policy"), [case for case in OWN if case[1] in GOES_ON])
def test_what_goes_on_leaves_a_workflow_that_stands_before_a_person_there(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    does["step"] = lambda attempt: (_ for _ in ()).throw(flows.errors.CompetenceFailure())
    run = dated.flow(declare, kind, policy, steps=True).start({}, by=ann)
    worker.run()
    before = (status(run), row(run).version)
    assert before[0] == ("waiting", "HUMAN_REQUIRED", "step")
    pass_time(worker, clock, hours=3)
    assert (status(run), row(run).version, called("step")) == (*before, 1)
    assert dated.window() == ("released" if policy == "release" else "active"), "nobody uses it while a person is waited for"
    assert len(events()) == 1


@pytest.mark.parametrize(("kind", "policy"), [case for case in OWN if case[1] in GOES_ON])
def test_what_goes_on_does_not_cut_a_pause_before_a_retry_short(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    does["step"] = lambda attempt: (_ for _ in ()).throw(flows.errors.Transient(retry_after=4 * 3600))
    run = dated.flow(declare, kind, policy, steps=True).start({}, by=ann)
    worker.run()
    pass_time(worker, clock, hours=3)
    assert (status(run)[:2], called("step")) == (("waiting", "WAITING"), 1)
    pass_time(worker, clock, hours=2)
    assert called("step") == 2


@pytest.mark.parametrize(("kind", "policy"), ILLEGAL)
def test_a_policy_that_its_kind_does_not_have_is_a_mistake(declare: Declare, kind: str, policy: str) -> None:
    found = [one.id.removeprefix(lint.PREFIX) for one in lint.problems(dated.flow(declare, kind, policy).definition)]
    assert [code for code in found if code != "E007"] == ["E036" if policy in ("node", "release:", "degrade:") else "E051"]


@pytest.mark.parametrize("kind", ["workflow", "SLA"])
@pytest.mark.parametrize("policy", list(dated.POLICIES))
def test_one_that_nobody_works_on_is_handled_when_somebody_does(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str
) -> None:
    """It passed before the first claim."""
    run = dated.flow(declare, kind, policy).start({}, by=ann)
    clock.move(hours=3)
    worker.tick()
    assert status(run)[0] == "runnable"
    worker.run()
    if policy in GOES_ON:
        assert status(run) == ("waiting", "WAITING", "ask")
        assert (called("hold"), dated.timer(TIMERS[kind])) == (1, "handled")
    elif policy in ("escalate", "human"):
        assert (called("hold"), row(run).error_code) == (0, ROWS[kind].code)
    else:
        assert (called("hold"), called("other")) == (0, 0 if policy in ("cancel", "fail") else 1)


def test_the_timeline_says_what_moved_it(worker: LocalWorker, clock: Clock, declare: Declare, ann: Any) -> None:
    run = dated.flow(declare, "SLA", "node").start({}, by=ann)
    worker.run()
    pass_time(worker, clock, hours=3)
    notes = [note for note in Transition.objects.filter(workflow_id=run.id).values_list("note", flat=True) if note]
    assert {"deadline": ["sla"]} in notes
    assert [one["kind"] for one in flows.describe(run).deadlines] == ["SLA"]


@pytest.mark.parametrize(("kind", "policy"), [("SLA", "breach"), ("wait", "cancel"), ("wait", "human"), ("approval", "node")])
def test_it_is_not_told_twice(worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, kind: str, policy: str) -> None:
    dated.flow(declare, kind, policy).start({}, by=ann)
    worker.run()
    pass_time(worker, clock, hours=3)
    before = told()
    Timer.objects.filter(kind=TIMERS[kind], fired_at__isnull=False).update(untold=True)  # the process died before it was marked
    pass_time(worker, clock, hours=3)
    assert (len(events()), told()) == (1, before)
    assert not Timer.objects.filter(untold=True).exists()


@pytest.mark.parametrize("policy", list(dated.POLICIES))
def test_a_wait_that_was_answered_before_has_not_expired(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, policy: str
) -> None:
    run = dated.flow(declare, "wait", policy).start({}, by=ann)
    worker.run()
    flows.signal("e1", "t.dated", key="k")
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert (status(run)[0], events()) == ("complete", [])


def test_the_end_of_a_sleep_or_of_a_pause_before_a_retry_is_no_expiry(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any
) -> None:
    does["step"] = factories.failing(1)
    run = declare(
        "t-no-expiry",
        step=flows.Activity(factories.work, then="nap"),
        nap=flows.Sleep(flows.hours(1), then="done"),
        done=flows.End(flows.COMPLETE),
    ).start({}, by=ann)
    worker.run()
    for _ in range(2):
        pass_time(worker, clock, hours=2)
    assert (status(run)[0], events(), Timer.objects.filter(untold=True).exists()) == ("complete", [], False)


def test_a_breach_is_told_also_where_the_commitment_has_ended_since(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that fired the timer died before it told anybody, and then somebody fulfilled it."""
    monkeypatch.setattr("flows.services.breach.tell", lambda limit, using: 0)
    run = dated.flow(declare, "commitment", "breach").start({}, by=ann)
    worker.run()
    pass_time(worker, clock, hours=3)
    (held,) = commitments.active(workflow=run)
    assert commitments.fulfil(held, by=ann, reason="It was used")
    monkeypatch.undo()
    worker.tick()
    assert Event.objects.filter(type="commitment.breached").count() == 1
