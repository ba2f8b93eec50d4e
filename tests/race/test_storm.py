"""Everything at once: workers, sweeps, signals and people on the same few workflows. No deadlock, nobody stranded, every log right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Retry, Sleep, Wait, seconds
from flows.core.errors import CompetenceFailure, Transient
from flows.core.protocol import TERMINAL
from flows.models import Activity as ActivityRow
from flows.models import Attempt, Event, Intent, Workflow
from flows.services import describe, sweeps
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support.races import racers, together

USING = "default"
THREADS = 5
KEYS = [f"k{number}" for number in range(6)]


def shaky(attempt: Any) -> Any:
    """Now and then it fails, beats, notes, pauses or cancels its own run."""
    dice = random.Random(attempt.id).random()
    if dice < 0.15:
        raise Transient
    if dice < 0.2:
        raise CompetenceFailure
    if dice < 0.3:
        attempt.note({"dice": dice})
    if dice < 0.35:
        flows.pause(attempt.workflow_id)
    return {"dice": dice}


def declare_storm(declare: Callable[..., type[flows.Flow]]) -> type[flows.Flow]:
    retry = Retry(max_attempts=4, initial=seconds(1), jitter=0)
    return declare(
        "t-storm",
        meta={"deadline": Deadline(days=3, then=ESCALATE)},
        one=Activity(factories.work, retry=retry, then="nap"),
        nap=Sleep(seconds(2), then="two"),
        two=Activity(factories.work, retry=retry, queue="cleanup", then="ask"),
        ask=Wait("t.storm", key=factories.key_of, deadline=Deadline(hours=2, then=ESCALATE), then="three"),
        three=Activity(factories.work, retry=retry, then="done"),
        done=End(COMPLETE),
    )


class Storm:
    """Random verbs of one thread, repeatable by its seed."""

    def __init__(self, flow: type[flows.Flow], clock: Clock, seed: int) -> None:
        self.flow, self.clock, self.dice, self.seed, self.count = flow, clock, random.Random(seed), seed, 0
        self.worker = factories.another_worker()
        self.done: Counter[str] = Counter()

    def some(self) -> Any:
        found = list(Workflow.objects.order_by("?").values_list("pk", flat=True)[:1])
        return found[0] if found else self.start()

    def intent(self) -> Any:
        return Workflow.objects.values_list("intent_id", flat=True).get(pk=self.some())

    def start(self) -> Any:
        number = self.dice.randrange(60)
        return self.flow.start({"key": KEYS[number % 6]}, key=f"run-{number}").id

    def start_more(self) -> None:
        numbers = self.dice.sample(range(60), 5)
        self.flow.start_many([(f"run-{number}", {"key": KEYS[number % 6]}) for number in numbers])

    def start_under(self) -> None:
        try:
            self.flow.start({"key": self.dice.choice(KEYS)}, intent=self.intent())
        except flows.errors.IntentClosed:  # type: ignore[attr-defined]
            self.done["closed"] += 1

    def signal(self) -> None:
        self.count += 1
        flows.signal(f"e-{self.seed}-{self.dice.randrange(40)}", "t.storm", key=self.dice.choice(KEYS))

    def lose(self) -> None:
        factories.lose(self.worker)
        self.worker = factories.another_worker()

    def time_passes(self) -> None:
        self.clock.move(seconds=self.dice.choice([1, 3, 900]))
        sweeps.run_tick(USING)

    def step(self) -> None:
        """One random thing."""
        things: list[tuple[int, Callable[[], Any]]] = [
            (10, lambda: self.worker.run()),
            (6, self.start),
            (2, self.start_more),
            (1, self.start_under),
            (6, self.signal),
            (4, self.time_passes),
            (3, lambda: sweeps.run_tick(USING)),
            (2, lambda: flows.pause(self.some())),
            (3, lambda: flows.resume(self.some())),
            (1, lambda: flows.cancel(self.some())),
            (1, lambda: flows.supersede(self.intent(), goal=f"goal {self.dice.random()}")),
            (1, lambda: flows.cancel_intent(self.intent())),
            (1, self.lose),
            (1, lambda: list(describe.verify())),
        ]
        (thing,) = self.dice.choices([one for _, one in things], [weight for weight, _ in things])
        thing()

    def rage(self, steps: int) -> None:
        """So many random things."""
        for _ in range(steps):
            self.step()


def settle(worker: LocalWorker, clock: Clock) -> None:
    """Let everything end that can: time passes, people resume, events come."""
    factories.does.clear()
    for number in range(12):
        sweeps.run_tick(USING)
        for row in Workflow.objects.exclude(status__in=list(TERMINAL)):
            flows.resume(row.pk)
        for key in KEYS:
            for copy in range(3):
                flows.signal(f"end-{number}-{key}-{copy}", "t.storm", key=key)
        worker.run()
        clock.move(minutes=1)


@pytest.mark.req("A3", "C3")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_of_everything_strands_nobody(
    worker: LocalWorker, clock: Clock, declare: Callable[..., type[flows.Flow]], seed: int
) -> None:
    flow = declare_storm(declare)
    factories.does.update(one=shaky, two=shaky, three=shaky)
    with racers(THREADS) as threads:
        storms = [Storm(flow, clock, seed * 100 + number) for number in range(THREADS)]
        outcomes = together(*[(racer, lambda storm=storm: storm.rage(80)) for racer, storm in zip(threads, storms, strict=True)])
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    for storm in storms:
        storm.worker.stop()
    settle(worker, clock)
    left = {(row.status, row.outcome, row.node) for row in Workflow.objects.exclude(status__in=list(TERMINAL))}
    assert left == set()
    assert not ActivityRow.objects.filter(status__in=["scheduled", "running"]).exists()
    assert not Event.objects.filter(status="consumed", workflow_id=None).exists()
    assert Intent.objects.count() <= Workflow.objects.count()
    succeeded = Attempt.objects.filter(outcome="succeeded").values_list("workflow_id", "activity_seq")
    assert len(set(succeeded)) == len(succeeded)


@pytest.mark.req("A3")
def test_workers_alone_finish_everything_under_fire(
    transactional_db: None, clock: Clock, worker: LocalWorker, declare: Callable[..., type[flows.Flow]]
) -> None:
    """Two workers, two beats, a sender that delivers everything twice, workers that die: all of it ends right, by itself."""
    flow = declare_storm(declare)
    runs = flow.start_many([(f"run-{number}", {"key": f"own-{number}"}) for number in range(40)])
    factories.does.update(one=lambda attempt: _sometimes(attempt), two=lambda attempt: _sometimes(attempt))

    def work() -> None:
        mine = factories.another_worker()
        for number in range(12):
            mine.run()
            if number % 4 == 3:
                factories.lose(mine)
                mine = factories.another_worker()
        mine.stop()

    def beat() -> None:
        for _ in range(30):
            clock.move(seconds=1)
            sweeps.run_tick(USING)

    def send() -> None:
        for number in range(40):
            flows.signal(f"e{number}", "t.storm", key=f"own-{number}")

    with racers(5) as threads:
        outcomes = together(*zip(threads, [work, work, beat, beat, send], strict=True))
        outcomes += together((threads[0], send), (threads[1], work), (threads[2], beat))
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    for _ in range(10):
        clock.move(seconds=10)
        worker.tick()
        worker.run()
    assert {factories.status(run)[0] for run in runs} == {"complete"}
    assert set(Event.objects.values_list("status", "deliveries")) == {("consumed", 2)}


def _sometimes(attempt: Any) -> Any:
    if random.Random(attempt.id).random() < 0.2 and attempt.number < 3:
        raise Transient
    return {"by": attempt.node}
