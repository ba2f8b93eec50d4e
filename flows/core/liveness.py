"""Orphans: what in the record nobody owns, wakes, ends, asks about or services any more. Each kind is a row of one table (P1, P2). Pure.

Nouns: an orphan kind says what is broken, for how long that is nothing (the time that recovery takes), who looks first, and what mends it; a
finding (`flows.models.Finding`) says that one was found. Words of C5 are read from C5: whose alert the wait of a run is.

    find      –    → open, or found once more     the pair (kind, subject) is unique among those that are there   two scans: one row
    repair    open → repaired                     the repair is an ordinary guarded arrow, in the same transaction   it hit nothing: open still
    go        open, dismissed → gone, dismissed   a whole scan of the kind does not find it
    dismiss   open → dismissed                    right and reason; it is there until it goes, and comes back as a new finding
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from flows.core.protocol import WAIT_KINDS

#: Seconds that recovery may take: a lease, and some. Until then what a crash leaves behind is no finding.
RECOVERY = 60

#: What came back so often after it was repaired, or could not be repaired so often, is not repaired by itself any more: a person looks.
REPEATS = 5

OPERATORS = WAIT_KINDS["event"].alert
ACCOUNTABLE = WAIT_KINDS["human"].alert


class FindingStatus(StrEnum):
    """open: it is there. repaired: a repair has mended it. gone: something else has. dismissed: a person says that nothing is to be done."""

    OPEN = "open"
    REPAIRED = "repaired"
    GONE = "gone"
    DISMISSED = "dismissed"


class Repair(StrEnum):
    """What can be done about one. Each is an arrow that exists elsewhere, under its own guard."""

    PUT_BACK = "put_back"
    MAKE_TIMER = "make_timer"
    WAKE = "wake"
    HINT = "hint"
    RELEASE = "release"
    ASK = "ask"
    WITHDRAW = "withdraw"
    COUNT = "count"
    JOIN = "join"
    FREE = "free"
    PLAN = "plan"
    SETTLE = "settle"
    REDELIVER = "redeliver"
    MIGRATE = "migrate"
    CANCEL = "cancel"
    FULFIL = "fulfil"
    DEFER = "defer"


#: What each does, for a person.
DOES: Mapping[Repair, str] = {
    Repair.PUT_BACK: "its work is put back, as when a worker dies",
    Repair.MAKE_TIMER: "its timer is made anew, at the moment on record",
    Repair.WAKE: "the event that is in the inbox is given to it; one that has its answer is woken",
    Repair.HINT: "its queue gets a message",
    Repair.RELEASE: "what it holds is released by the cleanup workers",
    Repair.ASK: "the provider is asked what became of it; where nobody can be asked, its accountable user is",
    Repair.WITHDRAW: "the question is withdrawn",
    Repair.COUNT: "its end is counted",
    Repair.JOIN: "the group of children is ended by its counters",
    Repair.FREE: "the slot is free again",
    Repair.PLAN: "its moments are planned",
    Repair.SETTLE: "all that was set aside counts as spent",
    Repair.REDELIVER: "the event is delivered again",
    Repair.MIGRATE: "the run is migrated to the newest version that its flow can take it to",
    Repair.CANCEL: "the run is cancelled",
    Repair.FULFIL: "the commitment is fulfilled: somebody has done what was owed",
    Repair.DEFER: "the commitment is left to somebody else, and the run may end without it",
}

#: The right that one needs beside that of operating workflows.
RIGHTS: Mapping[Repair, str] = {
    Repair.WAKE: "outlast_flows.redeliver_event",
    Repair.REDELIVER: "outlast_flows.redeliver_event",
    Repair.FULFIL: "outlast_flows.service_commitment",
    Repair.DEFER: "outlast_flows.service_commitment",
}

#: Those that only a person decides on: they change what a run is about, or what is said of the world outside.
BY_PERSON = frozenset({Repair.REDELIVER, Repair.MIGRATE, Repair.CANCEL, Repair.FULFIL, Repair.DEFER})


@dataclass(frozen=True, slots=True)
class OrphanKind:
    """One row of the table.

    Attributes:
        broken: what is broken, in words. breaks: the invariant that it breaks, or what causes it.
        patience: seconds for which it is nothing yet. 0: one transaction makes both sides, so it is never seen in between.
        first: who looks first. repair: what mends it, by itself; None: a person decides. offered: what a person may do about it.
        otherwise: what else there is to do, on which page or by which command.
    """

    name: str
    broken: str
    breaks: str
    patience: int = 0
    first: str = OPERATORS
    repair: Repair | None = None
    offered: tuple[Repair, ...] = ()
    otherwise: str = ""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """All that a person may do about it here."""
        return (self.repair, *self.offered) if self.repair is not None else self.offered


_OWNED = "no active workflow without owner or wait"
_WOKEN = "no waiting workflow without a wake-up condition"
_SERVICED = "no active commitment without a servicing path"

KINDS: Mapping[str, OrphanKind] = {
    kind.name: kind
    for kind in (
        OrphanKind("ownerless", "a run computes, and no live worker owns it", _OWNED, RECOVERY, repair=Repair.PUT_BACK),
        OrphanKind(
            "unwoken", "a run waits, and nothing will wake it", _WOKEN, repair=Repair.WAKE, offered=(Repair.CANCEL,),
            otherwise="by itself only where its event or its answer is there",
        ),
        OrphanKind("timer_lost", "a moment is on record and has no timer", _WOKEN, repair=Repair.MAKE_TIMER),
        OrphanKind("unhinted", "a run is ready, and workers that could take it are idle", "a message was lost", RECOVERY, repair=Repair.HINT),
        OrphanKind(
            "unoffered", "a run is ready, and no live worker offers its version, release, queue and placement", "a worker is missing", RECOVERY,
            otherwise="start a worker that offers it; flows migrate, flows releases move",
        ),
        OrphanKind(
            "migration", "a run waits for a migration", "its version, or a release, cannot go on", offered=(Repair.MIGRATE, Repair.CANCEL),
            otherwise="flows policy adopt, flows releases move",
        ),
        OrphanKind("endless", "a retry waits without a time", "no retry path without an end", repair=Repair.MAKE_TIMER),
        OrphanKind(
            "unprotected", "effects are to be looked at, and no live worker may", "no reconciliation without protected capacity", RECOVERY,
            otherwise="start a worker for the queue cleanup that offers the flow",
        ),
        OrphanKind(
            "unserviced", "a commitment is live, and its run has ended, or only a person can end it", _SERVICED, repair=Repair.RELEASE,
            first=ACCOUNTABLE, offered=(Repair.FULFIL, Repair.DEFER), otherwise="its page also hands it over",
        ),
        OrphanKind(
            "uncertain", "an effect is in doubt, or a run waits for what it owes, and nobody asks and nobody was told",
            "unknown is a state, with somebody who ends it", RECOVERY, repair=Repair.ASK, otherwise="its page takes a person's word",
        ),
        OrphanKind(
            "request_adrift", "people are asked, and nobody waits for the answer; or the reverse", "an answer without a question",
            first="reviewers", repair=Repair.WITHDRAW, offered=(Repair.CANCEL,), otherwise="by itself only where nobody waits",
        ),
        OrphanKind(
            "misdirected", "an event says that it is about a run that is none, or never waits for it", "a callback with another's name",
            offered=(Repair.REDELIVER,),
        ),
        OrphanKind("unclaimed", "nobody has taken an event for long", "a callback without a run", offered=(Repair.REDELIVER,)),
        OrphanKind("branch_uncounted", "a child has ended and is not counted", "a count was lost", RECOVERY, repair=Repair.COUNT),
        OrphanKind(
            "fan_adrift", "a group of children is open, and nobody waits for it, or it is complete", "a join was lost", repair=Repair.JOIN,
        ),
        OrphanKind("slot_adrift", "a slot is held for what no longer runs", "a worker died", 2 * RECOVERY, repair=Repair.FREE),
        OrphanKind("behind", "the next moment of a schedule has passed while the clock ticks", "it cannot be planned", RECOVERY,
                   repair=Repair.PLAN, otherwise="its page and the log say why"),
        OrphanKind("unbalanced", "a ledger is not what its entries add up to", "money that nobody booked", otherwise="tell us: it is ours"),
        OrphanKind("unsettled", "something is set aside for an attempt that has ended", "a worker died", repair=Repair.SETTLE),
        OrphanKind("half", "what no arrow can make: a status without its log row, an activity that runs under a run that does not",
                   "half a move", offered=(Repair.CANCEL,), otherwise="tell us: it is ours"),
    )
}  # fmt: skip
