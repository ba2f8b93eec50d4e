"""manage.py flows bulk: one verb for all runs that a filter finds. The command's part for it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flows.management import find, given, verbs, words
from flows.services import bulk, identify
from flows.services.bulk import Shown

TITLES = ("id", "verb", "filter", "status", "runs", "left", "became", "by", "reason", "since")


def add(verb: verbs.Verb) -> None:
    """The verb `bulk`, and those below it."""
    below = verbs.below(verb("bulk", "Do one thing to all runs that a filter finds, as a job that workers carry out."))
    make = below("make", "make one: the runs are chosen now, and done one by one")
    make.add_argument("act", choices=list(bulk.VERBS), metavar="VERB", help=", ".join(bulk.VERBS))
    for name in bulk.COLUMNS:
        made: dict[str, Any] = {"type": given.positive} if name == "version" else {}
        make.add_argument(f"--{name}", metavar=name.upper(), dest=f"of_{name}", help="only runs of this", **made)
    make.add_argument("--to", type=given.positive, metavar="VERSION", help="of migrate: default the newest that can be reached")
    make.add_argument(
        "--at", metavar="NODE", help="of resume: the node where runs go on that a gate has stopped; default where they stand"
    )
    make.add_argument("--dry-run", action="store_true", help="only count the runs")
    listing = below("list", "the newest ones, and how far they are")
    listing.add_argument("--limit", type=given.positive, default=20, metavar="N")
    show = below("show", "one, and what became of its runs")
    stop = below("stop", "do no more of one; what is done is done")
    for one in (show, stop):
        one.add_argument("id", type=given.positive, metavar="ID")
    for one in (make, stop):
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is the reason in the log of each run")
        one.add_argument(
            "--by", metavar="USERNAME", help=f"with whose rights: needs {bulk.PERMISSION}, also while it is carried out"
        )


def do(_verb: str, *, database: str | None, what: str, **options: Any) -> verbs.Report:
    """The list, or what became of one.

    Raises:
        OutlastError: it cannot be done, or the user may not.
    """
    alias = identify.alias(database)
    if what == "list":
        shown = bulk.listed(options["limit"], using=alias)
        return verbs.Report([asdict(one) for one in shown], _table(shown), f"{len(shown)} shown")
    if what == "show":
        return _one(bulk.show(options["id"], using=alias))
    by = find.user(options["by"], alias)
    if what == "stop":
        stopped = bulk.stop(options["id"], reason=options["reason"], by=by, using=alias)
        return _one(bulk.show(options["id"], using=alias), "stopped" if stopped else "it was over already")
    filters = {name: options[f"of_{name}"] for name in bulk.COLUMNS if options[f"of_{name}"] is not None}
    runs = bulk.chosen(using=alias, **filters)
    if options["dry_run"]:
        count = runs[: bulk.MOST + 1].count()
        return verbs.Report({"runs": count}, str(count), "runs match; nothing was changed")
    arguments = {name: options[name] for name in ("to", "at") if options[name] is not None}
    made = bulk.make(options["act"], runs, filter=filters, reason=options["reason"], arguments=arguments, by=by, using=alias)
    return _one(made, f"{made.total} runs; flows bulk show {made.id} says how far it is")


def _one(shown: Shown, said: str = "") -> verbs.Report:
    return verbs.Report(asdict(shown), _table([shown]), said)


def _table(shown: list[Shown]) -> str:
    rows = [
        (
            one.id,
            one.verb,
            _listed(one.filter),
            one.status,
            one.total,
            one.left,
            _listed(one.counts),
            one.by,
            one.reason,
            one.made_at,
        )
        for one in shown
    ]
    return words.table(TITLES, rows)


def _listed(value: Any) -> str:
    return " ".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else str(value)
