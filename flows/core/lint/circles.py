"""Flows that start one another in a circle, so that none of them could end before another one has.

A flow can end if from its start there is a way to an end that starts no flow which cannot. What starts from that with no flow and adds those
that can, until none is added, has all of them; of what is left, those that start one another are the circles. A Map may have no items, so it
stops nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from flows.core.definition import Flow
from flows.core.lint.problem import Problem, problem
from flows.core.lint.view import View, reachable
from flows.core.nodes import Fanned, Map


def circles(declared: list[type[Flow]]) -> Iterator[Problem]:
    """No flow starts itself, by way of whatever others, on each way to its end."""
    views = {cls.definition.name: View(cls.definition) for cls in declared}
    starts = {name: dict(_starts(view)) for name, view in views.items()}
    ends: set[str] = set()
    while more := {name for name in views if name not in ends and _can_end(views[name], starts[name], set(views) - ends)}:
        ends |= more
    for name, view in views.items():
        for node, flows in starts[name].items() if name not in ends else ():
            if name in _reached(flows - ends, starts, ends):
                message = f"Node {node!r} starts a flow that starts this one again, and no way to an end leads past such a node."
                hint = "Let a Branch decide whether there is more to start, and lead past the node when there is not."
                yield problem("E096", view.where, message, hint, node)


def _starts(view: View) -> Iterator[tuple[str, frozenset[str]]]:
    """Each node that has other flows started, and their names."""
    for name, node in view.nodes.items():
        if isinstance(node, Fanned) and not isinstance(node, Map):
            named = frozenset(node.flow_of("", 0, branch)[0] for branch in node.flows())
            if named:
                yield name, named


def _can_end(view: View, starts: Mapping[str, frozenset[str]], others: AbstractSet[str]) -> bool:
    """Whether some way leads to an end past everything that starts one of `others`; where not all routes are known, that is the mistake."""
    if not view.routed:
        return True
    edges = [edge for edge in view.all_edges() if not starts.get(edge.source, frozenset()) & others]
    return any(view.nodes[name].ends for name in reachable([view.definition.start], edges))


def _reached(flows: AbstractSet[str], starts: Mapping[str, Mapping[str, frozenset[str]]], ends: AbstractSet[str]) -> set[str]:
    """Those flows, and all that cannot end and that they have started."""
    found: set[str] = set()
    todo = sorted(flows)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for started in starts.get(name, {}).values() for other in started if other not in ends]
    return found
