"""What an attempt needs of what is scarce: taken in its pass, held until it ends, given back in the transaction that says so.

    pass ──► all of it is there ──► slots held under the attempt's fence, tokens spent, all or none
        └──► something lacks ─────► the pass is taken back; the attempt is given back and its activity waits (`flows.services.asking`)
Guard: the workflow as its owner claimed it, by the pass. Race: two want the last slot: it is a row, taken with SKIP LOCKED; one of them waits.
Who was let in again has a reservation, and goes before everybody; who comes anew goes behind those who wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from flows import registry
from flows.core.admission import key_of
from flows.core.capacity import (
    DEPENDENCY,
    DEPENDENCY_HEALTH,
    RESOURCE,
    Dependency,
    DependencyStatus,
    Limit,
    Terms,
    Want,
    implicit,
    saved,
    want_dependency,
    want_limit,
)
from flows.core.errors import DefinitionError
from flows.core.nodes import Activity
from flows.core.nodes.base import Node
from flows.core.policies import ESCALATE, Deadline
from flows.core.state import Lacking
from flows.dispatch import look_soon
from flows.store import dependencies, limits, slots
from flows.store.limits import Found

if TYPE_CHECKING:
    from flows.services.owned import Owned

#: The name of the look at those who wait.
PUMP = "pump"
#: Seconds after which those who wait are looked at when something has become free, or somebody waits anew: several of them are one look.
SOON_SECONDS = 0.02
#: Of a node that has no patience and has to wait all the same.
PATIENCE = Deadline(days=1, then=ESCALATE)


def terms_of(name: str) -> Terms:
    """The terms of a dependency: as it is declared, else those of one that nobody declared."""
    found = registry.declared(Dependency).get(name)
    return found.terms if found is not None else implicit(name)


def wants_of(owned: Owned, node: Node) -> list[Want]:
    """What an attempt at this node needs; the keys are asked for here, outside any transaction.

    Raises:
        DefinitionError: a limit that is not declared (a check says so, too). PayloadError: a key that cannot be stored.
    """
    if not isinstance(node, Activity) or not node.holds:
        return []
    found = [want_dependency(terms_of(name)) for name in node.needed]
    declared = registry.declared(Limit)
    for name in node.limited:
        limit = declared.get(name)
        if limit is None:
            raise DefinitionError(
                f'{owned.label} counts in the limit {name!r}, which nobody declares: Limit("{name}", …) in flows.py.'
            )
        key = key_of(limit.key, owned.state, f"the key of the limit {name}") if limit.key is not None else ""
        found.append(want_limit(limit, key))
    return found


def take(owned: Owned, node: Node, wants: Sequence[Want]) -> Lacking | None:
    """Take all of it, in the transaction of the pass; or what lacks, and then the caller takes everything back."""
    row, activity, using = owned.row, owned.state.activity, owned.using
    assert activity is not None and isinstance(node, Activity)
    found = found_of(wants, row.id, activity.seq, using)
    pairs = sorted(zip(wants, found, strict=True), key=lambda pair: pair[1].id or 0)
    readmitted = any(one.own for one in found)
    for want, one in pairs:
        if _closed(one, row.id):
            return _lacking(owned, node, want, DEPENDENCY_HEALTH, f"waiting for {_shown(want)}, which is {_status(one)}")
        if one.queued and not readmitted:
            return _lacking(owned, node, want, RESOURCE, f"waiting behind others for {_shown(want)}")
    for want, one in pairs:
        rate, burst = _tokens(want, one)
        if rate is not None and not one.own and not limits.token(one.id or 0, rate, burst, using):
            return _lacking(owned, node, want, RESOURCE, f"waiting for {_shown(want)}: it begins only so many a second")
    for want, one in pairs:
        if want.lasting:
            if not slots.take(one.id or 0, one.size, row.id, activity.seq, activity.fence, using):
                return _lacking(owned, node, want, RESOURCE, f"waiting for {_shown(want)}: all {one.size} are in use")
        elif one.own:
            slots.begun(one.id or 0, row.id, activity.seq, using)
    return None


def found_of(wants: Sequence[Want], workflow: UUID, seq: int | None, using: str) -> list[Found]:
    """How it stands with each of these; what is not there yet, or declared otherwise by now, is made first.

    Rows that are there are locked by id, as tokens are; what is made has greater ones, and comes after them by name.
    """
    found = limits.find(wants, workflow, seq, using)
    if all(_as_declared(want, one) for want, one in zip(wants, found, strict=True)):
        return found
    for want, one in sorted(zip(wants, found, strict=True), key=_in_order):
        if not _as_declared(want, one):
            make(want, one.ceiling, using)
    return limits.find(wants, workflow, seq, using)


def _in_order(pair: tuple[Want, Found]) -> tuple[bool, int, str, str]:
    want, found = pair
    return found.id is None, found.id or 0, want.name, want.key


def make(want: Want, ceiling: int | None, using: str) -> int:
    """Make a limit as it is declared (`ceiling`: as a person set it), and the row of its dependency; the limit's id."""
    made = limits.ensure(want, ceiling or want.size, using)
    if want.terms is not None:
        every = want.terms.probe_every
        dependencies.add(want.terms.name, every.total_seconds() if every is not None else None, using)
    return made


def _as_declared(want: Want, found: Found) -> bool:
    size = found.ceiling or want.size
    return found.id is not None and (found.size, found.lasting, found.rate, found.burst) == (
        size,
        want.lasting,
        want.rate,
        want.burst,
    )


def _closed(found: Found, workflow: UUID) -> bool:
    down = found.status == DependencyStatus.DOWN
    return down or (found.status == DependencyStatus.TRIAL and found.trial != workflow)


def _tokens(want: Want, found: Found) -> tuple[float | None, float]:
    """The rate at which it is spent now, and what may be saved of it: that of a dependency only while it recovers."""
    if want.terms is None:
        return want.rate, want.burst or 1.0
    allowed = found.allowed if found.status == DependencyStatus.RECOVERING else None
    return allowed, saved(allowed or 1.0, None)


def _lacking(owned: Owned, node: Activity, want: Want, kind: str, reason: str) -> Lacking:
    patience = node.patience or PATIENCE
    return Lacking(kind, want.label, reason[:500], until_of(owned, patience.after), patience.word)


def until_of(owned: Owned, patience: timedelta) -> datetime:
    """When the patience of the open activity is over."""
    activity = owned.state.activity
    return (activity.opened_at if activity is not None and activity.opened_at else owned.state.now) + patience


def _shown(want: Want) -> str:
    return want.terms.name if want.terms is not None else want.label.partition(":")[2]


def _status(found: Found) -> str:
    return "on trial" if found.status == DependencyStatus.TRIAL else found.status


# ---------------------------------------------------------------- given back


def free(workflow: UUID, seq: int, using: str) -> None:
    """Give back what an attempt holds, in the transaction that ends it; those who wait are looked at after its commit."""
    look_after(slots.free(workflow, seq, using), using)


def look_after(ids: Sequence[int], using: str, seconds: float = SOON_SECONDS) -> None:
    """After the commit, have those looked at who wait for these limits: once, however many ask. If it fails, the tick finds them."""
    if ids:
        transaction.on_commit(lambda: look_again(ids, using, seconds), using=using, robust=True)


def look_again(ids: Sequence[int], using: str, seconds: float) -> None:
    """Now, outside any transaction: unless nobody waits, or that has been asked for."""
    if limits.arm(ids, seconds, using):
        look_soon(seconds, PUMP)


def limit_of(name: str) -> str:
    """The label of the limit that is the ceiling of a dependency."""
    return DEPENDENCY + name
