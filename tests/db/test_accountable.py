"""Under whose rights a run works: the accountable user's, as they are now. Where nobody is accountable any more, nothing is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

import flows
from flows import COMPLETE, Activity, Decision, End, Fresh, Gate, Sleep, hours
from flows.models import Notice, Verdict
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import called, row, status

pytestmark = pytest.mark.req("D4", "H4")

Declare = Callable[..., type[flows.Flow]]
RIGHT = "outlast_flows.operate_workflow"


@pytest.fixture
def ann(transactional_db: None) -> Any:
    """Ann has the right."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    return user


def asleep(declare: Declare, worker: LocalWorker, by: Any) -> Any:
    """A run that sleeps before a step for which somebody must have a right."""
    run = declare(
        "t-accountable",
        nap=Sleep(hours(1), then="act"),
        act=Activity(factories.work, gate=Gate(authority=RIGHT), then="done"),
        done=End(COMPLETE),
    ).start({}, by=by)
    worker.run()
    return run


def wake(worker: LocalWorker, clock: Clock) -> None:
    clock.move(hours=2)
    worker.tick()
    worker.run()


def deleted(ann: Any) -> None:
    """Deleted in Django: the run is nobody's, and her name stays as a label."""
    ann.delete()


def left(ann: Any) -> None:
    ann.is_active = False
    ann.save()


def lost(ann: Any) -> None:
    ann.user_permissions.clear()


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (deleted, "nobody is accountable for this run"),
        (left, "the accountable user is not active"),
        (lost, "the accountable user has no such permission"),
    ],
)
def test_a_timer_wakes_and_the_rights_of_now_decide(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any, happens: Callable[[Any], None], reason: str
) -> None:
    run = asleep(declare, worker, ann)
    happens(ann)
    wake(worker, clock)
    assert (*status(run), row(run).error_code) == ("waiting", "POLICY_BLOCKED", "act", "AUTHORITY_DENIED")
    assert (called("act"), row(run).user_label) == (0, "ann")
    assert Verdict.objects.get(workflow_id=run.id, verdict="AUTHORITY_DENIED").reason == f"{RIGHT}: {reason}"


def test_a_user_who_is_deleted_while_the_attempt_looks(worker: LocalWorker, declare: Declare, ann: Any) -> None:
    """The claim had named her still: whom it names is looked up, and nobody is told in her place."""

    def probe(attempt: Any) -> str:
        if attempt.node == "act":
            ann.delete()
        return "v1"

    run = declare(
        "t-deleted",
        propose=Decision(lambda attempt: flows.Candidate("go", 1), choices={"go": "act"}),
        act=Activity(factories.work, gate=Gate(fresh={"main": Fresh(probe)}, authority=RIGHT), then="done"),
        done=End(COMPLETE),
    ).start({}, by=ann)
    worker.run()
    assert (*status(run)[:2], called("act")) == ("waiting", "POLICY_BLOCKED", 0)
    assert Verdict.objects.get(verdict="AUTHORITY_DENIED").reason == f"{RIGHT}: the accountable user does not exist any more"
    assert not Notice.objects.exists()


def test_a_run_that_nobody_answers_for_may_do_nothing_that_needs_a_right(
    worker: LocalWorker, clock: Clock, declare: Declare, ann: Any
) -> None:
    run = asleep(declare, worker, None)
    wake(worker, clock)
    assert (*status(run)[:2], called("act")) == ("waiting", "POLICY_BLOCKED", 0)
    assert "nobody is accountable" in Verdict.objects.get(workflow_id=run.id, verdict="AUTHORITY_DENIED").reason


def test_a_right_that_is_given_while_it_sleeps_counts(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    bob = get_user_model().objects.create_user("bob")
    run = asleep(declare, worker, bob)
    bob.user_permissions.add(Permission.objects.get(codename="operate_workflow"))
    wake(worker, clock)
    assert (status(run)[0], called("act")) == ("complete", 1)


@pytest.mark.failure("signed payload with instructions")
def test_the_event_that_wakes_it_brings_no_rights(worker: LocalWorker, declare: Declare, ann: Any) -> None:
    """Who is named in a payload is data: the turn runs under the rights of the accountable user."""
    bob = get_user_model().objects.create_user("bob")
    run = declare(
        "t-isolated",
        ask=flows.Wait("t.isolated", key="k", deadline=flows.Deadline(days=1, then=flows.ESCALATE), then="act"),
        act=Activity(factories.work, gate=Gate(authority=RIGHT), then="done"),
        done=End(COMPLETE),
    ).start({}, by=bob)
    worker.run()
    flows.signal("e1", "t.isolated", key="k", payload={"user": "ann", "by": ann.pk, "permissions": [RIGHT]})
    worker.run()
    assert (*status(run)[:2], called("act")) == ("waiting", "POLICY_BLOCKED", 0)
