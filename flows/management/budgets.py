"""manage.py flows budget: how ledgers stand, more of what is used up, a limit for all runs of an intent. The command's part for this verb."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from flows.core.budget import plain, written
from flows.core.protocol import BudgetKind
from flows.management import find, verbs, words
from flows.models import Budget
from flows.services import identify
from flows.services.budgets import DEFAULT_SOFT, PERMISSION, Raised, left, of, raise_
from flows.services.budgets import limit as set_limit

TITLES = ("of", "kind", "limit", "spent", "reserved", "left", "kept", "soft", "warned")


def add(verb: verbs.Verb) -> None:
    """The verb `budget`, and those below it."""
    summary = "How the budgets of a run stand, more of what is used up, or a limit for all runs of its intent."
    below = verbs.below(verb("budget", summary))
    show = below("show", "how the ledgers of a run and of its intent stand")
    allow = below("raise", "allow more of one kind; what waits because of it goes on")
    limit_ = below("limit", "limit what all runs of a run's intent may use together; again sets the limits anew")
    for one in (show, allow, limit_):
        one.add_argument("id", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY")
    allow.add_argument("kind", choices=[kind.value for kind in BudgetKind], metavar="KIND", help="such as model_calls")
    allow.add_argument("--intent", action="store_true", help="the limit that all runs of the run's intent share")
    amount = allow.add_mutually_exclusive_group(required=True)
    amount.add_argument("--by-amount", metavar="N", help="how much more")
    amount.add_argument("--to", metavar="N", help="the new limit")
    limit_.add_argument("limits", nargs="+", metavar="KIND=N", help="such as model_calls=100 cost=20.00")
    limit_.add_argument("--keep", action="append", default=[], metavar="KIND=N", help="what of it only verification may use")
    limit_.add_argument("--soft", type=float, default=DEFAULT_SOFT, metavar="SHARE", help="warn at this share of each limit")
    for one in (allow, limit_):
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the ledger")
        one.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {PERMISSION}")


def do(_verb: str, *, database: str | None, **options: Any) -> verbs.Report:
    """How the ledgers of a run stand; or raise one, or limit those of its intent, and what followed from it."""
    return verbs.Report(*answer(using=database, **options))


def answer(*, what: str, id: str, using: str | None, **options: Any) -> tuple[Any, str, str]:
    """What the verb gives: the data, the same as text, and a sentence about it.

    Raises:
        CommandError: wrong usage, or refused. OutlastError: there is no such run, the amount is none, or nobody says why.
    """
    workflow = find.workflow(id, using)
    if what == "show":
        rows = of(workflow, using=using)
        return as_data(rows), as_table(rows), f"{len(rows)} ledgers" if rows else "no budget was drawn on so far"
    return _raise(workflow, using, **options) if what == "raise" else _limit(workflow, using, **options)


def _raise(
    workflow: UUID,
    using: str | None,
    *,
    kind: str,
    intent: bool,
    by_amount: str | None,
    to: str | None,
    by: str,
    reason: str,
    **_: Any,
) -> tuple[Any, str, str]:
    owner = {"intent": identify.get(workflow, using).intent_id} if intent else {"workflow": workflow}
    found = raise_(kind=kind, by_amount=by_amount, to=to, by=find.user(by, using), reason=reason, using=using, **owner)
    if not found:
        raise CommandError(found.sentence)
    data = {
        "code": found.code.value,
        "kind": found.kind,
        "allowance": _number(found.kind, found.allowance),
        "resumed": list(found.resumed),
        "lacking": {str(run): lacks for run, lacks in (found.lacking or {}).items()},
    }
    return data, f"{found.allowance}", said(found)


def _limit(
    workflow: UUID, using: str | None, *, limits: list[str], keep: list[str], soft: float, by: str, reason: str, **_: Any
) -> tuple[Any, str, str]:
    """The ledgers of the intent afterwards: kinds that are not named here stay as they were."""
    who = find.permitted(by, PERMISSION, using)
    intent = identify.get(workflow, using).intent_id
    rows = set_limit(intent, by=who, reason=reason, soft=soft, kept=_amounts(keep), using=using, **_amounts(limits))
    return as_data(rows), as_table(rows), f"{len(rows)} ledgers of the intent"


def _amounts(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        kind, equals, amount = one.partition("=")
        if not equals:
            raise CommandError(f"{one!r} is not KIND=N, such as model_calls=100.", returncode=2)
        if kind in found:
            raise CommandError(f"{kind} is limited twice.", returncode=2)
        found[kind] = amount
    return found


def said(found: Raised) -> str:
    """What followed from a raise, in words."""
    count = len(found.resumed)
    parts = [f"{found.kind} raised; {count} {'run goes' if count == 1 else 'runs go'} on"]
    parts += [f"{run} still lacks: {lacks}" for run, lacks in (found.lacking or {}).items()]
    return "\n".join(parts)


def as_data(rows: Sequence[Budget]) -> list[dict[str, Any]]:
    """What a program gets of them: amounts as numbers, or as text where they have a fraction."""
    return [
        {
            "of": "workflow" if row.workflow_id else "intent",
            "id": row.workflow_id or row.intent_id,
            "kind": row.kind,
            **{name: _number(row.kind, getattr(row, name)) for name in ("allowance", "spent", "reserved", "kept", "soft")},
            "left": _number(row.kind, left(row)),
            "warned": row.warned_at,
        }
        for row in rows
    ]


def _number(kind: str, amount: Decimal | int | None) -> int | str | None:
    shown = plain(kind, None if amount is None else Decimal(amount))
    return shown if shown is None or isinstance(shown, int) else f"{shown:f}"


def as_table(rows: Sequence[Budget]) -> str:
    """One line a ledger."""
    return words.table(
        TITLES,
        [
            (
                "workflow" if row.workflow_id else "intent",
                row.kind,
                *(
                    written(row.kind, amount)
                    for amount in (row.allowance, row.spent, row.reserved, left(row), row.kept, row.soft)
                ),
                row.warned_at,
            )
            for row in rows
        ],
    )
