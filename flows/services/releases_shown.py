"""What there is of behavioural releases: who is pinned to each, who offers it, and which runs nobody may take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from flows.core.releases import ANY
from flows.models import Release
from flows.services import identify, releases, releasing
from flows.store import releases as store


@dataclass(frozen=True, slots=True)
class Shown:
    """One release.

    Attributes:
        current_for: flows for which it is current; "*" stands for all that have none of their own.
        live: status → how many runs are pinned to it. workers: the live ones that offer it.
        stuck: how many runs are ready and have had no worker that offers it for RELEASE_ALERT_SECONDS (counted up to 100).
    """

    name: str
    digest: str
    current_for: list[str]
    live: Mapping[str, int]
    workers: list[str]
    stuck: int
    compatible_with: list[str]
    note: str
    by: str
    at: datetime

    @property
    def runs(self) -> int:
        """How many live runs are pinned to it."""
        return sum(self.live.values())

    @property
    def state(self) -> str:
        """ALERT: runs are ready, and nobody may take them. UNOFFERED: runs are pinned to it, and nobody offers it. Else in use, or not."""
        if self.stuck:
            return "ALERT"
        if self.runs and not self.workers:
            return "UNOFFERED"
        return "current" if self.current_for else "in use" if self.runs else ""


def overview(*, using: str | None = None) -> list[Shown]:
    """Every release, newest first."""
    alias = identify.alias(using)
    live: dict[str, dict[str, int]] = defaultdict(dict)
    for name, status, count in store.counts(alias):
        live[name][status] = count
    current: dict[str, list[str]] = defaultdict(list)
    for one in releases.currents(alias):
        current[one.release].append(one.flow_name or ANY)
    offers = store.offers(alias)
    stuck = Counter(row[2] for row in releasing.stuck(alias))
    return [
        Shown(
            name=row.name,
            digest=row.digest,
            current_for=current[row.name],
            live=live[row.name],
            workers=[worker for worker, offered in offers if row.name in offered or ANY in offered],
            stuck=stuck[row.name],
            compatible_with=row.compatible_with,
            note=row.note,
            by=row.by_label,
            at=row.at,
        )
        for row in Release.objects.using(alias).order_by("-pk")
    ]


def unregistered(*, using: str | None = None) -> list[tuple[str, str]]:
    """(release, worker) of what live workers offer though nobody has registered it: most likely misspelt."""
    alias = identify.alias(using)
    known = {ANY, *Release.objects.using(alias).values_list("name", flat=True)}
    return [(name, worker) for worker, offered in store.offers(alias) for name in offered if name not in known]
