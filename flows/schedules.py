"""Schedules by name: what people and code do about them. They are declared with `flows.Schedule`, or made here.

from flows import Schedule, schedules

schedules.pause("nightly-report", by=user, reason="the source is being moved")    # a user needs outlast_flows.manage_schedule, and a reason
schedules.run_now("nightly-report", by=user, reason="asked for by the board")
schedules.next("nightly-report", 10)
"""

from flows.services.schedules.acting import (
    Acted,
    Coming,
    ScheduleTaken,
    UnknownSchedule,
    backfill,
    change,
    create,
    pause,
    resume,
    run_now,
)
from flows.services.schedules.acting import coming as next  # noqa: A004 - the verb's documented name

__all__ = [
    "Acted",
    "Coming",
    "ScheduleTaken",
    "UnknownSchedule",
    "backfill",
    "change",
    "create",
    "next",
    "pause",
    "resume",
    "run_now",
]
