"""What a monitoring system gets of people who are asked: how many requests wait for each role, pool and permission, and since when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from approvals.services import waiting
from flows.core.metrics import Sample

#: Names of persons are no labels: whoever is asked in person counts in one line.
PERSON = "user"
#: So many audiences at most, the longest queues first.
MOST = 200


def samples(using: str, moment: datetime) -> Iterator[Sample]:
    """The backlog of reviewers at that moment, which is now."""
    counts: dict[tuple[str, str], int] = {}
    oldest: dict[tuple[str, str], float] = {}
    for one in waiting.backlog(using=using)[:MOST]:
        labels = (one.kind, "" if one.kind == PERSON else one.name)
        counts[labels] = counts.get(labels, 0) + one.open
        oldest[labels] = max(oldest.get(labels, 0.0), (moment - one.oldest_at).total_seconds())
    for labels, count in sorted(counts.items()):
        yield Sample("outlast_reviewers_waiting", labels, count)
        yield Sample("outlast_reviewers_oldest_seconds", labels, oldest[labels])
