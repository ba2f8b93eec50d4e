"""What becomes of an occurrence that is due while the run of the one before lives. Pure: a table.

    policy       nobody runs   a run lives                        and one is queued already
    ALLOW        start         start                              –
    SKIP         start         skip OVERLAP                       –
    QUEUE        start         queue                              skip QUEUE_FULL
    CANCEL_OLD   start         cancel the run, queue              the same; the one that was queued is skipped
    SUPERSEDE    start         supersede its intent, and start    –
An occurrence that is queued waits, and starts when nobody runs.
"""

from __future__ import annotations

from enum import StrEnum

from flows.core.schedules.words import Overlap


class Act(StrEnum):
    """What to do with the occurrence."""

    START = "start"
    SKIP = "skip"
    QUEUE = "queue"
    FULL = "full"
    CANCEL = "cancel"
    SUPERSEDE = "supersede"
    WAIT = "wait"


_RUNS: dict[Overlap, Act] = {
    Overlap.ALLOW: Act.START,
    Overlap.SKIP: Act.SKIP,
    Overlap.QUEUE: Act.QUEUE,
    Overlap.CANCEL_OLD: Act.CANCEL,
    Overlap.SUPERSEDE: Act.SUPERSEDE,
}


def decide(policy: Overlap, *, queued: bool, runs: bool, another: bool) -> Act:
    """What to do.

    Args:
        queued: this one was queued before. runs: a run of an earlier occurrence lives. another: another occurrence is queued.
    """
    if queued:
        return Act.WAIT if runs else Act.START
    if another and policy is Overlap.QUEUE:  # the one that came first goes first
        return Act.FULL
    return _RUNS[policy] if runs else Act.START
