"""A deadline passes while something else happens: an event, a cancel, an answer, a pause, the end of a step, a new look. Nothing twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

import flows
from approvals.api import decide
from approvals.models import Request
from flows.models import Event, Notice, Timer
from flows.services import attempting as attempts
from flows.services import deadlines, sweeps
from flows.services.owned import Owned
from flows.services.proceed import Progress, proceed
from flows.store import deadlines as store
from flows.store import locks
from flows.store.sql import committing
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import calls, enter, row, status
from tests.support import dated
from tests.support.dated import Declare
from tests.support.obligations import broken, faults
from tests.support.races import racers, together

pytestmark = pytest.mark.req("A3", "L1")

USING = "default"
ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))
Action = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _afresh(worker: LocalWorker) -> None:
    dated.forget()


def expire(run: Any) -> int:
    return sweeps.fire_timers(USING)


def hear(run: Any) -> Any:
    return flows.signal(f"e-{run.id}", "t.dated", key="k")


def cancel(run: Any) -> Any:
    return flows.cancel(run)


def supersede(run: Any) -> Any:
    return flows.supersede(run, goal="another")


def pause(run: Any) -> Any:
    return flows.pause(run)


def tell(run: Any) -> Any:
    return deadlines.tell(100, USING)


def answer(run: Any) -> Any:
    request = Request.objects.get(workflow_id=run.id)
    lee = get_user_model().objects.get(username="lee")
    return decide(request.pk, verdict="approve", digest=request.digest, by=lee, comment="Good.")


def goes_on(run: Any) -> Any:
    """A worker takes whatever is ready."""
    return factories.another_worker().run()


#: What the run may have come to, by policy, once everybody has acted.
ENDS = {
    "node": {"complete"},
    "cancel": {"cancelled", "complete"},
    "fail": {"failed", "complete"},
    "escalate": {"waiting", "complete"},
    "release": {"waiting", "complete"},
    "release:": {"complete"},
    "degrade": {"waiting", "complete"},
    "breach": {"waiting", "complete"},
}

#: name → (kind of deadline, what meets its expiry, ends that are right besides those of the policy)
MEETINGS: dict[str, tuple[str, Action, set[str]]] = {
    "signal": ("SLA", hear, set()),
    "signal at the wait's own": ("wait", hear, set()),
    "cancel": ("SLA", cancel, {"cancelled"}),
    "supersede": ("workflow", supersede, {"superseded"}),
    "pause": ("SLA", pause, {"paused"}),
    "the same": ("workflow", expire, set()),
    "telling": ("SLA", tell, set()),
    "a worker": ("SLA", goes_on, set()),
    "an answer": ("approval", answer, set()),
    "an answer to the SLA": ("SLA", answer, set()),
}
SKIPPED = {("approval", policy) for policy in ("release", "degrade", "breach")}
CASES = [(name, policy) for name, meeting in MEETINGS.items() for policy in ENDS if (meeting[0], policy) not in SKIPPED]


def approving(declare: Declare, kind: str, policy: str) -> Any:
    """The same flow, with an approval in place of the wait."""
    if kind == "approval":
        return dated.flow(declare, kind, policy)
    made = dated.flow(declare, kind, policy)
    ask = flows.Approval(candidate="look", role="leads", expires=dated.FAR, approved="extra", denied="done")
    return declare("t-deadline", meta={"sla": made.definition.sla}, **{**made.definition.nodes, "ask": ask})


def settle(run: Any, worker: LocalWorker) -> None:
    """Whatever was left is done, with a pause taken back."""
    for _ in range(4):
        worker.run()
        sweeps.run_tick(USING)
    if status(run)[0] == "paused":
        flows.resume(run)
        settle(run, worker)


def judge(run: Any, policy: str, name: str) -> None:
    kind, _, besides = MEETINGS[name]
    assert status(run)[0] in ENDS[policy] | besides - {"paused"}, (status(run), row(run).error_code)
    assert faults() == []
    mine = Timer.objects.filter(workflow_id=run.id)
    told = Event.objects.filter(key=str(run.id), type="deadline.expired").count()
    passed = mine.filter(kind__in=("sla", "workflow_deadline", "wait_deadline"), status__in=("fired", "handled")).count()
    # an answer that came first, but was not yet acted on, is why a wait has not expired
    assert told == passed or (name in ("signal at the wait's own", "an answer") and told == 0)
    assert not mine.filter(untold=True).exists()
    assert Notice.objects.filter(workflow_id=run.id, code="SLA_BREACHED", outcome="SLA_BREACHED").count() == (
        told if kind == "SLA" else 0
    )
    assert len(dated.released) == len(set(dated.released))
    acted = [call for call in calls if call[0] in ("other", "act")]
    assert len(acted) <= 1, "one way or the other"
    if status(run)[0] in ("complete", "cancelled", "failed", "superseded"):
        assert not mine.filter(status="pending").exists()


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_an_expiry_meets(worker: LocalWorker, clock: Clock, declare: Declare, name: str, policy: str) -> None:
    kind, meets, _ = MEETINGS[name]
    lee = get_user_model().objects.create_superuser("lee")
    lee.groups.add(Group.objects.create(name="leads"))
    ann = get_user_model().objects.create_user("ann")
    flow = approving(declare, kind, policy) if meets is answer else dated.flow(declare, kind, policy)
    with racers(2) as (one, two):
        for _ in range(max(2, ROUNDS // 8)):
            calls.clear()
            dated.released.clear()
            run = flow.start({}, by=ann)
            worker.run()
            assert status(run)[2] == "ask"
            clock.move(hours=3)
            outcomes = together((one, lambda run=run: expire(run)), (two, lambda run=run: meets(run)))
            assert broken(outcomes) == []
            settle(run, worker)
            judge(run, policy, name)
            flows.cancel(run)
            settle(run, worker)


@pytest.mark.parametrize("policy", ["node", "cancel", "escalate", "release", "release:", "degrade", "breach"])
def test_an_expiry_meets_the_end_of_a_step(worker: LocalWorker, clock: Clock, declare: Declare, policy: str) -> None:
    """The owner commits its result in the moment in which the sweep says that time is over: either it decides with that, or again."""
    flow = dated.flow(declare, "SLA", policy, steps=True)
    with racers(2) as (one, two):
        for _ in range(ROUNDS // 2):
            calls.clear()
            dated.released.clear()
            run = flow.start({})
            owned = at_step(worker)
            clock.move(hours=3)
            outcomes = together(
                (one, lambda run=run: expire(run)), (two, lambda owned=owned: factories.complete(owned, keeping=factories.LET_GO))
            )
            assert broken(outcomes) == []
            settle(run, worker)
            assert status(run)[0] in ENDS[policy]
            assert faults() == []
            assert len(dated.released) == (
                1 if policy in ("release", "release:", "cancel") or status(run)[0] == "complete" else 0
            )
            flows.cancel(run)
            settle(run, worker)


def at_step(worker: LocalWorker) -> Owned:
    """A claimed run whose attempt at `step` is under way."""
    owned = factories.take_one(worker)
    assert enter(owned) is Progress.RUN
    while owned.state.node != "step":
        trigger, ended = attempts.run(owned, worker, taken_over=False)
        assert proceed(owned, trigger, factories.STAY, ended) is Progress.RUN
    return owned


def end_step(owned: Owned) -> Progress:
    return factories.complete(owned, keeping=factories.LET_GO)


def renew(run: Any, flow: type[flows.Flow]) -> None:
    """As a pass does it: with the workflow's row in its hands."""
    with committing("pass", USING):
        locks.workflows([run.id], USING)
        store.renew(run.id, flow.definition.freshness, USING)


def test_a_new_look_meets_the_end_of_the_old_ones_time(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """Either the budget is over and the look is lost with its attempt, or it is renewed and the old time means nothing."""
    flow = dated.flow(declare, "freshness", "fail")
    with racers(2) as (one, two):
        for _ in range(ROUNDS // 2):
            run = flow.start({})
            worker.run()
            timer = Timer.objects.get(workflow_id=run.id, kind="freshness")
            clock.move(hours=3)
            outcomes = together((one, lambda run=run: expire(run)), (two, lambda run=run: renew(run, flow)))
            assert broken(outcomes) == []
            found = list(Timer.objects.filter(workflow_id=run.id, kind="freshness").order_by("pk"))
            assert found[-1].status == "pending"
            assert [before.status for before in found[:-1]] in ([], ["stale"])
            assert timer.pk != found[-1].pk
            flows.cancel(run)
            settle(run, worker)
