"""Rules about nodes that start other runs: what they run is there, they end, and a way is declared for what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flows.core.commitments import Commits
from flows.core.definition import Flow
from flows.core.lint.problem import Problem, problem
from flows.core.lint.view import View, reachable
from flows.core.nodes import Child, ContinueAsNew, Fanned, Map

MOST_AT_ONCE = 1000


def they_end(view: View) -> Iterator[Problem]:
    """A wait for children has a deadline, as every wait has."""
    for name, node in view.nodes.items():
        if isinstance(node, Fanned) and node.awaited and node.deadline is None:
            hint = "Add deadline=Deadline(hours=6, then=ESCALATE): a child may wait for a person for ever."
            yield view.problem("E093", f"Node {name!r} may wait for its children for ever: it has no deadline.", hint, name)


def failures_have_a_way(view: View) -> Iterator[Problem]:
    """Of one child that is waited for, it is said what comes after its failure."""
    for name, node in view.nodes.items():
        if isinstance(node, Child) and node.awaited and not node.failed:
            hint = 'Add failed= with the name of the next node: failed="gave_up".'
            yield view.problem("E094", f"Node {name!r} does not say what comes next when its child fails.", hint, name)


def as_many_as_can_be(view: View) -> Iterator[Problem]:
    """So many at once as one count can feed."""
    for name, node in view.nodes.items():
        given: Any = node.concurrency if isinstance(node, Map) else 1
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_AT_ONCE:
            hint = f"Give a number from 1 to {MOST_AT_ONCE:,}: concurrency=20."
            yield view.problem("E098", f"Node {name!r}: concurrency is {given!r:.60}.", hint, name)


def continues_with_nothing_owed(view: View) -> Iterator[Problem]:
    """What a run holds is not the next run's: on each way to a ContinueAsNew it is fulfilled."""
    begun = [(name, one) for name in view.nodes for one in _begun(view, name)]
    for name, commitment in begun:
        edges = [edge for edge in view.all_edges() if view.option(edge.source, "fulfils") != commitment or not edge.result]
        for then in sorted(reachable([edge.target for edge in edges if edge.source == name and edge.result], edges)):
            if isinstance(view.nodes.get(then), ContinueAsNew):
                message = f"Node {then!r} continues as a new run while the commitment {commitment!r} of {name!r} may be open."
                hint = f"Lead to it over a node with fulfils={commitment!r}: an open commitment stops the run for a person."
                yield view.problem("E097", message, hint, then)


def _begun(view: View, name: str) -> list[str]:
    """The names of the commitments that a node begins for good."""
    given = view.option(name, "commits")
    return [one.name for one in (given if isinstance(given, tuple) else (given,)) if isinstance(one, Commits)]


def run_what_is_there(declared: list[type[Flow]]) -> Iterator[Problem]:
    """A flow that is named as text is declared somewhere."""
    known = {cls.definition.name for cls in declared}
    for cls in declared:
        for name, node in cls.definition.nodes.items():
            for given in node.flows().values() if isinstance(node, Fanned) else ():
                if isinstance(given, str) and given not in known:
                    message = f"Node {name!r} runs {given!r}, which is no flow that is declared here."
                    hint = "Name a flow by its Meta.name (kebab-case), or give its class."
                    yield problem("E091", cls.definition.where, message, hint, name)
