"""Everything of the outside world at once, on a few shared runs: events and parts, redelivery, children, capacity, schedules, starts that become
one or replace older ones, and every verb of a person. No deadlock, nothing lost, no invariant broken.
"""

from __future__ import annotations

import logging
import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Admission,
    Child,
    Deadline,
    Dependency,
    End,
    Limit,
    Map,
    On,
    Overlap,
    Ramp,
    Retry,
    StartedBy,
    Wait,
    budgets,
    dependencies,
    seconds,
)
from flows.core import declared as declarations
from flows.core.errors import CapacityUnavailable, OutlastError, Transient
from flows.core.protocol import TERMINAL
from flows.models import Event, Occurrence, Slot, StartKey, Workflow
from flows.models import Limit as LimitRow
from flows.models import Wait as WaitRow
from flows.services import invariants, sweeps
from flows.services.children import shown
from flows.services.schedules import acting
from flows.store import slots
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support.branching import agree
from tests.support.races import racers
from tests.support.scheduling import made

pytestmark = [pytest.mark.req("G4", "E1", "R1", "R2", "M1"), pytest.mark.serial]

USING = "default"
THREADS = 6
SECONDS = float(os.environ.get("OUTSIDE_SECONDS", "20"))
#: Of everything: threads of many seconds make too many runs to be told apart.
MOST_RUNS = 120
KEYS = [f"k{number}" for number in range(4)]
DAYS = Deadline(days=300, then=ESCALATE)
ONCE = Retry(max_attempts=3, initial=seconds(1), jitter=0)
BEGUN = "t.out.begin"


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    Dependency("outside", rate=1_000, ceiling=3, ramp=Ramp(start=500), fails=3)
    Limit("narrow", concurrency=2)
    yield
    declarations.DECLARED[:] = before


def scarce(attempt: Any) -> Any:
    """Now and then what it needs is not there, or it fails."""
    dice = random.Random(attempt.id).random()
    if dice < 0.1:
        raise CapacityUnavailable
    if dice < 0.15:
        raise Transient
    return {"dice": dice}


def of_key(given: Any) -> Any:
    return given.get("key")


class Flows:
    """What the storm is about."""

    def __init__(self, declare: Callable[..., type[flows.Flow]]) -> None:
        work: dict[str, Any] = {"retry": ONCE, "on": {Exception: "lost"}}
        ends: dict[str, Any] = {"done": End(COMPLETE), "lost": End(FAILED)}
        self.leaf = declare(
            "t-out-leaf",
            ask=Wait("t.out.leaf", key=factories.key_of, deadline=DAYS, then="use"),
            use=Activity(factories.work, limits="narrow", then="done", **work),
            **ends,
        )
        self.parent = declare(
            "t-out-parent",
            meta={"deadline": DAYS, "budget": flows.Budget(model_calls=1_000)},
            both=Wait(any=[On("t.out.a", key=factories.key_of), On("t.out.b", key=KEYS)], need=2, deadline=DAYS, then="pay"),
            pay=Activity(factories.work, needs="outside", then="fan", **work),
            fan=Map(items_of, child=self.leaf, concurrency=2, tolerate=flows.ALL, deadline=DAYS, on_cancel=flows.WAIT, then="kid"),
            kid=Child(self.leaf, input=lambda state: {"key": KEYS[0]}, wait=False, on_cancel=flows.REQUEST, then="last"),
            last=Wait("t.out.c", key=factories.key_of, deadline=DAYS, then="done"),
            **ends,
        )  # fmt: skip
        self.newest = declare(
            "t-out-newest",
            meta={
                "admission": Admission(newest=of_key, total=3, patience=DAYS),
                "started_by": StartedBy(BEGUN, key=lambda event: event["id"], user="ann"),
            },
            ask=Wait("t.out.c", key=factories.key_of, deadline=DAYS, then="pay"),
            pay=Activity(factories.work, needs="outside", limits="narrow", then="done", **work),
            **ends,
        )
        self.late = declare(
            "t-out-late",
            meta={"admission": Admission(debounce=seconds(2), key=of_key)},
            ask=Wait("t.out.c", key=factories.key_of, deadline=DAYS, then="done"),
            done=End(COMPLETE),
        )

    @property
    def all(self) -> list[type[flows.Flow]]:
        return [self.parent, self.newest, self.late]


def items_of(state: Any) -> Any:
    return [{"key": key} for key in KEYS[:3]]


class Storm:
    """Random verbs of one thread, repeatable by its seed."""

    def __init__(self, of: Flows, clock: Clock, seed: int) -> None:
        self.of, self.clock, self.dice, self.seed = of, clock, random.Random(seed), seed
        self.worker = factories.another_worker()
        self.count = 0
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []

    def some(self) -> Any:
        """A run, mostly one that lives."""
        rows = Workflow.objects.all() if self.dice.random() < 0.1 else Workflow.objects.exclude(status__in=list(TERMINAL))
        found = rows.order_by("?").values_list("pk", flat=True).first()
        return found or self.start()

    def intent(self) -> Any:
        return Workflow.objects.values_list("intent_id", flat=True).get(pk=self.some())

    def given(self) -> dict[str, Any]:
        return {"key": self.dice.choice(KEYS)}

    def start(self) -> Any:
        if Workflow.objects.count() > MOST_RUNS:
            return Workflow.objects.order_by("?").values_list("pk", flat=True)[0]
        return self.dice.choice([self.of.parent, self.of.newest]).start(self.given()).id

    def start_late(self) -> None:
        self.of.late.start(self.given(), intent=self.intent() if self.dice.random() < 0.5 else None)

    def start_under(self) -> None:
        self.dice.choice(self.of.all).start(self.given(), intent=self.intent())

    def signal(self) -> None:
        self.count += 1
        kind = self.dice.choice(["t.out.a", "t.out.b", "t.out.c", "t.out.leaf", "t.out.leaf", BEGUN])
        flows.signal(
            f"e-{kind}-{self.seed % 2}-{self.count}", kind, key=self.dice.choice(KEYS), payload={"key": self.dice.choice(KEYS)}
        )

    def redeliver(self) -> None:
        found = Event.objects.exclude(status="consumed").order_by("?").first()
        if found is not None:
            wait = (
                WaitRow.objects.filter(closed_at=None, kind="event").order_by("?").first() if self.dice.random() < 0.3 else None
            )
            flows.redeliver(found, by=None, reason="again", to=wait)

    def supersede(self) -> None:
        flow = self.dice.choice([None, None, *self.of.all])
        more: dict[str, Any] = {"flow": flow, "input": self.given()} if flow is not None else {}
        flows.supersede(self.intent(), goal=f"goal {self.dice.random()}", **more)

    def lose(self) -> None:
        factories.lose(self.worker)
        self.worker = factories.another_worker()

    def time_passes(self) -> None:
        self.clock.move(seconds=self.dice.choice([1, 3, 61]))
        sweeps.run_tick(USING)

    def step(self) -> None:
        """One random thing; what a verb refuses with a code of its own is its answer."""
        things: list[tuple[int, Callable[[], Any]]] = [
            (12, lambda: self.worker.run()),
            (4, self.start),
            (2, self.start_late),
            (2, self.start_under),
            (10, self.signal),
            (3, self.redeliver),
            (3, self.time_passes),
            (3, lambda: sweeps.run_tick(USING)),
            (3, lambda: sweeps.run_watch(self.dice.choice(["children", "pump", "newest", "debounce", "event-gaps"]), USING)),
            (2, lambda: flows.pause(self.some())),
            (3, lambda: flows.resume(self.some())),
            (2, lambda: flows.cancel(self.some())),
            (2, self.supersede),
            (1, lambda: flows.cancel_intent(self.intent())),
            (1, self.lose),
            (1, lambda: dependencies.down("outside", reason="storm")),
            (2, lambda: dependencies.up("outside", reason="storm")),
            (1, lambda: dependencies.report("outside", ok=self.dice.random() < 0.5)),
            (1, lambda: dependencies.set_rate("outside", reason="storm", ceiling=self.dice.choice([2, 3, 4]))),
            (1, lambda: shown.retry_failed(self.some())),
            (1, lambda: budgets.raise_(self.some(), "model_calls", by_amount=1, by=None, reason="storm")),
            (1, lambda: acting.run_now(self.dice.choice(["out-supersede", "out-cancel"]))),
        ]
        (thing,) = self.dice.choices([one for _, one in things], [weight for weight, _ in things])
        try:
            thing()
        except OutlastError as error:
            self.done[error.code] += 1
        except Exception:  # noqa: BLE001 - that is what is looked for; the others go on
            self.wrong.append(traceback.format_exc())

    def rage(self, until: float) -> int:
        """Random things until that moment; how many."""
        steps = 0
        while time.monotonic() < until:
            self.step()
            steps += 1
        return steps


def settle(of: Flows, worker: LocalWorker, clock: Clock) -> None:
    """Let everything end that can: time passes, people resume, what is down comes back, events come."""
    factories.does.clear()
    for name in ("out-supersede", "out-cancel"):
        acting.pause(name, reason="over")
    for number in range(40):
        dependencies.up("outside", reason="over")
        clock.move(seconds=40)
        worker.tick()
        worker.run()
        left = Workflow.objects.exclude(status__in=list(TERMINAL))
        if not left.exists() and not StartKey.objects.exclude(due_at=None).exists():
            worker.tick()  # occurrences end with their runs, at a look
            return
        for row in left:
            flows.resume(row.pk)
        for kind in ("t.out.a", "t.out.b", "t.out.c", "t.out.leaf"):
            for key in KEYS:
                flows.signal(f"end-{number}-{kind}-{key}", kind, key=key)
        worker.run()


def test_a_storm_of_the_outside_world(
    worker: LocalWorker, clock: Clock, declare: Callable[..., type[flows.Flow]], caplog: pytest.LogCaptureFixture
) -> None:
    factories.person("ann")
    of = Flows(declare)
    made(of.newest, "out-supersede", overlap=Overlap.SUPERSEDE, input={"key": KEYS[1]})
    made(of.parent, "out-cancel", overlap=Overlap.CANCEL_OLD, input={"key": KEYS[2]})
    factories.does.update(pay=scarce, use=scarce)
    until = time.monotonic() + SECONDS
    with caplog.at_level(logging.ERROR, logger="outlast"), racers(THREADS) as threads:
        storms = [Storm(of, clock, seed) for seed in range(1, THREADS + 1)]
        raging = [racer.do(partial(storm.rage, until)) for racer, storm in zip(threads, storms, strict=True)]
        steps = [one.result(SECONDS + 60) for one in raging]
    wrong = [one for storm in storms for one in storm.wrong]
    assert not wrong, "\n".join(wrong)
    assert [record.getMessage() for record in caplog.records if "failed" in record.getMessage() and record.exc_info] == []
    assert sum(steps) > THREADS * 10, "too little of everything to say anything"
    for storm in storms:
        storm.worker.stop()
    settle(of, worker, clock)
    left = {(row.flow_name, row.status, row.outcome, row.node) for row in Workflow.objects.exclude(status__in=list(TERMINAL))}
    assert left == set()
    assert agree() == []
    assert invariants.scan() == []
    for limit in LimitRow.objects.values_list("pk", flat=True):
        slots.reclaim(limit, USING)  # what a dead worker held is free when somebody wants it
    assert not Slot.objects.exclude(workflow_id=None).exists()
    assert not Occurrence.objects.filter(status="started").exists()
    assert not StartKey.objects.exclude(replaces=[]).exists()
