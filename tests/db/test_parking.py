"""Waits of a node that a plane, an event or a timer may answer, and those beside an activity: opened, answered at once, ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.db import connection, transaction

import flows
from flows import COMPLETE, Activity, End, hours, minutes, registry
from flows.conf import conf
from flows.core.moves import Goto, Move, Park, Rest
from flows.core.nodes import Node
from flows.core.protocol import AttemptOutcome
from flows.core.state import Lacking, State, Trigger
from flows.models import Attempt, Timer, Transition, Wait
from flows.services.arrows import Ending
from flows.services.owned import reload
from flows.services.proceed import Progress, proceed
from flows.store import events, locks
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import LET_GO, enter, row, status, take_one

pytestmark = pytest.mark.req("C1")

Declare = Callable[..., type[flows.Flow]]
USING = "default"


@dataclass(frozen=True)
class Kids(Node):
    """Waits for what its plane says, at most two hours."""

    kind: ClassVar[str] = "children"

    then: str = field(kw_only=True, default="")

    def enter(self, state: State) -> Move:
        until = state.now + hours(2)
        return Park(
            self.name, self.kind, "waiting for children", deadline=hours(9), deadline_at=until, on_expiry="escalate", need=3
        )

    def resume(self, state: State, trigger: Trigger) -> Move:
        if state.wait is None:
            return self.enter(state)
        return Goto(self.then) if state.wait.evidence is not None else Rest()

    def result(self, state: State) -> Any:
        return dict(state.wait.evidence) if state.wait is not None and state.wait.evidence is not None else None

    def targets(self) -> Any:
        yield "", self.then


@dataclass(frozen=True)
class Poll(Kids):
    """Waits for an event of its job, and is asked about after a minute; it belongs to the visit of the step before it."""

    kind: ClassVar[str] = "external_job"

    def enter(self, state: State) -> Move:
        wakes_at = state.now + minutes(1)
        return Park(
            self.name, self.kind, "waiting for a job", event_type="t.job", keys=("k",), wakes_at=wakes_at,
            deadline_at=state.now + hours(2), on_expiry="escalate", same_visit=True,
        )  # fmt: skip

    def resume(self, state: State, trigger: Trigger) -> Move:
        return Goto(self.then) if state.wait is not None and state.wait.due else super().resume(state, trigger)


class Plane:
    """Remembers what it is told; `answers` is what it says at once."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] | None = None
        self.openings: list[registry.Opening] = []
        self.closings: list[tuple[int, str]] = []

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        return ""

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        return self.answers

    def opened(self, using: str, opening: registry.Opening) -> None:
        self.openings.append(opening)

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        self.closings += [(one, how) for one in wait_ids]

    def due(self, using: str, moments: Any) -> None: ...

    def ended(self, using: str, workflow_ids: Any) -> None: ...

    def migrated(self, using: str, workflow_id: Any, nodes: Any, kept: int | None) -> int:
        return 0

    def facts(self, using: str, workflow_id: Any, nodes: Any) -> Mapping[str, Any]:
        return {}

    def asked(self, using: str, workflow_ids: Any) -> Mapping[Any, Any]:
        return {}


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setitem(registry._planes, "children", made)
    return made


@pytest.fixture
def flow(declare: Declare) -> type[flows.Flow]:
    return declare("t-kids", before=Activity(factories.work, then="kids"), kids=Kids(then="done"), done=End(COMPLETE))


def triggers(run: Any) -> list[str]:
    return list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))


def test_a_plane_that_answers_at_once_lets_the_same_turn_go_on(worker: LocalWorker, flow: Any, plane: Plane) -> None:
    plane.answers = {"child": "c1"}
    run = flow.start({})
    worker.run()
    assert triggers(run) == ["start", "claim", "completed", "woken"]
    assert row(run).status == "complete"
    wait = Wait.objects.get()
    assert (wait.evidence, wait.result, wait.status) == ({"child": "c1"}, {"child": "c1"}, "satisfied")
    (opening,) = plane.openings
    assert (opening.wait_id, opening.answer) == (wait.pk, {"child": "c1"})
    assert plane.closings == [(wait.pk, "satisfied")]


def test_one_that_does_not_is_told_and_woken_later(worker: LocalWorker, flow: Any, plane: Plane) -> None:
    run = flow.start({})
    worker.run()
    wait = Wait.objects.get()
    assert (status(run)[0], wait.need, wait.visit) == ("waiting", 3, 1)
    assert [one.answer for one in plane.openings] == [None]
    events.wake(
        [wait.pk], '{"done": 3}', event=None, trigger="children", ref="fan", priority_seconds=conf.PRIORITY_SECONDS, using=USING
    )
    worker.run()
    assert triggers(run)[3:] == ["children", "claim", "woken"]
    assert status(run)[0] == "complete"


def test_paused_meanwhile_it_does_not_go_on(worker: LocalWorker, flow: Any, plane: Plane) -> None:
    plane.answers = {"child": "c1"}
    run = flow.start({})
    owned = take_one(worker)
    assert enter(owned) is Progress.RUN
    flows.pause(run)
    assert reload(owned)
    assert factories.complete(owned, keeping=LET_GO) is Progress.LEFT
    assert status(run)[0] == "paused"
    flows.resume(run)
    worker.run()
    assert status(run)[0] == "complete", "the evidence stands on the wait"


def test_a_moment_goes_before_a_span(worker: LocalWorker, flow: Any, plane: Plane) -> None:
    run = flow.start({})
    worker.run()
    wait = Wait.objects.get()
    assert wait.deadline_at is not None
    assert timedelta(hours=1, minutes=59) < wait.deadline_at - wait.opened_at <= timedelta(hours=2)
    assert Timer.objects.get().due_at == wait.deadline_at == row(run).due_at


def test_a_job_is_polled_by_a_timer_of_its_own_and_in_the_visit_of_its_start(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    run = declare("t-job", job=Poll(then="done"), done=End(COMPLETE)).start({})
    worker.run()
    assert set(Timer.objects.values_list("kind", flat=True)) == {"poll", "wait_deadline"}
    clock.move(minutes=2)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    assert Wait.objects.get().visit == 1
    assert Timer.objects.get(kind="poll").status == "fired"


# ---------------------------------------------------------------- beside an activity


def parked(worker: LocalWorker) -> Any:
    """A run whose attempt found no capacity, until two hours from now."""
    run = factories.Line.start({})
    owned = take_one(worker)
    assert enter(owned) is Progress.RUN
    lacking = Lacking("resource", "gpu", "no gpu is free", owned.state.now + hours(2), "node:done")
    assert proceed(owned, lacking, LET_GO, Ending(AttemptOutcome.RETURNED, code="CAPACITY_UNAVAILABLE")) is Progress.LEFT
    return run


def test_an_attempt_for_which_there_is_no_capacity_is_given_back(worker: LocalWorker) -> None:
    run = parked(worker)
    assert status(run) == ("waiting", "WAITING", "one")
    wait = Wait.objects.get()
    assert (wait.kind, wait.key, wait.visit, wait.on_expiry, wait.event_type) == ("resource", "gpu", 0, "node:done", "")
    assert list(Attempt.objects.values_list("outcome", "error_code")) == [("returned", "CAPACITY_UNAVAILABLE")]
    found = row(run)
    assert found.active_seq == 1
    assert found.activities.get().failures == 0
    worker.run()
    assert factories.calls == [], "nobody has readmitted it"


def test_when_its_time_is_over_its_policy_decides(worker: LocalWorker, clock: Clock) -> None:
    run = parked(worker)
    clock.move(hours=3)
    worker.tick()
    worker.run()
    assert triggers(run)[2:] == ["parked", "timer", "claim", "expired"]
    assert status(run) == ("complete", "COMPLETE", "done")
    assert Wait.objects.get().status == "expired"


def test_a_cancel_withdraws_it(worker: LocalWorker) -> None:
    run = parked(worker)
    flows.cancel(run)
    assert (status(run)[0], Wait.objects.get().status) == ("cancelled", "withdrawn")


# ---------------------------------------------------------------- channels


def test_several_channels_are_locked_once_each() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        locks.channels([("b", "2"), ("a", "1"), ("b", "2")], USING)
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone() == (2,)
        locks.channels([], USING)
