"""Whatever is done in whatever order around migrations: the record is sound, nobody is stranded, and every step is done once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Retry, Sleep, Wait, minutes, seconds
from flows.core.protocol import TERMINAL
from flows.models import Transition
from flows.testing import Clock, LocalWorker, local_worker, movable_clock
from tests import factories
from tests.factories import calls, does, row
from tests.support import record as records
from tests.support.obligations import faults
from tests.support.versions import version

pytestmark = pytest.mark.req("G2", "A4")

NAME = "t-any-order"
LONG = Deadline(days=900, then=ESCALATE)
RETRY = Retry(max_attempts=9, initial=seconds(30), jitter=0)

MOVES = ("work", "signal", "pause", "resume", "to 2", "to 3", "rehearse", "minutes", "fail", "claim", "let go", "lose")


def nodes(number: int) -> dict[str, Any]:
    """Version 2 scans before it acts; version 3 calls the wait by another name."""
    wait = "hear" if number == 3 else "ask"
    made = {
        "one": Activity(factories.work, retry=RETRY, then="nap"),
        "nap": Sleep(minutes(3), then=wait),
        wait: Wait("t.any", key="k", deadline=LONG, then="act" if number == 1 else "scan"),
        "scan": Activity(factories.work, retry=RETRY, then="act"),
        "act": Activity(factories.work, retry=RETRY, then="done"),
        "done": End(COMPLETE),
    }
    if number == 1:
        del made["scan"]
    return made


class World:
    """One run, and whoever acts on it."""

    def __init__(self, worker: LocalWorker, clock: Clock, flow: type[flows.Flow]) -> None:
        self.worker, self.clock = worker, clock
        self.run = flow.start({}, key="k")
        self.events = 0
        self.held: Any = None

    def do(self, move: str) -> None:
        getattr(self, "do_" + move.replace(" ", "_"))()

    def do_work(self) -> None:
        self.worker.run()

    def do_signal(self) -> None:
        self.events += 1
        flows.signal(f"e{self.events}", "t.any", key="k")

    def do_pause(self) -> None:
        flows.pause(self.run)

    def do_resume(self) -> None:
        flows.resume(self.run)

    def do_to_2(self) -> None:
        self.migrate(2)

    def do_to_3(self) -> None:
        self.migrate(3)

    def migrate(self, to: int) -> None:
        before = row(self.run)
        found = flows.migrate(self.run, to=to)
        after = row(self.run)
        moved = found.answer == "migrated"
        assert (after.flow_version, after.epoch) == ((to, before.epoch + 1) if moved else (before.flow_version, before.epoch))
        assert moved or after.version == before.version
        if moved:
            assert after.status == ("paused" if before.status == "paused" else "runnable")
        else:
            assert found.answer == self.why_not(to, before), found

    @staticmethod
    def why_not(to: int, before: Any) -> str:
        if before.flow_version == to:
            return "already"
        return "busy" if before.status == "running" and before.flow_version < to else "refused"

    def do_rehearse(self) -> None:
        before = row(self.run).version
        assert flows.migrate(self.run, dry_run=True).answer != "migrated"
        assert row(self.run).version == before

    def do_minutes(self) -> None:
        self.clock.move(minutes=2)
        self.worker.tick()

    def do_fail(self) -> None:
        for name in ("one", "scan", "act"):
            does[name] = factories.failing(1)

    def do_claim(self) -> None:
        if self.held is None and (taken := factories.take_up_to(self.worker, 1)):
            self.held = taken[0]

    def do_let_go(self) -> None:
        if self.held is not None:
            factories.run_alone(self.held, self.worker)
            self.held = None

    def do_lose(self) -> None:
        factories.lose(self.worker)
        self.worker, self.held = factories.another_worker(), None

    def end(self) -> None:
        """Until it is over, by what a run may always hope for."""
        self.do_let_go()
        does.clear()
        for _ in range(12):
            if row(self.run).status in TERMINAL:
                return
            flows.resume(self.run)
            self.clock.move(minutes=5)
            self.worker.tick()
            self.worker.run()
            self.do_signal()
        raise AssertionError(f"it does not end: {flows.describe(self.run)}")


@given(moves=st.lists(st.sampled_from(MOVES), max_size=14))
@settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_any_order(transactional_db: None, moves: list[str]) -> None:
    records.wipe()
    factories.forget()
    with movable_clock() as clock, local_worker() as worker, factories.declaring(worker) as declare:
        one = version(declare, NAME, 1, nodes(1))
        version(declare, NAME, 2, nodes(2), migrate_from={1: {}})
        version(declare, NAME, 3, nodes(3), migrate_from={2: {"ask": "hear"}})
        factories.offer(worker)
        world = World(worker, clock, one)
        for move in moves:
            world.do(move)
            assert records.unsound() == []
            assert records.stranded() == []
            assert faults() == []
        world.end()
        assert row(world.run).status == "complete"
        good = Counter(Transition.objects.filter(trigger="completed").values_list("from_node", flat=True))
        assert set(good.values()) <= {1}
        assert {"one", "act"} <= set(good) <= {"one", "scan", "act"}
        assert {visit for _, visit, _ in calls} == {1}
