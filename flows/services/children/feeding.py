"""Start what is planned of a fan: as many as there is room for, each as a run of its own under the id that its branch has.

    planned ──► running, and the child is started       one transaction; what cannot be started has failed at once
Guard: the intent is shared and active, the parent locked, live, not paused and of the fan's generation, the fan locked and open. All of that is
the caller's (`counting.settle`), for it counts in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from django.db import transaction

from flows import registry
from flows.core import payload
from flows.core.definition import Definition
from flows.core.errors import OutlastError
from flows.core.misuse import UnknownFlow
from flows.core.nodes.fanned import Fanned
from flows.services import ledger
from flows.services.starting import Origin, start_runs
from flows.store import branches as store
from flows.store import budgets
from flows.store.branches import Taken
from flows.store.fans import Locked
from flows.store.sql import loads

#: How many ancestors a run may have.
MAX_DEPTH = 8
CHILD_TOO_DEEP = "CHILD_TOO_DEEP"
#: Another run has the key of a child.
KEY_TAKEN = "KEY_TAKEN"
STARTED_BY = "child"


def feed(fan: Locked, intent: object, room: int, using: str) -> int:
    """Start up to `room` planned branches of a locked fan; how many of them could not be started.

    A process that does not know the flows starts none of them: one that does will.
    """
    node = registry.node(fan.flow_name, fan.flow_version, fan.node)
    if room < 1 or not isinstance(node, Fanned):
        return 0
    known = {branch: _definition(fan, node, branch) for branch in {**node.flows(), **node.bodies()}}
    if None in known.values():
        return 0
    taken = store.take(fan.id, room, using)
    if fan.depth + 1 > MAX_DEPTH:
        return store.refuse(fan.id, [one.number for one in taken], CHILD_TOO_DEEP, using)
    origin = _origin(fan, intent, using)
    refused = 0
    for branch, group in groupby(taken, key=lambda one: one.name):
        definition = known.get(branch, known.get(""))
        assert definition is not None
        refused += _start(fan, definition, list(group), origin, using)
    return refused


def _definition(fan: Locked, node: Fanned, branch: str) -> Definition | None:
    try:
        return registry.flow(*node.flow_of(fan.flow_name, fan.flow_version, branch)).definition
    except UnknownFlow:
        return None


def _origin(fan: Locked, intent: object, using: str) -> Origin:
    return Origin(
        intent=intent,
        user_id=fan.user_id,
        user_label=fan.user_label,
        subject=fan.subject,
        priority=fan.priority,
        rank=fan.rank,
        parent=fan.workflow_id,
        depth=fan.depth + 1,
        ledgers=_ledgers(fan, using),
        tenant=fan.tenant,
        started_by=STARTED_BY,
    )


def _ledgers(fan: Locked, using: str) -> list[UUID] | None:
    """The ancestors on whose budgets a child draws: those of its parent that declare one, and the parent if it does.

    Its ledgers are made here, for a child only draws on what is there; the parent is locked.
    """
    definition = registry.definition(fan.flow_name, fan.flow_version)
    own = [fan.workflow_id] if definition is not None and definition.budget is not None else []
    if own and definition is not None and definition.budget is not None:
        missing = ledger.ledgers(definition, fan.workflow_id, None, definition.budget.amounts, using)
        budgets.make(fan.workflow_id, [one for one in missing if one.id is None], using)
    above = [one for one in fan.ledgers or () if one != fan.workflow_id]
    return [*above, *own] or None


def _start(fan: Locked, definition: Definition, taken: Sequence[Taken], origin: Origin, using: str) -> int:
    """All in one statement; where one of them cannot be started, each by itself."""
    runs = [(one.key, payload.decode(loads(one.input))) for one in taken]
    try:
        with transaction.atomic(using=using):
            started = start_runs(definition, runs, replace(origin, ids=[one.child for one in taken]), using)
    except OutlastError as error:
        if len(taken) == 1:
            return store.refuse(fan.id, [taken[0].number], error.code, using)
        return sum(_start(fan, definition, [one], origin, using) for one in taken)
    others = [one.number for one, made in zip(taken, started, strict=True) if made.id != one.child]
    return store.refuse(fan.id, others, KEY_TAKEN, using) if others else 0
