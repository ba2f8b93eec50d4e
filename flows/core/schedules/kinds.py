"""The four ways to give the moments of a schedule, read into one: a `Plan`, which says the moments after any moment.

cron, rule   local times of the zone (`local`, `zones`); "" for a policy is the default of its kind
once         one moment, or one local time of the zone
interval     elapsed time from `anchor`: zones do not touch it
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from flows.core.errors import DefinitionError
from flows.core.schedules import local, zones
from flows.core.schedules.words import Missing, Repeated, Timing
from flows.core.schedules.zones import Moment, Steps
from flows.core.spans import LONGEST

Word = TypeVar("Word", bound=StrEnum)

#: A schedule is looked at once a second.
SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Spec:
    """When, as it is recorded.

    Attributes:
        kind: a `Timing`. expression: cron fields, seconds of an interval, a moment (with or without offset), or lines of a rule.
        zone: its name. anchor: where an interval counts from, and where a rule without DTSTART begins.
        repeated, missing: the policies; "" is the kind's default.
    """

    kind: str
    expression: str
    zone: str = "UTC"
    anchor: datetime | None = None
    repeated: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was read of a `Spec`: the zone and the policies that hold, and the moments."""

    where: ZoneInfo
    repeated: Repeated
    missing: Missing
    steps: Steps | None = None
    anchor: datetime | None = None
    every: timedelta | None = None

    def after(self, moment: datetime) -> Iterator[Moment]:
        """The moments after this one, in order, each once."""
        if self.steps is not None:
            return zones.moments(self.steps, self.where, self.repeated, self.missing, moment)
        return self._by_interval(moment)

    def _by_interval(self, moment: datetime) -> Iterator[Moment]:
        assert self.anchor is not None
        if self.every is None:
            if self.anchor > moment:
                yield Moment(self.anchor)
            return
        count = max(0, (moment - self.anchor) // self.every + 1)
        while True:
            try:
                yield Moment(self.anchor + count * self.every)
            except OverflowError:
                return
            count += 1

    def next(self, moment: datetime, count: int) -> list[Moment]:
        """The next `count` moments after this one; fewer if it ends."""
        return list(islice(self.after(moment), count))


def read(spec: Spec) -> Plan:
    """The plan of a spec.

    Raises:
        DefinitionError: something of it cannot be read; the text says what, and how it is written.
    """
    where = zones.zone(spec.zone)
    anchor = (spec.anchor or datetime(2000, 1, 1, tzinfo=UTC)).astimezone(UTC)
    kind = word(Timing, spec.kind, "kind")
    dense = (kind is Timing.CRON and local.is_dense(spec.expression)) or (
        kind is Timing.RULE and local.is_dense_rule(spec.expression)
    )
    repeated = word(Repeated, spec.repeated or (Repeated.BOTH if dense else Repeated.FIRST), "repeated")
    missing = word(Missing, spec.missing or (Missing.SKIP if dense else Missing.SHIFT), "missing")
    match kind:
        case Timing.CRON:
            return Plan(where, repeated, missing, local.cron(spec.expression))
        case Timing.RULE:
            return Plan(where, repeated, missing, local.rule(spec.expression, where, zones.wall(anchor, where)))
        case Timing.INTERVAL:
            return Plan(where, repeated, missing, anchor=anchor, every=_interval(spec.expression))
    return _once(spec.expression, where, repeated, missing)


def written(at: datetime | timedelta) -> str:
    """The expression of one moment, or of an interval."""
    return at.isoformat(sep=" ") if isinstance(at, datetime) else f"{at.total_seconds():g}"


def due_at(name: str, moment: datetime, jitter: timedelta | None) -> datetime:
    """When the occurrence of that moment is started: up to `jitter` later, by a hash of both, so the same for whoever plans it."""
    if not jitter:
        return moment
    digest = hashlib.sha256(f"{name}|{moment.astimezone(UTC).isoformat()}".encode()).digest()
    return moment + jitter * (int.from_bytes(digest[:6], "big") / 2**48)


def _interval(expression: str) -> timedelta:
    try:
        found = timedelta(seconds=float(expression))
    except (TypeError, ValueError, OverflowError):
        raise DefinitionError(f"every={expression!r:.60} is no span. Write every=minutes(15).") from None
    if not SHORTEST <= found <= LONGEST:
        raise DefinitionError(
            f"every={expression!r:.60}: at least a second, and at most a hundred years. Write every=minutes(15)."
        )
    return found


def _once(expression: str, where: ZoneInfo, repeated: Repeated, missing: Missing) -> Plan:
    example = "at=datetime(2027, 1, 4, 9, tzinfo=UTC), or without a zone: a local time of the schedule's own"
    try:
        found = datetime.fromisoformat(expression)
        if found.tzinfo is not None:
            return Plan(where, repeated, missing, anchor=found.astimezone(UTC))
    except (TypeError, ValueError, OverflowError):
        raise DefinitionError(f"at={expression!r:.60} is no moment. Write {example}.") from None
    return Plan(where, repeated, missing, lambda start: iter([found] if found >= start else []))


def word(of: type[Word], value: str, option: str) -> Word:
    """One of the words of a policy.

    Raises:
        DefinitionError: it is none of them.
    """
    try:
        return of(value)
    except ValueError:
        raise DefinitionError(f"{option}={value!r:.60} is none of {', '.join(of)}.") from None
