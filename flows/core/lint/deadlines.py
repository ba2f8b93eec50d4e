"""Rules about deadlines: each has a policy that its kind has, and that has something to act on; nothing waits for ever after one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from flows.core.commitments import Commits
from flows.core.deadlines import KINDS, word_of
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Activity, Approval, Ask, Fanned, Job, Sleep, Wait
from flows.core.policies import DEGRADE, RELEASE, Deadline
from flows.core.protocol import TimerKind

WRITE_SLA = 'Write sla = Deadline(hours=4, then=ESCALATE), or several: sla = {"answer": Deadline(hours=4, then=ESCALATE)}.'


def slas_are_deadlines(view: View) -> Iterator[Problem]:
    """`Meta.sla` is a Deadline, or several by name."""
    given: Any = view.definition.sla
    if not isinstance(given, Mapping):
        yield view.problem("E027", f"Meta.sla is {given!r:.60}.", WRITE_SLA)
        return
    for name, one in given.items():
        if not isinstance(name, str) or not isinstance(one, Deadline):
            yield view.problem("E027", f"Meta.sla has {name!r:.60}: {one!r:.60}.", WRITE_SLA)


def policies_fit(view: View) -> Iterator[Problem]:
    """A policy is one that the kind of deadline has, and finds what it acts on."""
    releasable, optional = _releasable(view), any(view.option(name, "optional") is True for name in view.nodes)
    for kind, what, node, deadline in all_of(view):
        row = KINDS[kind]
        if word_of(deadline) not in row.legal:
            if kind == TimerKind.COMMITMENT_DEADLINE and deadline.target:
                continue  # E036
            hint = f"It may be {', '.join(sorted(str(word) if not str(word).endswith(':') else f'{word[:-1]} with to=' for word in row.legal))}."
            yield view.problem(
                "E051", f"{what}: then={deadline.word!r} is no policy of a deadline of its kind ({row.name}).", hint, node
            )
        elif deadline.then is RELEASE and not releasable and kind != TimerKind.COMMITMENT_DEADLINE:
            hint = 'No node begins a commitment with a release: commits=Commits("window", release=release_window).'
            yield view.problem("E052", f"{what}: RELEASE finds nothing to release in this flow.", hint, node)
        elif deadline.then is RELEASE and kind == TimerKind.COMMITMENT_DEADLINE and not _has_release(view, node, what):
            yield view.problem("E052", f"{what}: RELEASE, and it has no release=.", "Give it one, or another policy.", node)
        elif deadline.then is DEGRADE and not deadline.to and not optional:
            hint = 'Mark activities that the flow can do without as optional=True, or name a smaller way: to="…".'
            yield view.problem("E052", f"{what}: DEGRADE finds nothing to drop in this flow.", hint, node)


def waits_end_after_their_deadline(view: View) -> Iterator[Problem]:
    """A wait that goes on after its deadline is ended by the flow's own deadline, if by nothing else."""
    whole = view.definition.deadline
    if isinstance(whole, Deadline) and whole.moves:
        return
    for kind, what, node, deadline in all_of(view):
        if kind == TimerKind.WAIT_DEADLINE and not deadline.moves:
            hint = "Give the flow an end of its own: class Meta: deadline = Deadline(days=2, then=ESCALATE)."
            message = f"{what}: after {deadline.then!s} it goes on waiting, and nothing ends it if its event never comes."
            yield view.problem("E053", message, hint, node)


def budgets_agree(view: View) -> Iterator[Problem]:
    """What must be fresh has one budget with a policy, wherever it is asked for: the timer is the workflow's."""
    first: dict[str, tuple[str, Deadline]] = {}
    for node in view.nodes:
        for name, fresh in view.probes(node):
            if fresh.deadline is None:
                continue
            known = first.setdefault(name, (node, fresh.deadline))
            if known[1] != fresh.deadline:
                hint = "Say within= and then= once, and share that Fresh between the nodes."
                message = f"Node {node!r}: the freshness budget {name!r} is another one at {known[0]!r}."
                yield view.problem("E054", message, hint, node)


def business_time_has_a_calendar(view: View) -> Iterator[Problem]:
    """Business time is that of a calendar, and a calendar says nothing of elapsed time."""
    hint = 'Name both: business=hours(8), calendar="office".'
    for _, what, node, deadline in all_of(view):
        if (deadline.business is not None) != bool(deadline.calendar):
            yield view.problem("E087", f"{what}: {_half(deadline.business)}.", hint, node)
    for name, node_ in view.nodes.items():
        if isinstance(node_, Sleep) and (node_.business is not None) != bool(node_.calendar):
            yield view.problem("E087", f"Node {name!r}: {_half(node_.business)}.", hint, name)


def _half(business: timedelta | None) -> str:
    return "calendar= without business=" if business is None else "business= without calendar="


def all_of(view: View) -> Iterator[tuple[str, str, str, Deadline]]:
    """(kind, what it is in words, node, the deadline) of every deadline that is one."""
    definition: Any = view.definition
    if isinstance(definition.deadline, Deadline):
        yield TimerKind.WORKFLOW_DEADLINE, "Meta.deadline", "", definition.deadline
    for name, one in definition.sla.items() if isinstance(definition.sla, Mapping) else ():
        if isinstance(one, Deadline):
            yield TimerKind.SLA, f"Meta.sla {name!r}" if name else "Meta.sla", "", one
    for name, node in view.nodes.items():
        for kind, of, option in (
            (TimerKind.WAIT_DEADLINE, Wait, "deadline"),
            (TimerKind.WAIT_DEADLINE, Fanned, "deadline"),
            (TimerKind.WAIT_DEADLINE, Job, "deadline"),
            ("approval", Approval, "expires"),
            ("ask", Ask, "deadline"),
        ):
            own = view.option(name, option)
            if isinstance(node, of) and isinstance(own, Deadline):
                yield kind, f"Node {name!r}, {option}", name, own
        for held in _commitments(view, name):
            if isinstance(held.deadline, Deadline):
                yield TimerKind.COMMITMENT_DEADLINE, f"Node {name!r}, the commitment {held.name!r}", name, held.deadline
        for what, fresh in view.probes(name):
            if fresh.deadline is not None:
                yield TimerKind.FRESHNESS, f"Node {name!r}, the freshness budget {what!r}", name, fresh.deadline


def _commitments(view: View, name: str) -> list[Commits]:
    node, given = view.nodes[name], view.option(name, "commits")
    found = given if isinstance(given, tuple) else (given,)
    return [one for one in found if isinstance(one, Commits)] if isinstance(node, Activity) else []


def _releasable(view: View) -> bool:
    return any(one.release is not None for name in view.nodes for one in _commitments(view, name))


def _has_release(view: View, node: str, what: str) -> bool:
    return any(one.release is not None for one in _commitments(view, node) if what.endswith(repr(one.name)))
