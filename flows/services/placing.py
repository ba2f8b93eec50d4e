"""What becomes of an event that no wait has taken: a run begins with it, or it has a place in the inbox, which may be that it is set aside.

    nobody took it ──► its type begins runs, and it is about none ──► consumed, started
                  └──► `flows.core.inbox` says which place, and whether a wait may still take it
    pending, nobody takes it for EVENT_UNCLAIMED_SECONDS ──► its place is unclaimed: somebody should look
Guard: the lock of its channel.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from flows import registry
from flows.conf import DEFAULTS, conf
from flows.core.events import About
from flows.core.inbox import OPEN, Facts, Named, Place, place_of
from flows.dispatch import look_soon
from flows.models import EventStatus
from flows.services import started_by
from flows.services.filling import Item
from flows.store import places as store
from flows.store.events import Waiting

logger = logging.getLogger("outlast.events")

#: The look at events that may begin runs, and have not been judged by a process that knows them.
JUDGE_AGAIN = "unknown-events"


def chain_of(about: About, event_type: str, key: str, waits: list[Waiting], using: str) -> UUID | None:
    """The chain of the run that an event names, where that is none of those that wait here."""
    if about.workflow is None or not waits or about.workflow in {one.workflow for one in waits}:
        return None
    found = store.named_run(about, event_type, key, using)
    return found[3] if found else None


def place(
    item: Item, waits: list[Waiting], using: str, *, keep: Place | None = None, ahead: bool = True
) -> tuple[Place, list[UUID]]:
    """Begin runs with it, or mark where it stands; the place, and the runs that it has begun.

    Args:
        waits: the open waits of its channel, none of which has taken it. keep: the place that it keeps where a wait may still take it.
        ahead: the start keys of what it may begin are locked; else it is judged again, in a transaction that begins with them.
    """
    if not item.about or item.free:
        if not ahead and started_by.takes_keys(item.type):
            transaction.on_commit(lambda: look_soon(0, JUDGE_AGAIN), using=using)
            return _put(item, Place.UNKNOWN, using), []
        begun = started_by.begin(item, using)
        if begun is not None:
            return (Place.STARTED, begun) if begun else (_put(item, Place.UNCLAIMED, using), [])
    found = place_of(store_about(item), _facts(item, waits, using))
    if found in OPEN and keep is not None:
        found = keep
    return _put(item, found, using), []


def store_about(item: Item) -> About:
    """What counts of what it says that it is about: nothing, where a person has it delivered."""
    return About() if item.free else item.about


def _put(item: Item, place: Place, using: str) -> Place:
    status = EventStatus.PENDING if place in OPEN or item.free else EventStatus.ASIDE
    if item.free and place not in OPEN:
        place = Place.BETWEEN  # a person wants it taken: it waits for whoever comes next
    store.put(item.id, status, place, using)
    return place


def _facts(item: Item, waits: list[Waiting], using: str) -> Facts:
    last = store.last_run(item.type, item.key, using)
    about = store_about(item)
    found = store.named_run(about, item.type, item.key, using) if about else None
    named: Named | None = None
    if found is not None:
        named, flow, version, _chain = found
        definition = registry.definition(flow, version)
        if definition is not None and not named.waited:
            named = replace(named, may_wait=item.type in registry.event_types_of(definition))
    return Facts(
        named=named,
        last=last,
        waiting=bool(waits),
        type_known=item.type in registry.known().event_types,
    )


def mark_unclaimed(using: str) -> int:
    """Mark what nobody has taken for long; how many."""
    found = store.mark_unclaimed(conf.EVENT_UNCLAIMED_SECONDS, conf.SWEEP_BATCH, using)
    if found:
        logger.warning("%s events are unclaimed: nobody has taken them for %s seconds", len(found), conf.EVENT_UNCLAIMED_SECONDS)
    return len(found)


def watch() -> registry.Watch:
    """What the clock looks for. A setting that is none is told by the checks (E101, E102), which this must not keep from running."""
    try:
        seconds = float(conf.EVENT_UNCLAIMED_SECONDS)
    except (ImproperlyConfigured, TypeError, ValueError):
        seconds = float(DEFAULTS["EVENT_UNCLAIMED_SECONDS"])
    return registry.Watch("unclaimed-events", store.UNCLAIMED.format(seconds=seconds), mark_unclaimed)
