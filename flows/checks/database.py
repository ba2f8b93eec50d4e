"""What the record itself says: its clock, and the live runs of what is (or was) declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import OperationalError, connections

from flows.checks.values import value_of
from flows.services import deployed

PLAIN_CLOCK = "select statement_timestamp()"
RECORD = "SELECT to_regclass('outlast_workflow')"
CLOCK = "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('flows_now()')"


@checks.register(checks.Tags.database)
def check_clock(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The durable clock is the plain one. A test kit may have made it movable; no test kit belongs here."""
    alias = str(value_of("DATABASE"))
    if alias not in (databases or ()) or alias not in connections or connections[alias].vendor != "postgresql":
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
    alias = str(value_of("DATABASE"))
    if alias not in (databases or ()) or alias not in connections or connections[alias].vendor != "postgresql":
        return []
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(RECORD)
            if cursor.fetchone() == (None,):  # before the first migrate
                return []
        found = deployed.findings(alias)
    except OperationalError:  # check_clock says so
        return []
    return [_cannot_go_on(one) for one in found]


def _cannot_go_on(one: deployed.Finding) -> checks.CheckMessage:
    named = f"{one.flow}@{one.version}"
    if one.kind == deployed.CHANGED:
        return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E121")
    return checks.Error(one.message, hint=one.hint, obj=named, id="outlast_flows.E122")
