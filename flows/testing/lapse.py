"""A lapse of durable time, with whatever workers there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core.protocol import TERMINAL
from flows.services import describe, identify
from flows.services.clock import now
from flows.store.sql import run
from flows.testing.clock import Clock, movable_clock

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
