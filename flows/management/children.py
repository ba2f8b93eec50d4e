"""manage.py flows children: the runs that a run has started, and a second try for those that failed."""

from __future__ import annotations

from typing import Any

from flows.management import find, given, verbs, words
from flows.models import Fan
from flows.services import identify
from flows.services.children import shown

TITLES = ("node", "visit", "number", "name", "status", "code", "run")


def add(verb: verbs.Verb) -> None:
    """The verb `children`."""
    parser = verb("children", "The runs that a run has started; or run those anew that have failed.", identified=True)
    parser.add_argument("--failed", action="store_true", help="only those that failed or were cancelled")
    parser.add_argument("--limit", type=given.positive, default=50, metavar="N", help="at most so many of each node (50)")
    parser.add_argument("--after", type=int, default=0, metavar="NUMBER", help="only those after this number")
    parser.add_argument("--retry", action="store_true", help="run the failed ones anew, while their parent still waits for them")
    parser.add_argument("--reason", default="", metavar="TEXT", help="with --retry: why")
    parser.add_argument("--by", metavar="USERNAME", help=f"with --retry: who says so; needs {shown.PERMISSION}")


def do(_verb: str, **options: Any) -> verbs.Report:
    """The children of a run; or how many of them are run anew."""
    using = options["database"]
    run = find.workflow(options["id"], using)
    if options["retry"]:
        who = find.permitted(options["by"], shown.PERMISSION, using) if options["by"] else None
        count = shown.retry_failed(run, by=who, reason=options["reason"], using=using)
        return verbs.Report({"again": count}, str(count), f"{count} run anew")
    rows = shown.children(run, failed=options["failed"], after=options["after"], limit=options["limit"], using=using)
    data = [{name: getattr(row, name) for name in row.__dataclass_fields__} for row in rows]
    cells = [(row.node, row.visit, row.number, row.name or "–", row.status, row.code or "", row.id) for row in rows]
    return verbs.Report(data, words.table(TITLES, cells), _counted(run, using))


def _counted(run: Any, using: str | None) -> str:
    """A line for each fan: how many there are, and how they stand."""
    found = Fan.objects.using(identify.alias(using)).filter(workflow_id=identify.workflow_id(run)).order_by("pk")
    names = ("succeeded", "failed", "cancelled", "skipped", "running")
    lines = [
        f"{fan.node}, visit {fan.visit}: {fan.total} of {fan.body}, "
        + (", ".join(f"{getattr(fan, name)} {name}" for name in names if getattr(fan, name)) or "none started")
        for fan in found
    ]
    return "\n".join(lines) or "it has started none"
