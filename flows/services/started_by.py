"""Runs that begin with an event (`Meta.started_by`): isolated turns, for a user whom the flow names.

    event of the type, no wait has taken it, and it is about no run ──► a run of each such flow, in the event's own transaction
                                                                 └──► it cannot begin: the event stays, unclaimed, and the log says why
    event of a type that this process does not know ──► unknown ──► judged again by the clock of a process that knows it (`events`)
Guard: the key that the flow makes of the event. Races: the same event twice, or two with one key: the key's row; the second finds the run. A
start by hand of the same key: start keys come before channels and runs, so whoever may begin a run locks them ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction

from flows import registry
from flows.core import payload
from flows.core.admission import Admission
from flows.core.definition import Flow
from flows.core.errors import DefinitionError, OutlastError
from flows.core.events import StartedBy
from flows.services import debounce
from flows.services.filling import Item
from flows.services.isolated import start_isolated
from flows.store import events as store
from flows.store.sql import loads

logger = logging.getLogger("outlast.events")


def types() -> list[str]:
    """The types of events that begin runs of flows that this process knows."""
    return sorted(registry.known().started_by)


def takes_keys(event_type: str) -> bool:
    """Whether a run that begins with this type has a start key (it is put off, or replaces an older one)."""
    return any(_has_start_key(flow) for flow, _ in registry.known().started_by.get(event_type, ()))


def lock_ahead(events: Sequence[tuple[str, str, str, str]], using: str) -> None:
    """Lock the start keys of what these events, given as (id, type, key, encoded payload), may begin; before their channels."""
    wanted: dict[str, tuple[type[Flow], list[tuple[str | None, Any]]]] = {}
    for event_id, event_type, key, text in events:
        if not takes_keys(event_type):
            continue
        for flow, by in registry.known().started_by[event_type]:
            try:
                event = _event(event_id, event_type, key, text)
                given = by.key(event), by.input(event) if by.input is not None else event["payload"]
            except Exception:  # noqa: BLE001, S112 - `begin` calls them again, and the log says why nothing begins
                continue
            wanted.setdefault(flow.definition.name, (flow, []))[1].append(given)
    for _, (flow, runs) in sorted(wanted.items()):
        try:
            debounce.lock_ahead(flow.definition, runs, using)
        except DatabaseError:
            raise
        except Exception:  # `begin` calls it again, and the log says why nothing begins
            logger.debug("a start key of %s cannot be told ahead", flow.definition.name, exc_info=True)


def _has_start_key(flow: type[Flow]) -> bool:
    said = flow.definition.admission
    return isinstance(said, Admission) and (said.debounce is not None or said.newest is not None)


def _event(event_id: str, event_type: str, key: str, text: str) -> dict[str, Any]:
    """As the functions of a flow see it."""
    return {"id": event_id, "type": event_type, "key": key, "payload": payload.decode(loads(text))}


def begin(item: Item, using: str) -> list[UUID] | None:
    """Begin what this event begins; the runs. None: its type begins nothing. None of them could begin: empty, and the event is as it was."""
    flows = registry.known().started_by.get(item.type, ())
    if not flows:
        return None
    event = _event(item.event_id, item.type, item.key, item.payload)
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
