"""Schedule: what is declared of one in `<app>/flows.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from flows.core import typed
from flows.core.declared import Declared
from flows.core.definition import Flow
from flows.core.errors import DefinitionError
from flows.core.schedules.kinds import Spec, written
from flows.core.schedules.words import Compute, Missed, Overlap, Timing

#: Option → the types that it takes, and an example.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "input": ((Mapping,), 'input={"report": "daily"}'),
    "cron": ((str,), 'cron="0 9 * * MON-FRI"'),
    "every": ((timedelta, typed.NONE), "every=minutes(15)"),
    "at": ((datetime, typed.NONE), "at=datetime(2027, 1, 4, 9, tzinfo=UTC)"),
    "rule": ((str,), 'rule="RRULE:FREQ=MONTHLY;BYMONTHDAY=-1"'),
    "zone": ((str,), 'zone="Europe/Vienna"'),
    "anchor": ((datetime, typed.NONE), "anchor=datetime(2027, 1, 4, tzinfo=UTC)"),
    "user": ((str,), 'user="rita", the name that the accountable user logs in with'),
    "repeated": ((str,), "repeated=Repeated.FIRST"),
    "missing": ((str,), "missing=Missing.SHIFT"),
    "missed": ((str,), "missed=Missed.NEWEST"),
    "window": ((timedelta, typed.NONE), "window=hours(6)"),
    "cap": ((int,), "cap=10"),
    "overlap": ((str,), "overlap=Overlap.SKIP"),
    "cooldown": ((timedelta, typed.NONE), "cooldown=minutes(5)"),
    "jitter": ((timedelta, typed.NONE), "jitter=seconds(30)"),
    "compute": ((str,), "compute=Compute.COMPLETION"),
    "calendar": ((str,), 'calendar="office"'),
    "priority": ((int,), "priority=0"),
    "tenant": ((str,), 'tenant="acme"'),
}


@dataclass(frozen=True)
class Schedule(Declared):
    """What starts which flow, when.

    Args:
        name: unique among schedules; the keys of its runs begin with it. flow: the class, or its name. input: what each run is started with.
        cron, every, at, rule: one of them. cron: five fields, or six beginning with the second. every: a span that elapses, from `anchor`.
            at: once. rule: lines of RFC 5545, of which one is an RRULE.
        zone: in which `cron`, `rule`, and an `at` without a zone are meant.
        user: the accountable user of each run, by the name that they log in with.
        repeated, missing: what a local time means that exists twice, or not at all.
        missed: what becomes of occurrences at which nobody looked in time. window: how old those may be; cap: how many of them in one second.
        overlap: what becomes of one while the run before it lives. cooldown: skipped where the last start is younger.
        jitter: each is started up to so much later. compute: when the next one is computed. calendar: skipped while this one is closed.
        priority, tenant: of its runs.
    """

    kind: ClassVar[str] = "schedule"

    flow: type[Flow] | str
    _: KW_ONLY
    input: Mapping[str, Any] = field(default_factory=dict)
    cron: str = ""
    every: timedelta | None = None
    at: datetime | None = None
    rule: str = ""
    zone: str = "UTC"
    anchor: datetime | None = None
    user: str = ""
    repeated: str = ""
    missing: str = ""
    missed: str = Missed.NEWEST
    window: timedelta | None = None
    cap: int = 10
    overlap: str = Overlap.SKIP
    cooldown: timedelta | None = None
    jitter: timedelta | None = None
    compute: str = Compute.CLAIM
    calendar: str = ""
    priority: int = 0
    tenant: str = ""

    def __post_init__(self) -> None:
        for option, (types, example) in _TYPES.items():
            typed.must(f"Schedule({option}=…)", getattr(self, option), types, example)
        flow: Any = self.flow
        if not isinstance(flow, str) and not (isinstance(flow, type) and issubclass(flow, Flow)):
            raise DefinitionError(f"Schedule({self.name!r:.60}) starts {flow!r:.60}: give it a flow, or the name of one.")
        given = [option for option in ("cron", "every", "at", "rule") if getattr(self, option)]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise DefinitionError(f"Schedule({self.name!r:.60}) takes one of cron=, every=, at= and rule=; it has {found}.")
        if self.anchor is not None and self.anchor.tzinfo is None:
            raise DefinitionError("Schedule(anchor=…) needs a time zone: anchor=datetime(2027, 1, 4, tzinfo=UTC).")
        super().__post_init__()

    @property
    def label(self) -> str:
        """How it is called in messages."""
        return f"Schedule {self.name!r:.80}"

    @property
    def flow_name(self) -> str:
        """The name of its flow."""
        return self.flow if isinstance(self.flow, str) else self.flow.definition.name

    @property
    def spec(self) -> Spec:
        """When, as it is recorded."""
        kind, expression = next(
            (kind, text)
            for kind, text in (
                (Timing.CRON, self.cron),
                (Timing.INTERVAL, written(self.every) if self.every else ""),
                (Timing.ONCE, written(self.at) if self.at else ""),
                (Timing.RULE, self.rule),
            )
            if text
        )
        anchor = self.anchor.astimezone(UTC) if self.anchor else None
        return Spec(kind, expression, self.zone, anchor, self.repeated, self.missing)


class Made(Schedule):
    """The same for the record, made while the program runs: it is not declared in code."""

    def _declare(self) -> None:
        pass
