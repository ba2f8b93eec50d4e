"""The process that turns run in: a prefork child, or the worker itself under threads and solo."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from uuid import UUID

from flows.conf import conf
from flows.core.errors import ActivityTimeout
from tasks import linger
from tasks.shared import DOUBTFUL, LINGERING, Shared, boottime, own_number

#: Of so many attempts it is said how they ended, the newest ones, where a turn made more.
TOLD = 10
#: A turn that takes longer than this on average is claimed one at a time.
QUICK_SECONDS = 0.05


class WorkerHost:
    """Implements `flows.services.turn.Host` for one process (or thread) of a worker.

    The attempt's timeout interrupts the main thread of a prefork child by SIGALRM; its parent kills the child if that does not help.
    Under threads nothing can interrupt Python code: the timeout sweep then fences the attempt, and its result comes too late.
    """

    def __init__(
        self,
        shared: Shared,
        definitions: Sequence[tuple[str, int]],
        placements: Sequence[str],
        *,
        queues: Sequence[str],
        lingerers: int,
        turns: int | None,
        releases: Sequence[str] | None = None,
    ) -> None:
        self._shared, self._turns = shared, turns
        # Taken before anything is claimed: the parent must be able to see this process die.
        self._slot = shared.take_slot()
        self._average: dict[str, float] = {}
        self._current: tuple[UUID | None, int] = (None, 0)
        self._queues, self._lingerers = list(queues), lingerers
        self._doubtful = False
        self._tried: list[str] = []
        self.pid = own_number()
        self.flows = [name for name, _ in definitions]
        self.versions = [version for _, version in definitions]
        self.placements = list(placements)
        self.releases = releases

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Whether an agent turn may run here: where this worker serves the cleanup queue, too, one slot is left to it."""
        if self._turns is None:
            yield True
            return
        admitted = self._shared.begin_turn(self._slot, self._turns)
        try:
            yield admitted
        finally:
            if admitted:
                self._shared.end_turn(self._slot)

    def worker(self) -> UUID | None:
        return self._shared.head()[0]

    def owns(self) -> bool:
        incarnation, until = self._shared.head()
        return incarnation is not None and boottime() < until

    def stopping(self) -> bool:
        return self._shared.stopping()

    def holds(self) -> bool:
        return self._shared.holds()

    def batch(self, queue: str) -> int:
        return int(conf.CLAIM_BATCH) if self._average.get(queue, 1.0) < QUICK_SECONDS else 1

    def took(self, queue: str, seconds: float) -> None:
        self._average[queue] = 0.7 * self._average.get(queue, seconds) + 0.3 * seconds

    def tried(self, attempt: str) -> None:
        self._tried.append(attempt)

    def told(self) -> str | None:
        """How the attempts ended that were made since it was asked last; None: there were none."""
        tried, self._tried = self._tried, []
        more = [f"{len(tried) - TOLD} before"] if len(tried) > TOLD else []
        return "; ".join([*more, *tried[-TOLD:]]) or None

    def holding(self, workflow: UUID | None, unstarted: int) -> None:
        self._current = (workflow, unstarted)
        if workflow is None:
            self._write_idle()
        elif unstarted:
            self._write(0.0, 0.0)

    def doubt(self, *, doubtful: bool) -> None:
        self._doubtful = doubtful
        if self._current[0] is None:
            self._write_idle()

    def doubtful(self) -> bool:
        return self._doubtful

    def linger(self, queue: str, seconds: float) -> bool:
        """Not all of a worker's processes may linger at once: the clock's messages need a slot."""
        others = sum(slot.unstarted == LINGERING for slot in self._shared.slots())
        if seconds <= 0 or others >= self._lingerers or self.stopping() or self._doubtful:
            return False
        self._shared.write(self._slot, unstarted=LINGERING)
        try:
            return linger.wait(queue, self._queues, seconds)
        finally:
            self._write_idle()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        now = boottime()
        self._write(now, now + seconds)
        if threading.current_thread() is not threading.main_thread():
            try:
                yield
            finally:
                self._write(0.0, 0.0)
            return
        previous = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            self._write(0.0, 0.0)

    def extend(self, seconds: float) -> None:
        now = boottime()
        self._write(now, now + seconds)
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _write(self, started: float, deadline: float) -> None:
        workflow, unstarted = self._current
        self._shared.write(self._slot, started, deadline, unstarted, workflow)

    def _write_idle(self) -> None:
        """A doubt is the parent's business only while this process works on nothing: then whatever it owns, it has left behind."""
        if self._doubtful:
            self._shared.write(self._slot, boottime(), 0.0, DOUBTFUL)
        else:
            self._shared.write(self._slot)


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise ActivityTimeout("the attempt ran longer than its node's timeout")
