"""manage.py flows doctor: what must be there for runs to move, and is not. The command's part for it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flows.core import visible
from flows.management import verbs
from flows.services import doctor
from flows.services.doctor import Level


def add(verb: verbs.Verb) -> None:
    """The verb `doctor`."""
    made = verb("doctor", "Look at database, clock, workers, queues, versions, broker and Celery's settings; nothing is changed.")
    made.add_argument("--strict", action="store_true", help="exit with 1 for warnings, too")


def do(_verb: str, *, database: str | None, strict: bool, **_options: Any) -> verbs.Report:
    """What is wrong, the worst first, each with the way out."""
    found = doctor.examine(using=database)
    lines = []
    for ill in found.found:
        lines += [f"{ill.level.upper()} {ill.code}: {visible.plain(ill.what)}", f"    way out: {visible.plain(ill.way_out)}"]
    bad = found.worst is Level.ERROR or (strict and found.worst is Level.WARNING)
    counts = [(level, sum(ill.level is level for ill in found.found)) for level in Level]
    said = ", ".join(f"{count} {level}{'s' if count != 1 else ''}" for level, count in counts if count) or "nothing is wrong"
    said = f"looked at {', '.join(found.looked)}: {said}"
    data = {"looked": list(found.looked), "worst": found.worst, "found": [asdict(ill) for ill in found.found]}
    return verbs.Report(data, "\n".join(lines), said, "Something is wrong." if bad else "")
