"""manage.py flows budget: how the ledgers of a run stand, and more of what is used up. The part of the command that is this verb's."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.core.management.base import CommandError

from flows.core.budget import plain, written
from flows.core.protocol import BudgetKind
from flows.management import find, words
from flows.models import Budget
from flows.services import identify
from flows.services.budgets import Raised, left, of, raise_

TITLES = ("of", "kind", "limit", "spent", "reserved", "left", "kept", "soft", "warned")


def add_budget(parser: ArgumentParser) -> None:
    """The arguments of `flows budget`."""
    parser.add_argument("action", choices=["show", "raise"], metavar="show|raise", help="how it stands, or allow more")
    parser.add_argument("id", metavar="ID", help="id, unique beginning of an id, or FLOW:KEY")
    parser.add_argument(
        "kind", nargs="?", choices=[kind.value for kind in BudgetKind], metavar="KIND", help="of raise: such as model_calls"
    )
    parser.add_argument("--intent", action="store_true", help="of raise: the limit that all runs of the run's intent share")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--by-amount", metavar="N", help="of raise: how much more")
    amount.add_argument("--to", metavar="N", help="of raise: the new limit")
    parser.add_argument("--reason", default="", metavar="TEXT", help="of raise: why; it is kept with the ledger")
    parser.add_argument("--by", metavar="USERNAME", help="of raise: who says so: needs outlast_flows.raise_budget")


def answer(*, action: str, id: str, using: str | None, **options: Any) -> tuple[Any, str, str]:
    """What the verb gives: the data, the same as text, and a sentence about it.

    Raises:
        CommandError: wrong usage, or refused. OutlastError: there is no such run, or the amount is none.
    """
    workflow = find.workflow(id, using)
    if action == "show":
        rows = of(workflow, using=using)
        return as_data(rows), as_table(rows), f"{len(rows)} ledgers" if rows else "no budget was drawn on so far"
    missing = [name for name in ("kind", "reason", "by") if not options[name]]
    if options["by_amount"] is None and options["to"] is None:
        missing.append("by-amount or --to")
    if missing:
        wanted = ", ".join(name if name == "kind" else f"--{name}" for name in missing)
        raise CommandError(f"raise needs {wanted}.", returncode=2)
    owner = {"intent": identify.get(workflow, using).intent_id} if options["intent"] else {"workflow": workflow}
    found = raise_(
        kind=options["kind"],
        by_amount=options["by_amount"],
        to=options["to"],
        by=find.user(options["by"], using),
        reason=options["reason"],
        using=using,
        **owner,
    )
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
