"""manage.py flows orphans: what nobody owns, wakes, ends or services any more; to look for it now, to repair it, to dismiss it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from flows.core.liveness import KINDS, FindingStatus, Repair
from flows.management import find, given, verbs, words
from flows.models import Finding, Scan
from flows.services import identify
from flows.services.liveness import acting, scanning
from flows.services.liveness.acting import PERMISSION

TITLES = ("number", "kind", "about", "status", "first seen", "last seen", "times", "before", "what it says")
FIELDS = (
    *("kind", "subject", "workflow_id", "facts", "status", "first_seen", "last_seen", "times", "before", "tries", "code"),
    *("by_label", "reason", "closed_at"),
)
WORDS = {"workflow_id": "workflow", "by_label": "by", "code": "repair"}


def add(verb: verbs.Verb) -> None:
    """The verb `orphans`: the list, or with an action and a number what is done about one."""
    orphans = verb("orphans", "What nobody owns, wakes, ends or services any more; exit code 1 where something of it is open.")
    orphans.add_argument(
        "action", nargs="?", choices=["repair", "dismiss"], help="what to do about one; without it they are listed"
    )
    orphans.add_argument("number", nargs="?", metavar="NUMBER", help="the number of the orphan, as the list has it")
    orphans.add_argument(
        "--scan", action="store_true", help="look for them now, and mend what mends itself, before they are listed"
    )
    orphans.add_argument("--kind", choices=list(KINDS), help="only of this kind")
    orphans.add_argument("--all", action="store_true", help="those that are closed, too")
    orphans.add_argument("--limit", type=given.positive, default=50, metavar="N")
    orphans.add_argument("--how", choices=[one.value for one in Repair], help="which repair; default: the first that is offered")
    orphans.add_argument("--reason", metavar="TEXT", help="why it is repaired or dismissed; it is kept")
    orphans.add_argument("--by", metavar="USERNAME", help=f"who decides: needs {PERMISSION}, and the right of the repair")


def do(_: str, *, action: str | None, number: str | None, database: str | None, **options: Any) -> verbs.Report:
    """The list, after a scan if one is wanted; or what became of a repair.

    Raises:
        OutlastError: there is no such orphan, it is not repaired so, or the user may not.
    """
    if action is None:
        return _list(database, **options)
    if number is None or options["reason"] is None or options["by"] is None:
        raise CommandError(f"{action} wants NUMBER, --by and --reason.", returncode=given.WRONG_USAGE)
    said = {"by": find.user(options["by"], database), "reason": options["reason"], "using": database}
    if action == "dismiss":
        done = acting.dismiss(number, **said)
    else:
        done = acting.repair(number, how=options["how"], **said)
    return verbs.Report(done, done.answer.value, done.sentence if done else "", "" if done else done.sentence)


def _list(database: str | None, *, scan: bool, kind: str | None, all: bool, limit: int, **_: Any) -> verbs.Report:
    alias = identify.alias(database)
    lines = []
    if scan:
        done = scanning.scan(kinds=[kind] if kind is not None else None, using=alias)
        repaired, took = sum(one.repaired for one in done), sum(one.seconds for one in done)
        lines.append(f"{len(done)} kinds looked for in {took:.2f} s, {repaired} repaired")
    rows = Finding.objects.using(alias).order_by("-pk")
    if kind is not None:
        rows = rows.filter(kind=kind)
    found = list((rows if all else rows.filter(status=FindingStatus.OPEN))[:limit])
    scans = Scan.objects.using(alias).exclude(kind="")
    failed = scans.exclude(problem="").order_by("kind")
    lines += [f"{one.kind} was not looked for: {one.problem}" for one in failed]
    lines.append(f"{len(found)} shown{'; there may be more (--limit)' if len(found) == limit else ''}")
    left = rows.filter(status=FindingStatus.OPEN).count()
    wrong = f"{left} open: `manage.py flows orphans repair NUMBER`, or dismiss." if left else ""
    return verbs.Report([as_data(row) for row in found], as_table(found), "\n".join(lines), wrong)


def as_data(row: Finding) -> dict[str, Any]:
    """What a program gets of one."""
    offered = [one.value for one in acting.repairs(row)]
    return {"number": row.pk, **{WORDS.get(name, name): getattr(row, name) for name in FIELDS}, "offered": offered}


def as_table(rows: list[Finding]) -> str:
    """One line each."""
    cells = [
        (
            *(row.pk, row.kind, row.subject, row.status, row.first_seen, row.last_seen, row.times, row.before),
            ", ".join(f"{name} {value}" for name, value in sorted(row.facts.items()) if value is not None),
        )
        for row in rows
    ]
    return words.table(TITLES, cells)
