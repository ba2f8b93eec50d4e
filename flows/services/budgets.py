"""What people decide about budgets: a limit for all runs of an intent, and more of what is used up. One service, behind API, admin and command.

    lock the workflow (of an intent: the intent and all its live ones) ──► lock the ledger ──► change it, with its entry
        ──► every run that waits because of it goes on with its pending step         one transaction
Guard against a refusal that is just being written: it locks the workflow too, and looks again when it has (`ledger.still_lacks`). Against what
a run spends that is superseded or has ended (it gives back what it still owes): that locks the intent too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.budget import MOST, ZERO, Amount, Budget, Ledger, amount_of, amounts_of, kind_of, plain, soft_limit, written
from flows.core.misuse import OutcomeUnknown, UnknownIntent, UnknownWorkflow, UsageError
from flows.core.protocol import SUSPENDED, TERMINAL, BudgetEntryKind, BudgetKind, Status
from flows.core.verdicts import Verdict
from flows.models import Budget as Row
from flows.models import Workflow
from flows.services import control, identify, ledger, warrant, way_on
from flows.store import allowances, budgets, locks
from flows.store import leave as store
from flows.store.allowances import Change
from flows.store.sql import committing

logger = logging.getLogger("outlast.budgets")

PERMISSION = "outlast_flows.raise_budget"
DEFAULT_SOFT = 0.8
#: A run that does not go on until a person says so; with an outcome of `SUSPENDED`.
STOPPED = (Status.WAITING, Status.PAUSED)


class BadAmount(UsageError):
    """What was given is no amount of that kind, or not more than there is."""

    code = "BAD_AMOUNT"


class NotLimited(UsageError):
    """There is no limit of that kind that could be raised."""

    code = "NOT_LIMITED"

    def __init__(self, of: str, kind: str, limited: Sequence[str]) -> None:
        known = f"Limited are {', '.join(limited)}." if limited else "It has no budget."
        super().__init__(f"{of} has no limit of {kind} that could be raised. {known}")


class NobodyRaises(UsageError):
    """More budget needs a user who gives it."""

    code = "NOBODY_RAISES"

    def __init__(self) -> None:
        super().__init__("A budget is raised by a user of this project: pass by=user.")


class Code(StrEnum):
    """What became of a raise."""

    RAISED = "raised"
    NOT_PERMITTED = "not_permitted"
    TOO_LATE = "too_late"


SENTENCES: dict[Code, str] = {
    Code.RAISED: "Raised.",
    Code.NOT_PERMITTED: "You may not raise a budget: that needs the permission outlast_flows.raise_budget.",
    Code.TOO_LATE: "Too late: it has ended.",
}


@dataclass(frozen=True, slots=True)
class Raised:
    """What became of a raise: the limit now, the runs that go on because of it, and those that still lack something, each with what."""

    code: Code
    kind: str
    allowance: int | Decimal | None = None
    resumed: tuple[UUID, ...] = ()
    lacking: Mapping[UUID, str] | None = None

    @property
    def sentence(self) -> str:
        return SENTENCES[self.code]

    def __bool__(self) -> bool:
        return self.code is Code.RAISED


def left(row: Row) -> Decimal | None:
    """What of a ledger is neither spent nor set aside; None where nothing is limited."""
    return None if row.allowance is None else max(row.allowance - row.spent - row.reserved, ZERO)


def of(workflow: Any = None, *, intent: Any = None, using: str | None = None) -> list[Row]:
    """The ledgers of a run (with those of its intent), or of an intent, the run's first.

    Raises:
        UnknownWorkflow, UnknownIntent: there is none.
    """
    alias = identify.alias(using)
    if intent is not None:
        return list(Row.objects.using(alias).filter(intent_id=identify.intent_id(intent)).order_by("pk"))
    row = identify.get(workflow, alias)
    own = Row.objects.using(alias).filter(workflow_id=row.pk).order_by("pk")
    return [*own, *Row.objects.using(alias).filter(intent_id=row.intent_id).order_by("pk")]


def limit(
    intent: Any,
    *,
    by: Any = None,
    soft: float = DEFAULT_SOFT,
    kept: Mapping[str, Any] | None = None,
    reason: str = "",
    using: str | None = None,
    **limits: Amount,
) -> list[Row]:
    """Limit what all runs of an intent may use together, now and under each later version of it; again sets the limits anew.

    What its runs have spent so far counts; a limit below that stops them before their next step, and is logged as a warning. Only what
    their flows declare is counted: nodes with `spends=`, flows with a budget.

    Args:
        intent: the intent, or a run of it. limits: kinds with their limits, `limit(run, model_calls=100, cost="20.00")`.
        by: the user, whose right is looked up anew; None: code of the project. reason: why; kept with the ledgers. A user says why.
        soft: the share of each limit at which to warn. kept: what of it only verification may use.
    Raises:
        UnknownIntent: there is none. BadAmount: a limit is none. ReasonMissing: `by` is named, and says not why.
        NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    reason = warrant.reason(reason, "why that is the limit") if by is not None else reason
    intent_id = identify.intent_id(intent)
    declared = _as_budget(limits, soft, kept)
    with committing("limit budgets", alias):
        if locks.intent(intent_id, alias) is None:
            raise UnknownIntent(intent)
        live = store.lock_live_of_intent(intent_id, alias)
        for kind, amount in declared.amounts.items():
            keeps = declared.kept_of(kind)
            made = allowances.limit(
                intent_id,
                kind.value,
                allowance=amount,
                soft=soft_limit(amount, soft),
                kept=keeps,
                reason=identify.reason(reason),
                by=identify.user_key(by),
                by_label=identify.label(by),
                using=alias,
            )
            if not made:
                (found,) = budgets.ledgers(None, intent_id, [kind.value], alias, lock=True)
                _change(found, amount, soft_limit(amount, soft), keeps, None, by, reason, alias)
        _go_on(live, by, reason, alias)
    rows = of(intent=intent_id, using=alias)
    _tell_of_less(rows, declared.amounts)
    return rows


def _tell_of_less(rows: Iterable[Row], limited: Iterable[BudgetKind]) -> None:
    """A limit may be below what is used already: then nothing more is begun that uses any, which may not be what was meant."""
    for row in rows:
        used = row.spent + row.reserved
        if row.kind in set(limited) and row.allowance is not None and row.allowance < used:
            kind = BudgetKind(row.kind)
            logger.warning(
                "the limit of %s of intent %s is %s now, and %s are used already: no run of it begins another step that needs some",
                kind.value, row.intent_id, plain(kind, row.allowance), plain(kind, used),
            )  # fmt: skip


def _as_budget(limits: Mapping[str, Amount], soft: float, kept: Mapping[str, Any] | None) -> Budget:
    given = amounts_of(limits, "limit", BadAmount)
    keeps = amounts_of(kept or {}, "limit, kept", BadAmount)
    if not given:
        raise BadAmount("limit needs at least one kind with its limit: limit(run, model_calls=100).")
    if over := [kind.value for kind, amount in keeps.items() if amount > given.get(kind, ZERO)]:
        raise BadAmount(f"limit keeps more {', '.join(over)} than it allows.")
    return Budget(soft=soft, kept=_plain(keeps), **_plain(given))


def _plain(amounts: Mapping[BudgetKind, Decimal]) -> dict[str, Any]:
    return {kind.value: amount for kind, amount in amounts.items()}


def raise_(
    workflow: Any = None,
    kind: str = "",
    *,
    intent: Any = None,
    by_amount: Amount | None = None,
    to: Amount | None = None,
    by: Any,
    reason: str,
    using: str | None = None,
) -> Raised:
    """Allow more of one kind, and let every run go on that waits because of it, with exactly its pending step.

    Args:
        workflow: the run; or `intent=`: an intent (or a run of it), whose limit all its runs share.
        kind: such as "model_calls". by_amount: how much more; or to: the new limit.
        by: the user; rights are looked up anew. reason: why, in words; kept with the ledger.
    Raises:
        UnknownWorkflow, UnknownIntent: there is none. BadAmount: it is no amount, or not more. NotLimited: there is no such limit.
        NobodyRaises: `by` is no user. ReasonMissing: nobody says why.
    """
    alias = identify.alias(using)
    wanted = kind_of(kind, "raise", BadAmount)
    if (workflow is None) == (intent is None):
        raise BadAmount("Raise the budget of a run or of an intent: pass one of them.")
    if (by_amount is None) == (to is None):
        raise BadAmount("Say how much more, or up to what: by_amount= or to=.")
    more = amount_of(wanted, by_amount if to is None else to, "raise", BadAmount)
    identify.user(by, NobodyRaises)
    if not warrant.is_permitted(by, PERMISSION, alias):
        return Raised(Code.NOT_PERMITTED, wanted.value)
    reason = warrant.reason(reason, "why more is allowed")
    with committing("raise budget", alias):
        live, found = _of_workflow(workflow, wanted, alias) if intent is None else _of_intent(intent, wanted, alias)
        if not live and intent is None:
            return Raised(Code.TOO_LATE, wanted.value)
        assert found.allowance is not None
        allowance = more if to is not None else found.allowance + more
        if allowance <= found.allowance:
            raise BadAmount(
                f"The limit of {wanted.value} is {plain(wanted, found.allowance)} already; raise it to more than that."
            )
        if allowance >= MOST:
            would, now = written(wanted, allowance), written(wanted, found.allowance)
            raise BadAmount(f"The limit of {wanted.value} would be {would}; a limit is below {MOST:f}. It is {now} now.")
        share = found.soft / found.allowance if found.soft and found.allowance else Decimal(str(DEFAULT_SOFT))
        soft = soft_limit(allowance, float(share))
        _change(found, allowance, soft, found.kept, workflow if intent is None else None, by, reason, alias)
        resumed, lacking = _go_on(live, by, reason, alias)
    logger.info("budget of %s raised to %s by %s; %s runs go on", wanted, allowance, identify.label(by), len(resumed))
    return Raised(Code.RAISED, wanted.value, plain(wanted, allowance), tuple(resumed), lacking)


def _of_workflow(workflow: Any, kind: BudgetKind, using: str) -> tuple[list[UUID], Ledger]:
    """The locked runs that are live of those that draw on it, the run and its children, and its locked ledger, made if need be."""
    row_id = identify.workflow_id(workflow)
    drawing = store.lock_drawing_on(row_id, using)
    if row_id not in drawing:
        raise UnknownWorkflow(workflow)
    row = Workflow.objects.using(using).get(pk=row_id)
    definition = registry.definition(row.flow_name, row.flow_version)
    (found,) = ledger.ledgers(definition, row_id, None, [kind], using, lock=True)
    if found.allowance is None:
        limited = {one.kind for one in of(row_id, using=using) if one.workflow_id and one.allowance is not None}
        declared = definition.budget.amounts if definition is not None and definition.budget is not None else {}
        raise NotLimited(f"Workflow {row_id}", kind.value, sorted(limited | {one.value for one in declared}))
    if found.id is None:
        budgets.make(row_id, [found], using)
        (found,) = budgets.ledgers(row_id, None, [kind.value], using, lock=True)
    return [one for one in drawing if one != row_id or row.status not in TERMINAL], found


def _of_intent(intent: Any, kind: BudgetKind, using: str) -> tuple[list[UUID], Ledger]:
    intent_id = identify.intent_id(intent)
    if locks.intent(intent_id, using) is None:
        raise UnknownIntent(intent)
    live = store.lock_live_of_intent(intent_id, using)
    found = budgets.ledgers(None, intent_id, [kind.value], using, lock=True)
    if not found or found[0].allowance is None:
        limited = Row.objects.using(using).filter(intent_id=intent_id, allowance__isnull=False).order_by("kind")
        raise NotLimited(f"Intent {intent_id}", kind.value, list(limited.values_list("kind", flat=True)))
    return live, found[0]


def _change(
    found: Ledger, allowance: Decimal, soft: Decimal, kept: Decimal, workflow: Any, by: Any, reason: str, using: str
) -> None:
    assert found.id is not None
    delta = allowance - (found.allowance or ZERO)
    change = Change(
        id=found.id,
        allowance=allowance,
        soft=soft,
        kept=kept,
        entry=BudgetEntryKind.RAISED,
        amount=delta,
        workflow=identify.workflow_id(workflow) if workflow is not None else None,
        reason=identify.reason(reason),
        by=identify.user_key(by),
        by_label=identify.label(by),
    )
    allowances.change(change, using)


def _go_on(live: Iterable[UUID], by: Any, reason: str, using: str) -> tuple[list[UUID], dict[UUID, str]]:
    """Of these locked runs, resume those that wait because a budget was used up, if there is room now; and what the others still lack.

    One that something else has stopped since (a deadline, a pause) waits for a person, whatever room there is; whoever allows more hears of it.
    """
    stopped = Workflow.objects.using(using).filter(pk__in=list(live), status__in=STOPPED, outcome__in=SUSPENDED)
    resumed: list[UUID] = []
    lacking: dict[UUID, str] = {}
    for row in stopped.order_by("pk"):
        if lacks := _lacks(row, using):
            lacking[row.pk] = lacks
            continue
        try:
            if control.resume(row.pk, reason=reason, by=by, using=using):
                resumed.append(row.pk)
        except OutcomeUnknown as error:
            lacking[row.pk] = str(error)
    return resumed, lacking


def _lacks(row: Workflow, using: str) -> str:
    if row.status != Status.WAITING or row.error_code != Verdict.BUDGET_EXHAUSTED:
        return way_on.needed(row, (), using).says
    definition = registry.definition(row.flow_name, row.flow_version)
    if definition is None or row.node not in definition.nodes:
        return ""
    return ledger.lacking(definition, row.node, row.pk, row.intent_id, using, row.ledgers)
