"""Runs that begin with an event (`Meta.started_by`): isolated turns, for a user whom the flow names.

    event of the type, no wait has taken it, and it is about no run ──► a run of each such flow, in the event's own transaction
                                                                 └──► it cannot begin: the event stays, unclaimed, and the log says why
Guard: the key that the flow makes of the event. Race: the same event twice, or two with one key: the key's row; the second finds the run.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import transaction

from flows import registry
from flows.core import payload
from flows.core.definition import Flow
from flows.core.errors import DefinitionError, OutlastError
from flows.core.events import StartedBy
from flows.services.filling import Item
from flows.services.isolated import start_isolated
from flows.store import events as store
from flows.store.sql import loads

logger = logging.getLogger("outlast.events")


def begin(item: Item, using: str) -> list[UUID] | None:
    """Begin what this event begins; the runs. None: its type begins nothing. None of them could begin: empty, and the event is as it was."""
    flows = registry.known().started_by.get(item.type, ())
    if not flows:
        return None
    event = {"id": item.event_id, "type": item.type, "key": item.key, "payload": payload.decode(loads(item.payload))}
    begun = [run for flow, by in flows if (run := _begun(flow, by, event, using)) is not None]
    if begun:
        store.begun(item.id, begun[0], using)
    return begun


def _begun(flow: type[Flow], by: StartedBy, event: dict[str, Any], using: str) -> UUID | None:
    name = flow.definition.name
    try:
        key, given = by.key(event), by.input(event) if by.input is not None else event["payload"]
        with transaction.atomic(using=using):  # what it refuses takes nothing of the event with it
            return start_isolated(flow, given, key=_key(key, name), user=by.user, cause=_cause(event["id"]), using=using).id
    except OutlastError as error:
        logger.warning("event %s begins no run of %s: %s: %s", event["id"], name, error.code, error)
    except Exception:
        logger.exception("event %s begins no run of %s: a function of its started_by failed", event["id"], name)
    return None


def _key(found: object, flow: str) -> str:
    if not isinstance(found, str):
        raise DefinitionError(f"started_by of {flow}: key= must give a text, got {found!r:.80}.")
    return found


def _cause(event_id: str) -> str:
    """What stands on the run; the longest id has no room for more."""
    return f"event:{event_id}"[: payload.MAX_NAME]
