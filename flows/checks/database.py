"""What the record itself says: its tables, its clock, the live runs of what is (or was) declared, and what flows name in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from flows.checks.declared import declared_flows
from flows.checks.values import is_sound, value_of
from flows.services import deployed, missing

#: The apps that have tables.
LABELS = ("outlast_flows", "outlast_approvals")

PLAIN_CLOCK = "select statement_timestamp()"
CLOCK = "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('flows_now()')"


@checks.register(checks.Tags.database)
def check_clock(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The durable clock is the plain one. A test kit may have made it movable; no test kit belongs here."""
    alias = may_ask(databases)
    if alias is None:
        return []
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(CLOCK)
            row = cursor.fetchone()
    except OperationalError as error:
        hint = "Start the server, or correct DATABASES; then run this check again."
        return [checks.Warning(f"Database {alias!r} does not answer: {error}", hint=hint, id="outlast_flows.W104")]
    if row is None or " ".join(row[0].lower().replace(";", " ").split()) == PLAIN_CLOCK:
        return []
    hint = "Leave the test kit's movable_clock() block, or put the function of migration outlast_flows.0002 back."
    message = f"flows_now() in database {alias!r} is not PostgreSQL's own clock: business time may be moved."
    return [checks.Warning(message, hint=hint, id="outlast_flows.W103")]


@checks.register(checks.Tags.database)
def check_versions(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Live runs can go on with the definitions that are loaded here, or be migrated to them (G2)."""
    alias = may_ask(databases)
    if alias is None:
        return []
    try:
        found = deployed.findings(alias) if not pending(alias) else []  # check_migrated says so
    except OperationalError:  # check_clock says so
        return []
    return [_cannot_go_on(one) for one in found]


@checks.register(checks.Tags.database)
def check_migrated(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The record's tables are those of this code. A warning, because `migrate` itself asks before it makes them."""
    alias = may_ask(databases)
    try:
        unapplied = pending(alias) if alias is not None else []
    except OperationalError:
        return []
    if not unapplied:
        return []
    message = f"The tables of Outlast in database {alias!r} are not those of this code: {_some(unapplied)} not applied."
    hint = "Run `manage.py migrate`; where it is `migrate` that says this, it is about to."
    return [checks.Warning(message, hint=hint, id="outlast_flows.W105")]


@checks.register(checks.Tags.database)
def check_named(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The policies, groups and permissions that flows name are there."""
    alias = may_ask(databases)
    try:
        if alias is None or pending(alias):
            return []
        found = missing.findings((flow.definition for flow in declared_flows()), alias)
    except DatabaseError:  # away, or users are in another database: then nobody knows
        return []
    return [_missing(one) for one in found]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _cannot_go_on(one: deployed.Finding) -> checks.CheckMessage:
    named = f"{one.flow}@{one.version}"
    if one.kind == deployed.CHANGED:
        return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E121")
    return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E122")


def _missing(one: missing.Missing) -> checks.CheckMessage:
    if one.kind == missing.CALENDAR:
        return checks.Warning(one.message, hint=one.hint, obj=one.where, id="outlast_flows.W116")
    if one.kind == missing.POLICY:
        return checks.Warning(one.message, hint=one.hint, obj=one.where, id="outlast_flows.W106")
    return checks.Warning(one.message, hint=one.hint, obj=one.where, id="outlast_flows.W107")


def may_ask(databases: Sequence[str] | None) -> str | None:
    """The record's alias, if it is one of these and can be asked."""
    alias = value_of("DATABASE")
    if not isinstance(alias, str) or alias not in (databases or ()) or not is_sound():
        return None
    return alias if alias in connections and connections[alias].vendor == "postgresql" else None


def pending(alias: str) -> list[str]:
    """Migrations of ours that are not applied."""
    executor = MigrationExecutor(connections[alias])
    ours = [node for node in executor.loader.graph.leaf_nodes() if node[0] in LABELS]
    return [f"{one.app_label}.{one.name}" for one, _ in executor.migration_plan(ours) if one.app_label in LABELS]
