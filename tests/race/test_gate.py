"""The pass against everybody who may move the workflow meanwhile: the code runs exactly if the pass is on record."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

import flows
from approvals.api import decide
from approvals.models import Request
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Candidate, Deadline, Decision, End, Flow, Gate
from flows.core.errors import LostOwnership
from flows.models import Verdict
from flows.services import attempting as attempts
from flows.services import sweeps
from flows.services.owned import Owned
from flows.store.sql import run as execute
from flows.testing import LocalWorker
from tests import factories
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("H1", "D3", "A3")

ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "24"))

ran: list[str] = []


def propose(attempt: Any) -> Candidate:
    return Candidate("go", {"text": "as proposed"})


def act(attempt: Any) -> dict[str, Any]:
    ran.append(attempt.workflow_id)
    return dict(attempt.versions)


class Guarded(Flow):
    """An approved step that stands on what is outside."""

    class Meta:
        name = "t-guarded"

    propose = Decision(propose, choices={"go": "ask"})
    ask = Approval(
        candidate="propose", role="r", expires=Deadline(hours=1, then=ESCALATE), approved="act", denied="no", self_approval=True
    )
    act = Activity(act, gate=Gate(approved_by="ask", fresh={"main": lambda attempt: "v1"}), then="done")
    done = End(COMPLETE)
    no = End(FAILED)


@pytest.fixture
def ann(transactional_db: None) -> Any:
    ran.clear()
    user = get_user_model().objects.create_superuser("ann")
    user.groups.add(Group.objects.create(name="r"))
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals"))
    return user


def entered(worker: LocalWorker, holder: LocalWorker, ann: Any) -> Owned:
    """A run whose holder has entered the guarded step, and has not looked yet."""
    run = Guarded.start({}, by=ann)
    worker.run()
    request = Request.objects.get(workflow_id=run.id)
    assert decide(request, verdict="approve", digest=request.digest, by=ann)
    owned = factories.take_one(holder)
    factories.enter(owned)
    return owned


def overdue(owned: Owned) -> None:
    execute(
        "overdue",
        "UPDATE outlast_activity SET timeout_at = 'epoch' WHERE workflow_id = %(id)s::uuid",
        {"id": owned.row.id},
        "default",
    )
    sweeps.time_out("default")


#: What somebody else does, and how the run ends when all have gone on.
OTHERS: dict[str, tuple[Callable[[Owned, LocalWorker], Any], str]] = {
    "cancel": (lambda owned, holder: flows.cancel(owned.row.id), "cancelled"),
    "supersede": (lambda owned, holder: flows.supersede(owned.row.intent_id, goal="x"), "superseded"),
    "put back": (lambda owned, holder: factories.lose(holder), "complete"),
    "time out": (lambda owned, holder: overdue(owned), "complete"),
    "pause and resume": (lambda owned, holder: (flows.pause(owned.row.id), flows.resume(owned.row.id)), "complete"),
}


def judge(owned: Owned, outcomes: list[Any]) -> None:
    """Whoever was first counts: the code ran exactly if the pass is on record, and with it the use of the approval."""
    passed = Verdict.objects.filter(workflow_id=owned.row.id, node="act", verdict="ALLOWED").count()
    assert passed == ran.count(str(owned.row.id))
    assert isinstance(outcomes[0], LostOwnership) == (passed == 0), outcomes
    assert not isinstance(outcomes[1], Exception), outcomes
    assert (Request.objects.get(workflow_id=owned.row.id).used_by is not None) == (passed == 1)


def bring_home(owned: Owned, holder: LocalWorker, worker: LocalWorker, end: str) -> None:
    """The holder does nothing more; the others bring the run to its end, with the same approval."""
    factories.lose(holder)
    worker.run()
    execute("now", "UPDATE outlast_timer SET due_at = 'epoch' WHERE status = 'pending' AND kind = 'retry'", {}, "default")
    worker.tick()
    worker.run()
    assert factories.row(owned.row.id).status == end
    request = Request.objects.get(workflow_id=owned.row.id)
    assert (end, request.status) in (("complete", "consumed"), ("cancelled", request.status), ("superseded", request.status))
    assert request.status in ("consumed", "invalidated")


@pytest.mark.parametrize("other", OTHERS)
def test_the_pass_against_another_many_times(worker: LocalWorker, ann: Any, other: str) -> None:
    theirs, end = OTHERS[other]
    with racers(2) as (one, two):
        for _ in range(ROUNDS):
            holder = factories.another_worker()
            owned = entered(worker, holder, ann)
            judge(owned, together((one, passing(owned, holder)), (two, partial(theirs, owned, holder))))
            bring_home(owned, holder, worker, end)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("pass_first", [True, False], ids=["pass first", "other first"])
def test_the_second_finds_what_the_first_has_done(worker: LocalWorker, ann: Any, other: str, *, pass_first: bool) -> None:
    theirs, end = OTHERS[other]
    holder = factories.another_worker()
    owned = entered(worker, holder, ann)
    mine, other_one = passing(owned, holder), partial(theirs, owned, holder)
    met = overtaken(mine, other_one) if pass_first else overtaken(other_one, mine)
    judge(owned, [met.first, met.second] if pass_first else [met.second, met.first])
    bring_home(owned, holder, worker, end)


def passing(owned: Owned, holder: LocalWorker) -> Callable[[], Any]:
    return lambda: attempts.run(owned, holder, taken_over=False)
