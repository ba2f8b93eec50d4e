"""What is scarce: dependencies that may be down, and limits of what may run at once or a second. Pure: the record's clock is an argument.

    healthy ──fails within, a probe, a person──► down ──its moment, a probe──► trial ──one succeeds──► recovering ──ramp──► healthy
                                                  ▲                              │ it fails               │ fails within
                                                  └──────────────────────────────┴────────────────────────┘
Each function is one arrow: (terms, health, now, what happened) → the health afterwards; what is no arrow gives the same health back. Guard and
race are the row's lock (`flows.services.capacity.health`): whoever asks has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from flows.core import typed
from flows.core.declared import Declared
from flows.core.errors import DefinitionError
from flows.core.retry import LONGEST_RETRY_AFTER

#: How an activity waits for what is outside, and for its turn.
DEPENDENCY_HEALTH, RESOURCE = "dependency_health", "resource"
#: Before the name of a dependency, and of a limit, in the name of what is counted for it.
DEPENDENCY, LIMIT = "dependency:", "limit:"
#: The longest pause between two looks at something that is down.
LONGEST_PAUSE = timedelta(minutes=5)
#: Seconds of its rate that a limit may save up beside one token where it says nothing else: what comes between two looks at those who wait, so
#: that a look that is late loses little, and no second sees much more than the rate.
SAVED_SECONDS = 0.12


class DependencyStatus(StrEnum):
    """Whether work that needs it is let through: all of it, none, one on trial, or more and more."""

    HEALTHY = "healthy"
    DOWN = "down"
    TRIAL = "trial"
    RECOVERING = "recovering"


@dataclass(frozen=True, slots=True)
class Ramp:
    """How a recovery begins: at `start` runs a second, `factor` times as many after `every`, up to the rate of the dependency."""

    start: float = 10.0
    factor: float = 2.0
    every: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        typed.must("Ramp(start=…)", self.start, typed.NUMBERS, "Ramp(start=10)")
        typed.must("Ramp(factor=…)", self.factor, typed.NUMBERS, "Ramp(factor=2)")
        typed.span("Ramp(every=…)", self.every, "Ramp(every=seconds(2))")


@dataclass(frozen=True)
class Terms:
    """On what terms work is let through to something outside, and when it counts as down (see `Dependency`)."""

    name: str
    rate: float = 100.0
    ceiling: int = 100
    ramp: Ramp = Ramp()
    fails: int = 3
    within: timedelta = timedelta(seconds=30)
    retry_after: timedelta = timedelta(seconds=30)
    probed: bool = False
    probe_every: timedelta | None = None


@dataclass(frozen=True)
class Dependency(Declared):
    """Something outside that may be down: a provider, a service, a machine. It stands in `<app>/flows.py`, beside the flows.

    Args:
        name: by which activities name it, `needs="payments"`; without a colon.
        probe: a function without arguments (or its dotted path, or an async one) that asks whether it is there: it raises, or returns False,
            while it is not. Without one it is tried by one run after `retry_after`.
        rate: runs a second that are let through when it is back. ceiling: attempts at once, always.
        ramp: how a recovery begins. fails, within: so many capacity errors in that time mean that it is down.
        retry_after: the first pause before it is tried, or probed, again; then twice as long each time, up to five minutes.
        probe_every: also asked so often while all is well; default never. probe_timeout: how long one question may take.
    """

    kind: ClassVar[str] = "dependency"

    probe: Callable[[], Any] | str | None = field(kw_only=True, default=None)
    rate: float = field(kw_only=True, default=100.0)
    ceiling: int = field(kw_only=True, default=100)
    ramp: Ramp = field(kw_only=True, default=Ramp())
    fails: int = field(kw_only=True, default=3)
    within: timedelta = field(kw_only=True, default=timedelta(seconds=30))
    retry_after: timedelta = field(kw_only=True, default=timedelta(seconds=30))
    probe_every: timedelta | None = field(kw_only=True, default=None)
    probe_timeout: timedelta = field(kw_only=True, default=timedelta(seconds=10))

    def __post_init__(self) -> None:
        _plain_name("Dependency", self.name)
        typed.must("Dependency(rate=…)", self.rate, typed.NUMBERS, "Dependency(rate=200)")
        typed.must("Dependency(ceiling=…)", self.ceiling, (int,), "Dependency(ceiling=50)")
        typed.must("Dependency(ramp=…)", self.ramp, (Ramp,), "Dependency(ramp=Ramp(start=10))")
        typed.must("Dependency(fails=…)", self.fails, (int,), "Dependency(fails=3)")
        for option in ("within", "retry_after", "probe_timeout"):
            typed.span(f"Dependency({option}=…)", getattr(self, option), f"Dependency({option}=seconds(30))")
        typed.span("Dependency(probe_every=…)", self.probe_every, "Dependency(probe_every=minutes(1))", optional=True)
        super().__post_init__()

    @property
    def terms(self) -> Terms:
        """The same without its functions."""
        return Terms(
            self.name, self.rate, self.ceiling, self.ramp, self.fails, self.within, self.retry_after,
            self.probe is not None, self.probe_every,
        )  # fmt: skip


@dataclass(frozen=True)
class Limit(Declared):
    """What may run at once, or begin in a second, of all that has one key. It stands in `<app>/flows.py`, beside the flows.

    Args:
        name: by which activities name it, `limits="provider"`; without a colon.
        concurrency: attempts at once; None: any number. rate: attempts that may begin in a second; None: any number.
        burst: how many may begin together after a pause, where there is a rate; default one, and an eighth of the rate.
        key: a pure function of the state that says for whom it is counted (a tenant, an account); None: for all together.
    """

    kind: ClassVar[str] = "limit"

    concurrency: int | None = field(kw_only=True, default=None)
    rate: float | None = field(kw_only=True, default=None)
    burst: float | None = field(kw_only=True, default=None)
    key: Callable[[Any], Any] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        _plain_name("Limit", self.name)
        typed.must("Limit(concurrency=…)", self.concurrency, (int, typed.NONE), "Limit(concurrency=20)")
        for option in ("rate", "burst"):
            typed.must(f"Limit({option}=…)", getattr(self, option), (*typed.NUMBERS, typed.NONE), f"Limit({option}=50)")
        super().__post_init__()


def _plain_name(kind: str, name: Any) -> None:
    if isinstance(name, str) and ":" in name:
        raise DefinitionError(f'{kind}({name!r:.80}): a name has no colon. Write {kind}("payments", …).')


def names(what: str, given: Any, kind: type[Dependency | Limit]) -> tuple[str, ...]:
    """The names that `needs=` or `limits=` gives: one or several, as text or as the things themselves.

    Raises:
        DefinitionError: something of it is neither.
    """
    several = given if isinstance(given, list | tuple | set | frozenset) else (given,)
    found = tuple(one.name if isinstance(one, kind) else one for one in several)
    return typed.texts(what, found, f'{what.partition("(")[2].partition("=")[0]}="payments"') if found else ()


def implicit(name: str) -> Terms:
    """The terms of something that nobody declared: it is known by its failures alone, so the first one counts, and few are let through."""
    return Terms(name, rate=10.0, ceiling=10, ramp=Ramp(start=1.0), fails=1)


def of_node(flow: str, node: str) -> str:
    """The name of what an activity depends on that names nothing."""
    return f"node:{flow}.{node}"


def faults(thing: Dependency | Limit) -> Iterator[str]:
    """What cannot be of its numbers, in words; each says the way out."""
    numbers: tuple[tuple[str, float | None], ...]
    if isinstance(thing, Limit):
        if thing.concurrency is None and thing.rate is None:
            yield "limits nothing: give it concurrency=, rate=, or both"
        if thing.burst is not None and thing.rate is None:
            yield "has a burst and no rate: give it rate=, or leave burst= away"
        numbers = (("concurrency", thing.concurrency), ("rate", thing.rate), ("burst", thing.burst))
    else:
        ramp = thing.ramp
        numbers = (("rate", thing.rate), ("ceiling", thing.ceiling), ("fails", thing.fails), ("ramp.start", ramp.start))
        if not 1 <= ramp.factor < math.inf:
            yield f"has a ramp with the factor {ramp.factor}: it is at least 1"
        for option in ("within", "retry_after", "probe_every", "probe_timeout"):
            span = getattr(thing, option)
            if span is not None and span <= timedelta(0):
                yield f"has {option}={span}: give a positive span"
        if ramp.every <= timedelta(0):
            yield f"has a ramp with every={ramp.every}: give a positive span"
        if thing.probe_every is not None and thing.probe is None:
            yield "has probe_every= and no probe=: give it a probe, or leave probe_every= away"
    for option, value in numbers:
        if value is not None and not 0 < value < math.inf:
            yield f"has {option}={value}: give a positive number"


@dataclass(frozen=True, slots=True)
class Want:
    """One thing that an attempt needs some of. `size`: how many units there are; `lasting`: a unit is held until the attempt ends.

    `rate`, `burst`: tokens a second, and how many are saved; None: any number. `terms`: those of a dependency.
    """

    name: str
    key: str
    size: int
    lasting: bool
    rate: float | None
    burst: float | None
    terms: Terms | None = None

    @property
    def label(self) -> str:
        """Under which one waits for it."""
        return label_of(self.name, self.key)


def label_of(name: str, key: str) -> str:
    """Name and key as one text. A name that has keys has no colon after its kind, so no two give the same."""
    return f"{name}:{key}" if key else name


def want_dependency(terms: Terms) -> Want:
    """A unit of the ceiling of a dependency. Its tokens are spent where runs are let through again, and not while all is well."""
    return Want(DEPENDENCY + terms.name, "", max(1, terms.ceiling), True, terms.rate, saved(terms.rate, None), terms)


def want_limit(limit: Limit, key: str) -> Want:
    """A unit of a limit; of one that limits the rate alone, units are only what is reserved and not begun yet."""
    burst = saved(limit.rate, limit.burst) if limit.rate is not None else None
    size = limit.concurrency if limit.concurrency is not None else math.ceil(max(limit.rate or 1.0, burst or 1.0))
    return Want(LIMIT + limit.name, key, max(1, size), limit.concurrency is not None, limit.rate, burst)


def saved(rate: float, burst: float | None) -> float:
    """How many tokens may be saved up at most."""
    return max(1.0, burst) if burst is not None else 1.0 + rate * SAVED_SECONDS


@dataclass(frozen=True, slots=True)
class Health:
    """How a dependency is, as its row says.

    Attributes:
        fails, failed_at: capacity errors, and when the first of them was. code: why it is down. delay: the last pause, in seconds.
        allowed: runs a second that are let through now, while it recovers; since `ramped_at`.
        probe_at: when it is looked at again; None: never by itself. trial: the run and activity that are let through to see.
        rate, ceiling: what a person set in place of what is declared.
    """

    status: str = DependencyStatus.HEALTHY
    since: datetime | None = None
    fails: int = 0
    failed_at: datetime | None = None
    code: str = ""
    delay: float = 0.0
    allowed: float = 0.0
    ramped_at: datetime | None = None
    probe_at: datetime | None = None
    trial: tuple[UUID, int] | None = None
    rate: float | None = None
    ceiling: int | None = None

    @property
    def down(self) -> bool:
        """Nothing is let through."""
        return self.status == DependencyStatus.DOWN

    @property
    def recovering(self) -> bool:
        """What is let through is counted."""
        return self.status == DependencyStatus.RECOVERING


def failed(
    terms: Terms, health: Health, now: datetime, code: str, retry_after: float | None = None, run: UUID | None = None
) -> Health:
    """An attempt met its want of capacity. While one is on trial only that one counts; what was begun before it went down says nothing new."""
    if health.down:
        return health
    if health.status == DependencyStatus.TRIAL:
        tried = health.trial is not None and (run is None or health.trial[0] == run)
        return went_down(terms, health, now, code, retry_after) if tried or run is None else health
    recent = health.failed_at is not None and now - health.failed_at <= terms.within and now >= health.failed_at
    fails = health.fails + 1 if recent else 1
    counted = replace(health, fails=fails, failed_at=health.failed_at if recent else now)
    return went_down(terms, counted, now, code, retry_after) if fails >= terms.fails else counted


def went_down(terms: Terms, health: Health, now: datetime, code: str, retry_after: float | None = None) -> Health:
    """It is down, until it is looked at again."""
    first, longest = terms.retry_after.total_seconds(), max(terms.retry_after, LONGEST_PAUSE).total_seconds()
    delay = min(health.delay * 2 if health.delay else first, longest)
    asked = min(max(retry_after or 0.0, 0.0), LONGEST_RETRY_AFTER.total_seconds())
    return replace(
        health, status=DependencyStatus.DOWN, since=now, fails=0, failed_at=None, code=code, delay=delay, allowed=0.0,
        ramped_at=None, probe_at=now + timedelta(seconds=asked or delay), trial=None,
    )  # fmt: skip


def held_down(health: Health, now: datetime, code: str) -> Health:
    """A person says that it is down: nothing looks whether it is back."""
    return replace(
        health, status=DependencyStatus.DOWN, since=now, fails=0, failed_at=None, code=code, allowed=0.0, ramped_at=None,
        probe_at=None, trial=None,
    )  # fmt: skip


def probed(terms: Terms, health: Health, now: datetime, code: str) -> Health:
    """Its probe has answered; `code` is empty where all is well."""
    if code:
        return went_down(terms, health, now, code)
    if health.down:
        return on_trial(health, now)
    return replace(health, probe_at=now + terms.probe_every if terms.probe_every is not None else None)


def on_trial(health: Health, now: datetime) -> Health:
    """Its moment has come, or its probe says that it is there: one is let through."""
    return replace(health, status=DependencyStatus.TRIAL, since=now, probe_at=None, trial=None)


def tried(terms: Terms, health: Health, now: datetime, *, well: bool | None) -> Health:
    """The one on trial has ended: well, or nobody knows (None), so that the next one is let through."""
    if health.status != DependencyStatus.TRIAL:
        return health
    return recovered(terms, health, now) if well else replace(health, trial=None)


def recovered(terms: Terms, health: Health, now: datetime) -> Health:
    """It is back: more and more is let through."""
    start = min(terms.ramp.start, health.rate or terms.rate)
    return replace(
        health, status=DependencyStatus.RECOVERING, since=now, fails=0, failed_at=None, code="", allowed=start, ramped_at=now,
        probe_at=None, trial=None,
    )  # fmt: skip


def ramped(terms: Terms, health: Health, now: datetime, *, waiting: bool) -> Health:
    """Time has passed while it recovers; at its full rate, with nobody left who waits, it is healthy."""
    if not health.recovering:
        return health
    rate, ramp = health.rate or terms.rate, terms.ramp
    allowed, at = health.allowed, health.ramped_at or now
    while allowed < rate and at + ramp.every <= now:
        allowed, at = (min(allowed * ramp.factor, rate) if ramp.factor > 1 else rate), at + ramp.every
    if allowed >= rate and not waiting:
        every = terms.probe_every
        return replace(
            health, status=DependencyStatus.HEALTHY, since=now, allowed=0.0, ramped_at=None, delay=0.0,
            probe_at=now + every if every is not None else None,
        )  # fmt: skip
    return replace(health, allowed=min(allowed, rate), ramped_at=at)


def drain_seconds(waiting: int, rate: float, ceiling: int, mean: float | None) -> float:
    """How long it takes until nobody waits, at this rate, and with so many at once that take so many seconds each."""
    at_once = ceiling / mean if mean else math.inf
    return waiting / max(min(rate, at_once), 1e-9)
