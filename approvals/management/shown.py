"""What `manage.py approvals` prints: tables for people, with hidden characters made visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from approvals.core.status import RequestKind
from approvals.services.waiting import Waiting
from approvals.store.waiting import Backlog
from flows.management import words

REQUEST = ("id", "status", "goal", "flow", "asks", "expires", "looked at by")


def requests(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a request."""
    return words.table(REQUEST, [_request(row) for row in rows])


def _request(row: Mapping[str, Any]) -> tuple[object, ...]:
    asks, run = row["asks"], row["workflow"]
    whom = f"{asks['whom']} {asks['given']}/{asks['need']}"
    return (
        row["id"],
        row["status"],
        row["goal"],
        f"{run['flow']} {run['key'] or run['id']}",
        whom,
        row["expires_at"],
        row["looked_at_by"],
    )


def detail(row: Mapping[str, Any]) -> str:
    """A request with what an answer needs; the model's part comes last and says so."""
    is_form, filled_in = row["kind"] == RequestKind.ASK, row["filled_in"]
    lines = [
        ("request", row["id"]),
        ("status", row["status"]),
        ("goal", row["goal"]),
        ("workflow", f"{row['workflow']['flow']} {row['workflow']['key'] or row['workflow']['id']}"),
        ("asks", f"{row['asks']['whom']} (step {row['asks']['step']} of {row['asks']['of']})"),
        (
            "given",
            ("1 of 1" if filled_in is not None else "0 of 1") if is_form else f"{row['asks']['given']} of {row['asks']['need']}",
        ),
        ("expires", row["expires_at"] or "–"),
        ("action", "fill in a form, in the admin or by the API" if is_form else action(row["candidate"])),
        ("digest", row["digest"]),
        ("answers", ", ".join(f"{one['verdict']} → {one['leads_to'] or '…'}" for one in row["answers"])),
    ]
    if row["may_answer"] is not None:
        lines.append(("may answer", row["may_answer"]["code"] or "yes"))
    reviews = [(one["at"], one["by"], one["verdict"], one["refused"] or "taken", one["comment"]) for one in row["reviews"]]
    value, evidence = row["candidate"]["unverified_value"], row["unverified_evidence"]
    made = f"MADE BY A MODEL, NOT VERIFIED\n{words.as_json({'value': value, 'evidence': evidence})}"
    if is_form:
        made = f"THE FORM, AS ASKED\n{words.as_json(value)}"
        made += f"\n\nWHAT WAS ANSWERED, NOT VERIFIED\n{words.as_json(filled_in)}" if filled_in is not None else ""
    return "\n\n".join(
        part
        for part in (
            words.table(("what", "is"), lines, whole=("is",)),
            words.table(("at", "by", "said", "became", "comment"), reviews),
            made,
        )
        if part
    )


def action(candidate: Mapping[str, Any]) -> str:
    """What an approval allows: the choice, where one was made, or else what its node came to."""
    return candidate["choice"] or f"what step “{candidate['from_node']}” came to"


def waiting(found: Waiting, open_now: Sequence[Backlog]) -> str:
    """Audiences, people and flows, and what is open."""
    audiences = [
        (
            one.kind,
            one.name,
            one.asked,
            one.answered,
            one.lapsed,
            one.open,
            *map(span, (one.p50, one.p95, one.longest)),
            one.oldest,
            one.oldest_at,
        )
        for one in found.audiences
    ]
    people = [
        (one.name, one.answered, one.approved, one.for_others, *map(span, (one.p50, one.p95, one.longest)))
        for one in found.people
    ]
    flows = [(one.flow, one.workflows, *map(span, (one.life, one.human, one.work))) for one in found.flows]
    soon = [(one.kind, one.name, one.open, one.soon) for one in open_now if one.soon]
    titles = ("kind", "name", "asked", "answered", "lapsed", "open", "p50", "p95", "longest", "oldest", "since")
    tables = (
        words.table(titles, audiences),
        words.table(("who answered", "answers", "approved", "for others", "p50", "p95", "longest"), people),
        words.table(("flow", "runs", "life", "waited for people", "work"), flows),
        words.table(("kind", "name", "open", "expire within the hour"), soon),
    )
    return "\n\n".join(part for part in tables if part)


def span(seconds: float | None) -> str:
    """A span in two units at most: 3d 4h, 5m 10s, 0.2s."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole, parts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
