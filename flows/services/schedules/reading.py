"""From what is declared to what is stored: read once, so that what cannot be read is never stored; and the values of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections

from flows.conf import conf
from flows.core import canonical, payload
from flows.core.errors import DefinitionError
from flows.core.events import whole
from flows.core.schedules.declared import Made
from flows.core.schedules.declared import Schedule as Declared
from flows.core.schedules.faults import faults
from flows.core.schedules.kinds import Plan, read
from flows.core.schedules.words import Timing
from flows.services import identify
from flows.store.schedules import ScheduleRow

#: The options of which one says when.
WHEN = frozenset({"cron", "every", "at", "rule"})
#: Options that the row has under their own names.
_SAME = (
    "anchor", "repeated", "missing", "missed", "window", "cap", "overlap", "cooldown", "jitter", "compute", "calendar", "priority",
    "tenant",
)  # fmt: skip


def checked(declared: Declared) -> Plan:
    """The plan of what is declared.

    Raises:
        DefinitionError: something of it cannot be read.
    """
    for _, fault in faults(declared):
        raise DefinitionError(fault)
    return read(declared.spec)


def made_of(row: ScheduleRow, changes: Mapping[str, Any]) -> Made:
    """What a row says, with these changes; a new way to say when takes the place of the old one.

    Raises:
        DefinitionError: it cannot be.
    """
    given = {
        **options_of(row.kind, row.expression),
        **{name: getattr(row, name) for name in _SAME},
        "input": payload.decode(row.input),
        "zone": row.time_zone,
        "user": row.user_label,
    }
    if WHEN & set(changes):
        given = {name: value for name, value in given.items() if name not in WHEN}
    given = {"flow": row.flow_name, **given, **changes}
    return Made(row.name, given.pop("flow"), **given)


def options_of(kind: str, expression: str) -> dict[str, Any]:
    """When, as `flows.Schedule` has it.

    Raises:
        DefinitionError: it cannot be read.
    """
    try:
        match kind:
            case Timing.INTERVAL:
                return {"every": timedelta(seconds=float(expression))}
            case Timing.ONCE:
                return {"at": datetime.fromisoformat(expression)}
    except (ValueError, OverflowError):
        raise DefinitionError(f"{expression!r:.60} is not what a schedule of the kind {kind} has.") from None
    return {str(kind): expression}


def as_params(declared: Declared, user: Any) -> dict[str, Any]:
    """What is stored of it. `user`: the accountable one, if that is a user; else the name that is declared is kept.

    Raises:
        PayloadError: the input cannot be stored.
    """
    spec = declared.spec
    producer = f"the input of schedule {declared.name!r:.80}"
    for option in ("flow_name", "user", "calendar", "tenant"):
        payload.check_text(getattr(declared, option), f"{option} of schedule {declared.name!r:.80}", payload.MAX_NAME)
    whole(declared.cap, f"cap of schedule {declared.name!r:.80}", 2**31 - 1)
    return {
        "flow_name": declared.flow_name,
        "input": payload.encode(dict(declared.input), producer, conf.MAX_INPUT_BYTES),
        "kind": spec.kind,
        "expression": spec.expression,
        "time_zone": spec.zone,
        "anchor": spec.anchor,
        "repeated": spec.repeated,
        "missing": spec.missing,
        "missed": str(declared.missed),
        "window": declared.window,
        "cap": declared.cap,
        "overlap": str(declared.overlap),
        "cooldown": declared.cooldown,
        "jitter": declared.jitter,
        "compute": str(declared.compute),
        "calendar": declared.calendar,
        "user_id": None if user is None else str(user.pk),
        "user_label": declared.user if user is None else identify.label(user),
        "priority": declared.priority,
        "tenant": declared.tenant,
    }


def digest_of(declared: Declared, params: Mapping[str, Any]) -> str:
    """What is declared, in one text that changes with it; of the input itself, for a codec seals it anew each time."""
    given = canonical.digest(dict(declared.input), f"the input of {declared.label}")
    plain = {
        name: value.isoformat() if isinstance(value, datetime) else str(value)
        for name, value in {**params, "input": given}.items()
    }
    return canonical.digest(plain, "a schedule")


def user_type() -> str:
    """How the database has the keys of users."""
    key: Any = get_user_model()._meta.pk  # noqa: SLF001 - Django's documented way to look at a model
    return str(key.rel_db_type(connections[conf.DATABASE]))
