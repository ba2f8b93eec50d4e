"""What becomes of a budget when its intent gets a new goal (N2): the flow's `Budget(on_new_intent=…)` says so.

    NEW       the new run has all that its flow declares; nothing is done here
    INHERIT   it has what is left of the old runs', which have nothing left
    RESERVE   the same, but what is kept stays with the old runs, for what they still have to give back and undo

The old runs are those that the new goal has ended; where none was alive, the newest one of the version before. Resume, retry and restart
never come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from flows import registry
from flows.core.budget import NEW, RESERVE, ZERO, Budget, Ledger, soft_limit
from flows.core.definition import Definition
from flows.core.protocol import BudgetEntryKind, BudgetKind
from flows.models import Workflow
from flows.store import allowances, budgets
from flows.store.allowances import Change

REASON = "the goal has changed"


def carry(definition: Definition, new: UUID, intent: UUID, version: int, ended: Sequence[UUID], using: str) -> None:
    """Make the ledgers of a run that a new goal has just started from those of the runs before it, in the same transaction."""
    budget = definition.budget
    if budget is None or budget.on_new_intent is NEW:
        return
    old = list(ended) or _newest(intent, version - 1, using)
    if not old:
        return
    found = _left(old, budget, using)
    made = [_inherited(budget, kind, amount) for kind, amount in found.items()]
    budgets.make(new, made, using)
    for ledger in budgets.ledgers(new, None, list(found), using, lock=True):
        assert ledger.id is not None and ledger.allowance is not None and ledger.soft is not None
        entry = Change(
            ledger.id, ledger.allowance, ledger.soft, ledger.kept, BudgetEntryKind.CARRIED, found[ledger.kind], new, REASON
        )
        allowances.change(entry, using)


def _newest(intent: UUID, version: int, using: str) -> list[UUID]:
    rows = Workflow.objects.using(using).filter(intent_id=intent, intent_version=version).order_by("-created_at", "-pk")
    return list(rows.values_list("pk", flat=True)[:1])


def _left(old: Sequence[UUID], budget: Budget, using: str) -> dict[BudgetKind, Decimal]:
    """Kind → what is taken over from the old runs, which have so much less. Kinds that no old run limits are not in it."""
    found: dict[BudgetKind, Decimal] = {}
    made: set[tuple[UUID, BudgetKind]] = set()
    for number, workflow, name, allowance, soft, kept, spent, reserved in allowances.lock_of(old, using):
        kind = BudgetKind(name)
        made.add((workflow, kind))
        if kind not in budget.amounts or allowance is None:
            continue
        stays = kept if budget.on_new_intent is RESERVE else ZERO
        taken = max(allowance - stays - spent - reserved, ZERO)
        found[kind] = found.get(kind, ZERO) + taken
        if taken:
            change = Change(
                number, allowance - taken, min(soft, allowance - taken), min(kept, allowance - taken), BudgetEntryKind.CARRIED, -taken,
                workflow, REASON,
            )  # fmt: skip
            allowances.change(change, using)
    for workflow, declared in _declared(old, using):
        for kind, limit in declared.amounts.items():
            if kind in budget.amounts and (workflow, kind) not in made:  # it has used nothing so far
                stays = declared.kept_of(kind) if budget.on_new_intent is RESERVE else ZERO
                found[kind] = found.get(kind, ZERO) + limit - stays
    return found


def _declared(old: Sequence[UUID], using: str) -> list[tuple[UUID, Budget]]:
    rows = Workflow.objects.using(using).filter(pk__in=old).values_list("pk", "flow_name", "flow_version")
    known = [(pk, registry.definition(name, version)) for pk, name, version in rows]
    return [(pk, definition.budget) for pk, definition in known if definition is not None and definition.budget is not None]


def _inherited(budget: Budget, kind: BudgetKind, amount: Decimal) -> Ledger:
    kept = min(budget.kept_of(kind), amount)
    return Ledger(None, True, kind, amount, soft_limit(amount, budget.soft), kept, ZERO, ZERO)
