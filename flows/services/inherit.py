"""What becomes of a budget when its intent gets a new goal (N2): the flow's `Budget(on_new_intent=…)` says so.

    NEW       the new run has all that its flow declares; nothing is done here
    INHERIT   it has what is left of the old runs', which have nothing left
    RESERVE   the same, but what is kept stays with the old runs, for what they still have to give back and undo

The old runs are those that a new goal has ended; where the last one ended none, the newest one of the version before too. So it does not matter
whether the new goal came with a run, or how many goals had none: what was allowed once is not allowed again. It is taken by whoever starts
first; runs that start together have equal parts of it, and a later one what is left then, which is nothing. Two starts meet at the old runs'
rows, which both lock. Resume, retry and restart never come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from uuid import UUID

from flows import registry
from flows.core.budget import NEW, PIECES, PLACES, RESERVE, ZERO, Budget, Ledger, soft_limit
from flows.core.definition import Definition
from flows.core.protocol import BudgetEntryKind, BudgetKind, Status
from flows.models import Workflow
from flows.store import allowances, budgets, locks
from flows.store.allowances import Change

REASON = "the goal has changed"


def carry(definition: Definition, new: Sequence[UUID], intent: UUID, version: int, using: str) -> None:
    """Make the ledgers of runs that were just started for a later goal from those of the runs before, in the same transaction."""
    budget = definition.budget
    if budget is None or budget.on_new_intent is NEW or not new:
        return
    old = locks.workflows(_before(intent, version, using), using)
    if not old:
        return
    found = _left(definition, old, budget, using)
    shares = {kind: _shares(kind, amount, len(new)) for kind, amount in found.items()}
    for number, run in enumerate(new):
        _give(run, budget, {kind: parts[number] for kind, parts in shares.items()}, using)


def _give(new: UUID, budget: Budget, found: dict[BudgetKind, Decimal], using: str) -> None:
    made = [_inherited(budget, kind, amount) for kind, amount in found.items()]
    budgets.make(new, made, using)
    for ledger in budgets.ledgers(new, None, list(found), using, lock=True):
        assert ledger.id is not None and ledger.allowance is not None and ledger.soft is not None
        entry = Change(
            ledger.id, ledger.allowance, ledger.soft, ledger.kept, BudgetEntryKind.CARRIED, found[ledger.kind], new, REASON
        )
        allowances.change(entry, using)


def _before(intent: UUID, version: int, using: str) -> list[UUID]:
    """The old runs: those that a goal before this version has ended, and where its last one ended none, the newest run."""
    rows = (
        Workflow.objects.using(using)
        .filter(intent_id=intent, intent_version__lt=version)
        .order_by("-intent_version", "-created_at", "-pk")
    )
    runs = list(rows.values_list("pk", "intent_version", "status", "target"))
    ended = {pk: of for pk, of, status, target in runs if Status.SUPERSEDED in (status, target)}
    newest = [pk for pk, of, _, _ in runs[:1] if of not in ended.values()]
    return [*ended, *newest]


def _shares(kind: BudgetKind, amount: Decimal, count: int) -> list[Decimal]:
    """Equal parts, whole ones of what is counted in pieces; what is over goes to the first."""
    part = (amount / count).quantize(Decimal(1) if kind in PIECES else PLACES, rounding=ROUND_DOWN)
    return [amount - part * (count - 1), *[part] * (count - 1)]


def _left(definition: Definition, old: Sequence[UUID], budget: Budget, using: str) -> dict[BudgetKind, Decimal]:
    """Kind → what is taken over from the old runs, which have so much less. Kinds that no old run limits are not in it."""
    for workflow, declared in _declared(
        definition, old, using
    ):  # of a run that has used nothing so far; else what it has could be had twice
        budgets.make(workflow, [_own(declared, kind) for kind in declared.amounts if kind in budget.amounts], using)
    found: dict[BudgetKind, Decimal] = {}
    for number, workflow, name, allowance, soft, kept, spent, reserved in allowances.lock_of(old, using):
        kind = BudgetKind(name)
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
    return found


def _declared(definition: Definition, old: Sequence[UUID], using: str) -> list[tuple[UUID, Budget]]:
    """What the old runs' flows declare; of a version that is not loaded any more, what the new one does."""
    rows = Workflow.objects.using(using).filter(pk__in=old).order_by("pk").values_list("pk", "flow_name", "flow_version")
    known = [(pk, registry.definition(name, version) or definition) for pk, name, version in rows]
    return [(pk, one.budget) for pk, one in known if one.budget is not None]


def _own(budget: Budget, kind: BudgetKind) -> Ledger:
    return Ledger(None, True, kind, budget.amounts[kind], budget.soft_of(kind), budget.kept_of(kind), ZERO, ZERO)


def _inherited(budget: Budget, kind: BudgetKind, amount: Decimal) -> Ledger:
    kept = min(budget.kept_of(kind), amount)
    return Ledger(None, True, kind, amount, soft_limit(amount, budget.soft), kept, ZERO, ZERO)
