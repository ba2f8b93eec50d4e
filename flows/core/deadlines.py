"""Deadlines: what each kind means, and which of those that have passed is handled now. Pure (B8, L1).

    kind            counts from                              its timer
    activity        the start of an attempt                  none: `timeout_at` of the attempt
    wait, approval, ask  the beginning of the wait           wait_deadline
    workflow, SLA   the start of the workflow                workflow_deadline, sla
    commitment      the moment from which it is owed         commitment_deadline
    freshness       the newest baseline of that name         freshness

A deadline that passes while the workflow computes, is paused or is in doubt is handled at its next decision, each once, the most severe first.
What goes on as it was (BREACH, DEGRADE, RELEASE without a node) wakes nobody: DEGRADE and BREACH are true when they are recorded.
That one has passed is an event, of every kind and whatever its policy is (L1); a wait that was answered before the sweep came has not expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flows.core.policies import BREACH, CANCEL, DEGRADE, ESCALATE, FAIL, HUMAN, RELEASE, Deadline, Expiry
from flows.core.protocol import TimerKind

if TYPE_CHECKING:
    from flows.core.definition import Definition
    from flows.core.state import State

#: Every policy, in the words of the table below: a node, a policy, and a policy that leads on to a node.
NODE, RELEASE_TO, DEGRADE_TO = "node", "release:", "degrade:"
EVERY = frozenset({NODE, *Expiry, RELEASE_TO, DEGRADE_TO})

#: What is recorded on a timer whose expiry leaves the workflow where it is; the first two are handled by being recorded.
RECORDED = (BREACH.value, DEGRADE.value)
GOES_ON = (*RECORDED, RELEASE.value)


EXPIRED, BREACHED = "deadline.expired", "commitment.breached"


@dataclass(frozen=True, slots=True)
class DeadlineKind:
    """One row of the table that says what it means that a deadline of this kind has passed.

    `code`: the error code of the suspension or the end that it leads to. `legal`: its policies. `event`: the type of the event that says it.
    `told`: the accountable user is told of the breach itself, whatever the policy is.
    """

    name: str
    code: str
    legal: frozenset[str]
    event: str = EXPIRED
    told: bool = False


#: By the kind of timer, except that the timer of an approval, or of an ask, is that of its wait. Both are over with it: no policy leaves them
#: open.
KINDS: dict[str, DeadlineKind] = {
    TimerKind.WAIT_DEADLINE: DeadlineKind("wait", "WAIT_EXPIRED", EVERY),
    "approval": DeadlineKind("approval", "APPROVAL_EXPIRED", EVERY - {BREACH, DEGRADE, RELEASE}),
    "ask": DeadlineKind("ask", "ASK_EXPIRED", EVERY - {BREACH, DEGRADE, RELEASE}),
    TimerKind.WORKFLOW_DEADLINE: DeadlineKind("workflow", "DEADLINE_EXPIRED", EVERY),
    TimerKind.SLA: DeadlineKind("SLA", "SLA_BREACHED", EVERY, told=True),
    TimerKind.FRESHNESS: DeadlineKind("freshness", "FRESHNESS_EXPIRED", EVERY),
    TimerKind.COMMITMENT_DEADLINE: DeadlineKind(
        "commitment", "COMMITMENT_BREACHED", frozenset({ESCALATE, CANCEL, RELEASE, BREACH}), BREACHED, told=True
    ),
}

#: Those of a wait, by name: they are told with it.
OF_WAITS = frozenset({KINDS[TimerKind.WAIT_DEADLINE].name, KINDS["approval"].name, KINDS["ask"].name})

#: Passed deadlines of these kinds are the workflow's business; those of waits and commitments only where they release.
WORKFLOWS = (TimerKind.WORKFLOW_DEADLINE.value, TimerKind.SLA.value, TimerKind.FRESHNESS.value)

#: What goes before what, when several have passed: an end, a person, another way, going on.
_SEVERITY: dict[Expiry | None, int] = {CANCEL: 0, FAIL: 1, HUMAN: 2, ESCALATE: 2}
_ANOTHER_WAY, _GOING_ON = 3, 4


def kind_of(timer: str, wait: str | None = None) -> DeadlineKind:
    """The kind of deadline that a timer stands for; `wait`: the kind of the wait that it belongs to."""
    return KINDS.get(wait or "") or KINDS[timer]


def word_of(deadline: Deadline) -> str:
    """The policy in the words of `DeadlineKind.legal`."""
    if deadline.expiry is None:
        return NODE
    return f"{deadline.then}:" if deadline.to else str(deadline.then)


@dataclass(frozen=True, slots=True)
class Late:
    """A deadline that has passed and is to be handled: kind of its timer, name, and what it says. `moot`: it changes nothing any more."""

    kind: str
    name: str
    deadline: Deadline
    moot: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by in `State.passed`."""
        return self.kind, self.name

    @property
    def severity(self) -> int:
        """Smaller goes first."""
        return _SEVERITY.get(self.deadline.expiry, _ANOTHER_WAY) if self.deadline.moves else _GOING_ON

    @property
    def asks(self) -> bool:
        """Whether a person decides."""
        return self.deadline.expiry in (ESCALATE, HUMAN)

    @property
    def ends(self) -> bool:
        """Whether the workflow ends."""
        return self.deadline.expiry in (CANCEL, FAIL)

    @property
    def code(self) -> str:
        """The error code that it leads to."""
        return KINDS[self.kind].code


def late(definition: Definition, state: State) -> tuple[Late, ...]:
    """The passed deadlines, each with the policy that it was set with, the most severe first. Nearly always none."""
    found = []
    for kind, name in state.passed:
        if (one := _set(definition, state, kind, name)) is not None:
            found.append(Late(kind, name, one, moot=kind == TimerKind.FRESHNESS and bool(one.target) and _asked(state)))
    return tuple(sorted(found, key=lambda one: one.severity))


def _asked(state: State) -> bool:
    """Whether a person is to look: then no stale decision is redone without them; at the node itself the gate looks anyway."""
    return state.wait is not None and state.wait.kind == "human"


def is_wanted(definition: Definition, one: Late, node: str) -> bool:
    """Whether it means anything at this node: a freshness budget does while a node that stands on it is ahead."""
    return not one.moot and (one.kind != TimerKind.FRESHNESS or node in definition.wanting.get(one.name, ()))


def releases(late_ones: Iterable[Late]) -> tuple[str, ...]:
    """What is released by those that go on: names of commitments, and "" for all that the flow holds and can release."""
    going = [one for one in late_ones if one.deadline.then is RELEASE]
    return tuple(one.name if one.kind == TimerKind.COMMITMENT_DEADLINE else "" for one in going)


def from_the_start(definition: Definition, lasts: Callable[[Deadline], timedelta]) -> dict[str, list[Any]]:
    """The timers that a start sets, by the names that its statement gives them. `lasts`: how long each takes that begins now."""
    found = [(kind, name, one) for (kind, name), one in definition.deadlines.items() if kind != TimerKind.FRESHNESS]
    return {
        "timer_kinds": [kind for kind, _, _ in found],
        "timer_names": [name for _, name, _ in found],
        "timer_policies": [one.word for _, _, one in found],
        "timer_spans": [lasts(one) for _, _, one in found],
    }


def recorded(word: str) -> Deadline | None:
    """A deadline with the policy that was recorded in this word (`Deadline.word`); None: it is none. Its span says nothing."""
    then, _, to = word.partition(":")
    if then == NODE:
        return Deadline(days=1, then=to)
    return Deadline(days=1, then=Expiry(then), to=to) if then in set(Expiry) else None


def _set(definition: Definition, state: State, kind: str, name: str) -> Deadline | None:
    """The policy that a deadline was set with: neither a newer version nor a deploy changes it. Where its node is gone, a person decides."""
    if kind == TimerKind.WAIT_DEADLINE:
        wait, node = state.wait, definition.nodes.get(state.node)
        own: Any = getattr(node, "deadline", None)
        return own if wait is not None and wait.due and isinstance(own, Deadline) and not own.moves else None
    declared, word = definition.deadlines.get((kind, name)), state.words.get((kind, name))
    if word is None or (declared is not None and declared.word == word):
        return declared
    to = word.partition(":")[2]
    if to and to not in definition.nodes:
        return Deadline(days=1, then=HUMAN)
    return recorded(word)


__all__ = [
    "BREACHED",
    "EXPIRED",
    "GOES_ON",
    "KINDS",
    "OF_WAITS",
    "RECORDED",
    "WORKFLOWS",
    "DeadlineKind",
    "Late",
    "from_the_start",
    "is_wanted",
    "kind_of",
    "late",
    "recorded",
    "releases",
    "word_of",
]
