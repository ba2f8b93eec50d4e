"""manage.py flows commitments: what runs owe to somebody outside, and what becomes of it. The part of the command that is this verb's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError
from django.db.models import QuerySet

from flows.management import find, given, verbs, words
from flows.models import Commitment
from flows.models.commitment import LIVE
from flows.services import commitments, identify

TITLES = ("id", "commitment", "kind", "reference", "status", "flow", "workflow", "deadline", "reason")


def add(verb: verbs.Verb) -> None:
    """The verb `commitments`, and those below it."""
    below = verbs.below(verb("commitments", "What is owed outside; or say that it is fulfilled, handed over or deferred."))
    listing = below("list", "what is owed, the oldest first")
    listing.add_argument("id", nargs="?", metavar="ID", help="only of this run: id, unique beginning of an id, or FLOW:KEY")
    listing.add_argument("--kind", metavar="KIND")
    listing.add_argument("--all", action="store_true", help="also those that have ended")
    listing.add_argument("--limit", type=given.positive, default=50, metavar="N")
    fulfil = below("fulfil", "say that it has been fulfilled")
    transfer = below("transfer", "hand it over to somebody who services it from now on")
    transfer.add_argument("--to", required=True, metavar="WHO", help="who holds it from now on")
    defer = below("defer", "let its run end without it")
    for one in (fulfil, transfer, defer):
        one.add_argument("commitment", metavar="COMMITMENT", help="its number, as `flows commitments list` prints it")
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the commitment")
        one.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {commitments.PERMISSION}")


def do(_verb: str, **options: Any) -> verbs.Report:
    """What is owed; or what became of one, and of its run."""
    return verbs.Report(*answer(**options))


def answer(*, what: str, **options: Any) -> tuple[Any, str, str]:
    """What the verb gives: the data, the same as text, and a sentence about it.

    Raises:
        CommandError: refused. OutlastError: there is no such run or commitment, or nobody says why.
    """
    if what != "list":
        return _end(what, **options)
    using, limit = options["database"], options["limit"]
    rows = list(_wanted(using, options["id"], options["kind"], everything=options["all"])[:limit])
    return as_data(rows), as_table(rows), f"{len(rows)} shown{'; there may be more (--limit)' if len(rows) == limit else ''}"


def _wanted(using: str | None, run: str | None, kind: str | None, *, everything: bool) -> QuerySet[Commitment]:
    rows = Commitment.objects.using(identify.alias(using)).select_related("workflow").order_by("opened_at", "pk").defer("terms")
    if not everything:
        rows = rows.filter(status__in=LIVE)
    if kind is not None:
        rows = rows.filter(kind=kind)
    return rows if run is None else rows.filter(workflow_id=find.workflow(run, using))


def _end(
    what: str, *, commitment: str, reason: str, by: str, database: str | None, to: str = "", **_: Any
) -> tuple[Any, str, str]:
    who = find.permitted(by, commitments.PERMISSION, database)
    more = {"to": to} if what == "transfer" else {}
    if not commitments.ENDINGS[what](commitment, by=who, reason=reason, using=database, **more):
        raise CommandError(commitments.refusal(commitment, using=database))
    row = commitments.get(commitment, using=database)
    run = row.workflow
    data = {"id": row.pk, "status": row.status, "workflow": run.pk, "workflow_status": run.status}
    return data, row.status, f"{row.name} is {row.status}; its run is {run.status}"


def as_data(rows: Sequence[Commitment]) -> list[dict[str, Any]]:
    """What a program gets of them."""
    fields = (
        *("id", "name", "kind", "reference", "status", "node", "visit", "releasable", "may_defer", "deadline_at", "breached_at"),
        *("holder", "reason", "opened_at", "closed_at", "closed_by"),
    )
    return [
        {
            **{name: getattr(row, name) for name in fields},
            "workflow": row.workflow_id,
            "flow": row.workflow.flow_name,
            "key": row.workflow.key,
            "operation": row.operation_id,
        }
        for row in rows
    ]


def as_table(rows: Sequence[Commitment]) -> str:
    """One line a commitment."""
    cells = [
        (
            row.pk,
            row.name,
            row.kind,
            row.reference or "–",
            row.status,
            f"{row.workflow.flow_name}@{row.workflow.flow_version}",
            row.workflow_id,
            row.deadline_at,
            row.reason,
        )
        for row in rows
    ]
    return words.table(TITLES, cells)
