"""Policies an author declares on nodes and flows: plain frozen values, each checked when it is made.

Durations are `datetime.timedelta`; `seconds(3)`, `minutes(10)`, `hours(2)` and `days(1)` make them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from flows.core.errors import DefinitionError


def seconds(amount: float) -> timedelta:
    """A duration of `amount` seconds."""
    return timedelta(seconds=amount)


def minutes(amount: float) -> timedelta:
    """A duration of `amount` minutes."""
    return timedelta(minutes=amount)


def hours(amount: float) -> timedelta:
    """A duration of `amount` hours."""
    return timedelta(hours=amount)


def days(amount: float) -> timedelta:
    """A duration of `amount` days of 24 hours."""
    return timedelta(days=amount)


class Expiry(StrEnum):
    """What a passed deadline does when it names no node. Expiry never approves anything."""

    ESCALATE = "escalate"
    CANCEL = "cancel"
    FAIL = "fail"


ESCALATE = Expiry.ESCALATE
CANCEL = Expiry.CANCEL
FAIL = Expiry.FAIL


@dataclass(frozen=True, slots=True, init=False)
class Deadline:
    """How long something may take, and what happens then.

    Args:
        days, hours, minutes, seconds: the span from the moment the wait (or the workflow) begins.
        then: the name of a node, or ESCALATE (a person decides, the accountable user is told), CANCEL or FAIL.
    """

    after: timedelta
    then: str

    def __init__(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, then: str | Expiry) -> None:
        after = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if after <= timedelta(0):
            raise DefinitionError("A Deadline needs a span: Deadline(hours=2, then=ESCALATE).")
        object.__setattr__(self, "after", after)
        object.__setattr__(self, "then", then if isinstance(then, Expiry) else str(then))

    @property
    def expiry(self) -> Expiry | None:
        """The expiry policy, or None when `then` names a node."""
        return self.then if isinstance(self.then, Expiry) else None

    @property
    def word(self) -> str:
        """What is recorded of the policy: "escalate", "cancel", "fail" or "node:NAME"."""
        return self.then.value if isinstance(self.then, Expiry) else f"node:{self.then}"


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
        if self.max_attempts < 1:
            raise DefinitionError("Retry(max_attempts=…) counts the first try too: at least 1.")
        if self.max_lost < 0:
            raise DefinitionError("Retry(max_lost=…) must not be negative.")
        if self.initial < timedelta(0) or self.maximum < self.initial:
            raise DefinitionError("Retry delays: 0 <= initial <= maximum.")
        if not 1 <= self.backoff < math.inf or not 0 <= self.jitter <= 1:
            raise DefinitionError("Retry(backoff=…) is at least 1 and jitter between 0 and 1.")


@dataclass(frozen=True, slots=True)
class Visits:
    """How often a node may be entered in one workflow, and which node is entered instead after that."""

    limit: int
    then: str

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise DefinitionError("Visits(n, then=…) needs n of at least 1.")


@dataclass(frozen=True, slots=True)
class Fresh:
    """How fresh something outside must be before a node is carried out.

    Args:
        probe: called with the attempt; returns the present version of the thing, as text or as JSON.
        within: how old what was decided or checked on may be at most; None: any age, as long as the version is the same.
        reuse: a look that is younger than this is not repeated.
    """

    probe: Callable[[Any], Any] | str
    within: timedelta | None = None
    reuse: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.within is not None and self.within <= timedelta(0):
            raise DefinitionError("Fresh(within=…) needs a span: Fresh(probe, within=hours(4)).")
        if self.reuse < timedelta(0):
            raise DefinitionError("Fresh(reuse=…) must not be negative.")


@dataclass(frozen=True, slots=True)
class Competence:
    """The envelope that a node works in: so many failed verifications of `of`, under one release, and a person is asked.

    Args:
        of: the node whose candidates are counted. errors: how many of them may fail verification before the envelope is closed.
    """

    of: str
    errors: int

    def __post_init__(self) -> None:
        if self.errors < 0:
            raise DefinitionError("Competence(errors=…) must not be negative.")


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold each time before a node is carried out.

    Args:
        approved_by: the approval node whose live approval of the exact current candidate is needed; it is used up by the node.
        verified_by: the node (or nodes) with `verifies=` whose newest verification of the exact current candidate must have passed.
        fresh: name → probe (a function of the attempt, or `Fresh(probe, within=…)`): what was decided on must still be so.
        authority: permissions that the accountable user must have now.
        competence: the envelope that must be open.
        placement: the labels of which the worker must offer one.
        commitments: names of commitments that must be active, and not over their deadline.
    """

    approved_by: str | None = None
    verified_by: str | tuple[str, ...] = ()
    fresh: Mapping[str, Fresh | Callable[[Any], Any] | str] = field(default_factory=dict)
    authority: str | tuple[str, ...] = ()
    competence: Competence | None = None
    placement: str | tuple[str, ...] = ()
    commitments: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option in ("verified_by", "authority", "placement", "commitments"):
            value = getattr(self, option)
            object.__setattr__(self, option, (value,) if isinstance(value, str) else tuple(value))
        probes = {name: probe if isinstance(probe, Fresh) else Fresh(probe) for name, probe in self.fresh.items()}
        object.__setattr__(self, "fresh", probes)

    @property
    def probes(self) -> Mapping[str, Fresh]:
        """`fresh`, each as a `Fresh`."""
        return self.fresh  # type: ignore[return-value]

    @property
    def shape(self) -> Mapping[str, Any]:
        """What of it is structure: names, not functions or spans."""
        found = {
            "approved_by": self.approved_by,
            "verified_by": sorted(self.verified_by),
            "fresh": sorted(self.fresh),
            "authority": sorted(self.authority),
            "competence": self.competence.of if self.competence else None,
            "placement": sorted(self.placement),
            "commitments": sorted(self.commitments),
        }
        return {name: value for name, value in found.items() if value}


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
