"""Rules about the way from an older version: it begins at an older version, leads to nodes that exist, and leaves no run without a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flows.core.definition import Definition, Flow
from flows.core.lint.options import function_problems
from flows.core.lint.problem import Problem, problem
from flows.core.lint.view import View
from flows.core.nodes.plain import End
from flows.core.versions import AT_WAKE

WRITE = 'Write migrate_from = {1: {"old_node": "new_node"}} or {1: function}; the function takes the state and returns Migrated("node").'


def migrates_from_older(view: View) -> Iterator[Problem]:
    """`Meta.migrate_from` has a step for versions below its own; `Meta.migrate` says when, if not by hand."""
    definition = view.definition
    steps: Any = definition.migrate_from
    if definition.migrate not in ("", AT_WAKE):
        hint = f'Write migrate = "{AT_WAKE}", or leave it away: then runs of versions that are still known are migrated by hand only.'
        yield view.problem("E027", f"Meta.migrate is {definition.migrate!r:.60}.", hint)
    if not isinstance(steps, Mapping):
        yield view.problem("E027", f"Meta.migrate_from is {steps!r:.60}, which is a {type(steps).__name__}.", WRITE)
        return
    for source, step in steps.items():
        if not _is_older(source, definition.version):
            hint = f"Give versions below {definition.version!r}, as whole numbers."
            yield view.problem("E045", f"Meta.migrate_from has {source!r:.60}, which is no older version.", hint)
        if isinstance(step, Mapping):
            yield from _to_known_nodes(view, source, step)
        else:
            yield from function_problems(view, f"Meta.migrate_from, {source!r}", step, "", works=False)


def _is_older(source: object, version: object) -> bool:
    is_number = isinstance(source, int) and not isinstance(source, bool)
    return is_number and source >= 1 and (not isinstance(version, int) or source < version)  # type: ignore[operator]


def _to_known_nodes(view: View, source: object, step: Mapping[Any, Any]) -> Iterator[Problem]:
    for old, new in step.items():
        if not isinstance(old, str) or new not in view.nodes:
            hint = f"Nodes of this version are {', '.join(view.nodes)}. {WRITE}"
            yield view.problem(
                "E046", f"Meta.migrate_from, {source!r}: {old!r:.60} leads to {new!r:.60}, which is no node.", hint
            )


def places_in_newer(classes: Iterable[type[Flow]]) -> Iterator[Problem]:
    """Where the older version is declared, too: a mapping names nodes of it, and every node at which a run can stand has a place."""
    declared: dict[tuple[object, object], Definition] = {}
    for cls in classes:
        declared.setdefault((cls.definition.name, cls.definition.version), cls.definition)
    for newer in declared.values():
        steps: Any = newer.migrate_from
        for source, step in steps.items() if isinstance(steps, Mapping) else ():
            older = declared.get((newer.name, source)) if _is_older(source, newer.version) else None
            if older is not None and isinstance(step, Mapping):
                yield from _uncovered(older, newer, step)


def _uncovered(older: Definition, newer: Definition, step: Mapping[Any, Any]) -> Iterator[Problem]:
    for name in step:
        if isinstance(name, str) and name not in older.nodes:
            hint = f"Nodes of version {older.version} are {', '.join(older.nodes)}."
            message = f"Meta.migrate_from, {older.version}: version {older.version} has no node {name!r}."
            yield problem("E046", newer.where, message, hint)
    for name, node in older.nodes.items():
        if node.durable and not isinstance(node, End) and name not in step and name not in newer.nodes:
            hint = f'Say where its runs go on: migrate_from = {{{older.version}: {{"{name}": "…"}}}}, or give a function.'
            message = f"Node {name!r} of version {older.version} has no place in version {newer.version}."
            yield problem("E047", newer.where, message, hint)
