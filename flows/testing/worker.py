"""A worker inside the test's own process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.ids import new_id
from flows.core.releases import ANY
from flows.services import sweeps
from flows.services.servicing import run_servicing
from flows.services.turn import run_turn
from flows.store import workers
from flows.store.workers import Process


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
        #: Whether its turns look for holds between steps, as those of a real worker do once it has renewed its lease. Claims always do.
        self.looks_for_holds = False
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

    def holds(self) -> bool:
        return self.looks_for_holds

    def batch(self, queue: str) -> int:
        return self.batch_size

    def took(self, queue: str, seconds: float) -> None: ...

    def tried(self, attempt: str) -> None: ...

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
