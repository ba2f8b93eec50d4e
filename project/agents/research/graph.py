"""The claim graph, and which claims new evidence concerns. Pure: functions of their arguments alone.

A claim stands on sources and on other claims, its premises. Its **basis** is the digest of exactly that: the newest version of each of its
sources, and what was found of each premise. A claim is *stale* where its basis is another one than when it was judged.

    affected   the stale ones and all that rest on them: the most that new evidence can concern
    ready      the stale ones that rest on nothing stale: they can be judged now, all at once

Judging what is ready, again and again, ends: each claim is judged at most once, after its premises. Where a premise comes out as before, what
rests on it keeps its basis, and is not asked about at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Where another agent's opinion on a claim stands among the sources.
OPINION = "opinion:"


@dataclass(frozen=True, slots=True)
class Node:
    """A claim's place in the graph."""

    name: str
    statement: str = ""
    sources: tuple[str, ...] = ()
    premises: tuple[str, ...] = ()

    @property
    def rests_on(self) -> tuple[str, ...]:
        """All sources whose text is shown to who judges it."""
        return (*self.sources, OPINION + self.name)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a claim, and on what basis; "" before it was judged."""

    verdict: str = "unknown"
    confidence: int = 0
    basis: str = ""


Graph = Mapping[str, Node]
Evidence = Mapping[str, str]  # source → digest of its newest version
Findings = Mapping[str, Found]


def basis(node: Node, evidence: Evidence, found: Findings) -> str:
    """The digest of all that the judgement of this claim depends on."""
    premises = [[name, found[name].verdict, found[name].confidence] for name in sorted(node.premises)]
    sources = [[source, evidence[source]] for source in sorted(node.rests_on) if source in evidence]
    return digest([node.name, node.statement, sources, premises])


def stale(graph: Graph, evidence: Evidence, found: Findings) -> set[str]:
    """Claims whose basis is not the one that they were judged on."""
    return {name for name, node in graph.items() if found[name].basis != basis(node, evidence, found)}


def affected(graph: Graph, evidence: Evidence, found: Findings) -> set[str]:
    """The stale claims, and all that rest on one of them, however far."""
    reached = stale(graph, evidence, found)
    fresh = reached
    while fresh:
        fresh = {name for name, node in graph.items() if name not in reached and fresh & set(node.premises)}
        reached = reached | fresh
    return reached


def ready(graph: Graph, evidence: Evidence, found: Findings) -> list[str]:
    """The stale claims that rest on nothing affected, in the order of their names."""
    reached = affected(graph, evidence, found)
    return sorted(name for name in stale(graph, evidence, found) if not reached & set(graph[name].premises))


def circle(graph: Graph) -> list[str]:
    """The claims that rest on themselves, directly or not; none in a graph that can be judged."""
    left = dict(graph)
    while free := [name for name, node in left.items() if not left.keys() & set(node.premises)]:
        for name in free:
            del left[name]
    return sorted(left)


def wanted(graph: Graph) -> dict[str, list[str]]:
    """Source → the claims that want it."""
    found: dict[str, list[str]] = {}
    for node in graph.values():
        for source in node.sources:
            found.setdefault(source, []).append(node.name)
    return found


def graph_of(claims: Iterable[Mapping[str, Any]]) -> dict[str, Node]:
    """The graph of claims as a plan has them."""
    nodes = (Node(one["name"], one["statement"], tuple(one["sources"]), tuple(one["premises"])) for one in claims)
    return {node.name: node for node in nodes}


def digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
