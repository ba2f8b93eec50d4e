"""Runs of one intent under whatever happens to them, by dice: every ledger is what its entries say, and the intent's is the sum of its runs'."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Budget, Commits, Decision, End, Gate, Retry, Spend, Visits, budgets, minutes, seconds
from flows.core import definition as declared
from flows.core.errors import LostOwnership
from flows.models import Budget as Ledger
from flows.models import Workflow
from flows.services import attempting as attempts
from flows.services import invariants
from flows.services.proceed import Progress, proceed
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support.budgeting import think

pytestmark = pytest.mark.req("N1", "N2")

#: A deploy in the middle changes what is set aside.
STRAYS = {"test_whatever_happens"}

TURNS = 40
AGAIN = Retry(max_attempts=3, initial=seconds(1), jitter=0, max_lost=9)


class Died(BaseException):
    """The process is gone in the middle of the code."""


class Story:
    """One intent, its flow, and the dice."""

    def __init__(self, seed: int, declare: Any, worker: LocalWorker, clock: Clock) -> None:
        self.dice, self.declare, self.worker, self.clock = random.Random(seed), declare, worker, clock
        self.deferrable = self.dice.random() < 0.5
        self.flow = self.deployed(full=True)
        self.intent = self.flow.start({}, goal="one goal").intent_id

    def deployed(self, *, full: bool) -> type[flows.Flow]:
        """The flow; not `full`: of a deploy that sets less aside."""
        declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls.definition.name != "t-story"]
        spends = Spend(model_tokens=400, tool_calls=1) if full else Spend(model_tokens=1)
        room = Commits("room", release=lambda operation: operation.spend(model_tokens=7), deferrable=self.deferrable)
        flow: type[flows.Flow] = self.declare(
            "t-story",
            meta={"budget": Budget(model_tokens=90_000, compute_seconds=900_000)},
            hold=Activity(self.code, spends=Spend(tool_calls=2) if full else None, commits=room, retry=AGAIN, then="think"),
            think=Decision(self.decide, spends=Spend(model_tokens=300), retry=AGAIN, choices={"go": "act"}, visits=Visits(4, then="done")),
            act=Activity(
                self.code, gate=Gate(fresh={"main": self.probe}), spends=spends, timeout=minutes(1), retry=AGAIN,
                visits=Visits(4, then="done"), then="think",
            ),
            done=End(COMPLETE),
        )  # fmt: skip
        return flow

    def probe(self, attempt: Any) -> str:
        if self.dice.random() < 0.5:
            attempt.spend(model_tokens=self.dice.choice([0, 5, 500]))
        return "v1"

    def decide(self, attempt: Any) -> Any:
        self.code(attempt)
        return think(attempt)

    def code(self, attempt: Any) -> None:
        for _ in range(self.dice.randint(0, 3)):
            self.happens(attempt, self.dice.random())

    def happens(self, attempt: Any, what: float) -> None:
        if what < 0.5:
            attempt.spend(model_tokens=self.dice.choice([0, 10, 300]), tool_calls=self.dice.choice([0, 1, 2]))
        elif what < 0.6:
            self.limit()
        elif what < 0.65:
            flows.cancel(attempt.workflow_id)
        elif what < 0.7:
            flows.supersede(self.intent, goal=str(self.dice.random()))
        elif what < 0.78:
            self.later(5)
        elif what < 0.86:
            raise Died
        elif what < 0.93:
            raise ValueError("no")

    def limit(self) -> None:
        budgets.limit(self.intent, model_tokens=self.dice.choice([100, 50_000]), tool_calls=300, compute_seconds=900_000)

    def later(self, after: float) -> None:
        self.clock.move(minutes=after)
        self.worker.tick()

    def turn(self, holder: LocalWorker) -> bool:
        """One attempt of a run that is ready; whether its process died."""
        factories.offer(holder)
        for owned in factories.take_up_to(holder, 1):
            if factories.enter(owned) is not Progress.RUN:
                continue
            try:
                trigger, ending = attempts.run(owned, holder, taken_over=False)
                proceed(owned, trigger, factories.LET_GO, ending)
            except LostOwnership:
                continue
            except Died:
                return True
        return False

    def sound(self) -> None:
        assert invariants.scan() == []
        for whole in Ledger.objects.filter(intent_id=self.intent):
            runs = Workflow.objects.filter(intent_id=self.intent).values("pk")
            parts = Ledger.objects.filter(workflow_id__in=runs, kind=whole.kind)
            assert sum(one.spent for one in parts) == whole.spent, whole.kind
            assert sum(one.reserved for one in parts) == whole.reserved, whole.kind


@pytest.mark.parametrize("seed", range(100, 108))
def test_whatever_happens(declare: Callable[..., Any], worker: LocalWorker, clock: Clock, seed: int) -> None:
    story = Story(seed, declare, worker, clock)
    dice, holder = story.dice, factories.another_worker()
    for _ in range(TURNS):
        if dice.random() < 0.15:
            story.flow.start({}, intent=story.intent)
        if dice.random() < 0.1:
            story.limit()
        if story.turn(holder):
            if dice.random() < 0.5:
                story.flow = story.deployed(full=dice.random() < 0.5)
                factories.offer(worker)
            if dice.random() < 0.4:
                story.later(40)
            factories.lose(holder)
            holder = factories.another_worker()
        if dice.random() < 0.3:
            story.later(0.5)
        if dice.random() < 0.2:
            worker.run(["cleanup"])
        story.sound()
    factories.lose(holder)
    worker.tick()
    story.sound()
    assert not Ledger.objects.exclude(reserved=0).exists()
