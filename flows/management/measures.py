"""manage.py flows measures: where the time of runs goes, and how each flow does. The part of the command that is this verb's."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from flows.management import given, verbs, words
from flows.services import figures
from flows.services.figures import Everything, Figures, Kept

TITLES = (
    "flow",
    "started",
    "complete",
    "live",
    "oldest",
    "tries/visit",
    "woken p95",
    "stale",
    "stuck",
    "in doubt",
    "owed",
    "breached",
)
WAITS = ("flow", "waits", "how many", "oldest", "overdue", "looks first", "decides")
OBJECTIVES = ("flow", "objective", "within", "promised", "kept", "of", "late by")


def add(verb: verbs.Verb) -> None:
    """The verb `measures`."""
    made = verb("measures", "Where the time of runs goes, by flow and version, and how each flow does.")
    made.add_argument("--flow", metavar="NAME")
    made.add_argument(
        "--hours", type=given.positive, default=24, metavar="N", help="of so many whole hours and this one; default 24"
    )


def do(_verb: str, *, flow: str | None, hours: int, **options: Any) -> verbs.Report:
    """The figures, as tables or as data."""
    found = figures.figures(flow=flow, hours=hours, using=options["database"])
    tables = (
        words.table(TITLES, [_line(one) for one in found.flows]),
        words.table(("flow", "bucket", "seconds", "share"), [row for one in found.flows for row in _buckets(one)]),
        words.table(WAITS, [(_name(one), *row) for one in found.flows for row in _waits(one)]),
        words.table(OBJECTIVES, [(_name(one), *_objective(kept)) for one in found.flows for kept in one.objectives]),
    )
    said = f"of {words.moment(found.start)} to {words.moment(found.end)}"
    broken = [(one, kept) for one in found.flows for kept in one.objectives if kept.breached]
    said += "".join(f"\n{_name(one)} does not keep its objective: {kept.objective}" for one, kept in broken)
    return verbs.Report(as_data(found), "\n\n".join(one for one in tables if one), said)


def as_data(found: Everything) -> dict[str, Any]:
    """What a program gets: what is worked out from the rest, too. A span beyond every column is null."""
    return {"start": found.start, "end": found.end, "flows": [_data(one) for one in found.flows]}


def _data(one: Figures) -> dict[str, Any]:
    data = dataclasses.asdict(one)
    data["buckets"] = {bucket: float(seconds) for bucket, seconds in one.buckets.items()}
    data["wake"] = {str(share): bound if math.isfinite(bound) else None for share, bound in one.wake.items()}
    data["waits"] = [{**dataclasses.asdict(wait), "looks": wait.looks, "decides": wait.decides} for wait in one.waits]
    data["objectives"] = [{**dataclasses.asdict(kept), "kept": kept.kept, "breached": kept.breached} for kept in one.objectives]
    return {
        **data,
        "completion": one.completion,
        "amplification": one.amplification,
        "breach_rate": one.breach_rate,
        "orphan_rate": one.orphan_rate,
    }


def _name(one: Figures) -> str:
    return f"{one.flow}@{one.version}"


def _line(one: Figures) -> tuple[object, ...]:
    woken = one.wake.get(0.95)
    return (
        _name(one),
        one.started,
        _share(one.completion),
        sum(one.live.values()),
        span(one.oldest),
        "" if one.amplification is None else f"{one.amplification:.2f}",
        "" if woken is None else f"≤ {span(woken)}",
        one.stale,
        one.stuck,
        one.in_doubt,
        one.owed,
        one.breached,
    )


def _buckets(one: Figures) -> list[tuple[object, ...]]:
    total = sum(one.buckets.values())
    return [
        (_name(one), bucket, f"{seconds:.1f}", _share(float(seconds / total)))
        for bucket, seconds in sorted(one.buckets.items(), key=lambda item: -item[1])
    ]


def _waits(one: Figures) -> list[tuple[object, ...]]:
    return [(wait.kind, wait.count, span(wait.oldest), wait.overdue, wait.looks, wait.decides) for wait in one.waits]


def _objective(kept: Kept) -> tuple[object, ...]:
    blame = ", ".join(f"{name} ({count})" for name, count in kept.blame.items())
    return kept.objective, span(kept.within), _share(kept.share), _share(kept.kept), kept.of, blame


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def span(seconds: float | None) -> str:
    """A span as people say it."""
    if seconds is None:
        return ""
    if not math.isfinite(seconds):
        return "more than 7 days"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} s"
