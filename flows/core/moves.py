"""What the engine can answer. A Move is a value; a service turns it into exactly one arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from flows.core.protocol import Outcome, Status


@dataclass(frozen=True, slots=True)
class Open:
    """Enter a node (or a step of it) by opening an activity: the next attempt runs it."""

    node: str
    step: str = ""
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """Run the activity that is already open; nothing is written."""


class Part(NamedTuple):
    """One of the events that a wait needs: its name there, and the channel that it comes by."""

    name: str
    event_type: str
    key: str


@dataclass(frozen=True, slots=True)
class Park:
    """Enter a node that waits.

    Args:
        kind: a key of `WAIT_KINDS`. event_type, keys: what wakes it (for events), or what it waits for (for capacity).
        parts, need: several events, and how many of them it needs; then it has no event type of its own.
        wakes_at: the moment a timer wakes it, for sleeps, and at which a job is asked about.
        deadline: how long the wait may take, or deadline_at: until when, which goes first; on_expiry: its declared policy.
        detail: what the opener of this wait kind needs (for an approval: candidate and role).
        beside: it is no node that waits, but the open activity, which is run again afterwards.
        same_visit: it belongs to the visit of the activity before it.
    """

    node: str
    kind: str
    reason: str
    event_type: str = ""
    keys: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    need: int = 0
    wakes_at: datetime | None = None
    deadline: timedelta | None = None
    deadline_at: datetime | None = None
    on_expiry: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    via: tuple[str, ...] = ()
    beside: bool = False
    same_visit: bool = False

    @property
    def channels(self) -> tuple[tuple[str, str], ...]:
        """The (event type, key) by which something may come for it."""
        own = tuple((self.event_type, key) for key in self.keys) if self.event_type else ()
        return (*own, *((part.event_type, part.key) for part in self.parts))

    def visit_after(self, visits: Mapping[str, int]) -> int:
        """Which visit of its node it is, where each was entered so often."""
        return max(1, visits.get(self.node, 0) + (0 if self.same_visit else 1))


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing has arrived: go back to the wait that is open."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The same operation again, after a delay."""

    delay: timedelta
    code: str


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Nobody knows whether an effect of the attempt happened: find out before anything else."""

    code: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the workflow."""

    node: str
    status: Status
    outcome: Outcome
    result: Any = None
    code: str | None = None
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspend:
    """Stop until a person acts: an explicit outcome, with its code, never a silent stall.

    `tell`: who is told besides the accountable user (groups and permissions; empty: those of the setting); None: nobody.
    """

    node: str
    outcome: Outcome
    code: str
    reason: str = ""
    via: tuple[str, ...] = ()
    tell: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CancelSelf:
    """A deadline's declared policy is to cancel the workflow."""

    code: str


@dataclass(frozen=True, slots=True)
class Goto:
    """Only inside the core: enter another node now; resolved before a move leaves the engine. `release`: what is held is released first."""

    node: str
    release: bool = False


Move = Open | Run | Park | Rest | RetryLater | Reconcile | Finish | Suspend | CancelSelf | Goto
