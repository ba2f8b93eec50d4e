"""A state machine over the services: whatever is done in whatever order, the record is what the small model says, arrow by arrow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import flows
from flows import BREACH, COMPLETE, DEGRADE, RELEASE, Activity, Deadline, End, Flow, Retry, Sleep, Wait, minutes, seconds
from flows.core.misuse import IntentClosed
from flows.models import Activity as ActivityRow
from flows.models import Event, Workflow
from flows.services import describe, sweeps
from flows.services.owned import Owned
from flows.services.proceed import Progress
from flows.store.sql import run as execute
from flows.testing import Clock
from tests import factories
from tests.property.model import Run
from tests.support import record as records

USING = "default"
RETRY = Retry(max_attempts=3, initial=seconds(10), backoff=2, jitter=0, max_lost=2)
#: Time stands still between the moves of the clock, so that an example is the same however busy the machine is.
FROZEN_CLOCK = """
CREATE OR REPLACE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT timestamptz ''2030-01-01 00:00Z'' + (SELECT shift FROM outlast_test_clock)'
"""
KEYS = st.sampled_from(["k1", "k2"])
DICE = st.integers(0, 7)


class Machine(Flow):
    """Deadlines that go on pass at any moment, and change nothing of this."""

    class Meta:
        name = "t-machine"
        deadline = Deadline(minutes=1, then=BREACH)
        sla = {"answer": Deadline(seconds=20, then=DEGRADE), "all": Deadline(hours=1, then=RELEASE)}

    one = Activity(factories.work, retry=RETRY, then="nap")
    nap = Sleep(minutes(1), then="ask")
    ask = Wait("t.machine", key=factories.key_of, deadline=Deadline(hours=1, then="late"), then="two")
    two = Activity(factories.work, retry=RETRY, then="done")
    late = Activity(factories.work, retry=RETRY, then="done")
    done = End(COMPLETE)


class Record(RuleBasedStateMachine):
    """One example: an empty record, two workers, and the model beside it."""

    runs = Bundle("runs")
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        records.wipe()
        execute("midnight", "UPDATE outlast_test_clock SET shift = interval '0'", {}, USING)
        self.now, self.serial = 0.0, 0
        self.model: dict[Any, Run] = {}
        self.keys: dict[str, Any] = {}
        self.versions: dict[Any, int] = {}
        self.closed: set[Any] = set()
        self.inbox: dict[str, tuple[str, str]] = {}
        self.waited: set[Any] = set()
        self.held: list[Owned] = []
        self.ghosts: list[Owned] = []
        self.epochs: dict[Any, int] = {}
        self.workers = [factories.another_worker(), factories.another_worker()]

    # ------------------------------------------------------------ starting and ending

    @initialize(target=runs)
    def first(self) -> Any:
        return self.start("k1", None)

    @precondition(lambda self: sum(run.live for run in self.model.values()) < 3)
    @rule(target=runs, key=KEYS, name=st.sampled_from([None, None, "once"]))
    def start(self, key: str, name: str | None) -> Any:
        """By key it is the same run for ever."""
        if name in self.keys:
            assert (again := Machine.start({"key": "k1"}, key=name)).id == self.keys[name]
            assert not again.created
            return multiple()
        started = Machine.start({"key": "k1" if name else key}, key=name)
        if name:
            self.keys[name] = started.id
        self.model[started.id] = Run("k1" if name else key, started.intent_id)
        self.versions[started.intent_id] = 1
        return started.id

    @precondition(lambda self: sum(run.live for run in self.model.values()) < 3)
    @rule(target=runs, of=runs, key=KEYS)
    def start_under_the_same_intent(self, of: Any, key: str) -> Any:
        intent = self.model[of].intent
        try:
            started = Machine.start({"key": key}, intent=intent)
        except IntentClosed:
            assert intent in self.closed
            return multiple()
        assert intent not in self.closed
        self.model[started.id] = Run(key, intent)
        return started.id

    def cancel(self, of: Any) -> None:
        run = self.model[of]
        expected = "accepted" if run.live else "already" if run.status == "cancelled" else "too_late"
        assert flows.cancel(of).answer == expected
        if run.live:
            run.end("cancelled")
            self.haunt()

    def supersede(self, of: Any) -> None:
        intent = self.model[of].intent
        self.serial += 1
        done = flows.supersede(intent, goal=f"goal {self.serial}")
        if intent in self.closed:
            assert done.answer == "too_late"
            return
        self.versions[intent] += 1
        ended = {row_id for row_id, run in self.model.items() if run.intent == intent and run.live}
        assert (done.answer, done.version, set(done.ended)) == ("accepted", self.versions[intent], ended)
        for row_id in ended:
            self.model[row_id].end("superseded")
        self.haunt()

    def cancel_intent(self, of: Any) -> None:
        intent = self.model[of].intent
        assert flows.cancel_intent(intent).answer == ("already" if intent in self.closed else "accepted")
        self.closed.add(intent)
        for run in self.model.values():
            if run.intent == intent and run.live:
                run.end("cancelled")
        self.haunt()

    # ------------------------------------------------------------ people

    @rule(of=runs, what=st.sampled_from(["pause"] * 5 + ["resume"] * 5 + ["cancel", "supersede"]), dice=DICE)
    def somebody_interferes(self, of: Any, what: str, dice: int) -> None:
        """Mostly they pause and resume; whole intents are cancelled seldom."""
        getattr(self, "cancel_intent" if what == "cancel" and dice < 2 else what)(of)

    @precondition(lambda self: any(run.live for run in self.model.values()))
    @rule(dice=DICE, pausing=st.booleans())
    def somebody_cares_about_live_work(self, dice: int, pausing: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        live = [row_id for row_id, run in self.model.items() if run.live]
        (self.pause if pausing else self.resume)(live[dice % len(live)])

    def pause(self, of: Any) -> None:
        assert flows.pause(of).answer == self.model[of].pause()

    def resume(self, of: Any) -> None:
        assert flows.resume(of).answer == self.model[of].resume()

    # ------------------------------------------------------------ the world

    @rule(key=KEYS, number=st.integers(0, 5))
    def signal(self, key: str, number: int) -> None:
        if self.comes_late(key):
            return
        event = f"{key}-{number}"
        received = flows.signal(event, "t.machine", key=key, payload={"n": number})
        known = event in self.inbox
        if known and self.inbox[event][1] == "consumed":
            assert received.answer == "already"
            return
        woken = {row_id for row_id, run in self.model.items() if run.key == key and run.live and run.hear(event)}
        assert set(received.woken) == woken
        assert received.answer == ("accepted" if woken else "already" if known else "kept")
        self.inbox[event] = (key, "consumed" if woken else "pending")

    @rule(span=st.sampled_from([0, 25, 25, 75, 75, 75, 7200]), ticked=st.sampled_from([True, True, True, False]))
    def time_passes(self, span: int, ticked: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        self.clock.move(seconds=span)
        self.now += span
        if ticked:
            self.tick()

    def tick(self) -> None:
        sweeps.run_tick(USING)
        for run in self.model.values():
            run.clock(self.now)
            if run.overdue(self.now):
                run.fail(self.now)
        self.haunt()

    @rule(steps=st.integers(1, 6), dice=DICE)
    def it_goes_its_way(self, steps: int, dice: int) -> None:
        """So many steps of an ordinary day, so that later nodes are reached too."""
        for _ in range(steps):
            if self.held:
                self.attempt_ends(dice, good=True)
            elif any(run.status == "runnable" for run in self.model.values()):
                self.take(dice % 2, dice)
            else:
                self.time_passes(75, ticked=True)

    # ------------------------------------------------------------ workers

    @precondition(lambda self: any(run.status == "runnable" for run in self.model.values()))
    @rule(number=st.integers(0, 1), dice=DICE)
    def take(self, number: int, dice: int) -> None:
        """A claim and its first decision: the first in rank gets it, and nobody who is not ready."""
        worker = self.workers[number]
        ready = [row_id for row_id, run in self.model.items() if run.status == "runnable"]
        chosen = ready[dice % len(ready)]
        Workflow.objects.filter(pk=chosen).update(rank="2029-01-01T00:00Z")
        (owned,) = factories.take_up_to(worker, 1)
        assert owned.row.id == chosen
        run = self.model[chosen]
        progress = factories.enter(owned)
        was = run.node
        used = run.take(worker.incarnation, self.now, lambda: self.earliest(run.key))
        if (was, run.node) == ("nap", "ask") or used is not None:
            self.waited.add(chosen)
        if used is not None:
            self.inbox[used] = (run.key, "consumed")
        assert progress is (Progress.RUN if run.status == "running" else Progress.LEFT)
        if run.status == "running":
            self.held.append(owned)

    @precondition(lambda self: bool(self.held))
    @rule(dice=DICE, good=st.sampled_from([True, True, False]))
    def attempt_ends(self, dice: int, good: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        owned = self.held.pop(dice % len(self.held))
        run = self.model[owned.row.id]
        progress = factories.complete(owned) if good else factories.fail(owned)
        run.finish(self.now) if good else run.fail(self.now)
        assert progress is Progress.LEFT

    @precondition(lambda self: bool(self.ghosts))
    @rule(dice=DICE)
    def an_old_owner_comes_back(self, dice: int) -> None:
        """Its result moves nothing."""
        owned = self.ghosts.pop(dice % len(self.ghosts))
        before = Workflow.objects.values_list("version", "status").get(pk=owned.row.id)
        assert factories.try_complete(owned) in (None, Progress.LOST)
        assert Workflow.objects.values_list("version", "status").get(pk=owned.row.id) == before

    @precondition(lambda self: bool(self.held))
    @rule(number=st.integers(0, 1), dice=DICE)
    def a_worker_dies(self, number: int, dice: int) -> None:
        if dice > 3:
            return
        victim = self.workers[number]
        lost = [run for run in self.model.values() if run.status == "running" and run.owner == victim.incarnation]
        assert factories.lose(victim) == len(lost)
        for run in lost:
            run.put_back()
        self.haunt()
        self.workers[number] = factories.another_worker()

    # ------------------------------------------------------------ helpers

    def earliest(self, key: str) -> str | None:
        """The oldest event that nobody has taken yet."""
        return next((event for event, (channel, status) in self.inbox.items() if (channel, status) == (key, "pending")), None)

    def comes_late(self, key: str) -> bool:
        """Whether an event may be for a run that has ended. What becomes of it then is told in tests/db/test_inbox_places.py."""
        return any(run.key == key and not run.live and row_id in self.waited for row_id, run in self.model.items())

    def haunt(self) -> None:
        """Owners whose work was taken from them are ghosts."""
        for owned in list(self.held):
            run = self.model[owned.row.id]
            if run.status != "running" or run.owner != owned.worker:
                self.held.remove(owned)
                self.ghosts.append(owned)

    # ------------------------------------------------------------ what must hold

    @invariant()
    def the_record_is_what_the_model_says(self) -> None:
        rows = {row.pk: row for row in Workflow.objects.all()}
        found = {row_id: (row.status, row.outcome, row.node, row.epoch) for row_id, row in rows.items()}
        assert found == {row_id: run.row() for row_id, run in self.model.items()}
        for row_id, row in rows.items():
            run = self.model[row_id]
            assert row.worker_id == (run.owner if run.status == "running" else None)
            assert (row.pause_requested_at is not None) == run.pause_asked
            assert row.epoch >= self.epochs.get(row_id, 0)
            self.epochs[row_id] = row.epoch
        assert dict(Event.objects.filter(type="t.machine").values_list("event_id", "status")) == {
            event: status for event, (_, status) in self.inbox.items()
        }

    @invariant()
    def nobody_is_stranded_and_every_log_is_right(self) -> None:
        assert records.stranded() == []
        assert [found for found in describe.verify() if found[1]] == []
        active = ActivityRow.objects.filter(status__in=["scheduled", "running"]).values_list("workflow_id", flat=True)
        assert len(set(active)) == len(active)
        assert set(active) == {row_id for row_id, run in self.model.items() if "activity" in run.open}

    def teardown(self) -> None:
        """Whatever happened, a replay goes the recorded way: through every arrow, and calls nothing."""
        before = len(factories.calls)
        assert records.astray() == []
        assert len(factories.calls) == before


@pytest.mark.req("A2", "A3", "A4", "S1")
def test_the_record_is_what_the_model_says(clock: Clock) -> None:
    Record.clock = clock
    execute("frozen clock", FROZEN_CLOCK, {}, USING)
    run_state_machine_as_test(
        Record,
        settings=settings(
            max_examples=40,
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
