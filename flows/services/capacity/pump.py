"""Lets those in again who wait for capacity: so many a second, so many at once, the most urgent first.

    waiting ──► runnable, its wait closed, a slot reserved for it        one transaction for each limit: no more than its tokens and free slots
Guard: the limit's row, and whoever waits, locked with SKIP LOCKED. Races: two pumps: the row, and the second goes on to the next limit.
A cancel holds the workflow: it is passed over. The dependency goes down first: its row says so, and nobody is let in.
It is a watch of the tick; while more may go it asks for its own next look, once for each limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from flows.conf import conf
from flows.core.capacity import DEPENDENCY, DependencyStatus, Health, Terms, saved
from flows.dispatch import after_commit, hints_for
from flows.registry import Watch
from flows.services import admitting
from flows.services.apart import apart
from flows.services.capacity import health, probing, taking
from flows.services.capacity.taking import PUMP, terms_of
from flows.services.hinting import FEW
from flows.store import dependencies, limits, slots, tick
from flows.store.limits import WAITING, Locked
from flows.store.slots import Waiter
from flows.store.sql import committing

#: Somebody waits, or a dependency moves by itself.
EXISTS = (
    f"EXISTS (SELECT FROM outlast_wait o WHERE {WAITING}) OR EXISTS (SELECT FROM outlast_dependency WHERE {dependencies.MOVING})"
)


def run(using: str) -> int:
    """One look at everybody who waits; how many were let in."""
    awaited = limits.awaited(using)
    count, again = 0, []
    for limit, _ in awaited:
        with apart(f"the pump of limit {limit}", using):
            let_in, more = let_in_of(limit, using)
            count += let_in
            again += [limit] if more else []
    known = {label for _, label in awaited}
    moving = dependencies.under_way(using)
    for name in moving:
        if taking.limit_of(name) not in known:
            with apart(f"the look at {name}", using), committing("dependency", using):
                health.moved(name, using, waiting=False)
    probing.ask(moving)
    if again:
        taking.look_again(again, using, conf.PUMP_SECONDS)
    return count


def let_in_of(limit_id: int, using: str) -> tuple[int, bool]:
    """Let in what may go of those who wait for one limit; how many, and whether more may soon go, without anything becoming free."""
    with committing("pump", using):
        limit = limits.lock(limit_id, using)
        if limit is None:
            return 0, False
        name = limit.name.removeprefix(DEPENDENCY) if limit.name.startswith(DEPENDENCY) else ""
        of = health.moved(name, using, waiting=True) if name else None
        tokens, most = _may(limit, of, name)
        if most < 1:
            return 0, of is None or not of.down
        numbers = _free(limit, most, using)
        found = slots.waiters(limit.label, len(numbers), using) if numbers else []
        if found:
            count = _let_in(limit, numbers, found, using)
            if tokens is not None:
                limits.counted(limit, tokens - count, using)
            if of is not None and of.status == DependencyStatus.TRIAL:
                _try(name, found[0], using)
        if numbers and not found and name:  # nobody is left who could go
            health.moved(name, using, waiting=False)
        return len(found), bool(found) and len(found) == most


def _may(limit: Locked, of: Health | None, name: str) -> tuple[float | None, int]:
    """The tokens that there are (None: any number), and how many may be let in at most."""
    if of is not None:
        if of.down:
            return None, 0
        if of.status == DependencyStatus.TRIAL:
            return None, 0 if of.trial is not None else 1
        rate: float | None = of.allowed if of.recovering else of.rate or terms_of(name).rate
    else:
        rate = limit.rate
    if rate is None:
        return None, conf.SWEEP_BATCH
    tokens = min(saved(rate, limit.burst if of is None else None), limit.tokens + rate * limit.elapsed)
    return tokens, min(int(tokens), conf.SWEEP_BATCH)


def _free(limit: Locked, most: int, using: str) -> list[int]:
    numbers = slots.lock_free(limit.id, limit.size, most, using)
    if len(numbers) < most and slots.reclaim(limit.id, using):
        numbers = list(dict.fromkeys(numbers + slots.lock_free(limit.id, limit.size, most, using)))[:most]
    return numbers


def _let_in(limit: Locked, numbers: list[int], found: list[Waiter], using: str) -> int:
    """Reserve and wake; how many tokens that took."""
    if admitting.counts_runs(limit.name):
        return admitting.admit(limit, numbers, found, using)
    ids = [one.workflow for one in found]
    slots.reserve(limit.id, numbers[: len(found)], ids, [one.seq for one in found], using)
    _hint(slots.readmit([one.wait for one in found], limit.label, conf.PRIORITY_SECONDS, using), using)
    return len(found)


def _hint(rows: Sequence[tuple[UUID, str, str, str]], using: str) -> None:
    """One message each, as far as there are turns to take them: a message for several would have them run one after another."""
    free = tick.slots(using) if len(rows) > FEW else {}
    sent: Counter[str] = Counter()
    hints = []
    for row in rows:
        sent[row[1]] += 1
        if sent[row[1]] <= max(FEW, free.get(row[1], 0)):
            hints += hints_for([row])
    after_commit(hints, using)


def _try(name: str, one: Waiter, using: str) -> None:
    def step(_terms: Terms, of: Health, _now: datetime) -> Health:
        return replace(of, trial=(one.workflow, one.seq or 0)) if of.status == DependencyStatus.TRIAL else of

    health.change(name, step, using)


WATCH = Watch(PUMP, EXISTS, run)

__all__ = ["WATCH", "let_in_of", "run"]
