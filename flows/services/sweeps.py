"""What the clock does: fire timers, bury workers, put work back, time attempts out, hint at ready rows. All of it idempotent."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.protocol import AttemptOutcome
from flows.core.retry import timeout_failure
from flows.core.state import Failed
from flows.dispatch import PER_MESSAGE, after_commit, hints_for, look_soon, publish, service
from flows.services import arrows, breach, deadlines, ledger, obligations, releasing
from flows.services.apart import apart
from flows.services.hinting import hint_ready
from flows.services.owned import Owned, build
from flows.services.proceed import Keeping, Progress, proceed
from flows.store import locks, looks, operations, recover, tick, timers, workers
from flows.store.claim import Claimed
from flows.store.load import load, running
from flows.store.move import move
from flows.store.sql import committing

logger = logging.getLogger("outlast.sweeps")

#: Seconds after its timeout until an attempt that its worker could not interrupt is ended from outside.
TIMEOUT_GRACE = 2.0


def run_tick(using: str, min_age: float = 0.0) -> tick.Look | None:
    """One look, then whatever it found. Two at once are harmless; with `min_age`, None if somebody ticked less than that many seconds ago."""
    found = tick.look(TIMEOUT_GRACE, min_age, using)
    if found is None:
        return None
    if found.due:
        fire_timers(using)
    if found.soon is not None:
        look_soon(found.soon)
    if found.expired:
        bury(using)
    if found.expired or found.lost:
        put_back_lost(using)
    if found.overdue:
        time_out(using)
    if found.ready:
        dispatch_ready(using)
        releasing.alert(using)
    if found.looks_lost:
        looks.put_back(TIMEOUT_GRACE, using)
        callers_gone(using)
    if found.servicing or found.looks_lost:
        service()
    if found.breaches:
        breach.tell(conf.SWEEP_BATCH, using)
    if found.untold:
        deadlines.tell(conf.SWEEP_BATCH, using)
    for name in found.watches:
        run_watch(name, using)
    return found


def run_watch(name: str, using: str) -> None:
    """Do what a watch is for. One that raises is logged: it holds up no other, and the next tick finds what it has left.

    Raises:
        Exception: the connection is gone, so that the caller takes another one.
    """
    watch = registry.watch(name)
    if watch is None:  # asked for by a process with more apps than this one
        return
    with apart(f"the watch {name}", using):
        watch.run(using)


def is_idle(using: str) -> bool:
    """Whether a tick would find nothing; then it need not be sent. The look itself is the tick, and is marked as one."""
    return tick.idle(TIMEOUT_GRACE, using)


def fire_timers(using: str) -> int:
    """Fire all timers that are due, in batches; how many workflows were told."""
    told = 0
    while True:
        with committing("fire timers", using):
            due = timers.lock_due(conf.SWEEP_BATCH, using)
            fired = timers.fire(due, conf.PRIORITY_SECONDS, using) if due else timers.Fired([], [])
            deadlines.release(fired.releasing, using)
            registry.due(fired.for_people, using)
            hint_ready([row[:4] for row in fired.told if row[4] == "waiting"], using)
        if fired.breached:
            breach.tell(conf.SWEEP_BATCH, using)
        if due:
            deadlines.tell(conf.SWEEP_BATCH, using)
        told += len(fired.told)
        if len(due) < conf.SWEEP_BATCH:
            return told


def fire_on_time(using: str) -> None:
    """Fire what is due, and have the next timer looked at in its moment too. A look that finds nothing asks for no further one."""
    if fire_timers(using):
        close = tick.soon(using)
        if close is not None:
            look_soon(close)


def bury(using: str, proven: UUID | None = None) -> list[UUID]:
    """Make workers dead whose lease is over (and the one proven gone); their ids. Dead is final."""
    buried = workers.bury(using, proven)
    for worker, name in buried:
        logger.warning("worker %s (%s) is dead; its work is put back", name, worker)
    return [worker for worker, _ in buried]


def put_back(ids: Iterable[UUID], using: str, *, proven: tuple[UUID, int] | None = None) -> int:
    """Make lost workflows ready again. Each is locked first and looked at anew, so an owner that is alive after all keeps its work.

    `proven`: the worker and the child of it that is known to be gone.
    """
    count = 0
    for row_id in ids:
        with committing("put back", using):
            if not locks.free_workflows([row_id], using):
                continue
            owned = _in_place_of_owner(row_id, using)
            if owned is None or not ((owned.worker, owned.pid) == proven or recover.owner_gone(row_id, using)):
                continue
            doubtful = owned.row.owed > 0 and bool(operations.left_open(row_id, using))
            if move(arrows.put_back(owned, doubtful=doubtful), using) is None:
                continue
            count += 1
            if doubtful:
                obligations.doubt(row_id, "WORKER_LOST", using)
            elif not owned.pause:
                after_commit(hints_for([(row_id, owned.row.queue, owned.row.flow_name, owned.row.node)]), using)
            ledger.settle_lost(owned, "WORKER_LOST")
    return count


def callers_gone(using: str, *, worker: UUID | None = None, pids: Sequence[int] = ()) -> bool:
    """Ask what became of calls whose process is gone (or is one of these children), after their grace. Locked first: two sweeps share none."""
    with committing("caller gone", using):
        return obligations.calls_over(looks.caller_gone(using, worker=worker, pids=pids), using)


def put_back_children(worker: UUID, pids: Sequence[int], using: str) -> int:
    """Put back what ran in child processes that are gone; their parent says so."""
    if looks.put_back(TIMEOUT_GRACE, using, worker=worker, pids=pids):
        service()
    callers_gone(using, worker=worker, pids=pids)
    return sum(put_back(recover.of_children(worker, [pid], using), using, proven=(worker, pid)) for pid in pids)


def put_back_lost(using: str) -> int:
    """Put back everything that runs under a worker which is not alive."""
    return put_back(recover.lost(conf.SWEEP_BATCH, using), using)


def time_out(using: str, grace: float = TIMEOUT_GRACE) -> int:
    """End attempts whose timeout has passed, in their owner's place; the engine decides between retry, route and a person."""
    count = 0
    ending = arrows.Ending(AttemptOutcome.TIMED_OUT, code=timeout_failure().code, error_class="ActivityTimeout")
    for row_id in recover.overdue(conf.SWEEP_BATCH, grace, using):
        with committing("time out", using):
            if not locks.free_workflows([row_id], using):
                continue
            if row_id not in recover.overdue(conf.SWEEP_BATCH, grace, using):
                continue
            owned = _in_place_of_owner(row_id, using)
            if owned is None or owned.definition is None:  # a process that knows the definition decides
                continue
            doubtful = owned.row.owed > 0 and bool(operations.left_open(row_id, using))
            trigger = Failed(timeout_failure(), doubtful=doubtful)
            progress = proceed(owned, trigger, Keeping(lambda queue, placement: False), ending)
            count += progress is Progress.LEFT
    return count


def dispatch_ready(using: str) -> int:
    """Hint at ready rows that no turn has taken yet: at most as many messages as there are slots. How many."""
    free = tick.slots(using)
    sent = 0
    for queue in tick.ready_queues(using):
        limit = max(1, free.get(queue, 1))
        hints = hints_for(tick.ready(queue, limit * PER_MESSAGE, using))[:limit]
        publish(hints)
        sent += len(hints)
    return sent


def _in_place_of_owner(row_id: UUID, using: str) -> Owned | None:
    found = running(row_id, using)
    if found is None:
        return None
    row, worker, pid = found
    return build(Claimed(*row), load([row_id], using)[row_id], worker, pid, using)
