"""Leases of workers, and the sweep that finds ready work without a hint."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

import flows
from flows.core.ids import new_id
from flows.models import Worker, Workflow
from flows.services import sweeps
from flows.store import workers
from flows.store.workers import Process, Renewed
from flows.testing import Clock, LocalWorker
from tasks.keeper import Keeper, Offer
from tasks.shared import Shared
from tests import factories
from tests.factories import Line
from tests.support.record import Counting

pytestmark = pytest.mark.req("A7")

USING = "default"


# ---------------------------------------------------------------- dispatch


def test_ready_work_without_a_hint_is_found(worker: LocalWorker, clock: Clock, hints: Counting) -> None:
    for priority in (0, 5):
        Line.start({}, priority=priority)
    hints.clear()
    sweeps.run_tick(USING)
    assert hints.hints == []
    clock.move(seconds=1)
    sweeps.run_tick(USING)
    assert [(hint.queue, len(hint.ids)) for hint in hints.hints] == [("agents", 2)]
    urgent = Workflow.objects.get(priority=5)
    assert hints.hints[0].ids[0] == str(urgent.pk)


def test_the_sweep_publishes_at_most_the_free_slots(worker: LocalWorker, clock: Clock, hints: Counting) -> None:
    Line.start_many([(None, {}) for _ in range(95)])
    factories.another_worker()
    hints.clear()
    clock.move(seconds=1)
    assert sweeps.dispatch_ready(USING) == 2
    assert [len(hint.ids) for hint in hints.hints] == [10, 10]


# ---------------------------------------------------------------- leases


def process(name: str = "w") -> dict[str, Any]:
    return {
        "id": new_id(), "name": name, "region": "", "host_class": "", "placements": [], "queues": ["agents"], "definitions": [],
        "concurrency": 1, "lease": 10.0,
    }  # fmt: skip


HERE = Process("host", "boot", "ns", 1, "then")


def test_one_live_worker_a_name(transactional_db: None) -> None:
    first, second = process(), process()
    assert workers.register(first, HERE, USING) is False
    assert workers.register(second, HERE, USING) is None
    assert workers.alive_named("w", USING) == (first["id"], HERE)
    assert workers.stop(first["id"], USING)
    assert not workers.stop(first["id"], USING)
    assert workers.register(second, HERE, USING) is False


@pytest.mark.parametrize("held", [False, True])
def test_who_registers_knows_at_once_whether_anything_is_held(transactional_db: None, *, held: bool) -> None:
    """Else each step of the first three seconds would ask for itself."""
    if held:
        flows.hold("all", reason="a deploy")
    shared = Shared()
    Keeper(Offer("w@host", ["agents"], [], [], 1), shared, forked=False, using=USING).register()
    assert shared.holds() is held


def test_dead_is_final(transactional_db: None) -> None:
    one = process()
    workers.register(one, HERE, USING)
    assert workers.renew(one["id"], 10.0, USING) is not None
    assert workers.bury(USING) == []
    assert workers.bury(USING, one["id"]) == [(one["id"], "w")]
    assert workers.bury(USING, one["id"]) == []
    assert workers.renew(one["id"], 10.0, USING) is None
    assert not workers.stop(one["id"], USING)


def test_a_lease_that_ran_out_is_not_renewed_even_if_nobody_buried_it(transactional_db: None) -> None:
    one = process()
    workers.register(one, HERE, USING)
    Worker.objects.update(lease_until="2020-01-01T00:00Z")
    assert workers.renew(one["id"], 10.0, USING) is None


def test_a_renewal_says_how_old_the_last_tick_is(worker: LocalWorker) -> None:
    sweeps.run_tick(USING)
    renewed = workers.renew(worker.incarnation, 10.0, USING)  # type: ignore[arg-type]
    assert renewed is not None
    assert 0 <= renewed.age < 60
    for set_back in ("UPDATE outlast_tick SET ticked_at = statement_timestamp() + interval '1 h'", "DELETE FROM outlast_tick"):
        with connection.cursor() as cursor:
            cursor.execute(set_back)
        assert workers.renew(worker.incarnation, 10.0, USING) == Renewed(float("inf"), holds=False)  # type: ignore[arg-type]
