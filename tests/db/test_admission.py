"""Admission: which new runs are let in, which wait for their turn, which are refused, and what passes in any case (R2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

import flows
from flows import CANCEL, COMPLETE, REFUSE, Activity, Admission, Deadline, End, Wait, hours
from flows.core.errors import PayloadError
from flows.core.misuse import AdmissionRefused
from flows.models import Deferred, Intent, Slot, Transition, Workflow
from flows.models import Wait as WaitRow
from flows.services import describe
from flows.services.capacity import pump
from flows.services.starting import Origin, start_runs
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status, work

pytestmark = pytest.mark.req("R2")

Declare = Callable[..., type[flows.Flow]]
USING = "default"


def tenant_of(given: Any) -> Any:
    return given.get("tenant")


def limited(declare: Declare, name: str = "t-limited", **options: Any) -> type[flows.Flow]:
    """Waits for an event, and then it is done."""
    return declare(
        name,
        meta={"admission": Admission(**options)} if options else {},
        ask=Wait("t.go", key=lambda state: state.workflow_id, deadline=Deadline(days=9, then="done"), then="work"),
        work=Activity(work, then="done"),
        done=End(COMPLETE),
    )


def go(run: Any, worker: LocalWorker) -> None:
    flows.signal(f"go {run.id}", "t.go", key=str(run.id))
    worker.run()
    assert status(run)[0] == "complete"


def waits(run: Any) -> bool:
    return WaitRow.objects.filter(workflow_id=run.id, kind="resource", closed_at=None).exists()


def held() -> int:
    return Slot.objects.filter(workflow_id__isnull=False).count()


def test_one_more_waits_in_the_open_and_is_let_in_when_one_ends(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, total=2)
    runs = [flow.start({}) for _ in range(4)]
    assert [run.status for run in runs] == ["runnable", "runnable", "waiting", "waiting"]
    worker.run()
    assert (waits(runs[2]), row(runs[2]).version, held()) == (True, 2, 2)
    assert WaitRow.objects.get(workflow_id=runs[2].id).key == "runs:t-limited"
    assert pump.run(USING) == 0
    go(runs[0], worker)
    assert pump.run(USING) == 1
    assert (waits(runs[2]), waits(runs[3]), held(), row(runs[2]).slots) == (False, True, 2, 1)
    worker.run()
    for run in (runs[1], runs[2]):
        go(run, worker)
        worker.tick()
        worker.run()
    go(runs[3], worker)
    assert held() == 0
    log = Transition.objects.filter(workflow_id=runs[2].id).order_by("seq").values_list("trigger", flat=True)
    assert list(log)[:4] == ["start", "defer", "readmit", "claim"]
    assert not Deferred.objects.exists()
    assert describe.verify()


def test_who_is_refused_leaves_nothing(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, total=1, over=REFUSE)
    first = flow.start({}, key="a")
    with pytest.raises(AdmissionRefused, match="runs:t-limited has its 1 live"):
        flow.start({}, key="b")
    assert (Workflow.objects.count(), Intent.objects.count()) == (1, 1)
    assert flow.start({}, key="a").id == first.id, "the same start again is no new run"
    with transaction.atomic():
        kept = factories.Line.start({})
        with pytest.raises(AdmissionRefused):
            flow.start_many([(None, {}), (None, {})])
    assert row(kept).status == "runnable", "the caller's own transaction goes on"
    assert flow.start({}, admit=False).created


def test_keys_are_counted_apart_and_beside_the_total(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, total=3, per=1, key=tenant_of)
    a, a2 = flow.start({"tenant": "a"}), flow.start({"tenant": "a"})
    b, c, d = (flow.start({"tenant": name}) for name in "bcd")
    worker.run()
    keys = dict(WaitRow.objects.filter(kind="resource").values_list("workflow_id", "key"))
    assert keys == {a2.id: "runs-of:t-limited:a", d.id: "runs:t-limited"}
    assert row(d).slots == 1, "d holds its own, and waits for the total"
    go(a, worker)
    pump.run(USING)
    assert (waits(a2), waits(d)) == (False, True), "the total goes to who has waited longest"
    worker.run()
    for run in (b, c, a2, d):
        go(run, worker)
        pump.run(USING)
        worker.run()
    assert held() == 0


def test_settings_go_before_the_flow_and_may_count_all(worker: LocalWorker, declare: Declare, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ADMISSION": {"t-limited": 1, "*": 2}}
    flow, other = limited(declare, total=5), limited(declare, "t-other")
    assert [flow.start({}).status, flow.start({}).status] == ["runnable", "waiting"]
    assert [other.start({}).status, other.start({}).status] == ["runnable", "waiting"]
    assert set(WaitRow.objects.values_list("key", flat=True)) == {"runs:t-limited", "runs"}


def test_obligations_pass(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, total=1)
    first = flow.start({})
    for origin in (Origin(parent=first.id, depth=1), Origin(chain=first.id), Origin(admit=False)):
        (run,) = start_runs(flow.definition, [(None, {})], origin, USING)
        assert run.status == "runnable"
    assert held() == 1


def test_patience_ends_the_wait(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = limited(declare, total=1, patience=Deadline(hours=2, then=CANCEL))
    first, second = flow.start({}), flow.start({})
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert status(second)[0] == "cancelled"
    go(first, worker)
    third, fourth = flow.start({}), flow.start({})
    worker.run()
    go(third, worker)
    worker.tick()
    worker.run()
    assert not waits(fourth)
    assert not Deferred.objects.exists(), "what was forgotten is forgotten here, too"


@pytest.mark.parametrize("how", ["cancel", "supersede", "pause"])
def test_people_step_in_while_it_waits(worker: LocalWorker, declare: Declare, how: str) -> None:
    flow = limited(declare, total=1)
    first, second, third = flow.start({}), flow.start({}), flow.start({})
    if how == "cancel":
        flows.cancel(second)
    elif how == "supersede":
        flows.supersede(second, goal="another")
    else:
        flows.pause(second)
    worker.run()
    go(first, worker)
    assert pump.run(USING) == 1
    assert not waits(third)
    if how == "pause":
        flows.resume(second)
        worker.run()
        assert waits(second), "it waits as before"


def test_a_first_activity_does_not_begin_before_it_is_admitted(worker: LocalWorker, declare: Declare) -> None:
    flow = declare(
        "t-first", meta={"admission": Admission(total=1)}, one=Activity(work, then="two"), two=Activity(work, then="done"),
        done=End(COMPLETE),
    )  # fmt: skip
    first, second = flow.start({}), flow.start({})
    assert row(second).active_seq == 1
    flows.pause(first)
    worker.run()
    assert factories.called("one") == 0
    flows.resume(first)
    worker.run()
    pump.run(USING)
    worker.run()
    assert (status(first)[0], status(second)[0], held()) == ("complete", "complete", 0)


def test_many_at_once_in_order(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, total=3)
    runs = flow.start_many([(f"k{number}", {}) for number in range(5)])
    assert [run.status for run in runs] == ["runnable"] * 3 + ["waiting"] * 2
    again = flow.start_many([(f"k{number}", {}) for number in range(5)])
    assert [run.created for run in again] == [False] * 5
    assert held() == 3


def test_a_key_that_cannot_be_is_the_callers_fault(worker: LocalWorker, declare: Declare) -> None:
    flow = limited(declare, per=1, key=lambda given: "x" * 5_000)
    with pytest.raises(PayloadError, match="the admission key of t-limited"):
        flow.start({})
    assert not Workflow.objects.exists()


def test_the_deadline_of_a_deferred_run_counts_from_its_start(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    flow = declare(
        "t-dated-in", meta={"admission": Admission(total=1), "deadline": Deadline(hours=2, then=CANCEL)},
        ask=Wait("t.go", key="k", deadline=Deadline(days=9, then="done"), then="done"), done=End(COMPLETE),
    )  # fmt: skip
    flow.start({}, admit=False)
    first, second = flow.start({}), flow.start({})
    assert row(second).deadline_at - row(first).deadline_at < hours(1)
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert status(second)[0] == "cancelled"
