"""Plan: each moment of a schedule that has come gets its occurrence, once.

    due schedule ── locked, SKIP LOCKED ──► moments after `planned_until` until now ──► pending, or skipped with a code
                                            the mark moves to the last of them; `next_at` is the first after it
Guard: the schedule's lock, and the unique pair (schedule, moment). Races: two clocks, and a process that dies in between: both or none of the
rows and the mark are there. A clock that is set back plans nothing, for the mark only grows.
Of a schedule that is computed at completion one occurrence is open at a time; the end of it says what comes next (`starting`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile

from django.db import transaction

from flows.conf import conf
from flows.core.errors import DefinitionError
from flows.core.schedules import zones
from flows.core.schedules.kinds import Plan, Spec, due_at, read
from flows.core.schedules.missed import BATCH, Catching, Planned, judge
from flows.core.schedules.words import Compute, Missed
from flows.services.apart import apart
from flows.store import occurrences, schedules
from flows.store.occurrences import NewOccurrence
from flows.store.schedules import ScheduleRow
from flows.store.sql import committing

logger = logging.getLogger("outlast.schedules")

#: A schedule that cannot be read (its zone is gone, the extra is not installed here) is looked at again after so long.
UNREADABLE = timedelta(minutes=1)


def plan_due(using: str) -> int:
    """Plan every schedule that is due, each in a transaction of its own; how many were."""
    done: list[int] = []
    while len(done) < conf.SWEEP_BATCH:
        with committing("plan schedule", using):
            row = schedules.lock_due(done, using)
            if row is None:
                break
            done.append(row.id)
            with apart(f"the planning of schedule {row.name}", using), transaction.atomic(using=using):
                _plan(row, using)
    return len(done)


def spec_of(row: ScheduleRow) -> Spec:
    """When, as it is recorded."""
    return Spec(row.kind, row.expression, row.time_zone, row.anchor, row.repeated, row.missing)


def _plan(row: ScheduleRow, using: str) -> None:
    try:
        plan = read(spec_of(row))
    except DefinitionError as error:
        logger.error("schedule %s cannot be planned: %s", row.name, error)
        schedules.planned(row.id, row.planned_until, row.now + UNREADABLE, using)
        return
    found = list(islice(takewhile(lambda one: one.at <= row.now, plan.after(row.planned_until)), BATCH + 1))
    grace = timedelta(seconds=float(conf.SCHEDULE_GRACE_SECONDS))
    planned, mark = judge(found, row.now, Catching(Missed(row.missed), row.window, row.cap, grace, row.held_until))
    one_at_a_time = row.compute == Compute.COMPLETION
    if one_at_a_time:
        planned, mark = _until_first(planned, mark)
    occurrences.plan(row.id, [new_row(row, plan, one) for one in planned], using)
    until = mark or row.now
    waits = one_at_a_time and any(not one.code for one in planned)
    following = None if waits else next(plan.after(until), None)
    schedules.planned(row.id, until, following.at if following is not None else None, using)


def new_row(row: ScheduleRow, plan: Plan, one: Planned) -> NewOccurrence:
    """The row of a planned moment."""
    local = zones.shown(one.moment.at, plan.where)
    if one.moment.by:
        local = f"{local} ({one.moment.by})"
    return NewOccurrence(one.moment.at, local, one.status, one.code, due_at(row.name, one.moment.at, row.jitter), one.passed_to)


def _until_first(planned: Sequence[Planned], mark: datetime | None) -> tuple[list[Planned], datetime | None]:
    """Up to the first that is started: what comes after it is computed from its end."""
    for place, one in enumerate(planned):
        if not one.code:
            return list(planned[: place + 1]), one.moment.at
    return list(planned), mark
