"""manage.py flows schedules: what starts which flow, when; and what people do about it. The command's part for this verb."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError

from flows.core.spans import in_utc
from flows.management import find, given, verbs, words
from flows.models import Occurrence, Schedule
from flows.services import identify
from flows.services.schedules import acting
from flows.services.schedules.acting import PERMISSION, Acted, Coming

LISTED = ("name", "origin", "flow", "when", "zone", "next", "last", "user", "paused")
OCCURRENCES = ("scheduled_for", "local", "origin", "status", "code", "tries", "run", "started", "ended")
NEXT = ("at", "local", "by", "due")

#: Verb → what it does.
VERBS = {
    "pause": "plan and start nothing of it any more, but what somebody runs now",
    "resume": "let it go on; what came in the pause is skipped",
    "run": "run it now, also while it is paused",
    "backfill": "add the moments of a time that is over",
}


def add(verb: verbs.Verb) -> None:
    """The verb `schedules`, and those below it."""
    below = verbs.below(verb("schedules", "Schedules: what starts which flow, when."))
    below("list", "every schedule, with its next moment")
    show = below("show", "one schedule, and its newest occurrences")
    coming = below("next", "the next moments, local and in UTC, with the policy that made each")
    acts = {name: below(name, summary) for name, summary in VERBS.items()}
    for one in (show, coming, *acts.values()):
        one.add_argument("name", metavar="NAME")
    show.add_argument("--limit", type=given.positive, default=20, metavar="N", help="how many occurrences; default: 20")
    coming.add_argument("--count", type=given.positive, default=10, metavar="N", help="how many; default: 10")
    for option in ("since", "until"):
        acts["backfill"].add_argument(f"--{option}", required=True, metavar="MOMENT", help="such as 2026-11-01T00:00+01:00")
    for one in acts.values():
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept")
        one.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {PERMISSION}")


def do(_verb: str, *, what: str, database: str | None, **options: Any) -> verbs.Report:
    """What a verb gives."""
    match what:
        case "list":
            rows = [_row(one) for one in Schedule.objects.using(identify.alias(database)).order_by("name")]
            return _table(LISTED, rows, f"{len(rows)} shown")
        case "show":
            return _shown(acting.get(options["name"], using=database), options["limit"], identify.alias(database))
        case "next":
            found = acting.coming(options["name"], options["count"], using=database)
            return _table(NEXT, [_coming(one) for one in found], f"{len(found)} shown")
    by = find.permitted(options["by"], PERMISSION, database)
    wish = {"by": by, "reason": options["reason"], "using": database}
    return _acted(what, _act(what, options, wish))


def _act(what: str, options: dict[str, Any], wish: dict[str, Any]) -> Acted:
    name = options["name"]
    match what:
        case "pause":
            return acting.pause(name, **wish)
        case "resume":
            return acting.resume(name, **wish)
        case "run":
            return acting.run_now(name, **wish)
    return acting.backfill(name, since=_moment(options["since"]), until=_moment(options["until"]), **wish)


def _acted(what: str, done: Acted) -> verbs.Report:
    data = {"name": done.name, "revision": done.revision, "changed": done.changed, "moments": list(done.moments)}
    if what in ("run", "backfill"):
        count = len(done.moments)
        return verbs.Report(data, str(count), f"{count} {'occurrence' if count == 1 else 'occurrences'} added to {done.name}")
    held = "paused" if what == "pause" else "going on"
    return verbs.Report(data, done.name, f"{done.name} is {held}" if done else f"{done.name} was {held} already")


def _moment(text: str) -> datetime:
    try:
        found = in_utc(datetime.fromisoformat(text))
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"{text!r} is no moment with an offset, such as 2026-11-01T00:00+01:00.", returncode=2)
    return found


def _row(one: Schedule) -> tuple[Any, ...]:
    when = f"{one.kind} {one.expression}"
    return (one.name, one.origin, one.flow_name, when, one.time_zone, one.next_at, one.last_at, one.user_label, one.paused_at)


def _shown(one: Schedule, limit: int, using: str) -> verbs.Report:
    rows = Occurrence.objects.using(using).filter(schedule_id=one.pk).order_by("-scheduled_for")[:limit]
    listed = [
        (row.scheduled_for, row.local, row.origin, row.status, row.code, row.tries, row.workflow_id, row.started_at, row.ended_at)
        for row in rows
    ]
    fields = (
        "revision",
        "repeated",
        "missing",
        "missed",
        "window",
        "cap",
        "overlap",
        "cooldown",
        "jitter",
        "compute",
        "calendar",
    )
    own = [(name, _plain(getattr(one, name))) for name in (*fields, "priority", "tenant", "reason")]
    data = {**dict(zip(LISTED, _row(one), strict=True)), **dict(own)}
    data["occurrences"] = [dict(zip(OCCURRENCES, row, strict=True)) for row in listed]
    text = "\n\n".join(
        [words.table(LISTED, [_row(one)]), words.table(("option", "value"), own), words.table(OCCURRENCES, listed)]
    )
    return verbs.Report(data, text, f"{len(listed)} occurrences shown")


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _coming(one: Coming) -> tuple[Any, ...]:
    return (one.at, one.local, one.by, one.due_at)


def _table(titles: Sequence[str], rows: Sequence[tuple[Any, ...]], said: str) -> verbs.Report:
    return verbs.Report([dict(zip(titles, row, strict=True)) for row in rows], words.table(tuple(titles), rows), said)
