"""Flows as they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

from flows import registry
from flows.checks.catalogue import TAG
from flows.checks.values import value_of
from flows.conf import DEFAULTS
from flows.core import declared as things
from flows.core import definition as declared
from flows.core import lint
from flows.core.definition import Flow
from flows.core.errors import DefinitionError
from flows.core.events import EventType
from flows.core.lint import effects, events, options
from flows.core.nodes import Activity
from flows.core.requirements import Gate


@checks.register(TAG)
def check_flows(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """Every mistake of every declared flow (G5)."""
    flows = declared_flows(app_configs)
    further = (_not_importable, _not_permissions)
    found = [*lint.problems_of_all(flows), *(one for flow in flows for rule in further for one in rule(flow))]
    found += _twice() if app_configs is None else ()
    found += events.orders_are_orders(registry.declared(EventType).values()) if app_configs is None else ()
    return [as_message(one) for one in found]


def declared_flows(app_configs: Iterable[AppConfig] | None = None) -> list[type[Flow]]:
    """The flow classes of this process, or those declared inside the given apps."""
    if app_configs is None:
        return list(declared.DECLARED)
    homes = [app.name for app in app_configs]
    return [flow for flow in declared.DECLARED if any(f"{flow.__module__}.".startswith(f"{home}.") for home in homes)]


def _twice() -> Iterator[lint.Problem]:
    """What stands beside the flows is known by its kind and name."""
    for one in things.twice():
        message = f"There are two of the kind {one.kind} with the name {one.name!r}, and they differ."
        yield lint.problem(
            "E040", f"{one.kind} {one.name}", message, "Declare it once, and import it where it is needed, or rename one."
        )


def _not_importable(flow: type[Flow]) -> Iterator[lint.Problem]:
    """Dotted paths of work, and of whom it asks, that lead nowhere."""
    for name, node in flow.definition.nodes.items():
        further = effects.author_functions(node) if isinstance(node, Activity) else ()
        probes = [(f"fresh {of!r}", fresh.probe) for of, fresh in lint.View(flow.definition).probes(name)]
        for option, function in (*node.functions(), *further, *probes):
            if not isinstance(function, str) or not options.PATH.fullmatch(function):
                continue
            try:
                registry.function(function)
            except Exception as fault:  # noqa: BLE001 - importing runs whatever stands in that module
                named = "" if isinstance(fault, DefinitionError) else f"importing {function!r} raises {type(fault).__name__}: "
                message = f"Node {name!r}, {option}: {named}{fault}"
                hint = "Name a function that exists by its module and name, or give the function itself."
                yield lint.problem("E023", flow.definition.where, message, hint, name)


def _not_permissions(flow: type[Flow]) -> Iterator[lint.Problem]:
    """What Django can never grant. A project's own provider may take any name."""
    if value_of("AUTHORITY") != DEFAULTS["AUTHORITY"]:
        return
    for name, node in flow.definition.nodes.items():
        for permission in node.gate.authority if isinstance(node.gate, Gate) else ():
            app, dot, codename = permission.partition(".")
            if not (app and dot and codename):
                hint = 'Write the app\'s label, a dot and the codename: Gate(authority="repo.merge_change").'
                message = f"Node {name!r}: authority={permission!r} is no permission."
                yield lint.problem("E077", flow.definition.where, message, hint, name)


def as_message(one: lint.Problem) -> checks.CheckMessage:
    """A problem as Django says it."""
    kind = checks.Warning if one.severity == "warning" else checks.Error
    return kind(one.message, hint=one.hint, obj=one.where, id=one.id)
