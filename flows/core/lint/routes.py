"""Rules about where nodes lead: known nodes, nodes that can be reached, and a way to an End from each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from flows.core.lint.problem import Problem
from flows.core.lint.view import View, reachable
from flows.core.nodes import Activity, Ask, Branch, Decision, Job, Sleep, Wait
from flows.core.policies import Expiry
from flows.core.verdicts import Verdict

CHOICES = 'Write choices={"patch": "test", "give_up": "gave_up"}: what may be answered, and the node for each.'


def says_what_comes_next(view: View) -> Iterator[Problem]:
    """Every node but an End has a next one, and every choice its route."""
    for name, node in view.nodes.items():
        choices, then = view.option(name, "choices"), view.option(name, "then")
        led = isinstance(then, str) and then != ""
        if isinstance(node, Decision | Branch) or (isinstance(node, Wait | Ask | Job) and choices):
            yield from _choices(view, name, choices)
        elif isinstance(node, Wait) and not led:
            hint = 'Add choices={"success": "next"}, or then="next" where the value does not matter.'
            yield view.problem("E011", f"Node {name!r} leads nowhere when its event arrives.", hint, name)
        elif isinstance(node, Activity | Sleep | Ask) and not led:
            hint = 'Add then= with the name of the next node as text: then="done".'
            yield view.problem("E010", f"Node {name!r} does not say what comes next.", hint, name)


def _choices(view: View, name: str, choices: object) -> Iterator[Problem]:
    if not choices:
        yield view.problem("E011", f"Node {name!r} has no choices.", CHOICES, name)
    for choice, target in choices.items() if isinstance(choices, Mapping) else ():
        if not isinstance(choice, str) or not choice or not isinstance(target, str) or not target:
            message = f"Node {name!r}: the choice {choice!r:.60} leads to {target!r:.60}."
            yield view.problem("E011", message, CHOICES, name)


def leads_to_known_nodes(view: View) -> Iterator[Problem]:
    """Every route leads to a node of this flow."""
    routes = [(edge.source, f"Node {edge.source!r}{_under(edge.label)}", edge.target) for edge in view.all_edges()]
    routes += [("", what, target) for what, target in view.deadline_routes()]
    routes += [("", "Meta.on_release", target) for target in view.restart_targets()]
    for node, what, target in routes:
        if target not in view.nodes:
            message = f"{what} leads to {target!r}, which is not a node of this flow."
            yield view.problem("E006", message, _near(view, target), node)


def _under(label: str) -> str:
    return f" ({label})" if label else ""


def _near(view: View, target: object) -> str:
    if str(target).lower() in {expiry.value for expiry in Expiry}:
        return f"The policy {str(target).upper()} is imported from flows and written without quotes."
    near = difflib.get_close_matches(str(target), view.nodes, 1)
    return f"Did you mean {near[0]!r}?" if near else f"Nodes are {', '.join(view.nodes)}."


def takes_all_routes(view: View) -> Iterator[Problem]:
    """No route is declared that the engine never takes."""
    for name, node in view.nodes.items():
        if isinstance(node, Wait | Job) and node.choices and node.then:
            hint = "Keep one of the two: an event whose value is not declared waits for a person, it never takes then=."
            yield view.problem("E030", f"Node {name!r} has then= beside choices=.", hint, name)
        on = view.option(name, "on")
        for cause in on if isinstance(on, Mapping) else ():
            if cause in (Verdict.ALLOWED, Verdict.INTENT_SUPERSEDED):
                hint = "ALLOWED goes on, and a superseded intent always ends the run; remove this key."
                yield view.problem("E030", f"Node {name!r}: on= has {cause!s}, which leads nowhere else.", hint, name)
            elif isinstance(cause, type) and not isinstance(node, Activity):
                hint = "Errors come from activities: put the route on the activity that raises it."
                message = f"Node {name!r} runs no activity, so {cause.__name__} never comes from it."
                yield view.problem("E030", message, hint, name)


def is_reached(view: View) -> Iterator[Problem]:
    """Every node can be reached from the start, or from one of the flow's own deadlines."""
    if not view.routed:
        return
    found = reachable(view.starts(), view.all_edges())
    for name in view.nodes:
        if name not in found:
            hint = f"Lead to it from another node, or remove it. The start is {view.definition.start!r}, the first node."
            yield view.problem("E007", f"Node {name!r} cannot be reached.", hint, name)


def reaches_an_end(view: View) -> Iterator[Problem]:
    """From every node there is a way to an End."""
    ends = [name for name, node in view.nodes.items() if node.ends]
    if not view.routed or not ends:
        return
    for name in view.nodes:
        if not reachable([name], view.all_edges()) & set(ends):
            hint = f"Lead from it, in the end, to one of {', '.join(ends)}."
            yield view.problem("E008", f"Node {name!r} has no way to an End.", hint, name)
