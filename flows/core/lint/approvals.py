"""Rules about approvals: asked about something that exists, and used up by the activity that carries it out."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.lint.problem import Problem
from flows.core.lint.view import Edge, View, reachable
from flows.core.nodes import Activity, Approval, Wait
from flows.core.requirements import Gate


def gates_ask_approvals(view: View) -> Iterator[Problem]:
    """`approved_by` names an Approval, and the node is one that uses an approval up by being entered."""
    for name, node in view.nodes.items():
        if not isinstance(node.gate, Gate) or node.gate.approved_by is None:
            continue
        asked = view.nodes.get(node.gate.approved_by)
        if asked is not None and not isinstance(asked, Approval):
            hint = "Name the Approval whose answer is needed; only it asks people about one exact candidate."
            yield view.problem("E016", f"Node {name!r}: approved_by={node.gate.approved_by!r} is not an Approval.", hint, name)
        if not isinstance(node, Activity):
            hint = "Put the gate on the activity that carries the approved thing out: entering that uses the approval up."
            yield view.problem("E029", f"Node {name!r} asks for an approval but runs no activity.", hint, name)


def candidates_exist(view: View) -> Iterator[Problem]:
    """What an Approval asks about is a node with a result, and has one whenever the Approval can be reached."""
    for name, node in view.nodes.items():
        if not isinstance(node, Approval) or not isinstance(node.candidate, str):
            continue
        asked = view.nodes.get(node.candidate)
        if not isinstance(asked, Activity | Wait | Approval) or node.candidate == name:
            hint = "Name the node that produces what is asked about: a Decision, or another node with a result."
            yield view.problem("E017", f"Node {name!r}: candidate={node.candidate!r} is not a node with a result.", hint, name)
        elif view.routed and name in _reached_without(view, node.candidate):
            hint = f"Let every way to {name!r} lead through {node.candidate!r}, and leave it by a result, not by an error."
            message = f"Node {name!r} can be reached before {node.candidate!r} has a result to ask about."
            yield view.problem("E018", message, hint, name)


def _reached_without(view: View, candidate: str) -> set[str]:
    """The nodes that can be reached while `candidate` has no result.

    A limit on visits counts only where the node can be entered again without a result of the candidate.
    """
    starts = view.starts()
    edges = [edge for edge in view.all_edges() if edge.source != candidate or not edge.result]
    plain = [edge for edge in edges if not edge.visits]
    again = [edge for edge in edges if edge.visits and _returns(edge, plain)]
    return reachable(starts, plain + again)


def _returns(edge: Edge, edges: list[Edge]) -> bool:
    return edge.source in reachable([other.target for other in edges if other.source == edge.source], edges)
