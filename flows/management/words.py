"""What the command prints: JSON for programs; tables and sentences for people, with hidden characters made visible."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from django.utils import timezone

from flows.core import visible
from flows.core.deadlines import OF_WAITS
from flows.core.protocol import TERMINAL, AttemptOutcome
from flows.services.describe import Description, ReleaseView
from flows.services.waits_shown import WaitView

LONGEST = 80


def as_json(value: Any) -> str:
    """One JSON document, in ASCII: nothing in it can act on a terminal."""
    return json.dumps(value, indent=2, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, whole: Sequence[str] = ()) -> str:
    """Columns under their titles, as wide as needed; empty where there is nothing to show. `whole`: titles of columns that are not cut."""
    cells = [[shown(cell, cut=title not in whole) for title, cell in zip(titles, row, strict=True)] for row in rows]
    if not cells:
        return ""
    widths = [max(len(title), *(len(row[i]) for row in cells)) for i, title in enumerate(titles)]
    lines = [[title.upper() for title in titles], *cells]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def shown(value: object, *, cut: bool = True) -> str:
    """A value in one cell: hidden characters named, long text cut."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment(value)
    text = visible.plain(str(value))
    return text if not cut or len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def moment(value: datetime | None) -> str:
    """A time in the zone of the settings, to the millisecond."""
    if value is None:
        return "–"
    return timezone.localtime(value).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def description(found: Description) -> str:
    """The five answers about a workflow in plain words, then its timeline and its attempts."""
    name = f"{found.flow}, version {found.version}" + (f", key {found.key}" if found.key is not None else "")
    facts = [
        ("workflow", f"{found.id} ({name})"),
        ("wanted", f"{found.intent['goal']} (intent version {found.intent['version']}, {found.intent['status']})"),
        ("accountable", found.accountable or "nobody is named"),
        ("state", state(found)),
        *(("why", f"{one.code}: {one.says}. Way out: {one.out}") for one in found.why),
        *([("release", release(found.release, ended=found.status in TERMINAL))] if found.release is not None else []),
        *(("waiting for", wait(one)) for one in found.waits),
        *([] if found.waits else [("waiting for", "nothing")]),
        (
            "commitments",
            ", ".join(f"{one['name']} {one['reference']} ({one['status']})".replace("  ", " ") for one in found.commitments)
            or "none",
        ),
        *(("deadline", deadline(one)) for one in found.deadlines if one["kind"] not in OF_WAITS),
        ("may become", ", ".join(found.legal_moves) or "nothing else: this is the end"),
        ("next nodes", ", ".join(f"{target} ({label})" if label else target for label, target in found.next_nodes) or "none"),
        ("decision", found.decision_needed),
        *([("result", json.dumps(found.result, ensure_ascii=False))] if found.result is not None else []),
        *([("sessions", ", ".join(found.sessions))] if found.sessions else []),
    ]
    width = max(len(label) for label, _ in facts)
    parts = ["\n".join(f"{label.capitalize().ljust(width)}  {visible.plain(text)}" for label, text in facts)]
    parts += [timeline(found.timeline), attempts(found.attempts), verdicts(found.verdicts)]
    return "\n\n".join(part for part in parts if part)


def state(found: Description) -> str:
    """Which state it is in, since when, and why if it is not by plan."""
    outcome = f", {found.outcome}" if found.outcome else ""
    code = f" because of {found.error_code}" if found.error_code else ""
    return f"{found.status} at {found.node}{outcome}{code}, since {moment(found.updated_at)}"


def release(found: ReleaseView, *, ended: bool) -> str:
    """Which release a run works under, which one is current, and who offers it; nobody needs to when it has ended."""
    current = (
        "the current one"
        if found.current == found.name
        else f"current is {found.current}"
        if found.current
        else "none is current"
    )
    kept = ", which a person passed over" if found.passed_over and found.passed_over == found.current else ""
    if ended:
        return f"{found.name} ({current}{kept})"
    offered = f"offered by {', '.join(found.offered_by)}" if found.offered_by else "no live worker offers it"
    return f"{found.name} ({current}{kept}); {offered}{'. ALERT: the run is ready, and cannot be taken' if found.alert else ''}"


def wait(one: WaitView) -> str:
    """Which event is awaited, who can give it, and until when."""
    what = f"event {one.event_type} with key {one.key}" if one.event_type else one.reason
    if one.answered:
        return f"{what}, at {one.node}: it has come, and is decided on when the run goes on; since {moment(one.since)}"
    until = f"until {moment(one.deadline)}" if one.deadline else "without a deadline"
    then = f", then {one.on_expiry}" if one.on_expiry else ""
    return f"{what}, at {one.node}; from {one.ends}; since {moment(one.since)}, {until}{then}"


def deadline(one: Mapping[str, Any]) -> str:
    """Whose deadline it is, when it passes or passed, and what its policy says or has brought."""
    states = {
        "pending": "to come",
        "fired": "passed, to be handled",
        "handled": "passed, handled",
        "stale": "passed, too late to matter",
    }
    name = f" {one['name']}" if one["name"] else ""
    return f"{one['kind']}{name} at {moment(one['due_at'])}, then {one['on_expiry'] or 'as declared'} ({states[one['status']]})"


def timeline(rows: Sequence[Mapping[str, Any]]) -> str:
    """The transitions as a table."""
    titles = ("#", "when", "from", "to", "node", "outcome", "because", "code", "note")
    return table(
        titles,
        (
            (
                row["seq"],
                row["at"],
                row["from_status"] or "–",
                row["to_status"],
                row["to_node"],
                row["outcome"],
                _because(row),
                row["error_code"],
                json.dumps(row["note"], ensure_ascii=False) if row["note"] else "",
            )
            for row in rows
        ),
    )


def _because(row: Mapping[str, Any]) -> str:
    """The trigger, and what it refers to: of an attempt that ended, the number of its activity."""
    if row["trigger"] in set(AttemptOutcome) | {"completed"} and row["trigger_ref"]:
        return f"activity {row['trigger_ref']} {row['trigger']}"
    return " ".join(str(row[part]) for part in ("trigger", "trigger_ref") if row[part])


def attempts(rows: Sequence[Mapping[str, Any]]) -> str:
    """The ended attempts as a table."""
    titles = ("activity", "attempt", "node", "started", "ended", "outcome", "code", "error")
    columns = ("activity_seq", "number", "node", "started_at", "ended_at", "outcome", "error_code", "error_class")
    return table(titles, ([row[column] for column in columns] for row in rows))


def verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the gate answered, as a table: with the checks that refused or were not run again, where there are such."""
    titles = ("when", "gate of", "woken by", "verdict", "reason", "not run again")
    return table(
        titles,
        (
            (
                row["at"],
                row["node"],
                row["cause"],
                row["verdict"],
                row["reason"],
                ", ".join(c[0] for c in row["checks"] if c[1] == "unchanged"),
            )
            for row in rows
        ),
    )
