"""How everything is, on one page: counts by state, what waits for people, what is broken, and how the objectives are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flows.services import figures, measures
from flows.services.figures import Kept
from flows.store import counts
from flows.store import overview as store
from flows.store.overview import Seen

HOURS = 24


@dataclass(frozen=True, slots=True)
class Promised:
    """An objective of a flow, and how it was kept."""

    flow: str
    version: int
    kept: Kept


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page says.

    Attributes:
        statuses, waits: how many, up to `counts.MOST` + 1. seen: by name, see `flows.store.overview`.
        since, until: of the measures, those hours that are rolled up; None: none is yet. buckets: where the time went then, in seconds,
            most first. objectives: those that flows of this process declare.
    """

    statuses: dict[str, int]
    waits: dict[str, int]
    seen: dict[str, Seen]
    since: datetime | None
    until: datetime | None
    buckets: dict[str, float]
    objectives: list[Promised]


def overview(using: str) -> Overview:
    """A few statements, whatever the number of runs: nothing is measured here that is not rolled up."""
    statuses, waits = counts.count(using)
    found = measures.last_hours(HOURS, using)
    whose = found.by_flow() if found is not None else {}
    promised = [
        Promised(*place, one)
        for place, promise in sorted(measures.objectives().items())
        for one in (figures.kept(whose.get(place, found.nothing()), promise) if found is not None else ())
    ]
    spent = {bucket: float(seconds) for bucket, seconds in found.by_bucket().items()} if found is not None else {}
    return Overview(
        statuses=statuses,
        waits=waits,
        seen=store.look(using),
        since=found.start if found is not None else None,
        until=found.end if found is not None else None,
        buckets=dict(sorted(spent.items(), key=lambda one: -one[1])),
        objectives=promised,
    )
