"""Isolated turns: runs that nobody asks for at that moment, begun by a schedule or an event (D4).

    cause, named user ──► the user is there and active ──► runnable, for them, with the cause on record
                     └──► gone, or not active ─────────► refused: NOBODY_ACCOUNTABLE; nothing is stored, and the caller records it
Who it is for is named in code or by who made the schedule, never by an event. What they may do is looked up by the run's gates, each time anew.
Race: the user is deactivated just after: the gates of the run say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model

from flows.core import payload
from flows.core.definition import Flow
from flows.core.misuse import NobodyAccountable
from flows.services import identify
from flows.services.starting import Origin, Started, start_runs


def start_isolated(
    flow: type[Flow],
    input: Mapping[str, Any],
    *,
    key: str,
    user: Any,
    cause: str,
    intent: Any = None,
    goal: str = "",
    priority: int = 0,
    tenant: str = "",
    using: str | None = None,
) -> Started:
    """Start one run for a named user, or get the run that this key names already; in the caller's transaction.

    Args:
        key: names this run for ever, as in `start`. user: the name of a user (what they log in with), or a user; read anew.
        cause: what began it: "schedule:NAME", "event:ID". The rest as in `start`.
    Raises:
        NobodyAccountable: there is no such user, or they are not active. Else what `start` raises.
    """
    alias = identify.alias(using)
    payload.check_name(cause, "the cause of the run")
    found = accountable(user, alias)
    origin = Origin(
        intent=intent,
        goal=goal,
        user_id=found.pk,
        user_label=identify.label(found),
        priority=priority,
        tenant=tenant,
        started_by=cause,
    )
    (started,) = start_runs(flow.definition, [(key, input)], origin, alias)
    return started


def accountable(user: Any, using: str) -> Any:
    """The stored, active user who is meant by a name or a user.

    Raises:
        NobodyAccountable: there is none.
    """
    model: Any = get_user_model()
    wanted = {model.USERNAME_FIELD: user} if isinstance(user, str) else {"pk": getattr(user, "pk", None)}
    found = model._default_manager.using(using).filter(**wanted).first()  # noqa: SLF001 - Django's documented way to look at a model
    if found is None:
        raise NobodyAccountable(user, "does not exist")
    if not found.is_active:
        raise NobodyAccountable(user, "is not active")
    return found
