"""Rules about a flow as a whole: its name, version, options and nodes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flows.core.commitments import Commits
from flows.core.definition import META_OPTIONS, RESERVED
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes.pipeline import Pipeline

#: What the record knows by its name: one word, without what a reader or the database cannot see.
NAME = re.compile(r"\w[\w.:/@-]{0,99}")
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def has_nodes(view: View) -> Iterator[Problem]:
    """A flow has nodes, and one of them is an End."""
    if not view.nodes:
        yield view.problem("E001", "The flow has no nodes.", "Nodes are attributes of the class, e.g. done = End(COMPLETE).")
    elif not any(node.ends for node in view.nodes.values()):
        yield view.problem("E002", "The flow has no End, so no run of it could end.", "Add done = End(COMPLETE).")


def is_named(view: View) -> Iterator[Problem]:
    """The name is kebab-case text, the version a whole number from 1: both are stored with every run."""
    name: Any = view.definition.name
    version: Any = view.definition.version
    if view.definition.made_for:  # of the flow that made it this is asked
        return
    if not isinstance(name, str) or not KEBAB.fullmatch(name):
        hint = "Use small letters, digits and single hyphens, e.g. Meta.name = 'upgrade-library'."
        yield view.problem("E003", f"The name {name!r} is not kebab-case.", hint)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        hint = "Meta.version counts 1, 2, 3 …; raise it by one when the graph changes."
        yield view.problem("E004", f"The version {version!r} is not a whole number from 1.", hint)


def has_known_options(view: View) -> Iterator[Problem]:
    """`class Meta` holds no misspelt options."""
    for option in view.definition.unknown_options:
        near = difflib.get_close_matches(option, META_OPTIONS, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Options are {', '.join(sorted(META_OPTIONS))}."
        yield view.problem("E005", f"Meta.{option} is not an option of a flow.", hint)


def has_names_that_can_be_recorded(view: View) -> Iterator[Problem]:
    """What is recorded by its name has one that every place of the record can hold, and that people can tell apart."""
    slas: Any = view.definition.sla
    named: list[tuple[str, object, str]] = [("The SLA", name, "") for name in slas if name] if isinstance(slas, Mapping) else []
    for name, node in view.nodes.items():
        named.append(("The node", name, name))
        named += [("What must be fresh,", what, name) for what, _ in view.probes(name)]
        commits = view.option(name, "commits")
        begun = commits if isinstance(commits, tuple | list) else (commits,)
        named += [("The commitment", one.name, name) for one in begun if isinstance(one, Commits)]
        effects = view.option(name, "effects")
        named += [("The effect", one, name) for one in effects] if isinstance(effects, Mapping) else []
        named += [("The step", one.name, name) for one in node.steps] if isinstance(node, Pipeline) else []
    for what, given, node_name in named:
        if not isinstance(given, str) or not NAME.fullmatch(given):
            hint = "Begin with a letter or digit, then letters, digits and _ - . : / @, a hundred characters at most."
            yield view.problem("E039", f"{what} {given!r:.120} has a name that cannot be recorded.", hint, node_name)


def has_free_names(view: View) -> Iterator[Problem]:
    """No node hides a name that the class itself uses, and no node object stands under two names."""
    for name, node in view.nodes.items():
        if name in RESERVED:
            hint = f"Rename it: a node of that name would take the place of Flow.{name}."
            yield view.problem("E013", f"Node {name!r} has a reserved name.", hint, name)
        if node.name != name:
            hint = "Make a node of its own for each name; routes and the record know a node by its name."
            yield view.problem("E028", f"Node {name!r} is the same object as node {node.name!r}.", hint, name)
