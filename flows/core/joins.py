"""When the branches of a fan are joined, and how: pure arithmetic over its counters.

succeeded ≥ need              → met      (ANY: one; n: so many; ALL: every one of them)
failed + cancelled > tolerated → failed  (it cannot be met any more, or more went wrong than may)
all have ended                → met
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flows.core.errors import DefinitionError


class Join(StrEnum):
    """How many branches a Parallel waits for, beside a number; ALL is also what a Map may tolerate."""

    ALL = "all"
    ANY = "any"


class OnCancel(StrEnum):
    """What becomes of children that still run when their parent ends: asked to end, left alone, or asked and waited for."""

    REQUEST = "request"
    ABANDON = "abandon"
    WAIT = "wait"


class Losers(StrEnum):
    """What becomes of branches that still run when a join is met; the other answer is CANCEL."""

    LEAVE = "leave"


ALL, ANY = Join.ALL, Join.ANY
REQUEST, ABANDON, WAIT = OnCancel.REQUEST, OnCancel.ABANDON, OnCancel.WAIT
LEAVE = Losers.LEAVE

#: What is said of a join: the evidence of the wait has one of these.
MET, FAILED = "met", "failed"

#: Statuses of a branch. Only planned and running ones have not ended.
PLANNED, RUNNING = "planned", "running"
SUCCEEDED, CANCELLED, SKIPPED = "succeeded", "cancelled", "skipped"
ENDED = (SUCCEEDED, FAILED, CANCELLED, SKIPPED)

#: How a run ended → what its branch is then.
OF_OUTCOME = {
    "COMPLETE": SUCCEEDED,
    "COMPLETE_WITH_DEFERRED_COMMITMENTS": SUCCEEDED,
    "FAILED": FAILED,
    "CANCELLED": CANCELLED,
    "SUPERSEDED": CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a fan. Of `total` branches those that are in none of the others are planned."""

    total: int
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0

    @property
    def ended(self) -> int:
        """How many have ended."""
        return self.succeeded + self.failed + self.cancelled + self.skipped

    @property
    def planned(self) -> int:
        """How many have not been started."""
        return self.total - self.running - self.ended


def joined(counted: Counters, need: int, tolerated: int) -> str:
    """MET or FAILED, or "" while it is open."""
    if counted.failed + counted.cancelled > tolerated:
        return FAILED
    return MET if counted.succeeded >= need or counted.ended >= counted.total else ""


def tolerated(tolerate: int | str | Join, total: int) -> int:
    """How many of `total` may fail: a number, a share such as "5%" (rounded down), or ALL.

    Raises:
        DefinitionError: it is none of these.
    """
    if tolerate is ALL:
        return total
    if isinstance(tolerate, str) and not isinstance(tolerate, Join):
        text = tolerate.removesuffix("%")
        if text != tolerate and text.isascii() and text.isdecimal() and int(text) <= 100:
            return total * int(text) // 100
    elif isinstance(tolerate, int) and not isinstance(tolerate, bool) and tolerate >= 0:
        return tolerate
    raise DefinitionError(f'tolerate= is a number, a share such as "5%", or ALL; got {tolerate!r:.60}.')


def needed(join: int | Join, total: int) -> int:
    """How many of `total` must succeed.

    Raises:
        DefinitionError: it is neither ALL, ANY nor a number of them.
    """
    if join is ALL:
        return total
    if join is ANY:
        return 1
    if isinstance(join, int) and not isinstance(join, bool) and 1 <= join <= total:
        return join
    raise DefinitionError(f"join= is ALL, ANY, or a number from 1 to {total}; got {join!r:.60}.")
