"""What a monitoring system gets: the metrics of `flows.core.metrics`, read from the record in at most eight statements, kept ten seconds.

Other rooms add samples of theirs by `registry.register_samples`. A process keeps what it read, so that several who ask cost one look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

from flows import registry
from flows.core import measures as core
from flows.core.liveness import KINDS
from flows.core.metrics import Sample
from flows.core.protocol import WAIT_KINDS
from flows.services import clock, figures, identify, measures
from flows.services.figures import SHARES, Now
from flows.services.measures import Measured
from flows.store import figures as store

#: Seconds that a process keeps what it has read; hours of the figures of a day.
KEEP, DAY = 10.0, 24

_lock = threading.Lock()
_kept: dict[str, tuple[float, list[Sample]]] = {}


def samples(using: str | None = None) -> list[Sample]:
    """Every sample, not older than ten seconds."""
    alias = identify.alias(using)
    with _lock:
        at, found = _kept.get(alias, (float("-inf"), []))
        if time.monotonic() - at >= KEEP:
            found = list(read(alias))
            _kept[alias] = (time.monotonic(), found)
    return found


def forget() -> None:
    """Read anew at the next question."""
    with _lock:
        _kept.clear()


def read(using: str) -> Iterator[Sample]:
    """Every sample, read now."""
    yield from _now(figures.now(using))
    yield from _running(using)
    day = measures.last_hours(DAY, using)
    if day is not None:
        yield Sample("outlast_measured_age_seconds", (), day.age)
        for (flow, version), found in sorted(day.by_flow().items()):
            yield from _day(found, (flow, str(version)))
    for (flow, version), promise in sorted(measures.objectives().items()):
        for name, _ in promise.spans():
            yield Sample("outlast_objective_share", (flow, str(version), name), float(promise.share))
    moment = day.end + timedelta(seconds=day.age) if day is not None else clock.now(using)
    for source in registry.sample_sources():
        yield from source(using, moment)


def _now(there: Now) -> Iterator[Sample]:
    for run in there.live:
        labels = (run.flow, str(run.version), run.status)
        yield Sample("outlast_workflows", labels, run.count)
        yield Sample("outlast_workflow_oldest_seconds", labels, run.oldest)
        yield Sample("outlast_workflow_unmoved_seconds", labels, run.unmoved)
    for wait in there.waits:
        place, means = (wait.flow, str(wait.version)), WAIT_KINDS[wait.kind]
        yield Sample("outlast_waits", (*place, wait.kind, means.slo, means.alert), wait.count)
        yield Sample("outlast_wait_oldest_seconds", (*place, wait.kind, means.alert), wait.oldest)
        yield Sample("outlast_waits_overdue", (*place, wait.kind, means.alert, means.escalation), wait.overdue)
    for owing in there.owing:
        place = (owing.flow, str(owing.version) if owing.flow else "")
        what, _, kind = owing.what.partition(":")
        if what == "orphan":
            whose = (*place, kind, KINDS[kind].first if kind in KINDS else "")
            yield Sample("outlast_orphans", whose, owing.count)
            yield Sample("outlast_orphan_oldest_seconds", whose, owing.oldest)
        elif what == "doubt":
            yield Sample("outlast_operations_in_doubt", place, owing.count)
            yield Sample("outlast_doubt_oldest_seconds", place, owing.oldest)
        else:
            yield Sample("outlast_commitments" if what == "owed" else "outlast_commitments_breached", place, owing.count)


def _running(using: str) -> Iterator[Sample]:
    for one in store.running(using):
        if one.what == "tick":
            yield Sample("outlast_tick_age_seconds", (), one.age or 0.0)
        elif one.what == "workers":
            yield Sample("outlast_workers", (one.name,), one.count)
        else:
            yield Sample("outlast_ready", (one.name,), one.count)
            yield Sample("outlast_ready_oldest_seconds", (one.name,), one.age or 0.0)


def _day(day: Measured, place: tuple[str, str]) -> Iterator[Sample]:
    for bucket, seconds in day.by_bucket().items():
        yield Sample("outlast_day_seconds", (*place, bucket), float(seconds))
    yield Sample("outlast_day_started", place, day.count("started"))
    yield Sample("outlast_day_visits", place, day.count("visit"))
    named = {"ended:": "outlast_day_ended", "attempt:": "outlast_day_attempts", "verdict:": "outlast_day_verdicts"}
    for beginning, metric in named.items():
        for name, count in sorted(day.by_name(beginning).items()):
            yield Sample(metric, (*place, name), count)
    wakes = day.histogram("wake:")
    for share in SHARES:
        if (bound := core.quantile(wakes, share)) is not None:
            yield Sample("outlast_day_wake_seconds", (*place, str(share)), bound)
    for objective, abouts in figures.ABOUT.items():
        yield Sample("outlast_day_objective", (*place, objective), day.count(*abouts))
        for blame, count in sorted(day.by_name(f"breach:{objective}:").items()):
            yield Sample("outlast_day_breaches", (*place, objective, blame), count)
