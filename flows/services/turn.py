"""A turn: claim, run, commit and claim the next, until nothing is ready or the slice is over. One Celery task's worth of progress.

The host (a Celery worker process, or a test) says who owns, how long, and when to stop; nothing here knows Celery.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from django.db import InterfaceError, OperationalError, connections

from flows import registry
from flows.conf import conf
from flows.core.errors import LostOwnership
from flows.core.state import Trigger
from flows.dispatch import hints_for, publish
from flows.services import attempting, migrate, observed
from flows.services.arrows import Ending
from flows.services.attempt import Limits
from flows.services.children import counting
from flows.services.opening import open_batch
from flows.services.owned import Owned, take
from flows.services.proceed import Keeping, Progress, proceed
from flows.services.releasing import deciding
from flows.services.sweeps import put_back_children
from flows.store import holds
from flows.store.claim import Claimed, begin, claim, release

logger = logging.getLogger("outlast.turn")

#: A claim older than this is checked again before code of it is started: its parent may have given it back.
STALE_CLAIM_SECONDS = 0.3
#: Pause between tries to reach a database that is away.
RECONNECT_SECONDS = 0.2


class Host(Limits, Protocol):
    """The process that a turn runs in."""

    @property
    def pid(self) -> int:
        """The process that runs the code."""

    @property
    def flows(self) -> Sequence[str]:
        """Names of the definitions offered; `versions` are theirs, in the same order."""

    @property
    def versions(self) -> Sequence[int]:
        """Versions of the definitions offered."""

    @property
    def releases(self) -> Sequence[str] | None:
        """Names of the behavioural releases offered; None: whatever it is given."""

    def worker(self) -> UUID | None:
        """The incarnation that owns, or None while there is no lease."""

    def stopping(self) -> bool:
        """Whether the worker was asked to stop: hand work back."""

    def holds(self) -> bool:
        """Whether anything may be held (`flows.services.holds`), as of the last renewal of the lease."""

    def batch(self, queue: str) -> int:
        """How many workflows to claim at once: more than one only where activities are quick."""

    def took(self, queue: str, seconds: float) -> None:
        """One workflow's turn took that long (for `batch`)."""

    def tried(self, attempt: str) -> None:
        """An attempt has ended, in words of the flow's author and of the protocol: for people who watch the process."""

    def holding(self, workflow: UUID | None, unstarted: int) -> None:
        """This process now works on `workflow` and holds so many claimed ones that have not started."""

    def doubt(self, *, doubtful: bool) -> None:
        """A commit's fate is unknown, or a turn broke off: this process may own rows that nobody works on, until they are put back."""

    def doubtful(self) -> bool:
        """Whether `doubt` stands."""

    def linger(self, queue: str, seconds: float) -> bool:
        """Wait up to so long for a hint that work of this queue is ready; False if there was none."""


def run_turn(host: Host, queue: str, using: str) -> int:
    """Work on a queue for one slice; how many workflows were worked on."""
    try:
        return _run_slice(host, queue, using)
    except Exception:
        host.doubt(doubtful=True)
        raise


def _run_slice(host: Host, queue: str, using: str) -> int:
    ends = time.monotonic() + conf.SLICE_SECONDS
    count = 0
    offered = registry.taken_up(list(zip(host.flows, host.versions, strict=True)))
    while not host.stopping():
        worker = host.worker()
        if worker is None or not host.owns():
            break
        _settle_doubt(host, worker, using)
        limit = host.batch(queue)
        rows = claim(
            queue=queue,
            limit=limit,
            worker=worker,
            pid=host.pid,
            flows=[name for name, _ in offered],
            versions=[version for _, version in offered],
            placements=host.placements,
            releases=host.releases,
            deciding=deciding() if host.releases is not None else (),
            using=using,
        )
        batch = take(rows, worker, host.pid, using) if rows else []
        if batch:
            keeping = _keeping(host, queue, ends)
            open_batch(batch, keeping)
            count += _work_through(host, list(batch), keeping, ends)
        left = ends - time.monotonic()
        if left <= 0:
            if len(rows) == limit and not any(owned.hinted for owned in batch):  # one message is enough for whatever is ready
                publish(hints_for([(rows[-1].id, queue, rows[-1].flow_name, rows[-1].node)]))
            break
        if not rows and not host.linger(queue, min(left, conf.LINGER_SECONDS)):
            break
    return count


def _work_through(host: Host, batch: list[Owned], keeping: Keeping, ends: float) -> int:
    """Work on claimed workflows one after another; what has not started when time is up goes back.

    A row that is not as this process knows it was taken by somebody else, or the server lost its opening (`opening.py`): that is a doubt.
    """
    claimed_at = time.monotonic()
    count, lost = 0, False
    using, parents = batch[0].using, {owned.row.parent_id for owned in batch if owned.row.parent_id is not None}
    try:
        while batch:
            owned = batch.pop(0)
            started = time.monotonic()
            if started - claimed_at > STALE_CLAIM_SECONDS and not _begin(owned):
                lost = True
                continue
            host.holding(owned.row.id, len(batch))
            work(host, owned, keeping)
            count += 1
            host.took(owned.row.queue, time.monotonic() - started)
            if batch and (host.stopping() or time.monotonic() >= ends or not host.owns()):
                break
        if batch:
            lost = give_back([owned.row for owned in batch], batch[0].worker, batch[0].using) < len(batch) or lost
            batch[0].hinted = True
    finally:
        host.holding(None, 0)
    if parents and host.owns():  # children have ended, perhaps; those whose end is passed over here the clock finds
        counting.ended_under(sorted(parents), using)
    if lost:  # only now: a doubt stands while this process works on nothing
        host.doubt(doubtful=True)
    return count


def _keeping(host: Host, queue: str, ends: float) -> Keeping:
    """A turn goes on within its queue and its slice, where the host offers the placement and still owns, and with nothing that is held."""

    def may_continue(next_queue: str, placement: str) -> bool:
        offered = not placement or placement in host.placements
        return next_queue == queue and offered and time.monotonic() < ends and not host.stopping() and host.owns()

    def offers(release: str) -> bool:
        return host.releases is None or release in host.releases

    def held(owned: Owned, node: str) -> bool:
        return host.holds() and bool(holds.of(owned.row.id, owned.using, node))

    return Keeping(may_continue, offers, held)


def _stop_here(_queue: str, _placement: str) -> bool:
    return False


def work(host: Host, owned: Owned, keeping: Keeping) -> Progress:
    """Carry one workflow on until it leaves this turn."""
    with observed.turn(owned):
        return _work(host, owned, keeping)


def _work(host: Host, owned: Owned, keeping: Keeping) -> Progress:
    try:
        progress = migrate.at_wake(owned) if owned.steps else None
        if progress is None:
            progress = _insist(host, owned, owned.opening, keeping)
        taken_over = not owned.row.fresh
        while progress is Progress.RUN:
            if not host.owns():
                logger.warning("lease lost before %s was started; the work is put back by the sweep", owned.label)
                return Progress.LOST
            taking = owned.state.activity is not None and owned.state.activity.known
            with observed.attempt(owned) as ended:
                trigger, ending = attempting.run(owned, host, taken_over=taken_over)
                ended(ending)
            host.tried(_words(owned, ending))
            taken_over = bool(ending.explained)  # where a conflict leads is told of it
            # What was only taken was not judged: what comes next is, when it is claimed.
            progress = _insist(host, owned, trigger, replace(keeping, may_continue=_stop_here) if taking else keeping, ending)
            if progress is Progress.LOST and attempting.keep_late(owned, ending):
                logger.warning("late result of %s in workflow %s is kept as evidence", owned.label, owned.row.id)
    except LostOwnership as error:
        logger.warning("%s", error)
        progress = Progress.LOST
    if progress is Progress.LOST:
        host.doubt(doubtful=True)
    return progress


def _words(owned: Owned, ending: Ending) -> str:
    """Which attempt it was, and how it ended: names and codes only, nothing of what was computed."""
    activity = owned.state.activity
    assert activity is not None
    step = f".{activity.step}" if activity.step else ""
    return f"{owned.label}{step} attempt {activity.number} {ending.outcome}{f' {ending.code}' if ending.code else ''}"


def _insist(host: Host, owned: Owned, trigger: Trigger, keeping: Keeping, ending: Ending | None = None) -> Progress:
    """Commit what came next, over a short absence of the database too: a result is not thrown away while the lease holds.

    A commit whose answer was lost may have happened; then the guard is lost and the doubt is settled by putting the row back.
    """
    doubtful = host.doubtful()
    while True:
        try:
            progress = proceed(owned, trigger, keeping, ending)
        except (OperationalError, InterfaceError):
            host.doubt(doubtful=True)
            connections[owned.using].close()
            if not host.owns() or connections[owned.using].in_atomic_block:
                raise
            time.sleep(RECONNECT_SECONDS)
        else:
            if progress is not Progress.LOST and not doubtful and host.doubtful():
                host.doubt(doubtful=False)
            return progress


def _settle_doubt(host: Host, worker: UUID, using: str) -> None:
    """Before anything new is claimed: what this process still owns is put back."""
    if host.doubtful():
        put_back_children(worker, [host.pid], using)
        host.doubt(doubtful=False)


def give_back(rows: Sequence[Claimed], worker: UUID, using: str) -> int:
    """Give claimed workflows back that have not started, and hint at them; how many were still this worker's."""
    released = release([(row.id, row.version, None) for row in rows], worker, using)
    publish(hints_for([row[:4] for row in released if row[4] == "runnable"]))
    return len(released)


def _begin(owned: Owned) -> bool:
    return begin(owned.row.id, owned.row.version, owned.worker, owned.using)
