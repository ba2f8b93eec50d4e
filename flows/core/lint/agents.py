"""Rules about agent turns: their tools can be called by a model, they stop, and what a tool changes is declared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import AgentTurn
from flows.core.tools import CHANGING, PipelineTool

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def tools_can_be_called(view: View) -> Iterator[Problem]:
    """A model passes JSON by name, and calls a tool by a name that only it has."""
    for name, node in _turns(view):
        for tool in node.tools:
            if tool.problem:
                message = f"Node {name!r}: no model can call the tool {tool.name!r}: {tool.problem}."
                hint = (
                    "Let it take text, numbers, booleans, lists and dicts, each by its name; or wrap it in a function that does."
                )
                yield view.problem("E131", message, hint, name)
        for twice, count in Counter(tool.name for tool in node.tools).items():
            if count > 1:
                message = f"Node {name!r} has {count} tools that are called {twice!r}."
                yield view.problem("E131", message, "Give each a name of its own: Tool(function, name=…).", name)


def turns_stop(view: View) -> Iterator[Problem]:
    """Some bound of calls or tools; tokens and time alone end no loop that costs neither."""
    for name, node in _turns(view):
        if node.stop.calls is None and node.stop.tools is None:
            message = f"Node {name!r}: stop= bounds neither the calls of the model nor those of tools."
            yield view.problem("E132", message, "Write stop=Stop(calls=12, tools=40).", name)


def changes_are_effects(view: View) -> Iterator[Problem]:
    """A read-only tool is called anew after a crash; one whose name says that it changes something should be none."""
    for name, node in _turns(view):
        for tool in node.tools:
            if isinstance(tool, PipelineTool) or tool.guarded or tool.effect is not None:
                continue
            first = _WORDS.findall(tool.name.rpartition(".")[2])[:1]
            if first and first[0].lower() in CHANGING:
                message = f"Node {name!r}: the tool {tool.name!r} says that it changes something, and is declared as read-only."
                hint = "Write Tool(function, effect=Effect(reconcile=…)), or idempotent=True; or another name, if it only reads."
                yield view.problem("W131", message, hint, name)


def _turns(view: View) -> Iterator[tuple[str, AgentTurn]]:
    return ((name, node) for name, node in view.nodes.items() if isinstance(node, AgentTurn))


RULES = (tools_can_be_called, turns_stop, changes_are_effects)
