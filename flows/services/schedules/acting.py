"""What people and code do about schedules: make, change, pause, resume, run now, make up for a time, look ahead.

    –         ──► schedule of the record        the name is free, and nobody has declared it in code
    revision  ──► the next revision             the revision that was seen; planned anew from now where its moments have changed
    live      ──► paused ──► live               what came in the pause is skipped (PAUSED); pending ones wait
    –         ──► pending, of a person          run now; backfill: at most `MAX_BACKFILL` moments of the past, `cap` started a second
Guard: permission `manage_schedule`, and a reason, of whoever is named as `by`. Race: planning and starting hold the schedule's lock then.
A user has runs work for themselves only: the accountable user of what somebody makes or changes is that person, unless a superuser says
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from django.contrib.auth import get_user_model

from flows import registry
from flows.core import payload
from flows.core.errors import DefinitionError, PayloadError
from flows.core.misuse import UsageError
from flows.core.schedules import zones
from flows.core.schedules.declared import Made
from flows.core.schedules.declared import Schedule as Declared
from flows.core.schedules.kinds import Plan, Spec, due_at, read
from flows.core.schedules.missed import Planned
from flows.core.schedules.words import OccurrenceOrigin
from flows.core.schedules.zones import Moment
from flows.core.spans import in_utc
from flows.models import Schedule
from flows.services import identify, warrant
from flows.services.clock import now
from flows.services.schedules.planning import new_row, spec_of
from flows.services.schedules.reading import as_params, checked, made_of, user_type
from flows.store import occurrences
from flows.store import schedules as store
from flows.store.schedules import ScheduleRow
from flows.store.sql import committing

PERMISSION = "outlast_flows.manage_schedule"
MAX_BACKFILL = 1_000
MAX_COMING = 1_000


class UnknownSchedule(UsageError):
    """There is no schedule of that name."""

    code = "UNKNOWN_SCHEDULE"

    def __init__(self, name: object, known: list[str]) -> None:
        some = f"There are {', '.join(known[:20])}." if known else "There is none."
        super().__init__(f"There is no schedule {name!r:.120}. {some}")


class ScheduleTaken(UsageError):
    """The name is taken, or the schedule is not what it was."""

    code = "SCHEDULE_TAKEN"


@dataclass(frozen=True, slots=True)
class Acted:
    """What a verb did. `changed`: this call changed something; `revision`: of the schedule afterwards; `moments`: those that were added."""

    name: str
    revision: int
    changed: bool
    moments: tuple[datetime, ...] = ()

    def __bool__(self) -> bool:
        return self.changed


@dataclass(frozen=True, slots=True)
class Coming:
    """One of the next moments: in UTC, on the wall with its offset, the policy that made it ("" if none had to), and when it is started."""

    at: datetime
    local: str
    by: str
    due_at: datetime


def create(name: str, flow: Any, *, reason: str = "", by: Any = None, using: str | None = None, **options: Any) -> Acted:
    """Make a schedule of the record. The same again is `ScheduleTaken`.

    Args:
        name, flow, options: as those of `flows.Schedule`. by: who makes it; None: code of the project.
    Raises:
        DefinitionError: it cannot be read. ScheduleTaken: the name is. NotPermitted, ReasonMissing: `by` may not, or does not say why.
    """
    alias = identify.alias(using)
    said = _warranted(by, reason, alias, "why there is to be a schedule")
    declared = Made(name, flow, **options)
    plan = checked(declared)
    if name in registry.declared(Declared):
        raise ScheduleTaken(f"Schedule {declared.name!r} is declared in code; choose another name, or change it there.")
    params = as_params(declared, _accountable(declared.user, by, alias))
    with committing("add schedule", alias):
        moment = now(alias)
        given = {**params, "name": declared.name, "origin": "record", "by": identify.label(by), "reason": said, "digest": ""}
        if store.add({**given, "until": moment, "next": _next(plan, moment)}, user_type(), alias) is None:
            raise ScheduleTaken(f"There is a schedule {declared.name!r} already; change that one, or choose another name.")
    return Acted(declared.name, 1, changed=True)


def change(schedule: Any, *, seen: int, reason: str = "", by: Any = None, using: str | None = None, **options: Any) -> Acted:
    """Let a schedule have these options from now on; what it has planned stays. Its accountable user is who changes it.

    Args:
        seen: the revision that was looked at. options: those of `flows.Schedule` that change.
    Raises:
        ScheduleTaken: it has another revision by now, or is declared in code. UnknownSchedule: there is none.
    """
    alias = identify.alias(using)
    said = _warranted(by, reason, alias, "why the schedule changes")
    _whole("seen=", seen, "is the revision that was looked at, a whole number", 2**31 - 1)
    with committing("change schedule", alias):
        row = _locked(schedule, alias)
        if row.origin == "code":
            raise ScheduleTaken(f"Schedule {row.name!r} is declared in code; change it there.")
        declared = made_of(row, {"user": "" if by is not None else row.user_label, **options})
        plan = checked(declared)
        params = as_params(declared, _accountable(declared.user, by, alias))
        anew = spec_of(row) != declared.spec or row.compute != declared.compute
        given = {**params, "id": row.id, "revision": seen, "by": identify.label(by), "reason": said, "digest": ""}
        revision = store.change({**given, "anew": anew, "until": row.now, "next": _next(plan, row.now)}, user_type(), alias)
        if revision is None:
            raise ScheduleTaken(f"Schedule {row.name!r} has revision {row.revision} by now, not {seen}. Look at it again.")
    return Acted(row.name, revision, changed=True)


def pause(schedule: Any, *, reason: str = "", by: Any = None, using: str | None = None) -> Acted:
    """Nothing is planned or started any more, but what somebody runs now. Twice is once.

    Raises:
        UnknownSchedule: there is none. NotPermitted, ReasonMissing: `by` may not, or does not say why; so say all verbs here.
    """
    return _held(schedule, reason, by, using, store.pause, "why the schedule is paused")


def resume(schedule: Any, *, reason: str = "", by: Any = None, using: str | None = None) -> Acted:
    """Let it go on: what came in the pause is skipped, as PAUSED. Twice is once."""
    return _held(schedule, reason, by, using, store.resume, "why the schedule goes on")


def run_now(schedule: Any, *, reason: str = "", by: Any = None, using: str | None = None) -> Acted:
    """Add an occurrence of this moment, also where it is paused. Neither calendar nor cooldown count for it; the overlap policy does."""
    alias = identify.alias(using)
    said = _warranted(by, reason, alias, "why it is run now")
    with committing("run schedule now", alias):
        row = _locked(schedule, alias)
        where = zones.zone(row.time_zone)
        one = occurrences.NewOccurrence(row.now, zones.shown(row.now, where), "pending", "", row.now, None)
        made = occurrences.plan(row.id, [one], alias, origin=OccurrenceOrigin.MANUAL, by=identify.label(by), reason=said)
    return Acted(row.name, row.revision, bool(made), tuple(made))


def backfill(
    schedule: Any, *, since: datetime, until: datetime, reason: str = "", by: Any = None, using: str | None = None
) -> Acted:
    """Add the moments of a time that is over, of which there is no occurrence: `cap` of them are started a second. Twice is once.

    Raises:
        PayloadError: a moment has no time zone, the time is not over, or has more than 1,000 moments.
    """
    alias = identify.alias(using)
    said = _warranted(by, reason, alias, "why a time is made up for")
    for name, moment in (("since", since), ("until", until)):
        if in_utc(moment) is None:
            raise PayloadError(f"{name}=", f"is a moment with a time zone, got {moment!r:.60}")
    with committing("backfill schedule", alias):
        row = _locked(schedule, alias)
        if until > row.now or since >= until:
            raise PayloadError(
                "the time to make up for", f"is over by now and has a length; got {since.isoformat()} to {until.isoformat()}"
            )
        plan = read(spec_of(row))
        moments = takewhile(lambda one: one.at <= until, plan.after(since - timedelta(microseconds=1)))
        found = list(islice(moments, MAX_BACKFILL + 1))
        if len(found) > MAX_BACKFILL:
            raise PayloadError("the time to make up for", f"has more than {MAX_BACKFILL:,} moments; take it in parts")
        rows = [
            new_row(row, plan, Planned(one))._replace(due_at=row.now + timedelta(seconds=place // row.cap))
            for place, one in enumerate(found)
        ]
        by_label = identify.label(by)
        made = occurrences.plan(row.id, rows, alias, origin=OccurrenceOrigin.BACKFILL, by=by_label, reason=said)
    return Acted(row.name, row.revision, bool(made), tuple(sorted(made)))


def coming(schedule: Any, count: int = 10, *, using: str | None = None) -> list[Coming]:
    """The next moments, whether it is paused or not. Of one that is computed at completion: as if each run took no time.

    Args:
        count: how many, at most 1,000.
    Raises:
        UnknownSchedule: there is none. DefinitionError: it cannot be read here. PayloadError: a count that is none.
    """
    _whole("the number of moments", count, f"is a whole number from 1 to {MAX_COMING:,}", MAX_COMING)
    alias = identify.alias(using)
    row = schedule if isinstance(schedule, Schedule) else get(schedule, using=alias)
    return preview(
        row.name,
        Spec(row.kind, row.expression, row.time_zone, row.anchor, row.repeated, row.missing),
        row.jitter,
        now(alias),
        count,
    )


def preview(name: str, spec: Spec, jitter: timedelta | None, moment: datetime, count: int = 10) -> list[Coming]:
    """The moments of a spec after a moment.

    Raises:
        DefinitionError: it cannot be read.
    """
    plan = read(spec)
    return [_coming(name, plan, jitter, one) for one in plan.next(moment, count)]


def get(schedule: Any, *, using: str | None = None) -> Schedule:
    """The schedule of that name.

    Raises:
        UnknownSchedule: there is none.
    """
    rows = Schedule.objects.using(identify.alias(using))
    name = getattr(schedule, "name", schedule)
    found = rows.filter(name=name).first() if payload.is_name(name) else None
    if found is None:
        raise UnknownSchedule(name, sorted(rows.values_list("name", flat=True)))
    return found


def _coming(name: str, plan: Plan, jitter: timedelta | None, one: Moment) -> Coming:
    return Coming(one.at, zones.shown(one.at, plan.where), one.by, due_at(name, one.at, jitter))


def _whole(what: str, value: Any, rule: str, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise PayloadError(what, f"{rule}, got {value!r:.60}")


def _locked(schedule: Any, using: str) -> ScheduleRow:
    name = getattr(schedule, "name", schedule)
    row = store.lock(name, using) if payload.is_name(name) else None
    if row is None:
        raise UnknownSchedule(name, sorted(Schedule.objects.using(using).values_list("name", flat=True)))
    return row


def _held(schedule: Any, reason: str, by: Any, using: str | None, act: Any, why: str) -> Acted:
    alias = identify.alias(using)
    said = _warranted(by, reason, alias, why)
    with committing("hold schedule", alias):
        row = _locked(schedule, alias)
        done = act(row.id, identify.label(by), said, alias)
    return Acted(row.name, row.revision, bool(done))


def _next(plan: Plan, moment: datetime) -> datetime | None:
    following = next(plan.after(moment), None)
    return following.at if following is not None else None


def _warranted(by: Any, reason: str, using: str, why: str) -> str:
    warrant.check(by, PERMISSION, using)
    return warrant.reason(reason, why) if by is not None else identify.reason(reason)


def _accountable(name: str, by: Any, using: str) -> Any:
    """The user for whom the runs work: who makes it, or somebody else where code or a superuser says so.

    Raises:
        DefinitionError: there is no such user, or it is another person.
    """
    model: Any = get_user_model()
    if by is not None and (not name or name == by.get_username()):
        return by
    if not name:
        return None
    if by is not None and not by.is_superuser:
        raise DefinitionError(f"user={name!r:.60} is another person: only a superuser has runs work for somebody else.")
    found = model._default_manager.using(using).filter(**{model.USERNAME_FIELD: name}).first()  # noqa: SLF001
    if found is None:
        raise DefinitionError(f"There is no user {name!r:.60}.")
    return found


__all__ = [
    "MAX_BACKFILL",
    "PERMISSION",
    "Acted",
    "Coming",
    "ScheduleTaken",
    "UnknownSchedule",
    "backfill",
    "change",
    "coming",
    "create",
    "get",
    "pause",
    "preview",
    "resume",
    "run_now",
]
