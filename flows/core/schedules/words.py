"""The words of schedules: what is declared, what becomes of an occurrence, and why one was passed over."""

from __future__ import annotations

from enum import StrEnum


class Timing(StrEnum):
    """How the moments are given: an expression in the manner of cron, a span, one moment, or a rule of a calendar (RFC 5545)."""

    CRON = "cron"
    INTERVAL = "interval"
    ONCE = "once"
    RULE = "rule"


class Repeated(StrEnum):
    """Which of the two, where a local time exists twice because the clocks are set back."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class Missing(StrEnum):
    """What becomes of a local time that does not exist because the clocks are set forward: the first moment after the gap, or nothing."""

    SHIFT = "shift"
    SKIP = "skip"


class Missed(StrEnum):
    """What becomes of occurrences at which nobody looked in time: all in the window, the newest of them, or none."""

    EVERY = "every"
    NEWEST = "newest"
    SKIP = "skip"


class Overlap(StrEnum):
    """What becomes of an occurrence while the run of the one before lives."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_OLD = "cancel_old"
    SUPERSEDE = "supersede"


class Compute(StrEnum):
    """When the next moment is computed: as this one is planned, or from the end of its run."""

    CLAIM = "claim"
    COMPLETION = "completion"


class OccurrenceStatus(StrEnum):
    """Where an occurrence is. The moves between them are those of `MOVES`; the database refuses any other."""

    PENDING = "pending"
    QUEUED = "queued"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class OccurrenceOrigin(StrEnum):
    """Who wanted it: the plan, a person who has the past made up for, or a person who wants it now."""

    PLANNED = "planned"
    BACKFILL = "backfill"
    MANUAL = "manual"


#: Every move of an occurrence; "" is its beginning. A start that could not be made yet stays where it is, with one more of its `tries`; a run
#: that was continued as new stays started, with the next run.
MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        ("", OccurrenceStatus.PENDING),
        ("", OccurrenceStatus.SKIPPED),
        *((old, old) for old in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED, OccurrenceStatus.STARTED)),
        (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED),
        *(
            (old, new)
            for old in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
            for new in (OccurrenceStatus.STARTED, OccurrenceStatus.SKIPPED, OccurrenceStatus.FAILED)
        ),
        *(
            (OccurrenceStatus.STARTED, new)
            for new in (OccurrenceStatus.DONE, OccurrenceStatus.FAILED, OccurrenceStatus.CANCELLED)
        ),
    }
)

#: Code of an occurrence → what it says.
CODES: dict[str, str] = {
    "MISSED": "Nobody looked in time, and the missed-run policy leaves it away.",
    "OUTSIDE_WINDOW": "Nobody looked in time, and it is older than the window in which it is made up for.",
    "OVER_CAP": "So many were missed that this row stands for all until the moment it names.",
    "PAUSED": "The schedule was paused then.",
    "OVERLAP": "The run of the one before still lived.",
    "QUEUE_FULL": "The run of the one before still lived, and another occurrence waits for its end already.",
    "COOLDOWN": "The last start was too short a time before.",
    "CALENDAR": "The calendar was closed then.",
    "NO_CALENDAR": "Nobody has published the calendar.",
    "UNKNOWN_FLOW": "No process that looked at it has the flow.",
    "NOBODY_ACCOUNTABLE": "The accountable user does not exist, or is not active.",
    "REFUSED": "The start was refused: its input or its key cannot be taken.",
}
