"""Where the time of runs went (Q2): the buckets, what belongs to which, and histograms. Pure.

    cut     from one row of a run's log to the next, or until now: it belongs to exactly one bucket
    bucket  by the status of the cut; while it runs, by the kind of its node; while it waits, by what `WAIT_KINDS` says of the wait (C5)
    le      upper bound of one column of a histogram, in seconds; the last one is infinite

The roll-up (`flows.store.measures`) says the same in SQL; tests say it a third time, slowly, and compare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from flows.core.definition import Definition
from flows.core.nodes import Decision
from flows.core.protocol import WAIT_KINDS, Outcome, Status


class Bucket(StrEnum):
    """What the time of a run is spent on."""

    REASONING = "reasoning"
    VERIFICATION = "verification"
    COMPUTING = "computing"
    QUEUED = "queued"
    HUMAN = "human"
    EXTERNAL_JOB = "external job"
    CAPACITY = "capacity"
    RETRY_DELAY = "retry delay"
    RECONCILIATION = "reconciliation"
    TIMER = "timer"
    CHILDREN = "children"
    PAUSED = "paused"
    CANCELLING = "cancelling"


#: Statuses that are one bucket whatever the node is.
OF_STATUS: dict[Status, Bucket] = {
    Status.RUNNABLE: Bucket.QUEUED,
    Status.PAUSED: Bucket.PAUSED,
    Status.RECONCILING: Bucket.RECONCILIATION,
    Status.CANCELLING: Bucket.CANCELLING,
}

#: Kind of wait → bucket.
OF_WAIT: dict[str, Bucket] = {name: Bucket(kind.slo) for name, kind in WAIT_KINDS.items()}


def of_suspension(outcome: str) -> Bucket:
    """The bucket of a run that waits and has no wait on record: somebody has to look, or what became of an effect is to be found out."""
    return Bucket.RECONCILIATION if outcome == Outcome.RECONCILIATION_REQUIRED else Bucket.HUMAN


def of_nodes(definition: Definition) -> dict[str, Bucket]:
    """Node → bucket of the time that runs of a definition are running there, where that is not `computing`."""
    found: dict[str, Bucket] = {}
    for name, node in definition.nodes.items():
        if isinstance(node, Decision):
            found[name] = Bucket.REASONING
        elif getattr(node, "verifies", ""):
            found[name] = Bucket.VERIFICATION
    return found


#: Upper bounds of the columns of a histogram, in seconds.
BOUNDS: tuple[float, ...] = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0),
    *(3600.0, 14400.0, 28800.0, 86400.0, 259200.0, 604800.0, math.inf),
)


def quantile(counts: Mapping[float, int], share: float) -> float | None:
    """The bound below which that share of a histogram lies; None: it is empty. Never less than the truth, and at most a column more.

    Args:
        counts: upper bound → how many lie in that column. share: from 0 to 1.
    """
    total = sum(counts.values())
    seen = 0
    for bound in sorted(counts):
        seen += counts[bound]
        if total and seen >= share * total:
            return bound
    return None
