"""Each kind of wait that there is, by what it does: who ends it, what a resume and a cancel mean to it, what it draws on (C5)."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command

import flows
from approvals.models import Request
from approvals.tools import requires_approval
from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Approval,
    Ask,
    Budget,
    Candidate,
    Deadline,
    Decision,
    End,
    Field,
    Job,
    Map,
    Sleep,
    Wait,
    hours,
)
from flows.core.protocol import ASKING, RESUMED, SUSPENDING, WAIT_KINDS
from flows.models import Budget as Ledger
from flows.models import Operation
from flows.models import Wait as WaitRow
from flows.services.preview import preview
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, failing, row, status
from tests.support import doubting
from tests.support.branching import Slow

pytestmark = pytest.mark.req("C5")

Declare = Callable[..., type[flows.Flow]]
#: Those that a node or the engine opens today.
OPENED = (
    "timer",
    "retry_window",
    "event",
    "approval",
    "tool_approval",
    "ask",
    "human",
    "reconciliation",
    "children",
    "external_job",
)
TO_COME = {"resource", "dependency_health"}
FAR = Deadline(days=30, then=ESCALATE)


def opened(kind: str, worker: LocalWorker, declare: Declare) -> Any:
    """A run that stands in a wait of this kind."""
    if kind == "reconciliation":
        doubting.forget()
        return doubting.in_doubt(worker).workflow
    if kind == "retry_window":
        does["one"] = failing(1)
    if kind == "human":
        does["one"] = failing(1, flows.errors.CompetenceFailure)
    if kind == "tool_approval":
        does["one"] = lambda attempt: guarded(attempt.number)
    stands: dict[str, Any] = {
        "timer": Sleep(hours(1), then="done"),
        "event": Wait("t.kinds", key="k", then="done", deadline=FAR),
        "children": Map(lambda state: [{"key": "mine"}], child=Slow, then="done", deadline=FAR),
        "external_job": Job(factories.work, event="t.kinds", key="k", then="done", deadline=FAR),
        "ask": Ask([Field("amount", kind="integer")], role="leads", then="done", deadline=FAR),
        "approval": Approval(candidate="think", role="leads", expires=FAR, approved="done", denied="done"),
    }
    run = declare(
        f"t-kind-{kind}".replace("_", "-"),
        meta={"budget": Budget(compute_seconds=3600, human_reviews=5)},
        think=Decision(lambda attempt: Candidate("go", 1), choices={"go": "one"}),
        one=Activity(factories.work, retry=factories.SLOWLY, then="stand" if kind in stands else "done"),
        **({"stand": stands[kind]} if kind in stands else {}),
        done=End(COMPLETE),
    ).start({})
    worker.run()
    return run


@requires_approval(role="leads", name="t-kinds-guarded", expires=timedelta(days=30))
def guarded(number: int) -> None: ...


def wait(kind: str) -> WaitRow:
    return WaitRow.objects.get(kind=kind)


def test_the_table_has_what_is_opened_today_and_what_is_to_come() -> None:
    assert set(WAIT_KINDS) == set(OPENED) | TO_COME
    assert set(RESUMED) >= SUSPENDING


@pytest.mark.parametrize("kind", OPENED)
def test_who_ends_it_is_said_and_is_a_right_that_exists(worker: LocalWorker, declare: Declare, kind: str) -> None:
    run = opened(kind, worker, declare)
    (told,) = flows.describe(run).waits
    assert (told.kind, told.ends) == (kind, WAIT_KINDS[kind].ends)
    out = io.StringIO()
    call_command("flows", "show", str(run.id), stdout=out)
    assert f"from {WAIT_KINDS[kind].ends};" in out.getvalue()
    if right := WAIT_KINDS[kind].right:
        app, _, codename = right.partition(".")
        assert Permission.objects.filter(content_type__app_label=app, codename=codename).exists()


@pytest.mark.parametrize("kind", OPENED)
def test_a_cancel_withdraws_it_and_does_what_the_table_says_besides(worker: LocalWorker, declare: Declare, kind: str) -> None:
    run = opened(kind, worker, declare)
    (ending,) = [one for one in preview(run) if one.workflow == run.id]
    means = WAIT_KINDS[kind].on_cancel
    assert ending.withdrawn == [f"{kind} at {row(run).node}" + ("" if means == "that is all" else f": {means}")]
    flows.cancel(run)
    assert wait(kind).status == "withdrawn"
    requests = list(Request.objects.values_list("status", flat=True))
    assert requests == (["cancelled"] if kind in ASKING else [])
    settled_first = "what became of the effect is found out first"
    assert (status(run)[0] == "cancelling") == (means == settled_first), "nothing else holds up its end"
    assert Operation.objects.filter(workflow_id=run.id, status="uncertain").exists() == (means == settled_first)


@pytest.mark.parametrize("kind", OPENED)
def test_a_resume_ends_it_or_waits_on(worker: LocalWorker, declare: Declare, kind: str) -> None:
    run = opened(kind, worker, declare)
    if kind == "reconciliation":
        with pytest.raises(flows.errors.OutlastError):
            flows.resume(run)  # a person's word ends it, and then it goes on
        return
    if kind != "human":
        flows.pause(run)
    flows.resume(run)
    assert (wait(kind).status == "satisfied") == WAIT_KINDS[kind].resumes
    worker.run()
    assert (status(run)[0] == "complete") == WAIT_KINDS[kind].resumes


@pytest.mark.parametrize("kind", OPENED)
def test_only_what_ends_it_ends_it(worker: LocalWorker, clock: Clock, declare: Declare, kind: str) -> None:
    opened(kind, worker, declare)
    assert flows.signal("other", "t.kinds", key="another").answer == "kept"
    clock.move(hours=2)
    worker.tick()
    worker.run()
    by_time = kind in ("timer", "retry_window")
    assert ("the clock" in WAIT_KINDS[kind].by) == by_time
    assert (wait(kind).status != "open") == by_time
    flows.signal("mine", "t.kinds", key="k")
    worker.run()
    assert (wait(kind).status != "open") == (by_time or kind in ("event", "external_job"))


@pytest.mark.parametrize("kind", [kind for kind in OPENED if kind != "reconciliation"])
def test_what_it_draws_on_and_that_computing_stands_still(worker: LocalWorker, clock: Clock, declare: Declare, kind: str) -> None:
    run = opened(kind, worker, declare)
    clock.move(hours=2)
    worker.tick()
    worker.run()
    spent = dict(Ledger.objects.filter(workflow_id=run.id).values_list("kind", "spent"))
    assert spent.get("human_reviews", 0) == (1 if WAIT_KINDS[kind].counts == "human_reviews" else 0)
    assert spent["compute_seconds"] < timedelta(minutes=5).total_seconds()
