"""Why a run is not moving: each reason by its code, in words, with the way out. Pure: facts in, reasons out, the first one first.

    held, paused                 a person stopped it; nothing else matters until a person lets it go
    runnable                     nobody may take it, or it stands in its queue; or nobody looks at the clock, so a lost hint stays lost
    running                      an attempt computes, is over its time, or its worker is gone
    waiting                      each open wait by its kind: for whom or what; or what was awaited has come, and it is about to go on
    reconciling, cancelling      what it owes is serviced, or nobody is there to service it, or a person has to say what became of it
    ended                        no reason: it is where it goes

What is needed of people is not decided here: it is given (`needed`), and stands as the way out where it is the only one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from flows.core.protocol import CAPACITY, SUSPENDED, TERMINAL, Status

#: The clock is looked at every second; workers do so themselves after two. A minute without a look means that nobody does.
CLOCK_STOPPED = timedelta(minutes=1)
#: So many ready runs that are taken before it are counted.
MOST_AHEAD = 1000


class Why(StrEnum):
    """The closed list of reasons."""

    HELD = "HELD"
    PAUSED = "PAUSED"
    PAUSING = "PAUSING"
    UNOFFERED = "UNOFFERED"
    CLOCK_STOPPED = "CLOCK_STOPPED"
    QUEUED = "QUEUED"
    COMPUTING = "COMPUTING"
    OVERDUE = "OVERDUE"
    OWNERLESS = "OWNERLESS"
    STOPPED = "STOPPED"
    ANSWERED = "ANSWERED"
    WAITING = "WAITING"
    CAPACITY = "CAPACITY"
    UNWOKEN = "UNWOKEN"
    SERVICED = "SERVICED"
    UNSERVICED = "UNSERVICED"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `says`: in a sentence. `out`: what ends it: who does what, or what comes by itself."""

    code: Why
    says: str
    out: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open wait: its kind, why, who or what ends it, and until when. `answered`: what was awaited has come."""

    kind: str
    reason: str
    ends: str
    since: datetime
    deadline: datetime | None = None
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Trying:
    """The attempt that runs: its number, since when, and until when it may. `owner`: its worker, and whether that lives."""

    number: int
    owner: str
    alive: bool
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds it beside its own status: its scope in words, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a run at one moment.

    Attributes:
        needed: what a person has to do so that it goes on, in words; "": nothing.
        unoffered: no live worker may take it (of one that owes: may service it). ahead: ready runs of its queue that come before it,
            counted up to `MOST_AHEAD`. unticked: for how long nobody has looked at the clock; None: nobody ever has.
    """

    status: str
    node: str
    now: datetime
    since: datetime
    outcome: str = ""
    error_code: str | None = None
    queue: str = ""
    pausing: bool = False
    owes: bool = False
    needed: str = ""
    unoffered: bool = False
    ahead: int = 0
    unticked: timedelta | None = timedelta()
    trying: Trying | None = None
    waits: tuple[Waiting, ...] = ()
    holds: tuple[Hold, ...] = ()


def why(facts: Facts) -> tuple[Reason, ...]:
    """Why it is not moving, what matters most first; nothing of a run that has ended."""
    if facts.status in TERMINAL:
        return ()
    found = [
        Reason(Why.HELD, f"{hold.what} is held: {hold.reason or 'no reason is given'}", "a person lifts the hold")
        for hold in _holds(facts)
    ]
    if facts.status == Status.PAUSED:
        found.append(Reason(Why.PAUSED, f"it is paused at {facts.node}, {_ago(facts)}", facts.needed or "a person resumes it"))
    elif facts.owes and (facts.status in (Status.RECONCILING, Status.CANCELLING) or facts.needed):
        found.append(_owing(facts))
    elif facts.status == Status.RUNNABLE:
        found.append(_ready(facts))
    elif facts.status == Status.RUNNING:
        found += _running(facts)
    else:
        found += _waiting(facts)
    return tuple(found)


def _holds(facts: Facts) -> tuple[Hold, ...]:
    """Servicing and cancelling pass every hold."""
    return () if facts.status in (Status.CANCELLING, Status.RECONCILING) else facts.holds


def _owing(facts: Facts) -> Reason:
    what = (
        "what became of its effects is found out"
        if facts.status != Status.CANCELLING
        else "what it owes is serviced before it ends"
    )
    if facts.unoffered:
        return Reason(Why.UNSERVICED, f"{what}, and no live worker serves the cleanup queue", facts.needed)
    if facts.needed:
        return Reason(Why.STOPPED, f"{what}, and only a person can say how", facts.needed)
    return Reason(Why.SERVICED, what, "the cleanup workers; it goes on by itself")


def _ready(facts: Facts) -> Reason:
    if facts.unoffered:
        return Reason(Why.UNOFFERED, f"it is ready, {_ago(facts)}, and no live worker may take it", facts.needed)
    if _clock_stands(facts):
        return _stopped_clock(facts)
    many = f"{MOST_AHEAD} or more" if facts.ahead >= MOST_AHEAD else str(facts.ahead)
    before = f"{many} {'is' if facts.ahead == 1 else 'are'} taken before it" if facts.ahead else "it is the next"
    return Reason(
        Why.QUEUED,
        f"it is ready on queue {facts.queue}, {_ago(facts)}; {before}",
        "the next free worker takes it; more workers take more",
    )


def _running(facts: Facts) -> list[Reason]:
    found = []
    if facts.pausing:
        says = "a pause was asked for; what runs now is finished first"
        found.append(Reason(Why.PAUSING, says, "the end of the attempt, or a person's resume"))
    trying = facts.trying
    if trying is None:
        return [*found, Reason(Why.COMPUTING, f"a worker decides what comes after {facts.node}", "it goes on by itself")]
    return [*found, _attempt(facts, trying)]


def _attempt(facts: Facts, trying: Trying) -> Reason:
    what = f"attempt {trying.number} of {facts.node} runs on {trying.owner}"
    if not trying.alive:
        return Reason(Why.OWNERLESS, f"{what}, which is no longer alive", "the next sweep puts it back, when the lease is over")
    if trying.until is not None and trying.until < facts.now:
        says = f"{what} and is over its time, {_span(facts.now - trying.until)}"
        return Reason(Why.OVERDUE, says, "the next sweep ends the attempt; it is tried again as declared")
    since = f" for {_span(facts.now - trying.since)}" if trying.since is not None else ""
    until = f", at most {_span(trying.until - facts.now)} more" if trying.until is not None else ""
    return Reason(Why.COMPUTING, f"{what}{since}{until}", "the end of the attempt")


def _waiting(facts: Facts) -> list[Reason]:
    if facts.outcome in SUSPENDED:
        code = facts.error_code or facts.outcome
        return [Reason(Why.STOPPED, f"it stopped at {facts.node} with {code}, {_ago(facts)}", facts.needed)]
    if not facts.waits:
        return [
            Reason(
                Why.UNWOKEN,
                "it waits, and no wait of it is open: nothing will wake it",
                "a person resumes or cancels it; flows verify tells more",
            )
        ]
    return [_one(facts, wait) for wait in facts.waits]


def _one(facts: Facts, wait: Waiting) -> Reason:
    """One open wait."""
    if wait.answered:
        return Reason(Why.ANSWERED, f"what it waited for has come ({wait.reason or wait.kind})", wait.ends)
    if wait.deadline is not None and wait.deadline < facts.now and _clock_stands(facts):
        return _stopped_clock(facts)
    until = f"; until {_moment(wait.deadline)} at the latest" if wait.deadline is not None else ""
    says = f"{wait.reason or wait.kind}, for {_span(facts.now - wait.since)}{until}"
    return Reason(Why.CAPACITY if wait.kind in CAPACITY else Why.WAITING, says, facts.needed or wait.ends)


def _clock_stands(facts: Facts) -> bool:
    return facts.unticked is None or facts.unticked > CLOCK_STOPPED


def _stopped_clock(facts: Facts) -> Reason:
    when = f"for {_span(facts.unticked)}" if facts.unticked is not None else "so far"
    return Reason(
        Why.CLOCK_STOPPED,
        f"nobody has looked at the clock {when}, so nothing that is due or whose hint was lost goes on",
        "start a worker of the control queue, and Beat",
    )


def _ago(facts: Facts) -> str:
    return f"for {_span(facts.now - facts.since)}"


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z").strip()


def _span(span: timedelta) -> str:
    """A duration in its two largest units."""
    return in_words(span.total_seconds())


def in_words(seconds: float) -> str:
    """Seconds as people say them, in the two largest units: `2 d 3 h`, `14 min 5 s`, `0.4 s`."""
    left = max(seconds, 0.0)
    if left < 10:
        return f"{left:.1f} s"
    words = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:.0f} {unit}")
        elif words:
            break
    return " ".join(words[:2])
