"""manage.py flows calendars: every version, and the next one. The command's part for this verb."""

from __future__ import annotations

from typing import Any

from flows.management import find, given, verbs, words
from flows.models import Calendar
from flows.services import calendars, identify

TITLES = ("name", "version", "zone", "digest", "by", "at", "reason")


def add(verb: verbs.Verb) -> None:
    """The verb `calendars`, and those below it."""
    below = verbs.below(verb("calendars", "Named calendars: business hours, holidays, windows."))
    below("list", "every version, the newest first")
    publish = below("publish", "publish the next version; the same again changes nothing")
    publish.add_argument("name", metavar="NAME")
    publish.add_argument("--body", required=True, metavar="FILE", help="a file with a JSON object; - reads it from stdin")
    publish.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the version")
    publish.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {calendars.PERMISSION}")


def do(_verb: str, *, what: str, database: str | None, **options: Any) -> verbs.Report:
    """List the versions, or publish the next."""
    if what == "list":
        rows = list(Calendar.objects.using(identify.alias(database)).order_by("name", "-version"))
        listed = [(one.name, one.version, _zone(one.body), one.digest, one.by_label, one.at, one.reason) for one in rows]
        data = [{**dict(zip(TITLES, row, strict=True)), "body": one.body} for row, one in zip(listed, rows, strict=True)]
        return verbs.Report(data, words.table(TITLES, listed), f"{len(rows)} shown")
    body = given.from_file(options["body"], f"--body {options['body']}")
    by = find.permitted(options["by"], calendars.PERMISSION, database)
    made = calendars.publish(options["name"], body, reason=options["reason"], by=by, using=database)
    said = "published" if made.created else "is what is published already"
    found = {"name": made.name, "version": made.version, "created": made.created}
    return verbs.Report(found, f"{made.name}@{made.version}", f"{made.name}@{made.version} {said}")


def _zone(body: Any) -> str:
    return str(body.get("zone", "")) if isinstance(body, dict) else ""
