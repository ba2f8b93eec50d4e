"""How a flow does (Q1): a figure of each kind, of the last hours and of now, each from the record. Admin, command and /metrics read it here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from flows.core import measures as core
from flows.core.objectives import Objectives
from flows.core.protocol import WAIT_KINDS, AttemptOutcome, Outcome
from flows.core.verdicts import Verdict
from flows.services import identify, measures
from flows.services.measures import Measured
from flows.store import figures as store
from flows.store.figures import LiveRuns, OpenWaits, Owing

#: Ends that are a completion; a run that continues as another one has not ended.
COMPLETED = (Outcome.COMPLETE, Outcome.COMPLETE_WITH_DEFERRED_COMMITMENTS)
#: Attempts that were given back, or refused before their code ran, tried nothing.
TRIES = tuple(sorted(set(AttemptOutcome) - {AttemptOutcome.RETURNED, AttemptOutcome.REFUSED}))
SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Kept:
    """An objective of a flow: what is promised, and how it was kept.

    Attributes:
        objective: complete, wake or answer. within: seconds. share: promised. of: how many there were. late: how many of them were late.
        blame: what took the time → how many were late by it: a bucket for `complete`, a kind of wait for the others; the most frequent first.
    """

    objective: str
    within: float
    share: float
    of: int
    late: int
    blame: dict[str, int]

    @property
    def kept(self) -> float | None:
        """The share that was in time; None: there was nothing."""
        return 1 - self.late / self.of if self.of else None

    @property
    def breached(self) -> bool:
        """Whether fewer were in time than promised."""
        return self.kept is not None and self.kept < self.share


@dataclass(frozen=True, slots=True)
class WaitsOf:
    """Open waits of a kind: how many, seconds since the oldest, how many are over their deadline; and who looks and decides (C5)."""

    kind: str
    count: int
    oldest: float
    overdue: int

    @property
    def looks(self) -> str:
        """Who looks first."""
        return WAIT_KINDS[self.kind].alert

    @property
    def decides(self) -> str:
        """Who decides when it lasts too long."""
        return WAIT_KINDS[self.kind].escalation


@dataclass(frozen=True, slots=True)
class Figures:
    """One flow and version, of a stretch of time and of now. Ages and spans are seconds.

    Attributes:
        buckets: where the time went. started, ended: runs (by outcome). completion: share of those that ended; None: none has.
        attempts, visits, amplification: tries, activities begun, and the one by the other. wakes: how many, and by share within which span.
        stale: refusals because the goal had changed. live: status → how many. oldest, unmoved: of live runs. waits: open ones, by kind.
        in_doubt, owed, breached: now; the first is the backlog of reconciliation. breach_rate: share of what is owed that is over its deadline.
        stuck: orphans that are open now. orphans: those found in the time; orphan_rate: for each run that was started.
        objectives: those that are declared.
    """

    flow: str
    version: int
    buckets: dict[str, Decimal]
    started: int
    ended: dict[str, int]
    attempts: int
    visits: int
    wakes: int
    wake: dict[float, float]
    stale: int
    live: dict[str, int]
    oldest: float | None
    unmoved: float | None
    waits: list[WaitsOf]
    in_doubt: int
    owed: int
    breached: int
    stuck: int
    orphans: int
    objectives: list[Kept] = field(default_factory=list)

    @property
    def completion(self) -> float | None:
        """The share of the runs that have ended which are complete."""
        over = sum(count for outcome, count in self.ended.items() if outcome != Outcome.CONTINUED)
        return sum(self.ended.get(one, 0) for one in COMPLETED) / over if over else None

    @property
    def amplification(self) -> float | None:
        """Tries for each activity begun: 1 where nothing is tried twice."""
        return self.attempts / self.visits if self.visits else None

    @property
    def breach_rate(self) -> float | None:
        """The share of what is owed now that is over its deadline."""
        return self.breached / self.owed if self.owed else None

    @property
    def orphan_rate(self) -> float | None:
        """Orphans that were found for each run that was started."""
        return self.orphans / self.started if self.started else None


@dataclass(frozen=True, slots=True)
class Everything:
    """All flows: from when until when, and the figures of each flow and version that did anything then, or has live runs."""

    start: datetime
    end: datetime
    flows: list[Figures]


@dataclass(frozen=True, slots=True)
class Now:
    """What is there now, of all flows."""

    live: list[LiveRuns]
    waits: list[OpenWaits]
    owing: list[Owing]


def now(using: str) -> Now:
    """Three statements."""
    return Now(store.live_runs(using), store.open_waits(using), store.owing(using))


def figures(*, flow: str | None = None, hours: int = 24, using: str | None = None) -> Everything:
    """How each flow does.

    Args:
        flow: of this one only. hours: of so many whole hours and the running one.
    Raises:
        PayloadError: one of them is none.
    """
    alias = identify.alias(using)
    found = measures.measured(flow=flow, hours=hours, using=alias)
    promised, orphans = measures.objectives(), store.found(found.start, found.end, alias)
    there = now(alias)
    rows: list[LiveRuns | OpenWaits | Owing] = [*there.live, *there.waits, *there.owing]
    places = {*found.flows, *((one.flow, one.version) for one in rows)}
    whose, nothing = found.by_flow(), found.nothing()
    listed = [
        _of(whose.get(place, nothing), there, promised.get(place), orphans.get(place, 0), place)
        for place in sorted(places)
        if place[0] and flow in (None, place[0])
    ]
    return Everything(found.start, found.end, listed)


def _of(found: Measured, there: Now, promise: Objectives | None, orphans: int, place: tuple[str, int]) -> Figures:
    def mine(rows: list[Any]) -> list[Any]:
        return [one for one in rows if (one.flow, one.version) == place]

    live: list[LiveRuns] = mine(there.live)
    owing = {one.what: one.count for one in mine(there.owing)}
    wakes = found.histogram("wake:")
    return Figures(
        *place,
        buckets=found.by_bucket(),
        started=found.count("started"),
        ended=found.by_name("ended:"),
        attempts=found.count(*(f"attempt:{one}" for one in TRIES)),
        visits=found.count("visit"),
        wakes=sum(wakes.values()),
        wake={share: bound for share in SHARES if (bound := core.quantile(wakes, share)) is not None},
        stale=found.count(f"verdict:{Verdict.INTENT_SUPERSEDED}"),
        live={one.status: one.count for one in live},
        oldest=max((one.oldest for one in live), default=None),
        unmoved=max((one.unmoved for one in live), default=None),
        waits=[WaitsOf(one.kind, one.count, one.oldest, one.overdue) for one in mine(there.waits)],
        in_doubt=owing.get("doubt", 0),
        owed=owing.get("owed", 0),
        breached=owing.get("breached", 0),
        stuck=sum(count for what, count in owing.items() if what.startswith("orphan:")),
        orphans=orphans,
        objectives=kept(found, promise),
    )


#: Objective → the happenings that it is about. What continues as another run is judged when the last one ends.
ABOUT: dict[str, tuple[str, ...]] = {
    "complete": tuple(f"ended:{one}" for one in Outcome if one is not Outcome.CONTINUED),
    "wake": ("wake:",),
    "answer": tuple(f"wait:{kind}" for kind, bucket in core.OF_WAIT.items() if bucket is core.Bucket.HUMAN),
}


def kept(found: Measured, promise: Objectives | None) -> list[Kept]:
    """How the objectives of a flow were kept."""
    listed = []
    for name, within in promise.spans() if promise is not None else ():
        blame = found.by_name(f"breach:{name}:")
        ordered = dict(sorted(blame.items(), key=lambda item: (-item[1], item[0])))
        assert promise is not None
        listed.append(Kept(name, within, promise.share, found.count(*ABOUT[name]), sum(blame.values()), ordered))
    return listed
