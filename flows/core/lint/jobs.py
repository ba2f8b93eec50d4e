"""Rules about jobs outside: they end, their end is heard of, and they can be given back."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Job


def they_end(view: View) -> Iterator[Problem]:
    """A wait for a job has a deadline, as every wait has."""
    for name, node in view.nodes.items():
        if isinstance(node, Job) and node.deadline is None:
            hint = "Add deadline=Deadline(hours=6, then=ESCALATE): a job may be lost on the other side."
            yield view.problem("E093", f"Node {name!r} may wait for its job for ever: it has no deadline.", hint, name)


def something_is_heard(view: View) -> Iterator[Problem]:
    """Either the job tells of its end, or it is asked; what it tells has a type and a key."""
    for name, node in view.nodes.items():
        if not isinstance(node, Job):
            continue
        if not node.event and node.poll is None:
            hint = 'Add event="build.finished" with key=, or poll= with a function that asks; better both.'
            yield view.problem("E095", f"Node {name!r} has neither event= nor poll=: nothing says how its job ends.", hint, name)
        elif node.event and not node.key:
            hint = "Add key=, a text or a pure function of the state: it says whose event is meant."
            yield view.problem("E095", f"Node {name!r} waits for {node.event!r:.60} without a key.", hint, name)


def can_be_given_back(view: View) -> Iterator[Problem]:
    """What a cancelled run has started goes on outside, unless it is given back."""
    for name, node in view.nodes.items():
        if isinstance(node, Job) and node.cancel is None:
            hint = "Add cancel=, a function of the operation that gives the job back; where that cannot be, silence this check."
            yield view.problem("W006", f"Node {name!r}: its job goes on when the run is cancelled.", hint, name)
