"""What the engine can answer. A Move is a value; a service turns it into exactly one arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Park:
    """Enter a node that waits.

    Args:
        kind: a key of `WAIT_KINDS`. event_type, keys: what wakes it (for events).
        wakes_at: the moment a timer wakes it, for sleeps. deadline: how long the wait may take; on_expiry: its declared policy.
        detail: what the opener of this wait kind needs (for an approval: candidate and role).
        beside: it is no node that waits, but the open activity, which is run again afterwards.
    """

    node: str
    kind: str
    reason: str
    event_type: str = ""
    keys: tuple[str, ...] = ()
    wakes_at: datetime | None = None
    deadline: timedelta | None = None
    on_expiry: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    via: tuple[str, ...] = ()
    beside: bool = False


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
