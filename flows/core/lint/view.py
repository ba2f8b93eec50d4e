"""A definition as the rules see it: its edges, with those apart that cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flows.core.definition import Definition
from flows.core.lint.problem import Problem, problem
from flows.core.nodes.base import Node
from flows.core.policies import Deadline
from flows.core.requirements import Fresh, Gate


@dataclass(frozen=True, slots=True)
class Edge:
    """One route: from a node, under a label, to a node. `result`: taking it means that the source has a result."""

    source: str
    label: str
    target: str
    result: bool
    visits: bool = False


@dataclass
class View:
    """One definition, its readable edges by source, and what could not be read (node → message)."""

    definition: Definition
    edges: dict[str, list[Edge]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, node in self.nodes.items():
            self.edges[name] = []
            try:
                self.edges[name].extend(_edges(name, node))
            except Exception as fault:  # noqa: BLE001 - a declaration of any shape; the rules say what is wrong with it
                self.unreadable[name] = str(fault) or type(fault).__name__

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.definition.nodes

    @property
    def where(self) -> str:
        return self.definition.where or self.definition.name

    @property
    def routed(self) -> bool:
        """Whether all routes are known: only then does it mean something that a node is not reached."""
        targets = {edge.target for edges in self.edges.values() for edge in edges} | set(self.starts())
        return bool(self.nodes) and not self.unreadable and targets <= set(self.nodes)

    def deadline_routes(self) -> list[tuple[str, str]]:
        """(what it is, the node that it leads to) of the deadlines that lead away from wherever the workflow is then."""
        slas: Any = self.definition.sla
        found: list[tuple[str, Any]] = [("Meta.deadline", self.definition.deadline)]
        found += [("Meta.sla", one) for one in (slas.values() if isinstance(slas, Mapping) else ())]
        found += [(f"Freshness of {of!r}", fresh.deadline) for name in self.nodes for of, fresh in self.probes(name)]
        return [(what, one.target) for what, one in found if isinstance(one, Deadline) and (one.target or one.expiry is None)]

    def deadline_targets(self) -> list[str]:
        """The nodes that those lead to."""
        return [target for _, target in self.deadline_routes()]

    def probes(self, name: str) -> list[tuple[str, Fresh]]:
        """What the gate of a node wants fresh, where that is declared rightly."""
        gate = self.nodes[name].gate
        return list(gate.probes.items()) if isinstance(gate, Gate) else []

    def restart_targets(self) -> list[str]:
        """The node where a run begins again under another release, from wherever it is then."""
        node = self.definition.release_policy.node
        return [node] if node else []

    def starts(self) -> list[str]:
        """Every node that is entered without a route from another."""
        return [self.definition.start, *self.deadline_targets(), *self.restart_targets()]

    def all_edges(self) -> Iterator[Edge]:
        """Every readable edge, in the order of the nodes."""
        for edges in self.edges.values():
            yield from edges

    def option(self, name: str, option: str) -> Any:
        """The value of a node's option, whatever it is; None where the node has no such option."""
        return getattr(self.nodes[name], option, None)

    def problem(self, code: str, message: str, hint: str, node: str = "") -> Problem:
        """A problem of this flow, or of one node in it."""
        return problem(code, self.where, message, hint, node)


def _edges(name: str, node: Node) -> Iterator[Edge]:
    """The targets of a node, each with whether it is taken with a result: not after an error, a refusal, a deadline or a limit."""
    without = Counter((label, _text(target)) for label, target in Node.targets(node))
    for option in ("deadline", "expires", "patience"):
        deadline = getattr(node, option, None)
        if isinstance(deadline, Deadline) and (deadline.target or deadline.expiry is None):
            without["deadline" if option == "expires" else option, deadline.target] += 1
    limit = (f"after {node.visits.limit} visits", node.visits.then) if node.visits else None
    for label, written in node.targets():
        target = _text(written)
        result = not without[label, target]
        without[label, target] -= not result
        yield Edge(name, label, target, result, (label, target) == limit)


def _text(target: object) -> str:
    """A node's name; what is no text becomes one that no node has."""
    return target if isinstance(target, str) else repr(target)


def reachable(starts: Iterable[str], edges: Iterable[Edge]) -> set[str]:
    """The nodes that can be reached from any of `starts`, those included."""
    following: dict[str, list[str]] = {}
    for edge in edges:
        following.setdefault(edge.source, []).append(edge.target)
    found: set[str] = set()
    todo = list(starts)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(following.get(name, ()))
    return found


def cycles(names: Iterable[str], edges: Iterable[Edge]) -> list[list[str]]:
    """The groups of nodes that lead round to themselves (strongly connected, or one node to itself), in the order of `names`."""
    order = {name: index for index, name in enumerate(names)}
    inner = [edge for edge in edges if edge.source in order and edge.target in order]
    forward = {name: reachable({edge.target for edge in inner if edge.source == name}, inner) for name in order}
    groups: list[list[str]] = []
    seen: set[str] = set()
    for name in order:
        if name in seen or name not in forward[name]:
            continue
        group = sorted((other for other in forward[name] if name in forward[other]), key=order.__getitem__)
        seen.update(group)
        groups.append(group)
    return groups
