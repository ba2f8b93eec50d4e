"""manage.py flows retention and archive: what would be deleted, deleted now; and archived runs read again."""

from __future__ import annotations

import dataclasses
from typing import Any

from flows.management import given, verbs, words
from flows.services import identify, redacting
from flows.services.retention import looking, reading
from flows.store.aging import Progress

FORESEEN = ("flow", "due", "kept")
LISTED = ("id", "flow", "key", "status", "ended", "archived", "file")
LOG = ("seq", "at", "from", "to", "trigger", "code")


def add(verb: verbs.Verb) -> None:
    """The verbs `retention` and `archive`, and those below it."""
    retention = verb("retention", "Delete ended runs that are old enough, as OUTLAST['RETENTION'] says; the clock does it, too.")
    retention.add_argument("--dry-run", action="store_true", help="say what would go, by flow; nothing is changed")
    retention.add_argument("--once", action="store_true", help=f"one batch of {looking.BATCH} runs; else until none is left")
    below = verbs.below(verb("archive", "Read runs that retention has archived and deleted."))
    listed = below("list", "what was archived last")
    listed.add_argument("--flow", metavar="NAME")
    listed.add_argument("--limit", type=given.positive, default=50, metavar="N")
    below("show", "one run, compared with its digest").add_argument("id", metavar="ID", help="id, or FLOW:KEY")


def do(verb: str, *, database: str | None, what: str = "", **options: Any) -> verbs.Report:
    """What the verb gives.

    Raises:
        OutlastError: the setting cannot be, or a run cannot be read.
    """
    using = identify.alias(database)
    if verb == "retention":
        return _retention(using, **options)
    return _show(using, options["id"]) if what == "show" else _list(using, options["flow"], options["limit"])


def _retention(using: str, *, dry_run: bool, once: bool, **_: Any) -> verbs.Report:
    rules = looking.rules()
    if dry_run:
        found = looking.foresee(rules, using)
        table = words.table(FORESEEN, ((one.flow, one.due, one.kept) for one in found))
        said = (
            f"{sum(one.due for one in found)} runs would be deleted, {sum(one.kept for one in found)} old ones are still needed"
        )
        return verbs.Report([dataclasses.asdict(one) for one in found], table, said)
    batches = [looking.once(rules, Progress(None, {}), using)] if once else list(looking.everything(rules, using))
    rows: dict[str, int] = {}
    for batch in batches:
        for name, count in batch.rows.items():
            rows[name] = rows.get(name, 0) + count
    deleted = sum(batch.deleted for batch in batches)
    more = batches[-1].more
    said = f"{deleted} runs deleted" + "".join(f", {count} {name}" for name, count in sorted(rows.items()))
    return verbs.Report({"deleted": deleted, "rows": rows, "more": more}, "", said + ("; there may be more" if more else ""))


def _list(using: str, flow: str | None, limit: int) -> verbs.Report:
    found = reading.newest(flow, limit, using)
    rows = [(one.id, one.flow, one.key, one.status, one.ended_at, one.archived_at, one.file) for one in found]
    said = f"{len(rows)} shown{'; there may be more (--limit)' if len(rows) == limit else ''}"
    return verbs.Report([dataclasses.asdict(one) for one in found], words.table(LISTED, rows, whole=("file",)), said)


def _show(using: str, text: str) -> verbs.Report:
    found = reading.find(text, using)
    found = dataclasses.replace(found, record=redacting.record(found.record))
    facts = [
        f"workflow     {found.id} ({words.shown(found.flow)}{f', key {words.shown(found.key)}' if found.key is not None else ''})",
        f"state        {found.status}, ended {words.moment(found.ended_at)}",
        f"archived     {words.moment(found.archived_at)}, {words.shown(found.file) or 'in the table'}, {found.digest}",
    ]
    log = found.record.get("outlast_transition", [])
    rows = ([row["seq"], row["at"], row["from_status"], row["to_status"], row["trigger"], row["error_code"]] for row in log)
    counts = ", ".join(f"{len(rows)} {table.removeprefix('outlast_')}" for table, rows in sorted(found.record.items()))
    text = "\n".join(facts) + "\n\n" + words.table(LOG, rows) + f"\n\nrows: {counts} (all with --json)"
    return verbs.Report(dataclasses.asdict(found), text, "the record is what was archived")
