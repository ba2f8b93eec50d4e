"""A kit for tests: a worker inside the test's own process, a clock that can be moved, and a lapse of time with whatever workers there are.

with movable_clock() as clock, local_worker() as worker:
    run = MyFlow.start({...})
    worker.run()                    # until nothing is ready
    clock.move(hours=3)
    worker.tick(); worker.run()

with timelapse() as lapse:          # real workers, in processes of their own
    run = MyFlow.start({...})
    lapse.until(run, node="ask")
    lapse.by(days=2)

The clock is that of the whole database, so it is moved only where the database's name begins with `test_`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.errors import UsageError
from flows.core.ids import new_id
from flows.core.protocol import TERMINAL
from flows.core.releases import ANY
from flows.services import describe, identify, sweeps
from flows.services.clock import now
from flows.services.servicing import run_servicing
from flows.services.turn import run_turn
from flows.store import workers
from flows.store.sql import run
from flows.store.workers import Process

PLAIN_CLOCK = """
CREATE OR REPLACE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()'
"""

MOVABLE_CLOCK = """
CREATE TABLE IF NOT EXISTS outlast_test_clock (shift interval NOT NULL);
TRUNCATE outlast_test_clock;
INSERT INTO outlast_test_clock VALUES (interval '0');
CREATE OR REPLACE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT statement_timestamp() + (SELECT shift FROM outlast_test_clock)'
"""


class Clock:
    """Business time of a whole database, real workers included. Leases stay on real time."""

    def __init__(self, using: str) -> None:
        self._using = using

    def move(self, **span: float) -> None:
        """Let that much time pass (arguments of `timedelta`)."""
        run(
            "move clock",
            "UPDATE outlast_test_clock SET shift = shift + %(by)s::interval",
            {"by": timedelta(**span)},
            self._using,
        )


#: How Django's test runner names a database; what may be emptied by it (the guards against TRUNCATE) may have its clock moved.
TEST_PREFIX = "test_"


class NotATestDatabase(UsageError):
    """Every deadline of every run there would pass at once, and what happens then happens outside."""

    code = "NOT_A_TEST_DATABASE"

    def __init__(self, alias: str, name: str) -> None:
        super().__init__(
            f"The clock of database {name!r} (alias {alias!r}) is not moved: its name does not begin with {TEST_PREFIX!r}, so real runs may "
            "be in it. Run this under Django's test runner or pytest-django; for a database that only a demo uses, pass any_database=True."
        )


@contextmanager
def movable_clock(using: str | None = None, *, any_database: bool = False) -> Iterator[Clock]:
    """Make the durable clock movable for this database; the plain one comes back at the end.

    Args:
        any_database: also where the name does not say that it is a test's; what is in it then ages with the rest.
    Raises:
        NotATestDatabase: its name does not begin with `test_`.
    """
    alias = using or conf.DATABASE
    name = str(run("name of the database", "SELECT current_database()", {}, alias)[0][0])
    if not any_database and not name.startswith(TEST_PREFIX):
        raise NotATestDatabase(alias, name)
    for statement in MOVABLE_CLOCK.split(";"):
        run("movable clock", statement, {}, alias)
    try:
        yield Clock(alias)
    finally:
        run("plain clock", PLAIN_CLOCK, {}, alias)
        run("drop clock", "DROP TABLE outlast_test_clock", {}, alias)


class LocalWorker:
    """A worker in this process; a `Host` for turns, with a row of its own in the record."""

    def __init__(
        self,
        using: str,
        queues: Sequence[str] = ("agents", "cleanup"),
        placements: Sequence[str] = (),
        name: str = "",
        releases: Sequence[str] | None = None,
    ) -> None:
        self.using, self.queues, self.placements = using, list(queues), list(placements)
        self.releases = None if releases is None else list(releases)
        known = sorted(registry.known())
        self.flows, self.versions = [name for name, _ in known], [version for _, version in known]
        self.pid = os.getpid()
        self.incarnation: UUID | None = new_id()
        self.asked_to_stop = False
        self.batch_size = 1
        self._doubtful = False
        process = Process("test", "", "", self.pid, "")
        params = {
            "id": self.incarnation,
            "name": name or f"local-{self.incarnation}",
            "region": "",
            "host_class": "",
            "placements": self.placements,
            "releases": [ANY] if self.releases is None else self.releases,
            "queues": self.queues,
            "definitions": [f"{name}@{version}" for name, version in known],
            "concurrency": 1,
            "lease": 3600.0,
        }
        workers.register(params, process, using)

    def run(self, queues: Sequence[str] | None = None) -> int:
        """Run turns until no queue has ready work; how many workflows were worked on."""
        total = 0
        while True:
            count = run_servicing(self, self.using) if "cleanup" in (queues or self.queues) else 0
            count += sum(run_turn(self, queue, self.using) for queue in queues or self.queues)
            total += count
            if not count:
                return total

    def tick(self) -> None:
        """What the clock does each second."""
        sweeps.run_tick(self.using)

    def stop(self) -> None:
        """The worker ends; its row says so."""
        if self.incarnation is not None:
            workers.stop(self.incarnation, self.using)
            self.incarnation = None

    # ------------------------------------------------------------------ Host

    def worker(self) -> UUID | None:
        return self.incarnation

    def owns(self) -> bool:
        return self.incarnation is not None

    def stopping(self) -> bool:
        return self.asked_to_stop

    def batch(self, queue: str) -> int:
        return self.batch_size

    def took(self, queue: str, seconds: float) -> None: ...

    def holding(self, workflow: UUID | None, unstarted: int) -> None: ...

    def doubt(self, *, doubtful: bool) -> None:
        self._doubtful = doubtful

    def doubtful(self) -> bool:
        return self._doubtful

    def linger(self, queue: str, seconds: float) -> bool:
        return False

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        yield

    def extend(self, seconds: float) -> None: ...


@contextmanager
def local_worker(
    queues: Sequence[str] = ("agents", "cleanup"), placements: Sequence[str] = (), using: str | None = None
) -> Iterator[LocalWorker]:
    """A worker in this process for the length of the block."""
    worker = LocalWorker(using or conf.DATABASE, queues, placements)
    try:
        yield worker
    finally:
        worker.stop()


#: What is under way: ready or running, or something of it is due and nobody has looked at it yet.
UNDER_WAY = """
SELECT w.id FROM outlast_workflow w
WHERE (w.id = %(id)s::uuid OR %(id)s::uuid IS NULL) AND (w.status IN ('runnable', 'running')
    OR EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = w.id AND (t.status = 'pending' AND t.due_at <= flows_now() OR t.untold))
    OR EXISTS (SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND (o.worker_id IS NOT NULL OR o.due_at <= flows_now())))
LIMIT 1
"""

NEXT_MOMENT = """
SELECT min(m.due_at) FROM (
    SELECT t.due_at FROM outlast_timer t WHERE t.status = 'pending' AND (t.workflow_id = %(id)s::uuid OR %(id)s::uuid IS NULL)
    UNION ALL
    SELECT o.due_at FROM outlast_operation o WHERE o.worker_id IS NULL AND (o.workflow_id = %(id)s::uuid OR %(id)s::uuid IS NULL)) m
"""

VERSIONS = "SELECT coalesce(sum(version), 0) FROM outlast_workflow WHERE id = %(id)s::uuid OR %(id)s::uuid IS NULL"

POLL_SECONDS = 0.02
MAX_STEPS = 1000


class NotThere(AssertionError):
    """A lapse of time did not lead where the test wants it: what was waited for, where the workflow is, and whether anybody acted."""


class TimeLapse:
    """Durable time that passes from one timer to the next, each time until the workers have acted on it.

    The clock is that of the whole database: a lapse for one workflow is one for all, and only what is waited for differs. Nothing is moved
    while an attempt runs, so none is timed out by it.
    """

    def __init__(self, clock: Clock, using: str, patience: float, act: Callable[[], object] | None) -> None:
        self._clock, self._using, self._patience, self._act = clock, using, patience, act

    def settle(self, workflow: Any = None) -> None:
        """Wait until nothing of this workflow (or of any) is ready, running or due.

        Raises:
            NotThere: the workers did not get that far in time.
        """
        self._settle(self._id(workflow))

    def to_next_timer(self, workflow: Any = None) -> timedelta:
        """Let time pass until the next moment at which something of this workflow (or of any) must be looked at; how much that was.

        Raises:
            NotThere: there is no such moment, or the workers did not get that far in time.
        """
        row_id = self._id(workflow)
        self._settle(row_id)
        moment = self._next(row_id)
        if moment is None:
            raise NotThere(f"nothing is due, ever: {self._where(row_id)}")
        return self._to(moment, row_id)

    def by(self, **span: float) -> None:
        """Let that much time pass (arguments of `timedelta`), from timer to timer of all workflows.

        Raises:
            NotThere: the workers did not get that far in time.
        """
        self._settle(None)
        end = now(self._using) + timedelta(**span)
        for _ in range(MAX_STEPS):
            moment = self._next(None)
            if moment is None or moment >= end:
                self._to(end, None)
                return
            self._to(moment, None)
        raise NotThere(f"{MAX_STEPS} timers were passed and there are more")

    def until(self, workflow: Any, *, status: str | None = None, node: str | None = None, outcome: str | None = None) -> None:
        """Let time pass, from timer to timer of this workflow, until it is in this status, at this node and has this outcome.

        Raises:
            NotThere: it has ended otherwise, has no further timer, or the workers did not get that far in time.
        """
        row_id = self._id(workflow)
        assert row_id is not None
        wanted = {"status": status, "node": node, "outcome": outcome}

        def there() -> bool:
            row = identify.get(row_id, self._using)
            return all(value is None or getattr(row, name) == value for name, value in wanted.items())

        for _ in range(MAX_STEPS):
            if self._settle(row_id, there):
                return
            moment = self._next(row_id)
            if moment is None or identify.get(row_id, self._using).status in TERMINAL:
                asked = ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None)
                raise NotThere(f"it does not come to {asked}: {self._where(row_id)}")
            self._move(moment)
        raise NotThere(f"{MAX_STEPS} timers were passed: {self._where(row_id)}")

    def _id(self, workflow: Any) -> UUID | None:
        return None if workflow is None else identify.workflow_id(workflow)

    def _next(self, row_id: UUID | None) -> datetime | None:
        moment: datetime | None = run("next moment", NEXT_MOMENT, {"id": row_id}, self._using)[0][0]
        return moment

    def _to(self, moment: datetime, row_id: UUID | None) -> timedelta:
        span = self._move(moment)
        self._settle(row_id)
        return span

    def _move(self, moment: datetime) -> timedelta:
        span = moment - now(self._using)
        if span > timedelta(0):
            self._clock.move(seconds=span.total_seconds())
        return span

    def _settle(self, row_id: UUID | None, there: Callable[[], bool] = lambda: False) -> bool:
        """Wait until nothing is under way, or it is `there`; whether it is."""
        ends = time.monotonic() + self._patience
        before = self._versions(row_id)
        while True:
            if self._act is not None:
                self._act()
            under_way = run("under way", UNDER_WAY, {"id": row_id}, self._using)
            if there():
                return True
            if not under_way:
                return False
            if time.monotonic() > ends:
                idle = self._idle() if self._versions(row_id) == before else ""
                raise NotThere(f"after {self._patience:g} s still under way: {self._where(under_way[0][0])}{idle}")
            time.sleep(POLL_SECONDS)

    def _versions(self, row_id: UUID | None) -> int:
        return int(run("versions", VERSIONS, {"id": row_id}, self._using)[0][0])

    def _idle(self) -> str:
        """Why nothing happened at all, as far as the kit can know."""
        if self._act is not None:
            return ". No worker acted: act= must tick and run one, act=lambda: (worker.tick(), worker.run())"
        return (
            ". No worker acted, and no act= was given: with a local_worker() pass act=lambda: (worker.tick(), worker.run()); "
            "real workers and Beat must be running"
        )

    def _where(self, row_id: UUID | None) -> str:
        if row_id is None:
            return "no workflow has a timer"
        found = describe.describe(row_id, using=self._using)
        return (
            f"{found.flow} {row_id} is {found.status} {found.outcome} at {found.node}; decision needed: {found.decision_needed}"
        )


@contextmanager
def timelapse(
    clock: Clock | None = None,
    *,
    patience: float = 60.0,
    act: Callable[[], object] | None = None,
    any_database: bool = False,
    using: str | None = None,
) -> Iterator[TimeLapse]:
    """Let days of durable time pass in a test or a demo, with real workers.

    Args:
        clock: the movable clock, where the test has made it movable already; else it is for the length of the block.
        patience: seconds of real time that the workers have after each step.
        act: called again and again while they are waited for; what makes workers act that do not by themselves, such as
            `lambda: (worker.tick(), worker.run())` of a local worker.
        any_database: as in `movable_clock`.
    Raises:
        NotATestDatabase: the database's name does not begin with `test_`.
    """
    alias = using or conf.DATABASE
    with nullcontext(clock) if clock is not None else movable_clock(alias, any_database=any_database) as moved:
        yield TimeLapse(moved, alias, patience, act)


__all__ = ["Clock", "LocalWorker", "NotATestDatabase", "NotThere", "TimeLapse", "local_worker", "movable_clock", "timelapse"]
