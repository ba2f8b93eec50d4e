"""manage.py flows dependencies, and flows limits: how what is scarce stands, and what people say of it. The command's part for these verbs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flows.management import find, verbs, words
from flows.models import Limit
from flows.services import identify
from flows.services.capacity import health
from flows.services.capacity.health import PERMISSION, Shown
from flows.store import slots

TITLES = ("name", "status", "since", "waiting", "in use", "ceiling", "rate", "allowed", "drained in", "code", "by", "reason")
LIMITS = ("limit", "in use", "at once", "a second", "waiting")


def add(verb: verbs.Verb) -> None:
    """The verbs `dependencies` and `limits`, and those below them."""
    below = verbs.below(verb("dependencies", "How what is outside stands, and what people say of it."))
    below("list", "all of them: status, who waits, and how long until nobody does")
    down = below("down", "say that one is down: nothing is let through until somebody says that it is up")
    up = below("up", "say that one is back: it recovers along its ramp")
    rate = below("rate", "set what is let through, in place of what is declared; without numbers: as it is declared")
    for one in (down, up, rate):
        one.add_argument("name", metavar="NAME", help="the name of the dependency")
        one.add_argument("--reason", required=True, metavar="TEXT", help="why; it is kept with the dependency")
        one.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {PERMISSION}")
    rate.add_argument("--rate", type=float, metavar="N", help="runs a second while it recovers")
    rate.add_argument("--ceiling", type=int, metavar="N", help="attempts at once")
    limits = verbs.below(verb("limits", "What may run at once, or a second, and who waits for it."))
    limits("list", "all limits that were ever asked for, with those of live runs")


def do(verb: str, *, database: str | None, what: str, **options: Any) -> verbs.Report:
    """The list, or what became of one.

    Raises:
        OutlastError: there is no such dependency, or the user may not.
    """
    if verb == "limits":
        return _limits(database)
    if what == "list":
        shown = health.show(using=database)
        return verbs.Report([as_data(one) for one in shown], as_table(shown), f"{len(shown)} dependencies")
    name = options["name"]
    said = {"by": find.user(options["by"], database), "reason": options["reason"], "using": database}
    if what == "rate":
        status = health.set_rate(name, rate=options["rate"], ceiling=options["ceiling"], **said)
    else:
        status = (health.down if what == "down" else health.up)(name, **said)
    one = health.show(name, using=database)
    return verbs.Report(as_data(one), as_table([one]), f"{name} is {status}")


def as_data(one: Shown) -> dict[str, Any]:
    """What a program gets of one."""
    return asdict(one)


def as_table(shown: list[Shown]) -> str:
    """One line each."""
    rows = [
        (
            one.name, one.status, one.since, one.waiting, one.in_use, one.ceiling, one.rate, one.allowed or "",
            f"{one.drain_seconds:.0f} s" if one.waiting else "", one.code, one.by, one.reason,
        )
        for one in shown
    ]  # fmt: skip
    return words.table(TITLES, rows)


def _limits(database: str | None) -> verbs.Report:
    alias = identify.alias(database)
    rows = [
        (one.label, slots.used(one.pk, alias), one.size, one.rate, slots.waiting(one.label, alias))
        for one in Limit.objects.using(alias).order_by("label")
    ]
    data = [dict(zip(("limit", "in_use", "size", "rate", "waiting"), row, strict=True)) for row in rows]
    return verbs.Report(data, words.table(LIMITS, rows), f"{len(rows)} limits")
