"""manage.py flows events, flows latency: the inbox, what is delivered again, and how long wake-ups take. The parts that are these verbs'."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandError

from flows.core.inbox import ALERTS, Place
from flows.management import find, given, verbs, words
from flows.models import Event, EventStatus
from flows.services import identify, latency, redacting, redelivering
from flows.services.events import Reception

TITLES = ("number", "id", "type", "key", "status", "place", "deliveries", "workflow", "observed")
FIELDS = (
    *(
        "event_id",
        "type",
        "key",
        "status",
        "place",
        "deliveries",
        "wait_id",
        "workflow_id",
        "about_workflow",
        "about_epoch",
        "about_intent",
    ),
    *("about_wait", "position", "held_until", "redelivered", "copy_of", "observed_at"),
)
REFUSED = {
    Reception.ALREADY: "It has been taken, or has moved: nothing was changed. Look again (flows events show).",
    Reception.TOO_LATE: "That wait takes nothing any more: it is closed, or has been answered. Nothing was changed.",
}


def add(verb: verbs.Verb) -> None:
    """The verbs `events` and `latency`, and those below the first."""
    below = verbs.below(verb("events", "The inbox: what came from outside, where it stands, and to deliver it again."))
    listing = below("list", "what is in the inbox, the newest first")
    listing.add_argument("--status", choices=list(EventStatus.values))
    listing.add_argument("--place", choices=[place.value for place in Place])
    listing.add_argument("--alerts", action="store_true", help=f"what somebody should look at: {', '.join(sorted(ALERTS))}")
    listing.add_argument("--type", metavar="TYPE")
    listing.add_argument("--key", metavar="KEY", help="of one type: give --type, too")
    listing.add_argument("--limit", type=given.positive, default=50, metavar="N")
    below("show", "one event, with its payload and who had it delivered again").add_argument("event", metavar="NUMBER")
    again = below("redeliver", "give an event to whoever waits for it now, or next; or to one wait")
    again.add_argument("event", metavar="NUMBER", help="its number, as `flows events list` prints it")
    again.add_argument("--to", metavar="WAIT", help="the number of the one wait that gets it, whatever its key")
    again.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept")
    again.add_argument("--by", required=True, metavar="USERNAME", help=f"who decides: needs {redelivering.PERMISSION}")
    waking = verb("latency", "How long it took from what woke a run until a worker had taken it, by kind of wait.")
    waking.add_argument("--flow", metavar="NAME")
    waking.add_argument("--days", type=given.positive, default=7, metavar="N", help="of the last N days; default 7")


def do(verb: str, **options: Any) -> verbs.Report:
    """Rows, one row, or what became of a redelivery."""
    if verb == "latency":
        return _latency(**options)
    answers: dict[str, Callable[..., verbs.Report]] = {"list": _list, "show": _show, "redeliver": _redeliver}
    return answers[options.pop("what")](**options)


def _list(
    *, status: str | None, place: str | None, type: str | None, key: str | None, alerts: bool, limit: int, **options: Any
) -> verbs.Report:
    if key is not None and type is None:
        raise CommandError("--key wants --type: the two together are a channel.", returncode=given.WRONG_USAGE)
    rows = Event.objects.using(identify.alias(options["database"])).order_by("-pk").defer("payload")
    wanted = {"status": status, "place": place, "type": type, "key": key}
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    if alerts:
        rows = rows.filter(place__in=sorted(ALERTS))
    found = list(rows[:limit])
    said = f"{len(found)} shown{'; there may be more (--limit)' if len(found) == limit else ''}"
    return verbs.Report([as_data(row) for row in found], as_table(found), said)


def _show(*, event: str, **options: Any) -> verbs.Report:
    using = identify.alias(options["database"])
    row = redelivering.get(_number(event), using=using)
    again = [
        {
            "status": one.status,
            "place": one.place,
            "to": one.wait_id,
            "woken": one.woken,
            "by": one.by_label,
            "reason": one.reason,
            "at": one.at,
        }
        for one in row.redeliveries.using(using).order_by("pk")
    ]
    data = {**as_data(row), "payload": redacting.shown("payload", row.payload), "redeliveries": again}
    shown = [
        (name, words.as_json(value) if name == "payload" else value) for name, value in data.items() if name != "redeliveries"
    ]
    text = words.table(("what", "is"), shown)
    if again:
        text += "\n\n" + words.table(tuple(again[0]), [tuple(one.values()) for one in again])
    return verbs.Report(data, text)


def _redeliver(*, event: str, to: str | None, reason: str, by: str, **options: Any) -> verbs.Report:
    using = options["database"]
    who = find.permitted(by, redelivering.PERMISSION, using)
    found = redelivering.redeliver(
        _number(event), by=who, reason=reason, to=_number(to) if to is not None else None, using=identify.alias(using)
    )
    said = f"{len(found.woken)} reached" if found.woken else "nobody waits for it now; the next wait takes it"
    wrong = REFUSED.get(found.answer, "")
    return verbs.Report(found, found.answer.value, "" if wrong else said, wrong)


def _latency(*, flow: str | None, days: int, **options: Any) -> verbs.Report:
    found = latency.wake_ups(flow=flow, days=days, using=options["database"])
    titles = tuple(field.name for field in dataclasses.fields(latency.WakeUps))
    rows = [[f"{value:.3f}" if isinstance(value, float) else value for value in dataclasses.astuple(one)] for one in found]
    return verbs.Report(
        [dataclasses.asdict(one) for one in found], words.table(titles, rows), f"seconds, of the last {days} days"
    )


def as_data(row: Event) -> dict[str, Any]:
    """What a program gets of one."""
    return {"number": row.pk, **{name: getattr(row, name) for name in FIELDS}}


def as_table(rows: Sequence[Event]) -> str:
    """One line an event."""
    cells = [
        (row.pk, row.event_id, row.type, row.key, row.status, row.place, row.deliveries, row.workflow_id, row.observed_at)
        for row in rows
    ]
    return words.table(TITLES, cells)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise CommandError(f"{text!r} is no number: `flows events list` prints those of events, `flows show` those of waits.")
    return int(text)
