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
    try:
        accountable(by.user, using)
    except NobodyAccountable as error:
        message = f"{flow.definition.name}, Meta.started_by: {error}"
        hint = "Make the user, or name another one: until then events of that type begin nothing, and stay in the inbox as unclaimed."
        return checks.Warning(message, hint=hint, obj=flow.definition.where, id="outlast_flows.W108")
    return None


def _nobody_of(schedule: Schedule, using: str) -> checks.CheckMessage | None:
    if not schedule.user:
        return None  # W004
    try:
        accountable(schedule.user, using)
    except NobodyAccountable as error:
        hint = "Make the user, or name another one: until then each occurrence of it fails with NOBODY_ACCOUNTABLE."
        return checks.Warning(f"{schedule.label}: {error}", hint=hint, obj=schedule.name, id="outlast_flows.W108")
    return None
