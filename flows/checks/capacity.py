"""Dependencies, limits and admission: what is declared can be, what is named is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import DatabaseError

from flows import registry
from flows.checks import database
from flows.checks.catalogue import TAG
from flows.checks.declared import as_message, declared_flows
from flows.checks.values import value_of
from flows.core import admission, lint
from flows.core import capacity as core
from flows.core.capacity import Dependency, Limit
from flows.core.errors import DefinitionError
from flows.core.nodes import Activity
from flows.models import Dependency as DependencyRow
from flows.models import Limit as LimitRow


@checks.register(TAG)
def check_capacity(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[checks.CheckMessage]:
    """What flows need is declared, and its numbers can be."""
    found = list(_unknown(app_configs))
    if app_configs is None:
        found += [*_faults(), *_admission()]
    return found


def _unknown(app_configs: Sequence[AppConfig] | None) -> Iterator[checks.CheckMessage]:
    known: dict[str, Mapping[str, Any]] = {"needs": registry.declared(Dependency), "limits": registry.declared(Limit)}
    kinds = {"needs": "Dependency", "limits": "Limit"}
    for flow in declared_flows(app_configs):
        for name, node in flow.definition.nodes.items():
            if not isinstance(node, Activity):
                continue
            for option, things in known.items():
                for one in _named(node, option):
                    if one not in things:
                        listed = ", ".join(sorted(things)) or "none"
                        hint = f'Declare it in flows.py of an app: {kinds[option]}("{one}", …). Declared are: {listed}.'
                        message = f"Node {name!r}: {option}={one!r} is not declared."
                        yield as_message(lint.problem("E088", flow.definition.where, message, hint, name))


def _named(node: Activity, option: str) -> tuple[str, ...]:
    try:
        return node.needed if option == "needs" else node.limited
    except DefinitionError:  # E027
        return ()


def _faults() -> Iterator[checks.CheckMessage]:
    things: list[Dependency | Limit] = [*registry.declared(Dependency).values(), *registry.declared(Limit).values()]
    for thing in things:
        for fault in core.faults(thing):
            what, _, hint = fault.partition(": ")
            where = f"{type(thing).__name__} {thing.name!r}"
            yield as_message(lint.problem("E089", where, f"{where} {what}.", f"{hint[:1].upper()}{hint[1:]}."))


def _admission() -> Iterator[checks.CheckMessage]:
    given = value_of("ADMISSION")
    known = {name for name, _ in registry.known()}
    for name in given if isinstance(given, Mapping) else ():
        if name != admission.EVERY_FLOW and name not in known:
            hint = (
                f"Name a flow ({', '.join(sorted(known)) or 'none is declared'}), or {admission.EVERY_FLOW!r} for all together."
            )
            message = f"settings.OUTLAST['ADMISSION'] limits {name!r}, and there is no such flow."
            yield checks.Error(message, hint=hint, id="outlast_flows.E118")


@checks.register(checks.Tags.database)
def check_capacity_kept(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """A limit of the record that no code declares any more: those who wait for it wait until their patience is over."""
    alias = database.may_ask(databases)
    try:
        if alias is None or database.pending(alias):
            return []
        limits = set(LimitRow.objects.using(alias).filter(name__startswith=core.LIMIT).values_list("name", flat=True))
        rows = DependencyRow.objects.using(alias).exclude(name__startswith="node:").values_list("name", flat=True)
        kept = {core.DEPENDENCY + name for name in rows}
    except DatabaseError:
        return []
    declared = {core.LIMIT + name for name in registry.declared(Limit)}
    declared |= {core.DEPENDENCY + name for name in registry.declared(Dependency)}
    return [
        checks.Warning(
            f"The record counts in {name!r}, which no code declares.",
            hint="Declare it where its waiters still need it; else it does no harm.",
            id="outlast_flows.W115",
        )
        for name in sorted((limits | kept) - declared)
    ]
