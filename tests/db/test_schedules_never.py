"""Occurrences that do not start: the flow is not known here, or nowhere; a start that was put off is never made (M1)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from flows import COMPLETE, Activity, Admission, End, hours, minutes, seconds
from flows.models import Occurrence, StartKey, Worker
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support.scheduling import Declare, made, now, quick, runs, tick, told

pytestmark = pytest.mark.req("M1")


def test_a_process_without_the_flow_leaves_it_to_those_that_have_it(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """Five ticks of a clock that does not know the flow failed it, however many workers did."""
    made("t-nowhere", at=now() + minutes(1))
    offering = Worker.objects.create(
        id=uuid4(), name="elsewhere", status="alive", host="h", boot_id="b", pid_namespace="p", pid=1, process_started="s",
        queues=[], definitions=["t-other@1", "t-nowhere@3"], concurrency=1, lease_until=now() + hours(99), renewed_at=now(),
        started_at=now(),
    )  # fmt: skip
    clock.move(minutes=2)
    for _ in range(7):
        tick(worker)
        clock.move(minutes=30)
    assert told() == [("pending", "")]
    Worker.objects.filter(pk=offering.pk).update(status="dead", ended_at=now())
    tick(worker)
    assert (told(), Occurrence.objects.get().tries) == ([("pending", "UNKNOWN_FLOW")], 0)
    quick(declare, "t-nowhere")
    tick(worker, 2)
    assert told() == [("done", "")]


def test_what_no_worker_offers_for_an_hour_has_failed(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    made("t-nobodys", at=now() + minutes(1))
    clock.move(minutes=2)
    tick(worker)
    clock.move(minutes=59)
    tick(worker)
    assert told() == [("pending", "UNKNOWN_FLOW")]
    clock.move(minutes=2)
    tick(worker)
    assert told() == [("failed", "UNKNOWN_FLOW")]


@pytest.mark.parametrize("how", ["closed", "fails"])
def test_an_occurrence_whose_start_was_put_off_and_is_never_made_has_failed(
    worker: LocalWorker, clock: Clock, declare: Declare, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken: list[str] = []

    def replaced(given: Any) -> str | None:
        if broken:
            raise ValueError(broken[0])
        return None

    admission = Admission(debounce=seconds(30), newest=replaced)
    flow = declare(
        f"t-put-off-{how}", meta={"admission": admission}, one=Activity(factories.work, then="done"), done=End(COMPLETE)
    )
    made(flow, at=now() + minutes(1))
    clock.move(seconds=61)
    tick(worker)
    assert told() == [("started", "")]
    assert runs() == []
    if how == "closed":
        StartKey.objects.update(origin=StartKey.objects.get().origin | {"intent": str(uuid4())})
        clock.move(seconds=31)
        tick(worker)
    else:
        broken.append("a mistake of the flow")
        for _ in range(60):
            clock.move(minutes=30)
            tick(worker)
        assert 20 < len([one for one in caplog.messages if "that was put off failed" in one]) < 40
    tick(worker)
    assert told() == [("failed", "NEVER_STARTED")]
    assert Occurrence.objects.get().ended_at is not None
