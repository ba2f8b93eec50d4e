"""How long it takes from what wakes a run until a worker has taken it: the log has both moments (Q1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flows.core import payload
from flows.core.errors import PayloadError
from flows.services import identify
from flows.store import latency as store

MOST_DAYS = 10_000


@dataclass(frozen=True, slots=True)
class WakeUps:
    """Of one kind of wait: how many wake-ups, and seconds from arrival to claim: median, 99th percentile, and the longest."""

    kind: str
    count: int
    p50: float
    p99: float
    longest: float


def wake_ups(*, flow: str | None = None, days: int = 7, using: str | None = None) -> list[WakeUps]:
    """The wake-ups of the last days, by kind of wait, the most frequent first. It reads the log of that time, which may take a while.

    Args:
        flow: of this flow only. days: of so many days, at least 1.
    Raises:
        PayloadError: one of them is none.
    """
    if flow is not None:
        payload.check_name(flow, "the flow")
    given: Any = days
    if not isinstance(given, int) or isinstance(given, bool) or not 0 < given <= MOST_DAYS:
        raise PayloadError("the number of days", f"is a whole number from 1 to {MOST_DAYS:,}, got {days!r:.60}")
    return [WakeUps(*row) for row in store.wake_ups(flow, days, identify.alias(using))]
