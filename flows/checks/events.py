"""Who answers for what events and schedules begin is there (with the database)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError

from flows import registry
from flows.checks.database import may_ask, pending
from flows.checks.declared import declared_flows
from flows.core.events import StartedBy
from flows.core.misuse import NobodyAccountable
from flows.core.schedules.declared import Schedule
from flows.services.isolated import accountable


@checks.register(checks.Tags.database)
def check_started_by(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The users for whom events and schedules begin runs are there, and active."""
    try:
        alias = may_ask(databases)
        if alias is None or pending(alias):
            return []
        found = [_nobody(flow.definition.started_by, flow, alias) for flow in declared_flows()]
        found += [_nobody_of(one, alias) for _, one in sorted(registry.declared(Schedule).items())]
        return [message for message in found if message is not None]
    except DatabaseError:  # away, or users are in another database: then nobody knows
        return []


def _nobody(by: StartedBy | None, flow: Any, using: str) -> checks.CheckMessage | None:
    if not isinstance(by, StartedBy) or not by.user:
        return None  # E027, E083
    until = "events of that type begin nothing, and stay in the inbox as unclaimed."
    return _warning(by.user, f"{flow.definition.name}, Meta.started_by", until, flow.definition.where, using)


def _nobody_of(schedule: Schedule, using: str) -> checks.CheckMessage | None:
    if not schedule.user:
        return None  # W004
    return _warning(schedule.user, schedule.label, "each occurrence of it fails with NOBODY_ACCOUNTABLE.", schedule.name, using)


def _warning(user: Any, where: str, until: str, obj: Any, using: str) -> checks.CheckMessage | None:
    try:
        accountable(user, using)
    except NobodyAccountable as error:
        hint = f"Make the user, or name another one: until then {until}"
        return checks.Warning(f"{where}: {error}", hint=hint, obj=obj, id="outlast_flows.W108")
    return None
