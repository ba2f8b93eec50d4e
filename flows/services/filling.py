"""An event meets the waits of its channel: it is the evidence of each, or fills a part of it.

    event ──► a wait for this event            evidence, its run is ready
         └──► a part of a wait for several     filled; with the last that is needed: evidence, its run is ready
    parking on parts ──► what came early fills them, the oldest first, until there is enough
Guards: channel, then all runs that wait there, in id order; the wait is open, has no evidence, is of the run's generation, and is one that the
event may be about.
Races: two events for two parts at once: both lock the run, and the second one sees what the first has counted. A wait that is closed
meanwhile takes nothing, and the event is placed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core.events import About
from flows.core.moves import Part
from flows.services.hinting import hint_ready
from flows.store import events as store
from flows.store import parts
from flows.store.sql import dumps, loads


@dataclass(frozen=True, slots=True)
class Item:
    """An event of the inbox as it is given to waits. `free`: a person has it delivered, whatever it says that it is about."""

    id: int
    event_id: str
    type: str
    key: str
    payload: str
    about: About = store.NOTHING
    free: bool = False


def give(
    item: Item, waits: Sequence[store.Waiting], using: str, *, chain: UUID | None = None, any_key: bool = False
) -> list[UUID]:
    """Give it to all of these waits that may take it; the runs that it reached. Their workflows must be locked.

    Args:
        chain: the first run of those of which the event names one, where runs continue as new. any_key: parts are filled whatever their key.
    """
    meant = [one for one in waits if item.free or is_meant(item.about, one, chain)]
    reached: list[store.Woken] = []
    filled: list[parts.Filled] = []
    if single := [one.wait for one in meant if not one.part]:
        evidence = f'{{"id":{dumps(item.event_id)},"payload":{item.payload}}}'
        reached += store.wake(
            single,
            evidence,
            event=item.id,
            trigger="event",
            ref=item.event_id,
            priority_seconds=conf.PRIORITY_SECONDS,
            using=using,
        )
    if of_several := sorted({one.wait for one in meant if one.part}):
        filled = parts.fill(
            of_several,
            event=item.id,
            event_id=item.event_id,
            event_type=item.type,
            key=item.key,
            payload=item.payload,
            any_key=any_key,
            using=using,
        )
        if enough := [one.wait for one in filled if one.enough]:
            reached += store.wake_filled(
                enough, event=item.id, ref=item.event_id, priority_seconds=conf.PRIORITY_SECONDS, using=using
            )
    hint_ready([row[:4] for row in reached if row[4] == "waiting"], using)
    return list(dict.fromkeys([*(row[0] for row in reached), *(one.workflow for one in filled)]))


def is_meant(about: About, wait: store.Waiting, chain: UUID | None) -> bool:
    """Whether an event may be about this wait: whatever it says agrees with it."""
    if not about:
        return True
    if about.wait is not None and about.wait != wait.wait:
        return False
    if about.workflow is None:
        return True
    if about.workflow != wait.workflow:
        return chain is not None and chain == wait.chain
    same_epoch = about.epoch is None or about.epoch == wait.epoch
    return same_epoch and (about.intent is None or about.intent == wait.intent_version)


Filled = Mapping[int, tuple[int, Mapping[str, Any]]]


def fill_early(wanted: Sequence[Part], need: int, early: Sequence[store.Early]) -> Filled:
    """Which parts are filled by what came early, until there is enough: place in `wanted` → (row of the inbox, evidence)."""
    filled: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for event in early:
        if len(filled) == need:
            break
        for number, part in enumerate(wanted):
            if number not in filled and (part.event_type, part.key) == (event.type, event.key):
                filled[number] = (event.id, _evidence(part, event))
                break
    return filled


def evidence_of(filled: Filled) -> dict[str, Any]:
    """The evidence of a wait whose parts these events fill, as the last of them would have written it."""
    events = [evidence for _, evidence in sorted(filled.values(), key=lambda one: one[0])]
    return {"id": events[-1]["id"], "events": events}


def _evidence(part: Part, event: store.Early) -> dict[str, Any]:
    return {"name": part.name, "id": event.event_id, "type": event.type, "key": event.key, "payload": loads(event.payload)}
