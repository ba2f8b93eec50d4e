"""Admission: a new run takes a unit of each limit of live runs, and holds it until it ends; one for which there is no room waits, or is refused.

    start ──► all taken ──► runnable                                       in the start's own transaction
         ├──► DEFER: runnable ──► waiting, for the first limit that lacks; what it has taken before it keeps
         └──► REFUSE: AdmissionRefused; the transaction is taken back
    waiting ──► the next limit's waiting list, or runnable                 by the pump, as units become free
Units are taken in one order, the narrowest limit first, so nobody waits for each other. Freed by the trigger on the terminal move.
Race: the last unit: slots are rows, taken with SKIP LOCKED. Cancel against admission: the pump passes a locked run over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flows.conf import conf
from flows.core import admission as core
from flows.core.admission import ALL, REFUSE, RUNS, RUNS_OF, Admission
from flows.core.capacity import RESOURCE, Want
from flows.core.definition import Definition
from flows.core.misuse import AdmissionRefused
from flows.services.capacity import taking
from flows.services.hinting import hint_ready
from flows.store import admission as store
from flows.store import slots
from flows.store.limits import Found, Locked
from flows.store.slots import Waiter

#: That of a flow that says nothing itself: only the setting limits it.
DEFAULT = Admission()


def counts_runs(limit: str) -> bool:
    """Whether the limit of that name counts live runs."""
    return limit == ALL or limit.startswith((RUNS, RUNS_OF))


def applies(definition: Definition) -> bool:
    """Whether new runs of this flow are counted at all."""
    totals = _totals()
    given = definition.admission
    counted = isinstance(given, Admission) and (given.total is not None or given.per is not None)
    return counted or definition.name in totals or core.EVERY_FLOW in totals


def _totals() -> Mapping[str, int]:
    totals: Mapping[str, int] = conf.ADMISSION
    return totals


def of(definition: Definition) -> Admission:
    """What the flow says of its new runs."""
    return definition.admission if isinstance(definition.admission, Admission) else DEFAULT


def start(definition: Definition, created: Sequence[tuple[UUID, Mapping[str, Any]]], using: str) -> set[UUID]:
    """Admit runs that were just started, given as (id, input), in the same transaction; the ids of those that wait for their turn.

    Raises:
        AdmissionRefused: there is no room for one, and the flow refuses then.
    """
    said, waits = of(definition), set()
    for run, given in created:
        wants = list(core.wants(definition.name, said, _totals(), given))
        found = taking.found_of(wants, run, None, using)
        held = _take(wants, found, run, using)
        if held < len(wants):
            lacks = wants[held]
            if said.over is REFUSE:
                raise AdmissionRefused(definition.name, lacks.label, lacks.size)
            store.defer(
                run,
                [one.id or 0 for one in found],
                kind=RESOURCE,
                label=lacks.label,
                reason=core.words(lacks.label)[:500],
                deadline=said.patience.after,
                on_expiry=said.patience.word,
                using=using,
            )
            waits.add(run)
        if held:
            store.hold(run, held, using)
    return waits


def _take(wants: Sequence[Want], found: Sequence[Found], run: UUID, using: str) -> int:
    """Take a unit of each, in order, until one lacks; how many were taken. Who comes anew goes behind those who wait."""
    for number, (_want, one) in enumerate(zip(wants, found, strict=True)):
        if one.queued or not slots.take(one.id or 0, one.size, run, None, None, using):
            return number
    return len(wants)


def admit(limit: Locked, numbers: Sequence[int], found: Sequence[Waiter], using: str) -> int:
    """Give units of a locked limit to locked runs that wait for it, and let those in that lack nothing more; how many units were given."""
    ids = [one.workflow for one in found]
    slots.reserve(limit.id, numbers[: len(found)], ids, [None] * len(found), using)
    needed = store.needed(ids, using)
    ready = []
    for one in found:
        missing = needed.get(one.workflow, [])
        rest = missing[missing.index(limit.id) + 1 :] if limit.id in missing else []
        taken, lacks = 1, None
        for other, size, label, queued in store.sizes(rest, using):
            if queued or not slots.take(other, size, one.workflow, None, None, using):
                lacks = other, label
                break
            taken += 1
        store.hold(one.workflow, taken, using)
        if lacks is None:
            ready.append(one)
        else:
            store.move_on(one.wait, lacks[1], core.words(lacks[1])[:500], using)
            taking.look_after([lacks[0]], using)
    if ready:
        store.admitted([one.workflow for one in ready], using)
        hint_ready(slots.readmit([one.wait for one in ready], limit.label, conf.PRIORITY_SECONDS, using), using)
    return len(found)
