"""Flows whose activities do what a test says, and short ways to bring a workflow into any state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Branch,
    Deadline,
    End,
    Flow,
    Pipeline,
    Retry,
    Sleep,
    Step,
    Wait,
    hours,
    registry,
    seconds,
)
from flows.conf import conf
from flows.core import definition as declared
from flows.core.errors import LostOwnership, Transient, classify
from flows.core.protocol import AttemptOutcome, Status
from flows.core.state import Completed, Failed
from flows.models import Workflow
from flows.services import attempting as attempts
from flows.services import control, sweeps
from flows.services.arrows import Ending
from flows.services.attempt import Attempt
from flows.services.owned import Owned, take
from flows.services.proceed import Keeping, Progress, proceed
from flows.services.releasing import deciding
from flows.services.start import Started
from flows.store.claim import claim
from flows.store.sql import run
from flows.testing import Clock, LocalWorker

#: What each node (or "node.step") does, by name; everything else answers with its own name, visit and attempt.
does: dict[str, Callable[[Attempt], Any]] = {}

#: (name, visit, attempt number) of every call, in order.
calls: list[tuple[str, int, int]] = []


def person(name: str) -> Any:
    """A stored user of that name."""
    return get_user_model().objects.get_or_create(username=name)[0]


def work(attempt: Attempt) -> Any:
    """The function of every activity here."""
    name = f"{attempt.node}.{attempt.step}" if attempt.step else attempt.node
    calls.append((name, attempt.visit, attempt.number))
    action = does.get(name)
    return action(attempt) if action else {"by": name, "visit": attempt.visit, "number": attempt.number}


#: What tests say of the functions that several modules share, here and in tests/support; all of it is forgotten before the next test.
said: list[dict[Any, Any] | list[Any]] = [does, calls]


def forget() -> None:
    """Back to the plain behaviour."""
    for one in said:
        one.clear()


def called(name: str) -> int:
    """How often that node (or "node.step") was called."""
    return sum(1 for call in calls if call[0] == name)


def failing(times: int, error: Callable[[], Exception] = Transient) -> Callable[[Attempt], Any]:
    """Fails so many times, then answers."""
    left = [times]

    def act(attempt: Attempt) -> Any:
        if left[0]:
            left[0] -= 1
            raise error()
        return {"by": attempt.node, "number": attempt.number}

    return act


def key_of(state: Any) -> str:
    return str(state.input.get("key") or state.key)


def branch_of(state: Any) -> str:
    """The branch that the test names; without one it has a fault."""
    return str(branches["to"])


#: Where `branch_of` leads, until a test says otherwise.
branches: dict[str, str] = {}
said.append(branches)

SLOWLY = Retry(max_attempts=3, initial=seconds(10), backoff=2, jitter=0, max_lost=2)


class Line(Flow):
    """Three steps on one queue, and a result."""

    class Meta:
        name = "t-line"

    one = Activity(work, retry=SLOWLY, then="two")
    two = Activity(work, retry=SLOWLY, then="three")
    three = Activity(work, retry=SLOWLY, then="done")
    done = End(COMPLETE, result=lambda state: dict(state.results))


class Ask(Flow):
    """Waits for an event before and after a step."""

    class Meta:
        name = "t-ask"

    ask = Wait("t.asked", key=key_of, deadline=Deadline(hours=1, then=ESCALATE), then="after")
    after = Activity(work, then="again")
    again = Wait("t.again", key=key_of, deadline=Deadline(hours=1, then=ESCALATE), then="done")
    done = End(COMPLETE, result=lambda state: {"ask": state.results["ask"], "again": state.results["again"]})


class Nap(Flow):
    """A step, a sleep of an hour, two more steps."""

    class Meta:
        name = "t-nap"

    before = Activity(work, then="nap")
    nap = Sleep(hours(1), then="after")
    after = Activity(work, retry=SLOWLY, then="last")
    last = Activity(work, then="done")
    done = End(COMPLETE)


class Pipe(Flow):
    """An ordered pipeline of three steps."""

    class Meta:
        name = "t-pipe"

    line = Pipeline(Step("a", work), Step("b", work), Step("c", work), retry=SLOWLY, then="done")
    done = End(COMPLETE, result=lambda state: dict(state.results["line"]))


class Fork(Flow):
    """A branch whose function the test writes."""

    class Meta:
        name = "t-fork"

    first = Activity(work, then="fork")
    fork = Branch(branch_of, choices={"left": "left", "right": "right"})
    left = Activity(work, then="done")
    right = Wait("t.right", key=key_of, deadline=Deadline(hours=1, then=ESCALATE), then="done")
    done = End(COMPLETE)


class Cross(Flow):
    """Two queues and a placement."""

    class Meta:
        name = "t-cross"

    here = Activity(work, then="there")
    there = Activity(work, queue="cleanup", then="placed")
    placed = Activity(work, queue="cleanup", placement="gpu", then="back")
    back = Activity(work, then="done")
    done = End(COMPLETE)


class Dated(Flow):
    """Has an end of its own: two days, then a person."""

    class Meta:
        name = "t-dated"
        deadline = Deadline(days=2, then=ESCALATE)

    one = Activity(work, retry=SLOWLY, then="ask")
    ask = Wait("t.dated", key=key_of, deadline=Deadline(days=30, then=ESCALATE), then="two")
    two = Activity(work, then="done")
    done = End(COMPLETE)


class Doomed(Flow):
    """One step, and the end is bad."""

    class Meta:
        name = "t-doomed"

    one = Activity(work, then="gave_up")
    gave_up = End(FAILED)


STANDARD = (Line, Ask, Nap, Pipe, Fork, Cross, Dated, Doomed)


@contextmanager
def declaring(worker: LocalWorker | None = None) -> Iterator[Callable[..., type[Flow]]]:
    """Declare flows that are gone afterwards: `declare("t-mine", one=Activity(...), done=End(COMPLETE), meta={...})`."""
    before = list(declared.DECLARED)

    def declare(name: str, *, meta: dict[str, Any] | None = None, **nodes: Any) -> type[Flow]:
        options = type("Meta", (), {"name": name, **(meta or {})})
        made = type(f"Declared_{name.replace('-', '_')}", (Flow,), {"Meta": options, **nodes})
        registry._lookup.cache_clear()
        if worker is not None:
            offer(worker)
        return made

    try:
        yield declare
    finally:
        declared.DECLARED[:] = before
        registry._lookup.cache_clear()


def offer(worker: LocalWorker) -> None:
    """Let a worker offer what is declared by now."""
    known = sorted(registry.known())
    worker.flows, worker.versions = [name for name, _ in known], [version for _, version in known]


# ---------------------------------------------------------------- by hand: one arrow at a time


def take_one(worker: LocalWorker, queue: str = "agents") -> Owned:
    """Claim the next ready workflow of a queue, as a turn does."""
    owned = take_up_to(worker, 1, queue)
    assert owned, "nothing is ready"
    return owned[0]


def take_up_to(worker: LocalWorker, limit: int, queue: str = "agents", *, pid: int | None = None) -> list[Owned]:
    """Claim up to `limit` ready workflows of a queue."""
    assert worker.incarnation is not None
    rows = claim(
        queue=queue,
        limit=limit,
        worker=worker.incarnation,
        pid=pid or worker.pid,
        flows=worker.flows,
        versions=worker.versions,
        placements=worker.placements,
        releases=worker.releases,
        deciding=deciding() if worker.releases is not None else (),
        using=worker.using,
    )
    return take(rows, worker.incarnation, pid or worker.pid, worker.using)


STAY = Keeping(lambda queue, placement: True)
LET_GO = Keeping(lambda queue, placement: False)


def enter(owned: Owned, keeping: Keeping = STAY) -> Progress:
    """The first decision of a turn."""
    return proceed(owned, owned.opening, keeping)


def complete(owned: Owned, result: Any = None, keeping: Keeping = STAY) -> Progress:
    """The running attempt ended well: make true what comes next."""
    good = ending(result if result is not None else {"by": "hand"})
    return proceed(owned, Completed(json.loads(good.result or "null")), keeping, good)


def ending(result: Any) -> Ending:
    """A good end of an attempt, with its encoded result."""
    return Ending(AttemptOutcome.SUCCEEDED, result=json.dumps(result))


def try_complete(owned: Owned) -> Progress | None:
    """As `complete`; None if the owner was told that it owns nothing."""
    try:
        return complete(owned)
    except LostOwnership:
        return None


def fail(owned: Owned, error: Exception | None = None, keeping: Keeping = STAY) -> Progress:
    """The running attempt failed: make true what comes next."""
    failure = classify(error or Transient())
    ending = Ending(AttemptOutcome.FAILED, code=failure.code, error_class=failure.classes[0])
    return proceed(owned, Failed(failure), keeping, ending)


def row(run: Any) -> Workflow:
    """The workflow's row as it is now."""
    return Workflow.objects.get(pk=getattr(run, "id", run))


def status(run: Any) -> tuple[str, str, str]:
    """(status, outcome, node) of a workflow."""
    found = row(run)
    return found.status, found.outcome, found.node


def in_status(wanted: Status, worker: LocalWorker, key: str | None = None) -> Started:
    """A workflow of `Ask` or `Line` brought into that status by the product's own arrows."""
    match wanted:
        case Status.RUNNABLE:
            return Line.start({}, key=key)
        case Status.RUNNING:
            started = Line.start({}, key=key)
            assert enter(take_one(worker)) is Progress.RUN
        case Status.WAITING:
            started = Ask.start({"key": "x"}, key=key)
            enter(take_one(worker))
        case Status.PAUSED:
            started = Line.start({}, key=key)
            control.pause(started)
        case Status.COMPLETE:
            started = Line.start({}, key=key)
            worker.run()
        case Status.CANCELLED:
            started = Line.start({}, key=key)
            control.cancel(started)
        case Status.SUPERSEDED:
            started = Line.start({}, key=key)
            control.supersede(started, goal="another")
        case Status.FAILED:
            started = Doomed.start({}, key=key)
            worker.run()
        case _:
            raise AssertionError(f"no arrow leads to {wanted} yet")
    assert row(started).status == wanted
    return started


def another_worker(name: str = "", **options: Any) -> LocalWorker:
    """One more worker row in this process."""
    return LocalWorker(conf.DATABASE, name=name, **options)


def lose(worker: LocalWorker) -> int:
    """The worker's lease is over though its process goes on: it is buried, and its work is put back."""
    run(
        "expire",
        "UPDATE outlast_worker SET lease_until = 'epoch' WHERE id = %(id)s::uuid",
        {"id": worker.incarnation},
        worker.using,
    )
    sweeps.bury(worker.using)
    return sweeps.put_back_lost(worker.using)


def lose_and_complete(started: Any, worker: LocalWorker) -> None:
    """The same, and another worker brings the workflow to its end."""
    lose(worker)
    another_worker().run()
    assert row(started).status == Status.COMPLETE


def drive(worker: LocalWorker, clock: Clock, rounds: int = 6) -> None:
    """Work, and let minutes pass, so often."""
    for _ in range(rounds):
        worker.run()
        clock.move(minutes=2)
        worker.tick()


def reload_of(owned: Owned) -> Progress:
    """The first decision of a turn that read its state after somebody asked for something."""
    from flows.services.owned import reload

    assert reload(owned)
    return enter(owned)


def run_alone(owned: Owned, worker: LocalWorker) -> None:
    """Run the open activity of a claimed workflow, and let go after it."""
    progress = enter(owned, LET_GO)
    if progress is Progress.RUN:
        trigger, ended = attempts.run(owned, worker, taken_over=False)
        proceed(owned, trigger, LET_GO, ended)
