"""The graph, as it is drawn in the example's README."""

from __future__ import annotations

from flows.core.nodes import Decision
from project.agents.coding.flows import UpgradeLibrary

NODES = UpgradeLibrary.definition.nodes


def test_every_way_leads_to_a_declared_node() -> None:
    assert {target for node in NODES.values() for _, target in node.targets()} <= set(NODES)


def test_every_loop_passes_the_decision_whose_visits_are_bounded() -> None:
    assert isinstance(NODES["propose"], Decision)
    assert NODES["propose"].visits is not None
    graph = {name: {target for _, target in node.targets()} - {"propose"} for name, node in NODES.items()}
    graph["merge"] -= {"ask"}  # the gate's way back for an approval that is missing, not a way of the process
    done: set[str] = set()
    while ready := {name for name in graph.keys() - done if graph[name] <= done}:
        done |= ready
    assert done == set(NODES)


def test_merging_needs_the_approval_of_exactly_the_candidate() -> None:
    assert NODES["merge"].gate is not None
    assert NODES["merge"].gate.approved_by == "ask"
    assert NODES["ask"].candidate == "propose"  # type: ignore[attr-defined]
