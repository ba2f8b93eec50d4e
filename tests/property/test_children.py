"""Trees of three levels, whatever ends, is killed, cancelled or continues in whatever order: each item is joined once, and nothing is left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import flows
from flows import ALL, COMPLETE, Activity, End, Map, Parallel
from flows.core.protocol import TERMINAL
from flows.models import Branch, Fan, Transition, Workflow
from flows.testing import LocalWorker, local_worker, movable_clock
from tests import factories
from tests.factories import row
from tests.support import record as records
from tests.support.branching import DAY, acts, agree, items_of, settle
from tests.support.continuing import chaining
from tests.support.obligations import faults

pytestmark = pytest.mark.req("G4")

ITEMS = ("a", "b")
MOVES = ("work", "tick", "on a", "stop a", "stop b", "claim", "let go", "lose", "cancel a", "cancel middle", "cancel top")


class World:
    """A run over two items, each with two branches, one of which waits, goes on as a new run, or stops, as it is told."""

    def __init__(self, worker: LocalWorker, declare: Any) -> None:
        self.worker, self.said = worker, 0
        self.held: Any = None
        chaining(declare)
        both = Parallel({"waits": "t-chain", "works": Activity(factories.work)}, then="done", failed="done", deadline=DAY)
        declare("t-middle", both=both, done=End(COMPLETE))
        each = Map(items_of, child="t-middle", tolerate=ALL, then="done", failed="done", deadline=DAY)
        top = declare("t-top", each=each, done=End(COMPLETE))
        factories.offer(worker)
        self.run = top.start({"items": [{"key": name} for name in ITEMS]})

    def do(self, move: str) -> None:
        verb, _, of = move.partition(" ")
        getattr(self, f"do_{verb}")(of)

    def do_work(self, _of: str) -> None:
        self.worker.run()

    def do_tick(self, _of: str) -> None:
        self.worker.tick()

    def do_on(self, of: str) -> None:
        self.say(of, "on")

    def do_stop(self, of: str) -> None:
        self.say(of, "stop")

    def say(self, of: str, what: str) -> None:
        self.said += 1
        flows.signal(f"s{self.said}", "t.chain", key=of, payload={"say": what})

    def do_claim(self, _of: str) -> None:
        if self.held is None and (taken := factories.take_up_to(self.worker, 1)):
            self.held = taken[0]

    def do_let(self, _of: str) -> None:
        if self.held is not None:
            factories.run_alone(self.held, self.worker)
            self.held = None

    def do_lose(self, _of: str) -> None:
        factories.lose(self.worker)
        self.worker, self.held = factories.another_worker(), None
        factories.offer(self.worker)

    def do_cancel(self, of: str) -> None:
        flow = {"top": "t-top", "middle": "t-middle"}.get(of, "t-chain")
        found = Workflow.objects.filter(flow_name=flow).exclude(status__in=TERMINAL).order_by("pk").first()
        if found is not None:
            flows.cancel(found)

    def end(self) -> None:
        """Until the tree is over: whatever waits is told to stop."""
        self.do_let("")
        for _ in range(8):
            settle(self.worker)
            if not Workflow.objects.exclude(status__in=TERMINAL).exists():
                return
            for name in ITEMS:
                self.say(name, "stop")
        raise AssertionError(f"it does not end: {flows.describe(self.run)}")


@given(moves=st.lists(st.sampled_from(MOVES), min_size=2, max_size=10))
@example(moves=["work", "tick", "on a", "work", "on b", "claim", "lose", "cancel middle", "work"])
@settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_any_order(transactional_db: None, moves: list[str]) -> None:
    records.wipe()
    factories.forget()
    acts.clear()
    with movable_clock(), local_worker() as worker, factories.declaring(worker) as declare:
        world = World(worker, declare)
        for move in moves:
            world.do(move)
            assert records.unsound() == []
            assert faults() == []
            assert agree() == []
        world.end()
        assert row(world.run).status in ("complete", "cancelled")
        assert agree() == []
        assert not Branch.objects.filter(status__in=["planned", "running"]).exists()
        assert not Fan.objects.exclude(status="closed").exists()
        for fan in Fan.objects.all():
            joins = Transition.objects.filter(workflow_id=fan.workflow_id, trigger="children", from_node=fan.node).count()
            assert joins <= 1
        for branch in Branch.objects.exclude(status="skipped"):
            kid = Workflow.objects.get(pk=branch.workflow_id)
            assert (kid.outcome, kid.parent_id) == (branch.outcome, branch.parent_id)
            assert kid.continued_to is None, "the branch is the newest run's"
        assert not Workflow.objects.filter(outcome="CONTINUED", continued_to=None).exists()
