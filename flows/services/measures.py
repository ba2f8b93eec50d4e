"""Where the time of runs goes, and how long things take: the roll-up of whole hours, and how they are read (Q1, Q2).

    an hour ends ──(the clock's watch)──► measured from the log ──(an hour later, once more)──► final
What is not rolled up yet, the running hour above all, is computed when it is asked for. `flows.services.figures` makes figures of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from flows import registry
from flows.core import measures as core
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.objectives import Objectives
from flows.models import MeasuredNode
from flows.services import identify
from flows.store import measures as store
from flows.store.measures import Promise, Spent, Took
from flows.store.sql import committing

#: The longest time that is asked for at once, in hours: a year.
MOST_HOURS = 366 * 24


@dataclass(frozen=True, slots=True)
class Measured:
    """A stretch of time: from when until when; what was spent; what happened. By hour, flow and version.

    `age`: seconds from its end until now.
    """

    start: datetime
    end: datetime
    spent: list[Spent]
    took: list[Took]
    age: float = 0.0

    def histogram(self, *whats: str) -> dict[float, int]:
        """Upper bound → how many, of the happenings whose name is, or begins with, one of these (`wake:` is every wake-up)."""
        found: dict[float, int] = {}
        for one in self._of(whats):
            found[one.le] = found.get(one.le, 0) + one.count
        return found

    def count(self, *whats: str) -> int:
        """How many of them."""
        return sum(one.count for one in self._of(whats))

    def by_name(self, beginning: str) -> dict[str, int]:
        """What comes after that beginning → how many: `ended:` gives each outcome."""
        found: dict[str, int] = {}
        for one in self._of((beginning,)):
            name = one.what.removeprefix(beginning)
            found[name] = found.get(name, 0) + one.count
        return found

    def _of(self, whats: Iterable[str]) -> list[Took]:
        return [
            one
            for one in self.took
            if any(one.what == what or (what[-1:] == ":" and one.what.startswith(what)) for what in whats)
        ]

    def of(self, flow: str, version: int | None = None) -> Measured:
        """The same of one flow, or one version of it."""
        spent = [one for one in self.spent if one.flow == flow and version in (None, one.version)]
        took = [one for one in self.took if one.flow == flow and version in (None, one.version)]
        return Measured(self.start, self.end, spent, took)

    def nothing(self) -> Measured:
        """The same stretch, in which nothing was."""
        return Measured(self.start, self.end, [], [])

    def by_flow(self) -> dict[tuple[str, int], Measured]:
        """The same of each flow and version."""
        found: dict[tuple[str, int], Measured] = {}
        for name in ("spent", "took"):
            for one in getattr(self, name):
                whose = found.setdefault((one.flow, one.version), self.nothing())
                getattr(whose, name).append(one)
        return found

    def by_bucket(self) -> dict[str, Decimal]:
        """Bucket → seconds, in the order of the buckets; those where nothing was spent are left out."""
        found = {bucket.value: Decimal(0) for bucket in core.Bucket}
        for one in self.spent:
            found[one.bucket] += one.seconds
        return {bucket: seconds for bucket, seconds in found.items() if seconds}

    @property
    def flows(self) -> list[tuple[str, int]]:
        """Each flow and version that has anything here."""
        return sorted({*((one.flow, one.version) for one in self.spent), *((one.flow, one.version) for one in self.took)})


def roll_up(using: str) -> bool:
    """Measure the hours that have ended and are not measured for the last time, a day at most; False if there is nothing to do, or somebody
    else is at it.
    """
    if not store.look(using):
        return False
    know_nodes(using)
    with committing("roll up", using):
        span = store.lock(using)
        if span is None:
            return False
        start, end, last = span
        store.replace(start, end, last, promises(), using)
    return True


def watch() -> registry.Watch:
    """What the clock looks for."""
    return registry.Watch("measures", store.DUE, roll_up)


def know_nodes(using: str) -> None:
    """Record what running at the nodes of this process's flows counts as, where that is not on record."""
    found = {
        (name, version, node): bucket.value
        for (name, version), cls in registry.known().items()
        for node, bucket in core.of_nodes(cls.definition).items()
    }
    rows = MeasuredNode.objects.using(using).values_list("flow", "version", "node", "bucket")
    kept = {(flow, version, node): bucket for flow, version, node, bucket in rows}
    store.know([(*place, bucket) for place, bucket in sorted(found.items()) if kept.get(place) != bucket], using)


def promises() -> list[Promise]:
    """The objectives that the flows of this process declare."""
    given = {place: dict(promise.spans()) for place, promise in objectives().items()}
    return [
        Promise(*place, found.get("complete"), found.get("wake"), found.get("answer")) for place, found in sorted(given.items())
    ]


def objectives() -> dict[tuple[str, int], Objectives]:
    """(flow, version) → what it promises."""
    declared = {place: cls.definition.objectives for place, cls in registry.known().items()}
    return {place: promise for place, promise in declared.items() if isinstance(promise, Objectives)}


def measured(*, flow: str | None = None, hours: int = 24, using: str | None = None) -> Measured:
    """What was spent and what happened in the last hours, the running one besides.

    Args:
        flow: of this flow only. hours: so many whole hours before the running one, from 1 to a year.
    Raises:
        PayloadError: one of them is none.
    """
    if flow is not None:
        payload.check_name(flow, "the flow")
    given: Any = hours
    if not isinstance(given, int) or isinstance(given, bool) or not 0 < given <= MOST_HOURS:
        raise PayloadError("the number of hours", f"is a whole number from 1 to {MOST_HOURS:,}, got {hours!r:.60}")
    alias = identify.alias(using)
    until, _, now, hour = store.state(alias)
    start = hour - timedelta(hours=hours)
    known = min(max(until or start, start), hour)
    know_nodes(alias)
    spent = [*store.stored_spent(start, known, alias), *store.spent(known, now, alias)]
    took = [*store.stored_took(start, known, alias), *store.took(known, now, promises(), alias)]
    found = Measured(start, now, spent, took)
    return found if flow is None else found.of(flow)


def last_hours(hours: int, using: str) -> Measured | None:
    """The same of the last hours that are rolled up, without computing anything; None: none is yet."""
    until, _, now, _ = store.state(using)
    if until is None:
        return None
    start = until - timedelta(hours=hours)
    spent, took = store.stored_spent(start, until, using), store.stored_took(start, until, using)
    return Measured(start, until, spent, took, (now - until).total_seconds())
