"""Start and end: an occurrence that is due becomes a run, or is left away and says why; the end of its run is its end.

    pending, queued ── schedule locked, occurrence locked ──► started, with its run, in one transaction: no occurrence is ever half started
                                                         ├──► queued, skipped (CALENDAR, COOLDOWN, OVERLAP, QUEUE_FULL)
                                                         ├──► cannot be started: later, and failed with its code after `MAX_TRIES`
                                                         └──► its flow is not known here: left to a process that knows it; where no
                                                              worker offers it for an hour: failed (UNKNOWN_FLOW)
    started ── its run has ended ──► done, failed, cancelled (or started with the next run, where it was continued as new)
            └── its start was put off, and is never made ──► failed (NEVER_STARTED)
Races: another clock holds the schedule: the occurrence is passed over, and is that clock's. The run before it ends at that moment: what is
queued starts at the next look. A cancel of the run: it ends, and so does the occurrence. A crash: both, or neither.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.definition import Flow
from flows.core.errors import DefinitionError, OutlastError
from flows.core.misuse import NobodyAccountable
from flows.core.schedules.kinds import read
from flows.core.schedules.overlap import Act, decide
from flows.core.schedules.words import Compute, OccurrenceOrigin, OccurrenceStatus, Overlap, Timing
from flows.models import Workflow
from flows.services import calendars, control, debounce, notices
from flows.services.apart import apart
from flows.services.isolated import start_isolated
from flows.services.schedules.planning import spec_of
from flows.services.starting import Origin, Started, start_runs
from flows.store import occurrences, schedules
from flows.store.occurrences import OccurrenceRow
from flows.store.schedules import ScheduleRow
from flows.store.sql import committing

logger = logging.getLogger("outlast.schedules")

MAX_TRIES = 5
#: After the first try that failed, the second, and so on.
BETWEEN_TRIES = timedelta(seconds=15)
#: So many skipped in a row because a run lives: its accountable user is told, once.
STUCK_AFTER = 3
STUCK = "SCHEDULE_STUCK"
#: No worker offers the flow: for so long it is waited for one that does.
UNKNOWN, UNKNOWN_FOR = "UNKNOWN_FLOW", timedelta(hours=1)


def start_due(using: str) -> int:
    """Start, queue or leave away what is due of the flows that this process knows, each in a transaction of its own; how many were looked at."""
    flows = sorted({name for name, _ in registry.known()})
    found = occurrences.startable(flows, conf.SWEEP_BATCH, using)
    for occurrence, schedule in found:
        with apart(f"the start of occurrence {occurrence}", using), committing("start occurrence", using):
            row, own = _locked(occurrence, schedule, using)
            if row is not None and own is not None:
                _start(row, own, using)
    return len(found) + _foreign(flows, using)


def _locked(occurrence: int, schedule: int, using: str) -> tuple[ScheduleRow | None, OccurrenceRow | None]:
    row = schedules.lock_free(schedule, using)
    own = occurrences.lock(occurrence, (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED), using) if row else None
    return row, own


def _foreign(flows: list[str], using: str) -> int:
    """What is due of flows that this process does not know is another one's. Where no worker offers the flow either, the occurrence says so;
    and it fails when nobody has come for it for `UNKNOWN_FOR`.
    """
    found = occurrences.foreign(flows, UNKNOWN, UNKNOWN_FOR, conf.SWEEP_BATCH, using)
    for occurrence, schedule, over in found:
        with apart(f"occurrence {occurrence}, whose flow is not known here,", using), committing("foreign occurrence", using):
            row, own = _locked(occurrence, schedule, using)
            if row is None or own is None:
                continue
            if over:
                _failed(row, own, UNKNOWN, using)
            else:
                occurrences.note(own.id, UNKNOWN, using)
    return len(found)


def end_over(using: str) -> int:
    """Say of each occurrence whose run has ended how it did; how many were looked at."""
    found = occurrences.over(conf.SWEEP_BATCH, using)
    for occurrence, schedule in found:
        with apart(f"the end of occurrence {occurrence}", using), committing("end occurrence", using):
            row = schedules.lock_free(schedule, using)
            status = occurrences.end(occurrence, using) if row is not None else None
            if row is not None and status is not None and status != OccurrenceStatus.STARTED:
                _completed(row, using)
    return len(found)


def key_of(schedule: str, own: OccurrenceRow) -> str:
    """The key of the run of an occurrence."""
    return f"schedule:{schedule}:{own.scheduled_for.isoformat()}"


def _start(row: ScheduleRow, own: OccurrenceRow, using: str) -> None:
    waited = own.status == OccurrenceStatus.QUEUED
    if not waited and own.origin != OccurrenceOrigin.MANUAL:
        if row.calendar:
            known = calendars.newest([row.calendar], using)
            if row.calendar not in known:
                return _later(row, own, "NO_CALENDAR", using)
            if not known[row.calendar].is_open(own.scheduled_for):
                return _leave(row, own, "CALENDAR", using)
        if row.cooldown is not None and row.last_at is not None and row.now - row.last_at < row.cooldown:
            return _leave(row, own, "COOLDOWN", using)
    policy = Overlap(row.overlap)
    alive = occurrences.living(row.id, using) if policy is not Overlap.ALLOW else []
    another = occurrences.queued(row.id, own.id, using)
    match decide(policy, queued=waited, runs=bool(alive), another=another is not None):
        case Act.START:
            _begin(row, own, None, using)
        case Act.SUPERSEDE:
            _begin(row, own, alive[0], using)
        case Act.SKIP:
            _overlapped(row, own, alive[0], using)
        case Act.FULL:
            _leave(row, own, "QUEUE_FULL", using)
        case Act.CANCEL:
            if another is not None:
                occurrences.move(another, OccurrenceStatus.SKIPPED, "OVERLAP", using)
            for run in alive:
                control.cancel(run, reason=f"the next run of schedule {row.name} is due", using=using)
            occurrences.move(own.id, OccurrenceStatus.QUEUED, "", using)
        case Act.QUEUE:
            occurrences.move(own.id, OccurrenceStatus.QUEUED, "", using)
        case Act.WAIT:
            pass
    return None


def _begin(row: ScheduleRow, own: OccurrenceRow, old: UUID | None, using: str) -> None:
    """Start the run. What is refused leaves nothing behind but that it was tried."""
    try:
        with transaction.atomic(using=using):
            started = _run(row, own, old, registry.flow(row.flow_name), using)
            occurrences.start(own.id, started.id, using)
            schedules.started(row.id, using)
    except NobodyAccountable as error:
        logger.warning("schedule %s: %s", row.name, error)
        _later(row, own, error.code, using)
    except OutlastError as error:
        logger.warning("schedule %s cannot be started: %s", row.name, error)
        _later(row, own, "REFUSED", using)
    except Exception:  # a function of the flow (`Admission(key=)`): nothing of it is stored, and a deploy may mend it
        logger.exception("schedule %s cannot be started", row.name)
        _later(row, own, "ERROR", using)


def _run(row: ScheduleRow, own: OccurrenceRow, old: UUID | None, flow: type[Flow], using: str) -> Started:
    key, given = key_of(row.name, own), payload.decode(row.input)
    intent = None
    if old is not None:
        intent = Workflow.objects.using(using).values_list("intent_id", flat=True).get(pk=old)
        goal = f"{row.name} {own.scheduled_for.isoformat()}"
        debounce.lock_ahead(flow.definition, [(key, given)], using)
        ended = control.supersede(intent, goal=goal, reason=f"the next run of schedule {row.name} is due", using=using)
        intent = intent if ended.answer is not control.Answer.TOO_LATE else None
    shared: dict[str, Any] = {"intent": intent, "priority": row.priority, "tenant": row.tenant}
    cause = f"schedule:{row.name}"
    if not row.user_label:
        (started,) = start_runs(flow.definition, [(key, given)], Origin(started_by=cause, **shared), using)
        return started
    return start_isolated(flow, given, key=key, user=_person(row, using), cause=cause, using=using, **shared)


def _person(row: ScheduleRow, using: str) -> Any:
    """Who is accountable: in code a name, in the record a user; whoever has the name of a user that is gone is somebody else.

    Raises:
        NobodyAccountable: the user is gone.
    """
    if row.origin == "code":
        return row.user_label
    users = get_user_model()._default_manager.using(using)  # noqa: SLF001 - Django's documented way to look at a model
    found = users.filter(pk=row.user_id).first() if row.user_id is not None else None
    if found is None:
        raise NobodyAccountable(row.user_label, "does not exist")
    return found


def _later(row: ScheduleRow, own: OccurrenceRow, code: str, using: str) -> None:
    if own.tries + 1 < MAX_TRIES:
        occurrences.later(own.id, code, BETWEEN_TRIES * (own.tries + 1), using)
    else:
        _failed(row, own, code, using)


def _failed(row: ScheduleRow, own: OccurrenceRow, code: str, using: str) -> None:
    logger.error("occurrence %s of schedule %s has failed: %s", own.scheduled_for.isoformat(), row.name, code)
    occurrences.move(own.id, OccurrenceStatus.FAILED, code, using)
    _completed(row, using)


def _leave(row: ScheduleRow, own: OccurrenceRow, code: str, using: str) -> None:
    occurrences.move(own.id, OccurrenceStatus.SKIPPED, code, using)
    _completed(row, using)


def _overlapped(row: ScheduleRow, own: OccurrenceRow, run: UUID, using: str) -> None:
    """Left away because a run lives. From the third in a row on nothing is going to change by itself: its accountable user is told, once."""
    _leave(row, own, "OVERLAP", using)
    schedules.overlapped(row.id, using)
    if row.overlapped + 1 == STUCK_AFTER:
        user = Workflow.objects.using(using).values_list("user_id", flat=True).get(pk=run)
        logger.warning("schedule %s: %s occurrences in a row were skipped, for run %s lives", row.name, STUCK_AFTER, run)
        if user is not None:
            notices.owe(run, user, STUCK, STUCK, using)


def _completed(row: ScheduleRow, using: str) -> None:
    """Of a schedule that is computed at completion: what comes next counts from now, once nothing of it is open."""
    if row.compute != Compute.COMPLETION:
        return
    spec = spec_of(row)
    try:
        plan = read(replace(spec, anchor=row.now) if row.kind == Timing.INTERVAL else spec)
    except DefinitionError as error:
        logger.error("schedule %s cannot be planned: %s", row.name, error)
        return
    following = next(plan.after(max(row.now, row.planned_until)), None)
    schedules.completed(row.id, row.now, following.at if following is not None else None, using)
