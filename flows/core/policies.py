"""Policies an author declares on nodes and flows: plain frozen values, each checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from flows.core import typed
from flows.core.errors import DefinitionError
from flows.core.spans import bounded, span


class Expiry(StrEnum):
    """What a passed deadline does when it names no node. Expiry never approves anything."""

    ESCALATE = "escalate"
    HUMAN = "human"
    CANCEL = "cancel"
    FAIL = "fail"
    RELEASE = "release"
    DEGRADE = "degrade"
    BREACH = "breach"


ESCALATE = Expiry.ESCALATE
HUMAN = Expiry.HUMAN
CANCEL = Expiry.CANCEL
FAIL = Expiry.FAIL
RELEASE = Expiry.RELEASE
DEGRADE = Expiry.DEGRADE
BREACH = Expiry.BREACH

#: These may lead to a node (`to=`); without one, and BREACH always, the flow goes on as it was.
LEADS_ON = frozenset({RELEASE, DEGRADE})


@dataclass(frozen=True, slots=True, init=False)
class Deadline:
    """How long something may take, and what happens then.

    Args:
        days, hours, minutes, seconds: the span from the moment the wait (or the workflow) begins.
        business: in their place, a span of the time in which `calendar` is open: business=hours(8), calendar="office".
        then: the name of a node (another way is tried), or
            ESCALATE: a person decides; the accountable user is told, and those of `escalate_to`. HUMAN: the accountable user alone.
            CANCEL, FAIL: the workflow ends so.
            RELEASE: what the flow holds and can release is released now. DEGRADE: optional nodes are dropped from now on.
            BREACH: it is recorded, as an event. After these three the flow goes on as it was, or with RELEASE and DEGRADE at `to`.
        to: the node after RELEASE or DEGRADE.
        escalate_to: whom ESCALATE tells besides: names of Django groups, or permissions ("app.codename"); default: `ESCALATE_TO`.
    """

    after: timedelta
    then: str
    to: str
    escalate_to: tuple[str, ...]
    business: timedelta | None
    calendar: str

    def __init__(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        business: timedelta | None = None,
        calendar: str = "",
        then: str | Expiry,
        to: str = "",
        escalate_to: str | Iterable[str] = (),
    ) -> None:
        for unit, amount in (("days", days), ("hours", hours), ("minutes", minutes), ("seconds", seconds)):
            typed.must(f"Deadline({unit}=…)", amount, typed.NUMBERS, f"Deadline({unit}=2, then=ESCALATE)")
        after = span("Deadline(…)", days=days, hours=hours, minutes=minutes, seconds=seconds)
        typed.must("Deadline(calendar=…)", calendar, (str,), 'Deadline(business=hours(8), calendar="office", then=ESCALATE)')
        if business is not None:
            typed.span("Deadline(business=…)", business, 'Deadline(business=hours(8), calendar="office", then=ESCALATE)')
            if after != timedelta(0):
                raise DefinitionError("A Deadline takes either business= or days, hours, minutes and seconds.")
            after = bounded("Deadline(business=…)", business)
        if after <= timedelta(0):
            raise DefinitionError("A Deadline needs a span: Deadline(hours=2, then=ESCALATE).")
        object.__setattr__(self, "after", after)
        object.__setattr__(self, "business", business)
        object.__setattr__(self, "calendar", calendar)
        people = typed.texts("Deadline(escalate_to=…)", escalate_to or (), 'escalate_to="duty officers", a group or a permission')
        if to and not (isinstance(then, Expiry) and then in LEADS_ON):
            raise DefinitionError(
                f'Deadline(then={then!s}, to={to!r}): only RELEASE and DEGRADE lead on to a node; or write then="{to}".'
            )
        if people and then is not Expiry.ESCALATE:
            raise DefinitionError(f"Deadline(then={then!s}, escalate_to=…): only ESCALATE tells other people.")
        object.__setattr__(self, "then", then if isinstance(then, Expiry) else str(then))
        object.__setattr__(self, "to", to)
        object.__setattr__(self, "escalate_to", people)

    @property
    def expiry(self) -> Expiry | None:
        """The expiry policy, or None when `then` names a node."""
        return self.then if isinstance(self.then, Expiry) else None

    @property
    def word(self) -> str:
        """What is recorded of the policy: "escalate", "breach", …, "node:NAME", "release:NAME" or "degrade:NAME"."""
        if not isinstance(self.then, Expiry):
            return f"node:{self.then}"
        return f"{self.then.value}:{self.to}" if self.to else self.then.value

    @property
    def target(self) -> str:
        """The node that it leads to; "" if it names none."""
        return self.to if isinstance(self.then, Expiry) else self.then

    @property
    def moves(self) -> bool:
        """Whether it takes the workflow from where it is; else it goes on as it was."""
        return bool(self.to) or self.expiry not in (Expiry.BREACH, Expiry.RELEASE, Expiry.DEGRADE)


#: Option of a Retry → what it is.
RETRY_TYPES: dict[str, tuple[type, ...]] = {
    "max_attempts": (int,),
    "max_lost": (int,),
    "initial": (timedelta,),
    "maximum": (timedelta,),
    "backoff": typed.NUMBERS,
    "jitter": typed.NUMBERS,
}


@dataclass(frozen=True, slots=True)
class Retry:
    """When the same operation is tried again.

    Args:
        max_attempts: failures allowed in all, the first try included; at least 1.
        initial: delay before the second try. maximum: no delay is longer.
        backoff: factor between delays. jitter: share of the delay (0 to 1) that is left to chance.
        retry_on: error classes that may be tried again besides those whose taxonomy says so.
        never_on: error classes that are never tried again.
        max_lost: how often a worker may die or be lost under this activity before a person is asked.
    """

    max_attempts: int = 3
    initial: timedelta = timedelta(seconds=1)
    maximum: timedelta = timedelta(minutes=5)
    backoff: float = 2.0
    jitter: float = 0.2
    retry_on: tuple[type[BaseException], ...] = ()
    never_on: tuple[type[BaseException], ...] = ()
    max_lost: int = 10

    def __post_init__(self) -> None:
        for option, types in RETRY_TYPES.items():
            example = f"Retry({option}=seconds(5))" if types == (timedelta,) else f"Retry({option}=2)"
            typed.must(f"Retry({option}=…)", getattr(self, option), types, example)
        for option in ("retry_on", "never_on"):
            classes = typed.errors(f"Retry({option}=…)", getattr(self, option), f"Retry({option}=(ValueError,))")
            object.__setattr__(self, option, classes)
        if self.max_attempts < 1:
            raise DefinitionError("Retry(max_attempts=…) counts the first try too: at least 1.")
        if self.max_lost < 0:
            raise DefinitionError("Retry(max_lost=…) must not be negative.")
        if self.initial < timedelta(0) or self.maximum < self.initial:
            raise DefinitionError("Retry delays: 0 <= initial <= maximum.")
        bounded("Retry(maximum=…)", self.maximum)
        if not 1 <= self.backoff < math.inf or not 0 <= self.jitter <= 1:
            raise DefinitionError("Retry(backoff=…) is at least 1 and jitter between 0 and 1.")


@dataclass(frozen=True, slots=True)
class Visits:
    """How often a node may be entered in one workflow, and which node is entered instead after that."""

    limit: int
    then: str

    def __post_init__(self) -> None:
        example = 'Visits(3, then="gave_up")'
        typed.must("Visits(n, …)", self.limit, (int,), example)
        typed.must("Visits(n, then=…)", self.then, (str,), example)
        if self.limit < 1:
            raise DefinitionError("Visits(n, then=…) needs n of at least 1.")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How a workflow's checkpoint is bounded and validated.

    Args:
        validate: called with the attempt when a worker takes up work that has a checkpoint; returns None when the revision that
            it names still exists, else an explanation. Then the attempt ends as a StateConflict and nothing stale is applied.
        max_bytes: bound of the stored JSON; default 16 KiB.
    """

    validate: Callable[[Any], str | None] | None = None
    max_bytes: int = 16 * 1024

    def __post_init__(self) -> None:
        typed.must("Checkpoint(max_bytes=…)", self.max_bytes, (int,), "Checkpoint(validate=function, max_bytes=16 * 1024)")
