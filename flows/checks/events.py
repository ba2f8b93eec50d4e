"""Who answers for what events begin is there (with the database)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError

from flows.checks.database import may_ask, pending
from flows.checks.declared import declared_flows
from flows.core.events import StartedBy
from flows.core.misuse import NobodyAccountable
from flows.services.isolated import accountable


@checks.register(checks.Tags.database)
def check_started_by(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """The users for whom events begin runs are there, and active."""
    try:
        alias = may_ask(databases)
        if alias is None or pending(alias):
            return []
        return [message for flow in declared_flows() if (message := _nobody(flow.definition.started_by, flow, alias)) is not None]
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
