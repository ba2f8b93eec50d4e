"""The way that a run has taken, read from its log, and whether it was a legal one."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

from flows.models import Transition


def route(run: Any) -> list[str]:
    """The nodes that it was at, in order, each once for each time that it came there."""
    rows = Transition.objects.filter(workflow_id=run.id).order_by("seq")
    steps = [node for row in rows for node in (*(row.note or {}).get("via", []), row.to_node)]
    return [node for node, _ in groupby(steps)]


def assert_legal(run: Any, nodes: Any) -> None:
    """Every step of the log is a declared route of the graph."""
    declared = {(name, target) for name, node in nodes.items() for _, target in node.targets()}
    declared |= {(name, node.visits.then) for name, node in nodes.items() if node.visits}
    for row in Transition.objects.filter(workflow_id=run.id).order_by("seq"):
        way = [row.from_node, *(row.note or {}).get("via", []), row.to_node]
        for step in pairwise(way):
            assert step[0] == step[1] or not step[0] or step in declared, (row.seq, step)
