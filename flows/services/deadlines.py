"""Deadlines that have passed: what a decision makes true of them, what needs no decision, and the event that says it.

fires ──► the workflow is woken (or told, where it computes), and decides       `act`, in the transaction of its arrow
├──► RELEASE, where nothing computes and nothing is in doubt               `release`, in the transaction of the sweep
└──► BREACH, DEGRADE                                                       done with by being recorded
then an event `deadline.expired`, keyed by the workflow                         `tell`, after that, at least once, with one id: twice is once
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from flows import registry
from flows.core.deadlines import EXPIRED, DeadlineKind, kind_of
from flows.core.decide import Decided
from flows.core.moves import Park, Suspend
from flows.core.protocol import TimerKind
from flows.models import Timer, Wait
from flows.services import notices, obligations, people
from flows.services.events import Reception, signal
from flows.services.follow import still_passed
from flows.services.owned import Owned
from flows.store import deadlines as store
from flows.store import obligations as standings
from flows.store.sql import committing

logger = logging.getLogger("outlast.deadlines")


def acts(decided: Decided) -> bool:
    """Whether a passed deadline brings more than the decision's own arrow."""
    return bool(decided.handled or decided.releases) or _tells(decided)


def act(owned: Owned, decided: Decided) -> None:
    """Make true what a decision brings beside its arrow, in the same transaction; the workflow is locked, as its owner saw it."""
    row, using = owned.row, owned.using
    if decided.handled:
        store.handle(row.id, decided.handled, using)
        left = still_passed(owned.state, decided)
        if left and isinstance(decided.move, Park):
            store.rearm(row.id, left, using)
    if decided.releases:
        obligations.release_held(row.id, using, None if "" in decided.releases else decided.releases)
    if _tells(decided) and isinstance(decided.move, Suspend):
        people.tell(row.id, decided.move.tell or (), decided.move.outcome, decided.move.code, using)


def _tells(decided: Decided) -> bool:
    return isinstance(decided.move, Suspend) and decided.move.tell is not None


def release(found: Sequence[tuple[UUID, str, str]], using: str) -> None:
    """Release what these deadlines (workflow, kind, name) say, in the transaction that fired them.

    While an effect of the workflow is in doubt nothing goes past that: the decision that follows its settlement does it. A freshness budget that
    no node ahead wants releases nothing.
    """
    for workflow, kind, name in found:
        standing = standings.standing(workflow, using)
        if standing.doubts:
            continue
        definition = registry.definition(standing.flow_name, standing.flow_version)
        if kind != TimerKind.FRESHNESS or definition is None or standing.node in definition.wanting.get(name, ()):
            obligations.release_held(workflow, using, [name] if kind == TimerKind.COMMITMENT_DEADLINE else None)
        store.handle(workflow, [(kind, name)], using)


def tell(limit: int, using: str) -> int:
    """Record the events of deadlines that have passed; how many."""
    rows = list(Timer.objects.using(using).select_related("workflow").filter(untold=True).order_by("pk")[:limit])
    waits = dict(Wait.objects.using(using).filter(pk__in={row.wait_id for row in rows}).values_list("pk", "kind")) if rows else {}
    return sum(_tell(timer, kind_of(timer.kind, waits.get(timer.wait_id or 0)), using) for timer in rows)


def _tell(timer: Timer, kind: DeadlineKind, using: str) -> bool:
    row = timer.workflow
    body = {
        "workflow": str(row.pk),
        "flow": row.flow_name,
        "kind": kind.name,
        "name": timer.name,
        "then": timer.on_expiry,
        "due": timer.due_at.isoformat(),
    }
    with committing("tell of deadline", using):
        first = signal(f"{EXPIRED}/{timer.pk}", EXPIRED, key=str(row.pk), payload=body, using=using)
        if not store.told(timer.pk, using):
            return False
        if kind.told and row.user_id is not None and first.answer is not Reception.ALREADY:
            notices.owe(row.pk, row.user_id, kind.code, kind.code, using)
    if first.answer is Reception.ALREADY:
        return False
    counted = {"metric": "outlast.deadline.expired", "flow": row.flow_name, "kind": kind.name, "name_": timer.name}
    logger.warning("%s deadline %s of workflow %s has passed: %s", kind.name, timer.name, row.pk, timer.on_expiry, extra=counted)
    return True
