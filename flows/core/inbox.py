"""Where an event stands that no wait has taken: which place it has in the inbox, and whether a wait may still take it. Pure.

    what it says that it is about ──► that run, generation, goal or wait is over, or was never there ──► aside
    what its channel was last used for ──► a run that lives ──► between       a run that has ended ──► aside
    nobody ever waited on its channel ──► early, or unknown where no flow names its type

The one rule without `about`: what was observed after a run began may be for it; what was observed before, on a channel whose last run had
ended, was for that one. So a late event moves nothing, and an early one is not lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flows.core.events import About
from flows.core.protocol import TERMINAL, Outcome, Status


class Place(StrEnum):
    """What an event is to the inbox, beside its status."""

    EARLY = "early"
    BETWEEN = "between"
    UNKNOWN = "unknown"
    UNCLAIMED = "unclaimed"
    GAP = "gap"
    TAKEN = "taken"
    REDELIVERED = "redelivered"
    STARTED = "started"
    CONFLICT = "conflict"
    ENDED = "ended"
    SUPERSEDED = "superseded"
    EARLIER_WAIT = "earlier_wait"
    EARLIER_EPOCH = "earlier_epoch"
    EARLIER_RUN = "earlier_run"
    MISDIRECTED = "misdirected"
    OUT_OF_ORDER = "out_of_order"


#: Where a wait may still take it. Everything else of what is here is set aside.
OPEN = frozenset({Place.EARLY, Place.BETWEEN, Place.UNKNOWN, Place.UNCLAIMED, Place.GAP})
#: Set aside for its channel alone: a run takes it that had been started before it was observed.
BY_CHANNEL = frozenset({Place.ENDED, Place.SUPERSEDED})
#: What somebody should look at.
ALERTS = frozenset({Place.UNCLAIMED, Place.CONFLICT, Place.MISDIRECTED})


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the inbox sees it: whether it lives (one that was continued does), and whether its goal is another by now."""

    status: str
    outcome: str
    superseded: bool = False

    @property
    def lives(self) -> bool:
        """Whether something of it may still wait."""
        return self.status not in TERMINAL or self.outcome == Outcome.CONTINUED

    @property
    def over(self) -> Place:
        """The place of what comes for it after its end."""
        return Place.SUPERSEDED if self.superseded or self.status == Status.SUPERSEDED else Place.ENDED


@dataclass(frozen=True, slots=True)
class Named:
    """The run that an event says it is about.

    Attributes:
        epoch, intent: its generation and the version of its goal. waited: it has had a wait of the channel. may_wait: its flow names the type,
            or is not loaded here.
        wait_open: whether the wait that is named is open; None: none is named. wait_known: it is one of this run and channel.
    """

    run: Run
    epoch: int
    intent: int
    waited: bool
    may_wait: bool = True
    wait_open: bool | None = None
    wait_known: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What is looked at: the run that is named (None: there is none of that id), the run of the newest closed wait of the channel (None: nobody
    has ever waited there), whether somebody waits there now (who has been answered, or is not meant), and whether some flow names the type.
    """

    named: Named | None = None
    last: Run | None = None
    waiting: bool = False
    type_known: bool = True


def place_of(about: About, facts: Facts) -> Place:
    """The place of an event that no wait took when it came."""
    if about:
        return _place_of_named(about, facts)
    if facts.waiting:
        return Place.BETWEEN
    if facts.last is None:
        return Place.EARLY if facts.type_known else Place.UNKNOWN
    return Place.BETWEEN if facts.last.lives else facts.last.over


def _place_of_named(about: About, facts: Facts) -> Place:
    named = facts.named
    if named is None or (about.wait is not None and not named.wait_known):
        return Place.MISDIRECTED
    if not named.waited and not (named.run.lives and named.may_wait):
        return Place.MISDIRECTED
    if not named.run.lives:
        over = named.run.over
        lives_on = facts.waiting or (facts.last is not None and facts.last.lives)
        return Place.EARLIER_RUN if lives_on and over is Place.ENDED else over
    if named.run.outcome == Outcome.CONTINUED:
        return Place.BETWEEN
    if about.intent is not None and about.intent < named.intent:
        return Place.SUPERSEDED
    if about.epoch is not None and about.epoch < named.epoch:
        return Place.EARLIER_EPOCH
    if (about.epoch or 0) > named.epoch or (about.intent or 0) > named.intent:
        return Place.MISDIRECTED
    if named.wait_open is False:
        return Place.EARLIER_WAIT
    return Place.BETWEEN if named.waited else Place.EARLY
