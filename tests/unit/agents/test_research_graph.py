"""Which claims new evidence concerns: for any graph and any order of news, exactly those whose basis has changed are judged, each once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project.agents.research import graph
from project.agents.research.graph import OPINION, Found, Node

pytestmark = pytest.mark.req("O6")

SOURCES = [f"source-{number}" for number in range(5)]


@st.composite
def graphs(draw: Any) -> dict[str, Node]:
    """A graph without a circle: a claim rests on some of those before it."""
    names = [f"c{number}" for number in range(draw(st.integers(1, 8)))]
    found = {}
    for place, name in enumerate(names):
        sources = draw(st.lists(st.sampled_from(SOURCES), unique=True, max_size=3))
        premises = draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        found[name] = Node(name, f"{name} holds", tuple(sources), tuple(premises))
    return found


#: What comes in one round: sources (and an opinion) with a digest, few of them, so that some say again what was known.
NEWS = st.dictionaries(st.sampled_from([*SOURCES, OPINION + "c0"]), st.sampled_from("abc"), max_size=3)


def judge(node: Node, evidence: graph.Evidence, found: graph.Findings) -> tuple[str, int]:
    """A stand-in that forgets much, so that often a new basis gives the verdict that there was."""
    said = sum(ord(evidence[source]) for source in node.rests_on if source in evidence)
    weak = min((found[name].confidence for name in node.premises), default=100)
    return ("supported", min(said % 3 * 50, weak)) if said % 2 else ("unknown", 0)


def settle(nodes: graph.Graph, evidence: graph.Evidence, found: dict[str, Found]) -> list[str]:
    """Judge what is ready until nothing is; the claims in the order in which they were asked about."""
    asked: list[str] = []
    while wave := graph.ready(nodes, evidence, found):
        new = {name: Found(*judge(nodes[name], evidence, found), graph.basis(nodes[name], evidence, found)) for name in wave}
        found |= new
        asked += wave
        assert len(asked) <= len(nodes)
    return asked


@settings(max_examples=300, deadline=None)
@given(graphs(), st.lists(NEWS, max_size=4))
def test_only_what_is_affected_is_judged_once_and_the_findings_are_those_of_a_fresh_start(
    nodes: dict[str, Node], rounds: list[dict[str, str]]
) -> None:
    evidence: dict[str, str] = {}
    found = {name: Found() for name in nodes}
    assert settle(nodes, evidence, found) == sorted(
        settle(nodes, evidence, {name: Found() for name in nodes}), key=found_order(nodes)
    )
    for news in rounds:
        before = dict(found)
        changed = {source for source, digest in news.items() if evidence.get(source) != digest}
        evidence |= news
        concerned = downstream(nodes, changed)
        assert graph.affected(nodes, evidence, found) == concerned
        asked = settle(nodes, evidence, found)
        assert len(asked) == len(set(asked)), "nobody is asked about a claim twice in one round"
        assert set(asked) <= concerned
        assert {name for name, node in nodes.items() if changed & set(node.rests_on)} <= set(asked)
        assert all(found[name] == before[name] for name in nodes if name not in asked)
        assert not graph.affected(nodes, evidence, found)
        anew = {name: Found() for name in nodes}
        settle(nodes, evidence, anew)
        assert anew == found, "as if all of it had been judged now"


def found_order(nodes: graph.Graph) -> Any:
    depth: dict[str, int] = {}
    for name, node in nodes.items():  # premises stand before what rests on them
        depth[name] = max((depth[one] + 1 for one in node.premises), default=0)
    return lambda name: (depth[name], name)


def downstream(nodes: graph.Graph, changed: set[str]) -> set[str]:
    """By the definition: it stands on something that has changed, or rests on a claim that does."""
    return {name for name in nodes if concerns(nodes, name, changed)}


def concerns(nodes: graph.Graph, name: str, changed: set[str]) -> bool:
    node = nodes[name]
    return bool(changed & set(node.rests_on)) or any(concerns(nodes, one, changed) for one in node.premises)


def test_a_circle_is_named() -> None:
    nodes = {name: Node(name, premises=premises) for name, premises in {"a": ("b",), "b": ("a",), "c": ("a",), "d": ()}.items()}
    assert graph.circle(nodes) == ["a", "b", "c"]
    assert graph.circle({"d": Node("d")}) == []


def test_a_premise_that_comes_out_as_before_ends_the_walk() -> None:
    nodes = {"top": Node("top", premises=("low",)), "low": Node("low", sources=("s",))}
    found = {name: Found() for name in nodes}
    settle(nodes, {"s": "a"}, found)
    assert graph.affected(nodes, {"s": "c"}, found) == {"top", "low"}
    assert judge(nodes["low"], {"s": "a"}, found) == judge(nodes["low"], {"s": "g"}, found)
    assert settle(nodes, {"s": "g"}, found) == ["low"]
