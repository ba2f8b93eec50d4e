"""Schedules of a test: made in the record, looked at by the clock, and what became of each moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Flow, Wait, minutes
from flows import schedules as faces
from flows.models import Occurrence, Schedule, Workflow
from flows.services import clock as durable
from flows.testing import LocalWorker
from tests import factories
from tests.factories import person

USING = "default"
NAME = "nightly"

Declare = Callable[..., type[Flow]]


def quick(declare: Declare, name: str = "t-scheduled") -> type[Flow]:
    """Runs to its end in one turn."""
    return declare(name, one=Activity(factories.work, then="done"), done=End(COMPLETE))


def lasting(declare: Declare, name: str = "t-lasting") -> type[Flow]:
    """Lives until an event of its key."""
    deadline = Deadline(days=300, then=ESCALATE)
    return declare(name, wait=Wait("t.end", key=lambda state: str(state.key), deadline=deadline, then="done"), done=End(COMPLETE))


def made(flow: type[Flow] | str, name: str = NAME, **options: Any) -> Schedule:
    """A schedule of the record: every minute from now, where nothing else is said."""
    if not {"cron", "every", "at", "rule"} & set(options):
        options["every"] = minutes(1)
    if "every" in options:
        options.setdefault("anchor", durable.now(USING))
    person("ann")
    faces.create(name, flow, **{"user": "ann", **options})
    return Schedule.objects.get(name=name)


def now() -> datetime:
    return durable.now(USING)


def tick(worker: LocalWorker, count: int = 1) -> None:
    """What the clock does, and the runs that it began go on until they wait or end."""
    for _ in range(count):
        worker.tick()
        worker.run()


def told(name: str = NAME) -> list[tuple[str, str]]:
    """(status, code) of each occurrence, in order."""
    return list(Occurrence.objects.filter(schedule__name=name).order_by("scheduled_for").values_list("status", "code"))


def moments(name: str = NAME) -> list[datetime]:
    """When each is scheduled for."""
    return list(Occurrence.objects.filter(schedule__name=name).order_by("scheduled_for").values_list("scheduled_for", flat=True))


def runs() -> list[str]:
    """The status of each run that a schedule began."""
    found = Workflow.objects.filter(started_by__startswith="schedule:").order_by("created_at", "id")
    return list(found.values_list("status", flat=True))


def minutes_after(start: datetime, count: int) -> list[datetime]:
    return [start + timedelta(minutes=number) for number in range(1, count + 1)]
