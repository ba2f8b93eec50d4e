"""The lease keeper: two threads in a worker's parent process. One holds the lease; one watches the children and keeps the clock from starving.

lease   every 3 s     renew (one statement, however many attempts run); lost → a new incarnation
watch   every 0.2 s   (1 s while nothing runs) children gone → their work put back; attempts far over time → child killed;
                      claims hoarded behind a long activity → given back; last tick over 2 s old → tick here
Two, because a sweep may be long and a broker may hang: neither may cost the lease.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import Error, connections

from flows.conf import conf
from flows.core.ids import new_id
from flows.core.releases import ANY
from flows.dispatch import hints_for, publish
from flows.services import sweeps
from flows.store import faults, workers
from flows.store.claim import release
from flows.store.recover import unstarted_of_child
from tasks import processes
from tasks.shared import DOUBTFUL, Shared, Slot, boottime

logger = logging.getLogger("outlast.worker")

WATCH_SECONDS, IDLE_SECONDS = 0.2, 1.0
#: Seconds over its timeout after which a child that did not interrupt its attempt is killed.
KILL_GRACE_SECONDS = 1.0
#: Seconds that an activity may run before claimed workflows behind it go to somebody else.
HOARD_SECONDS = 1.0
TICK_OLD_SECONDS = 2.0
#: How long a child whose turn broke off may take to put its own rows back, before the parent does it.
DOUBT_SECONDS = 3.0


class NameTaken(Exception):
    """A live worker has this name; two of one name cannot tell whose work is whose."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What this worker offers: its name, queues, definitions, placements, slots, and releases (None: whatever it is given)."""

    name: str
    queues: Sequence[str]
    definitions: Sequence[tuple[str, int]]
    placements: Sequence[str]
    concurrency: int
    region: str = ""
    host_class: str = ""
    releases: Sequence[str] | None = None


class Keeper:
    """Keeps one worker's lease. `forked`: its children are processes of their own, which may be watched and killed."""

    def __init__(self, offer: Offer, shared: Shared, *, forked: bool, using: str) -> None:
        self.offer, self.shared, self.forked, self.using = offer, shared, forked, using
        self.incarnation: UUID | None = None
        self._process = processes.this_process()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._renew_at = 0.0
        self._buried = self._tick_is_old = False
        self.on_child_gone: Callable[[], None] = lambda: None

    @property
    def lease(self) -> float:
        """Seconds of the lease; longer where activities share this process and may starve the thread."""
        return float(conf.LEASE_SECONDS) * (1 if self.forked else 2)

    def register(self) -> UUID:
        """Begin a new incarnation.

        Raises:
            NameTaken: a live worker has the name, and it is not proven that its process is gone.
        """
        self._bury_predecessor()
        incarnation, asked = new_id(), boottime()
        params = {
            "id": incarnation,
            "name": self.offer.name,
            "region": self.offer.region,
            "host_class": self.offer.host_class,
            "placements": list(self.offer.placements),
            "releases": [ANY] if self.offer.releases is None else list(self.offer.releases),
            "queues": list(self.offer.queues),
            "definitions": [f"{name}@{version}" for name, version in self.offer.definitions],
            "concurrency": self.offer.concurrency,
            "lease": self.lease,
        }
        held = workers.register(params, self._process, self.using)
        if held is None:
            raise NameTaken(
                f"A worker named {self.offer.name!r} is alive. Give this one another name (celery worker -n NAME@%h), or wait "
                f"up to {self.lease:.0f} s for the lease of a process that ended on another host."
            )
        self.incarnation = incarnation
        self._renew_at = boottime() + float(conf.LEASE_RENEW_SECONDS)
        self.shared.set_holds(any_open=held)
        self.shared.set_head(incarnation, asked + self.lease)
        logger.info("worker %s registered as %s", self.offer.name, incarnation)
        return incarnation

    def _bury_predecessor(self) -> None:
        """A row of this name whose process is proven gone loses its lease now; the watch puts its work back at once."""
        found = workers.alive_named(self.offer.name, self.using)
        proven = found[0] if found and processes.is_gone(found[1], self._process) else None
        if sweeps.bury(self.using, proven):
            self._buried = True

    def start(self) -> None:
        """Start the threads (after the pool has forked)."""
        for name, body, pause in (("lease", self.renew_if_due, self._to_renewal), ("watch", self.look_around, self._to_look)):
            thread = threading.Thread(target=self._run, args=(name, body, pause), name=f"outlast-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stopping(self) -> None:
        """The worker was asked to stop: turns hand their work back at the next step."""
        self.shared.set_stopping()

    def stop(self) -> None:
        """End the incarnation and put back whatever it still owns."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        incarnation, self.incarnation = self.incarnation, None
        self.shared.set_stopping()
        self.shared.set_head(None, 0.0)
        if incarnation is not None:
            with contextlib.suppress(Error):
                workers.stop(incarnation, self.using)
                sweeps.put_back_lost(self.using)
        connections[self.using].close()

    def _to_renewal(self) -> float:
        return max(WATCH_SECONDS, self._renew_at - boottime())

    def _to_look(self) -> float:
        """An idle worker has nothing to lose, and need not be looked at so often."""
        return WATCH_SECONDS if self.shared.is_busy() else IDLE_SECONDS

    def _run(self, name: str, body: Callable[[], None], pause: Callable[[], float]) -> None:
        failing = False
        while not self._stop.wait(pause()):
            try:
                body()
                failing = False
            except Error as error:
                if not failing:
                    logger.error(
                        "%s: %s; this worker owns work until its lease is over", name, faults.sentence(error, self.using)
                    )
                failing = True
                connections[self.using].close()
            except NameTaken as error:
                logger.error("%s", error)
            except Exception:
                logger.exception("%s: goes on after an unexpected error", name)
        connections[self.using].close()

    def renew_if_due(self) -> None:
        """Renew, or begin anew when the lease is lost."""
        if boottime() < self._renew_at:
            return
        self._renew_at = boottime() + float(conf.LEASE_RENEW_SECONDS)
        if self.incarnation is None:
            self.register()
            return
        asked = boottime()
        renewed = workers.renew(self.incarnation, self.lease, self.using)
        if renewed is None:
            logger.error("the lease of %s is lost; a new incarnation begins and its old work is put back", self.incarnation)
            self.incarnation = None
            self.shared.set_head(None, 0.0)
            self.register()
            return
        self.shared.set_head(self.incarnation, asked + self.lease)
        self.shared.set_holds(any_open=renewed.holds)
        self._tick_is_old = renewed.age > TICK_OLD_SECONDS

    def look_around(self) -> None:
        """Put back what a buried predecessor ran, look at the children, and tick if nobody did for a while."""
        if self._buried:
            self._buried = False
            sweeps.put_back_lost(self.using)
        self.watch()
        if self._tick_is_old:
            self._tick_is_old = False
            sweeps.run_tick(self.using, min_age=TICK_OLD_SECONDS)

    def watch(self) -> None:
        """Look at the children's slots: local, no statement unless something is wrong. A thread can neither die alone nor be killed."""
        now = boottime()
        for slot in self.shared.slots():
            if self.forked and not processes.exists(slot.pid):
                self._child_gone(slot)
            elif self.forked and slot.deadline and now > slot.deadline + KILL_GRACE_SECONDS:
                logger.error("child %s did not stop at its timeout; it is killed", slot.pid)
                self._kill(slot)
            elif slot.unstarted == DOUBTFUL:
                if now > slot.started + DOUBT_SECONDS and self.incarnation is not None:
                    sweeps.put_back_children(self.incarnation, [slot.pid], self.using)
            elif slot.unstarted and slot.started and now > slot.started + HOARD_SECONDS:
                self._give_back_hoard(slot)

    def _child_gone(self, slot: Slot) -> None:
        if self.incarnation is not None:
            if slot.workflow is not None:
                self._give_back_hoard(slot)  # what it had not begun has lost no attempt
            count = sweeps.put_back_children(self.incarnation, [slot.pid], self.using)
            if count:
                logger.warning("child %s is gone; %s workflow(s) put back", slot.pid, count)
        self.shared.free(slot.index)
        self.on_child_gone()

    def _kill(self, slot: Slot) -> None:
        """The attempt is over its timeout: first end it in the record (as timed out), then the process."""
        with contextlib.suppress(ProcessLookupError):
            sweeps.time_out(self.using, grace=0.0)
            os.kill(slot.pid, signal.SIGKILL)

    def _give_back_hoard(self, slot: Slot) -> None:
        if self.incarnation is None:
            return
        rows = unstarted_of_child(self.incarnation, slot.pid, slot.workflow, self.using)
        if rows:
            released = release(rows, self.incarnation, self.using)
            publish(hints_for([row[:4] for row in released if row[4] == "runnable"]))
