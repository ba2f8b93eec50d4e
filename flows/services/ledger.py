"""Budgets in the arrows: looked at and set aside with the pass of an attempt, booked while it runs, settled with what ends it (N1).

    look ──► pass: reserve ──► code: spend, spend, … ──► the arrow that ends the attempt: settle
                   └─ no room: the pass is taken back, the gate looks again and refuses: BUDGET_EXHAUSTED
Whoever ends an attempt without its owner (put back, timed out, cancelled, superseded) settles it as spent: nobody knows better. What was
set aside is read from the record, for a deploy may have changed what the definition says of it.
Nothing is held in memory: what is set aside and what was said of it are entries. Guard: the workflow, locked by whoever draws.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections

from flows import registry
from flows.core.budget import (
    MEASURED,
    SOFT,
    WITHIN,
    ZERO,
    Ledger,
    amounts_of,
    plain,
    shortage,
    standing,
)
from flows.core.definition import Definition
from flows.core.errors import DefinitionError, LostOwnership
from flows.core.gate import Refusal
from flows.core.nodes import Activity
from flows.core.nodes.base import Node
from flows.core.protocol import WAIT_KINDS, AttemptOutcome, BudgetKind
from flows.core.state import ActivityState
from flows.core.verdicts import Verdict
from flows.models import Workflow
from flows.services.authored import transaction_of
from flows.services.capacity import taking
from flows.store import budgets as store
from flows.store import locks
from flows.store.budgets import Drawer
from flows.store.sql import committing

if TYPE_CHECKING:
    from flows.services.arrows import Ending
    from flows.services.owned import Owned

logger = logging.getLogger("outlast.budgets")

REVIEW = {BudgetKind.HUMAN_REVIEWS: Decimal(1)}
ONE_TOOL = {BudgetKind.TOOL_CALLS: Decimal(1)}
#: How an attempt ends that its owner did not end.
UNKNOWN = frozenset({AttemptOutcome.LOST, AttemptOutcome.TIMED_OUT})


def wanted(definition: Definition, node: str) -> Mapping[BudgetKind, Decimal]:
    """What entering this node, one attempt of it, or the next call of an agent turn draws on a budget."""
    if node in definition.calls:
        return {**definition.calls[node], **definition.reservations.get(node, {})}
    if node in definition.reservations:
        return definition.reservations[node]
    if not definition.limits_reviews:
        return {}
    kind = WAIT_KINDS.get(definition.nodes[node].kind)
    return REVIEW if kind is not None and kind.counts in REVIEW else {}


def privileged(node: Node) -> bool:
    """Whether it may use what is kept: what verifies may, what explores may not."""
    return isinstance(node, Activity) and bool(node.verifies)


def ledgers(
    definition: Definition | None,
    workflow: UUID,
    intent: UUID | None,
    kinds: Iterable[BudgetKind],
    using: str,
    *,
    along: Sequence[UUID] | None = None,
    lock: bool = False,
) -> list[Ledger]:
    """The ledgers of these kinds: the workflow's (as declared, where one is not made yet) and those `along` which it draws, then the intent's
    where it is limited.
    """
    wanted_kinds = list(kinds)
    found = store.ledgers(workflow, intent, wanted_kinds, using, along=along, lock=lock)
    made = {one.kind for one in found if one.own}
    return [_declared(definition, kind) for kind in wanted_kinds if kind not in made] + found


def _declared(definition: Definition | None, kind: BudgetKind) -> Ledger:
    budget = definition.budget if definition is not None else None
    if budget is None:
        return Ledger(None, True, kind, None, None, ZERO, ZERO, ZERO)
    return Ledger(None, True, kind, budget.amounts.get(kind), budget.soft_of(kind), budget.kept_of(kind), ZERO, ZERO)


def lacking(
    definition: Definition, node: str, workflow: UUID, intent: UUID, using: str, along: Sequence[UUID] | None = None
) -> str:
    """What is used up of what this node needs, in words; "" if there is room."""
    wants = wanted(definition, node)
    if not wants:
        return ""
    found = ledgers(definition, workflow, intent, wants, using, along=along)
    return shortage(found, wants, privileged=privileged(definition.nodes[node]))


def look(owned: Owned, node: Node) -> str:
    """The same for the attempt that is about to begin."""
    assert owned.definition is not None
    row = owned.row
    return lacking(owned.definition, node.name, row.id, row.intent_id, owned.using, row.ledgers)


def reviews(definition: Definition | None, workflow: UUID, intent: UUID, using: str, along: Sequence[UUID] | None = None) -> str:
    """Why nobody may be asked for an approval any more, or ""; no look where reviews are not limited."""
    if definition is None or not definition.limits_reviews:
        return ""
    return shortage(ledgers(definition, workflow, intent, REVIEW, using, along=along), REVIEW, privileged=False)


def still_lacks(owned: Owned, refusal: Refusal | None) -> bool:
    """Whether a refusal stands now that the workflow is locked: somebody may have raised the budget since the look.

    Who raises it locks the workflow first; so either this sees the new limit, or the raise sees the suspension and ends it.
    """
    if refusal is None or refusal.verdict is not Verdict.BUDGET_EXHAUSTED or owned.definition is None:
        return True
    row = owned.row
    if owned.lacks:  # the next call of an agent turn
        found = ledgers(owned.definition, row.id, row.intent_id, owned.lacks, owned.using, along=row.ledgers)
        return bool(shortage(found, owned.lacks, privileged=privileged(owned.definition.nodes[refusal.node])))
    return bool(lacking(owned.definition, refusal.node, row.id, row.intent_id, owned.using, row.ledgers))


def reserve(owned: Owned, node: Node) -> bool:
    """Set aside what the attempt may use, in the transaction of its pass; False: there is no room, and all of it must be taken back."""
    definition, activity = owned.definition, owned.state.activity
    assert definition is not None and activity is not None
    wants = definition.reservations.get(node.name)
    if not wants:
        return True
    locked = _locked(owned, wants)
    drawer = Drawer(owned.row.id, node.name, activity.seq, activity.number)
    return store.reserve(drawer, locked, wants, owned.using, privileged=privileged(node))


def reserve_call(owned: Owned, call: int, wants: Mapping[BudgetKind, Decimal]) -> str:
    """Set aside what one call of an agent turn may use, in the transaction that begins it; "" if there was room, else what is used up."""
    definition, activity = owned.definition, owned.state.activity
    assert definition is not None and activity is not None
    may = privileged(definition.nodes[activity.node])
    locked = _locked(owned, wants)
    drawer = Drawer(owned.row.id, activity.node, activity.seq, activity.number, call)
    if store.reserve(drawer, locked, wants, owned.using, privileged=may):
        return ""
    return shortage(locked, wants, privileged=may) or "the budget is used up"


def settle_call(owned: Owned, call: int, used: Mapping[BudgetKind, Decimal]) -> None:
    """A call of an agent turn has ended: book what it has used, and give back the rest, in the transaction that records it.

    Of a kind of which nothing is said, all that was set aside counts. All that it may lock is locked here, in one order.
    """
    row, activity = owned.row, owned.state.activity
    assert activity is not None
    store.ledgers(row.id, row.intent_id, list(BudgetKind), owned.using, along=row.ledgers, lock=True)
    drawer = Drawer(row.id, activity.node, activity.seq, activity.number, call)
    if used:
        store.spend(drawer, _locked(owned, used), used, owned.using)
    store.settle_call(drawer, owned.using)


def review(owned: Owned, node: str) -> bool:
    """Book one request for approval, in the transaction that opens it; False: no room, and all of it must be taken back.

    The attempt before it is settled after this, in the same transaction: so all that it may lock is locked here, in one order.
    """
    row = owned.row
    if owned.definition is None or not owned.definition.limits_reviews:
        return True
    store.ledgers(row.id, row.intent_id, list(BudgetKind), owned.using, along=row.ledgers, lock=True)
    return store.review(row.id, node, _locked(owned, REVIEW), owned.using)


def _locked(owned: Owned, kinds: Iterable[BudgetKind]) -> list[Ledger]:
    row = owned.row
    return _lock(owned.definition, row.id, row.intent_id, kinds, owned.using, row.ledgers)


def _lock(
    definition: Definition | None,
    workflow: UUID,
    intent: UUID,
    kinds: Iterable[BudgetKind],
    using: str,
    along: Sequence[UUID] | None = None,
) -> list[Ledger]:
    kinds = list(kinds)
    found = ledgers(definition, workflow, intent, kinds, using, along=along, lock=True)
    if missing := [one for one in found if one.id is None]:
        store.make(workflow, missing, using)
        found = ledgers(definition, workflow, intent, kinds, using, along=along, lock=True)
    return found


def draws(owned: Owned, activity: ActivityState | None, ending: Ending | None) -> bool:
    """Whether the attempt that ends here may have set something aside, or holds what is scarce, so that its ledgers are asked.

    Its owner has set aside what the definition says that it holds. Who acts in the owner's place may hold another one, of a deploy
    since then: there only the record knows.
    """
    if activity is None or ending is None:
        return False
    return ending.outcome in UNKNOWN or _reserves(owned, activity) or _holds(owned, activity)


def _reserves(owned: Owned, activity: ActivityState) -> bool:
    return owned.definition is not None and activity.node in {**owned.definition.reservations, **owned.definition.calls}


def _holds(owned: Owned, activity: ActivityState) -> bool:
    return owned.definition is not None and owned.definition.holds(activity.node)


def settle(owned: Owned, activity: ActivityState, ending: Ending, *, unused: bool = False) -> None:
    """The attempt has ended: in the transaction of the arrow that says so, after everything else of it (the lock order).

    `unused`: it met a want of capacity, so of what it has not said it has used nothing.
    """
    known = ending.outcome not in UNKNOWN
    if _holds(owned, activity) or not known:
        taking.free(owned.row.id, activity.seq, owned.using)
    if _reserves(owned, activity) or not known:
        reason = "" if known else _unknown(ending.code or ending.outcome)
        store.settle(owned.row.id, activity.seq, activity.number, owned.using, known=known, reason=reason, unused=unused)


def settle_lost(owned: Owned, code: str) -> None:
    """The owner is gone; its workflow is locked, and put back. What it had set aside is on record; the definition here may be another one."""
    store.settle_all([owned.row.id], owned.using, reason=_unknown(code))


def settle_fenced(workflows: Sequence[UUID], code: str, using: str) -> None:
    """The attempts of these (locked) workflows were fenced."""
    if workflows:
        store.settle_all(workflows, using, reason=_unknown(code))


def _unknown(code: str) -> str:
    return f"{code}: nobody knows what was used, so all that was set aside counts"


def spend(owned: Owned, used: Mapping[str, Any], began_in: object) -> str:
    """Book what the running attempt has used; durable when this returns. Answers and errors as `Attempt.spend`."""
    row, activity, using = owned.row, owned.state.activity, owned.using
    assert activity is not None
    said = _said(used, f"{owned.label}, attempt.spend")
    must_last(began_in, f"{owned.label}, attempt.spend", using)
    node = owned.definition.nodes.get(activity.node) if owned.definition is not None else None
    may = node is not None and privileged(node)
    if not said:
        return WITHIN
    with committing("spend", using):
        if not store.lock_owned(row.id, row.version, row.epoch, owned.worker, activity.seq, activity.fence, using):
            raise LostOwnership(f"workflow {row.id} is no longer this worker's; what {owned.label} had set aside counts as spent")
        drawer = Drawer(row.id, activity.node, activity.seq, activity.number)
        after = store.spend(drawer, _locked(owned, said), said, using)
    return _told(after, row.id, owned.label, may=may)


def spend_servicing(workflow: str, node: str, used: Mapping[str, Any], using: str) -> str:
    """Book what a reconcile, a compensation or a release has used. It was set aside by nobody, and may use what is kept.

    The run may be superseded, or have ended: a limit that is just being made does not lock it, so both lock the intent.
    """
    said = _said(used, f"{node}, operation.spend")
    if not said:
        return WITHIN
    with committing("spend", using):
        row = Workflow.objects.using(using).only("pk", "intent_id", "flow_name", "flow_version", "ledgers").get(pk=workflow)
        locks.intent(row.intent_id, using, shared=True)
        locks.workflows([workflow], using)
        definition = registry.definition(row.flow_name, row.flow_version)
        locked = _lock(definition, row.pk, row.intent_id, said, using, row.ledgers)
        after = store.spend(Drawer(row.pk, node, None, None), locked, said, using)
    return _told(after, row.pk, node, may=True)


def must_last(began_in: object, what: str, using: str) -> None:
    """Refuse to book in a transaction that author code has opened since: it may be rolled back.

    Raises:
        DefinitionError: it is one.
    """
    if transaction_of(connections[using]) != began_in:
        raise DefinitionError(
            f"{what}: called inside a transaction. What is rolled back would be free: call it outside the block."
        )


def _said(used: Mapping[str, Any], what: str) -> dict[BudgetKind, Decimal]:
    said = amounts_of(used, what)
    if measured := [kind.value for kind in said if kind in MEASURED]:
        raise DefinitionError(f"{what}: {', '.join(measured)} are measured, nobody says how many.")
    return said


def _told(after: Sequence[Ledger], workflow: UUID, label: str, *, may: bool) -> str:
    answer = standing(after, privileged=may)
    if answer != WITHIN:
        logger.warning("workflow %s (%s): over the %s limit of a budget", workflow, label, "soft" if answer == SOFT else "hard")
    return answer


def left(owned: Owned) -> dict[str, int | Decimal]:
    """What the running attempt may still use of each kind that is limited, with what it has set aside itself."""
    row, activity = owned.row, owned.state.activity
    assert activity is not None
    node = owned.definition.nodes.get(activity.node) if owned.definition is not None else None
    may = node is not None and privileged(node)
    own = store.held(Drawer(row.id, activity.node, activity.seq, activity.number), owned.using)
    found: dict[str, int | Decimal] = {}
    for ledger in ledgers(owned.definition, row.id, row.intent_id, BudgetKind, owned.using, along=row.ledgers):
        rest = ledger.left(privileged=may)
        if rest is None:
            continue
        shown = plain(ledger.kind, max(rest + own.get(ledger.id or 0, ZERO), ZERO))
        assert shown is not None
        found[ledger.kind.value] = min(shown, found.get(ledger.kind.value, shown))
    return found
