"""Rules about cycles: each is bounded by a count, and what is entered when the count is over leads out.

The test is one question: when every limit is spent, can a workflow still go round? A node whose `visits=` are spent is not entered
any more; it only leads on to `then`. An Approval or Ask without `visits=` is asked `decide.DEFAULT_APPROVAL_VISITS` times, then a person must
look: it leads nowhere any more. If the graph that is left has a cycle, that cycle has no end.

A Wait or Sleep does not bound a cycle. Time passes there, but nothing counts: an event may come for ever, and a deadline may lead
back into the cycle. The workflow's own deadline ends it at last, but in the wrong place: after days of work that got nowhere.
A retry always ends: `Retry` counts attempts and has no endless value. The flow's own deadline and its SLAs pass once; a freshness budget passes
again and again, and leads back from every node on the way to the one that wants it.
"""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.lint.problem import Problem
from flows.core.lint.view import Edge, View, cycles, reachable
from flows.core.policies import Visits


def cycles_end(view: View) -> Iterator[Problem]:
    """Every cycle has a limit on visits that leads out of it, to an End or to a person."""
    if not view.routed:
        return
    for group in cycles(view.nodes, _when_limits_are_spent(view)):
        if any(view.nodes[name].durable for name in group):
            hint = (
                f'Add visits=Visits(5, then="…") to one of them; its then= must lead out of the cycle. '
                f"Nodes with a limit: {', '.join(_limited(view)) or 'none'}."
            )
            yield view.problem("E012", f"{_round(group)} without a limit on visits.", hint)


def cycles_have_a_step(view: View) -> Iterator[Problem]:
    """Every cycle has a node that is recorded, so that a workflow in it can be seen, counted and stopped."""
    passing = [name for name, node in view.nodes.items() if not node.durable]
    for group in cycles(passing, view.all_edges()):
        hint = "Let one of the choices lead to an activity, a wait or an End."
        yield view.problem("E014", f"{_round(group)} without a step that is recorded.", hint)


def limits_count(view: View) -> Iterator[Problem]:
    """`visits=` stands on nodes whose visits are recorded."""
    for name, node in view.nodes.items():
        if node.visits is not None and not node.durable:
            hint = "Put visits= on an activity or a wait of the same cycle."
            yield view.problem("E015", f"Node {name!r} leaves no trace, so its visits cannot be counted.", hint, name)


def _when_limits_are_spent(view: View) -> list[Edge]:
    edges: list[Edge] = []
    for name, node in view.nodes.items():
        if isinstance(node.visits, Visits) and node.durable:
            edges.append(Edge(name, "spent", node.visits.then, result=False))
        elif not node.asks_people:
            edges.extend(edge for edge in view.edges[name] if not edge.visits)
    unspent = {name for name in view.definition.baselines if view.nodes[name].visits is None}
    again = [edge for edge in _stale(view) if unspent & reachable([edge.target], edges)]
    whole = {name for name, node in view.nodes.items() if node.visits is None and not node.asks_people}
    return edges + [edge for edge in again if edge.source in whole]


def _stale(view: View) -> Iterator[Edge]:
    """Where freshness budgets lead that pass on the way to the node that wants them. One passes again only after a new look."""
    for wanting in view.nodes:
        for name, fresh in view.probes(wanting):
            if fresh.deadline is not None and fresh.deadline.target:
                ahead = [source for source in view.nodes if wanting in reachable([source], view.all_edges())]
                yield from (Edge(source, f"freshness of {name}", fresh.deadline.target, result=False) for source in ahead)


def _limited(view: View) -> list[str]:
    return [name for name, node in view.nodes.items() if node.visits is not None]


def _round(group: list[str]) -> str:
    return f"Node {group[0]!r} leads to itself" if len(group) == 1 else f"The nodes {', '.join(group)} lead round in a cycle"
