"""What work may cost, what one attempt sets aside before it begins, and when that is too much (N1, N2). Pure.

Amounts are decimals with six places. An allowance of None is counted and never refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from flows.core.errors import DefinitionError, OutlastError
from flows.core.protocol import BudgetKind

Amount = int | str | Decimal | float

#: Counted one by one; the others may have a fraction.
PIECES = frozenset(BudgetKind) - {BudgetKind.COMPUTE_SECONDS, BudgetKind.COST}
#: Nobody says how much of it was used: it is measured.
MEASURED = frozenset({BudgetKind.COMPUTE_SECONDS})

PLACES = Decimal("0.000001")
#: One amount, and a limit, is below this.
MOST = Decimal(10) ** 13
#: The largest sum that a ledger holds. What is spent beyond it leaves it there: it was used, and nothing may fail because it is much.
FULL = Decimal(10) ** 14 - PLACES
ZERO = Decimal(0)

#: The answers of `attempt.spend`, from good to bad.
WITHIN, SOFT, HARD = "within", "soft", "hard"


class OnNewIntent(StrEnum):
    """Where the budget of a run comes from that a new version of its intent starts."""

    NEW = "new"
    INHERIT = "inherit"
    RESERVE = "reserve"


NEW = OnNewIntent.NEW
INHERIT = OnNewIntent.INHERIT
RESERVE = OnNewIntent.RESERVE


def kind_of(name: object, what: str, error: type[OutlastError] = DefinitionError) -> BudgetKind:
    """The kind of that name.

    Raises:
        `error`: there is none.
    """
    try:
        return BudgetKind(str(name))
    except ValueError:
        raise error(
            f"{what}: there is no budget of {name!r:.60}. Kinds are {', '.join(kind.value for kind in BudgetKind)}."
        ) from None


def amount_of(kind: BudgetKind, value: object, what: str, error: type[OutlastError] = DefinitionError) -> Decimal:
    """A checked amount of that kind; what has more than six places is rounded up, so that nothing is free.

    Raises:
        `error`: it is no amount of that kind.
    """
    if isinstance(value, int) and abs(value) >= MOST:  # Python refuses to print the longest
        raise error(
            f"{what}: {kind.value} is an integer of {value.bit_length()} bits; an amount is at least 0 and below {MOST:f}."
        )
    said = f"{what}: {kind.value} is {value!r:.60}"
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal | float):
        raise error(f"{said}, which is no amount. {_example(kind)}")
    if isinstance(value, float) and kind in PIECES | {BudgetKind.COST}:
        raise error(f"{said}, a float, which is not exact. {_example(kind)}")
    try:
        amount = Decimal(value) if isinstance(value, int) else Decimal(str(value))
    except InvalidOperation:
        raise error(f"{said}, which is no number. {_example(kind)}") from None
    if not amount.is_finite() or not ZERO <= amount < MOST:
        raise error(f"{said}; an amount is at least 0 and below {MOST:f}.")
    if kind in PIECES and amount != amount.to_integral_value():
        raise error(f"{said}; {kind.value} are counted in whole pieces. {_example(kind)}")
    return amount.quantize(PLACES, rounding=ROUND_UP)


def _example(kind: BudgetKind) -> str:
    given = {BudgetKind.COST: '"5.00"', BudgetKind.COMPUTE_SECONDS: "90"}.get(kind, "40")
    return f"Write {kind.value}={given}."


def amounts_of(given: Mapping[str, Any], what: str, error: type[OutlastError] = DefinitionError) -> dict[BudgetKind, Decimal]:
    """Kind → checked amount, in the order of the kinds; None is left out.

    Raises:
        `error`: they are no amounts by kind, a kind does not exist, or an amount is none.
    """
    by_kind: Any = given
    if not isinstance(by_kind, Mapping):
        raise error(f'{what}: amounts are given by kind, {{"model_calls": 40}}; got {type(by_kind).__name__}.')
    known = {kind_of(name, what, error): value for name, value in given.items() if value is not None}
    return {kind: amount_of(kind, known[kind], what, error) for kind in BudgetKind if kind in known}


def plain(kind: str, amount: Decimal | None) -> int | Decimal | None:
    """An amount for people and programs: pieces as whole numbers, others without zeros at the end."""
    if amount is None:
        return None
    if amount == amount.to_integral_value():
        return int(amount) if kind in PIECES else Decimal(int(amount))
    return amount.normalize()


def written(kind: str, amount: Decimal | None) -> str:
    """The same as text; "–" for no limit."""
    shown = plain(kind, amount)
    return "–" if shown is None else str(shown) if isinstance(shown, int) else f"{shown:f}"


@dataclass(frozen=True, kw_only=True)
class _Kinds:
    """One amount for each kind; None: not said."""

    model_tokens: int | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    search_expansions: int | None = None
    compute_seconds: Amount | None = None
    cost: Amount | None = None
    human_reviews: int | None = None

    def __post_init__(self) -> None:
        given = {kind.value: getattr(self, kind.value) for kind in BudgetKind}
        object.__setattr__(self, "_amounts", amounts_of(given, type(self).__name__))

    @property
    def amounts(self) -> Mapping[BudgetKind, Decimal]:
        """Kind → amount, of those that are said."""
        return self.__dict__["_amounts"]  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Spend(_Kinds):
    """What one attempt of a node may use at most; it is set aside before the attempt begins.

    Args:
        model_tokens, model_calls, tool_calls, search_expansions, human_reviews: whole numbers.
        cost: in the currency of the project, as text: "0.05". compute_seconds: of the attempt's running time, which is measured.
    """


@dataclass(frozen=True, kw_only=True)
class Kept(_Kinds):
    """What of a budget only verification and reconciliation may use. Arguments as those of `Spend`."""


@dataclass(frozen=True, kw_only=True)
class Budget(_Kinds):
    """What one run may use in all, over days, restarts and retries.

    Args:
        model_tokens, model_calls, tool_calls, search_expansions, compute_seconds, cost, human_reviews: as those of `Spend`; a kind that is
            not named is counted where nodes spend it, and not limited.
        soft: the share of each limit (0 to 1) at which the accountable user is told, once.
        kept: what of it exploration cannot use: `Kept(model_tokens=20_000)`, or a mapping of kinds.
        on_new_intent: of a run that is started for a later goal of its intent: NEW (all of this), INHERIT (what is left of the old
            run's), RESERVE (the same, but what is `kept` stays with the old run, for its cleanup).
    """

    soft: float = 0.8
    kept: Kept | Mapping[str, Any] = field(default_factory=Kept)
    on_new_intent: OnNewIntent = NEW

    def __post_init__(self) -> None:
        super().__post_init__()
        kept = self.kept if isinstance(self.kept, Kept) else Kept(**_named(self.kept))
        object.__setattr__(self, "kept", kept)
        soft: Any = self.soft
        if not isinstance(soft, int | float) or isinstance(soft, bool) or not 0 < soft <= 1:
            raise DefinitionError(f"Budget(soft=…) is the share at which to warn, above 0 and at most 1; got {self.soft!r:.60}.")
        if not isinstance(self.on_new_intent, OnNewIntent):
            raise DefinitionError(f"Budget(on_new_intent=…) is NEW, INHERIT or RESERVE; got {self.on_new_intent!r:.60}.")
        for kind, amount in kept.amounts.items():
            limit = self.amounts.get(kind)
            if limit is None:
                raise DefinitionError(f"Budget keeps {kind.value}, and does not limit them: add {kind.value}=….")
            if amount > limit:
                shown = f"{written(kind, amount)} {kind.value} of {written(kind, limit)}"
                raise DefinitionError(f"Budget keeps {shown}: at most all of it can be kept.")

    def kept_of(self, kind: BudgetKind) -> Decimal:
        """What of that kind is kept."""
        assert isinstance(self.kept, Kept)
        return self.kept.amounts.get(kind, ZERO)

    def soft_of(self, kind: BudgetKind) -> Decimal | None:
        """The soft limit of that kind."""
        limit = self.amounts.get(kind)
        return None if limit is None else soft_limit(limit, self.soft)


def soft_limit(limit: Decimal, share: float) -> Decimal:
    """The amount at which to warn."""
    return (limit * Decimal(str(share))).quantize(PLACES)


def _named(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise DefinitionError(f"Budget(kept=…) is Kept(model_tokens=20_000) or a mapping of kinds, got {given!r:.60}.")
    return {kind_of(name, "Budget(kept=…)").value: value for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class Ledger:
    """One ledger as it stands. `own`: the workflow's; `above`: that of a run above it; else the intent's. `id` None: it is not made yet."""

    id: int | None
    own: bool
    kind: BudgetKind
    allowance: Decimal | None
    soft: Decimal | None
    kept: Decimal
    spent: Decimal
    reserved: Decimal
    above: bool = False

    def left(self, *, privileged: bool) -> Decimal | None:
        """What can still be set aside; None: as much as you like. `privileged`: by verification, which may use what is kept."""
        if self.allowance is None:
            return None
        return self.allowance - (ZERO if privileged else self.kept) - self.spent - self.reserved

    def lacks(self, amount: Decimal, *, privileged: bool) -> str:
        """Why so much cannot be set aside, or "". An amount of 0 is measured afterwards: something must be left."""
        left = self.left(privileged=privileged)
        if left is None or (amount <= left if amount else left > ZERO):
            return ""
        of = "the workflow's" if self.own else "a parent's" if self.above else "the intent's"
        kept = f", {written(self.kind, self.kept)} of them kept for verification" if self.kept and not privileged else ""
        needs = f"; one attempt needs {written(self.kind, amount)}" if amount else ""
        spent, reserved, allowance = (written(self.kind, one) for one in (self.spent, self.reserved, self.allowance))
        return f"{of} budget of {self.kind.value} is used up: {spent} spent and {reserved} reserved of {allowance}{kept}{needs}"


def shortage(ledgers: Iterable[Ledger], wanted: Mapping[BudgetKind, Decimal], *, privileged: bool) -> str:
    """What is used up of what an attempt wants to set aside, in words; "" if there is room in each ledger."""
    for ledger in ledgers:
        if ledger.kind in wanted and (lacks := ledger.lacks(wanted[ledger.kind], privileged=privileged)):
            return lacks
    return ""


def standing(ledgers: Iterable[Ledger], *, privileged: bool) -> str:
    """Whether all that was spent is within the limits, over a soft one, or at (or over) a hard one."""
    worst = WITHIN
    for ledger in ledgers:
        if ledger.allowance is None:
            continue
        if ledger.spent >= ledger.allowance - (ZERO if privileged else ledger.kept):
            return HARD
        if ledger.soft is not None and ledger.spent >= ledger.soft:
            worst = SOFT
    return worst
