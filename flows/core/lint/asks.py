"""Rules about asks: there is a form to fill in, and every answer to it leads somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flows.core import fields
from flows.core.errors import DefinitionError
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Ask
from flows.core.nodes.ask import MAX_WHY

FORM = (
    'Write Ask([Field("amount", kind="integer")], role="finance", …), or give a pure function of the state that makes the list.'
)
ROUTE = (
    'route_by="decision" names a required field of kind "choice", and choices={"yes": "build"} has the node for each value of it.'
)


def forms_can_be_asked(view: View) -> Iterator[Problem]:
    """What is written out is a form, and says why in text."""
    for name, node in view.nodes.items():
        if not isinstance(node, Ask):
            continue
        form, why = view.option(name, "form"), view.option(name, "why")
        if not callable(form) and (fault := _unsound(form)):
            yield view.problem("E079", f"Node {name!r}: {fault}", FORM, name)
        if not callable(why) and not (isinstance(why, str) and len(why) <= MAX_WHY):
            message = (
                f"Node {name!r}: why is {why!r:.60}; it is text of at most {MAX_WHY} characters, or a function that gives it."
            )
            yield view.problem("E079", message, 'Write why="Finance has to say how much may be spent."', name)


def answers_lead_on(view: View) -> Iterator[Problem]:
    """`route_by` is a choice of the form, each of its values has a route, and no route is for nothing."""
    for name, node in view.nodes.items():
        if not isinstance(node, Ask):
            continue
        if node.choices and not node.route_by:
            yield view.problem("E079", f"Node {name!r} has choices= and no route_by=.", ROUTE, name)
        if not node.route_by or callable(node.form) or _unsound(node.form):
            continue
        if fault := node.misrouted(node.form):
            yield view.problem("E079", f"Node {name!r} {fault}", ROUTE, name)
            continue
        by = next(one for one in node.form if one.name == node.route_by)
        known = [value for value, _ in by.offered]
        for choice in [one for one in node.choices if one not in known]:
            yield view.problem("E030", f"Node {name!r}: {node.route_by} is never {choice!r:.60}.", ROUTE, name)
        if node.then and by.required:
            hint = f"Remove then=, or make {node.route_by} optional."
            yield view.problem("E030", f"Node {name!r} has then= though {node.route_by} is always given.", hint, name)


def _unsound(form: Any) -> str:
    try:
        fields.sound(form, "its form")
    except DefinitionError as fault:
        return str(fault)
    return ""
