"""An open wait as people see it: what is awaited, who or what can end it, and what has come for it already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flows import registry
from flows.core.nodes.several import SHOWN
from flows.core.protocol import SUSPENDING, WAIT_KINDS
from flows.core.verdicts import Verdict, Way
from flows.models import Wait, Workflow
from flows.services import ledger
from flows.store import parts

ROOM_AGAIN = "a budget was used up, and there is room again: resume it"


@dataclass(frozen=True, slots=True)
class WaitView:
    """An open wait, and who can end it. `answered`: what was awaited has come, and is decided on when the run goes on."""

    node: str
    kind: str
    reason: str
    since: datetime
    deadline: datetime | None
    on_expiry: str
    ends: str
    event_type: str
    key: str
    answered: bool = False


def view(wait: Wait, row: Workflow, ways: Sequence[Way], using: str) -> WaitView:
    """One open wait of a run. `ways`: what a person can do about the run."""
    return WaitView(
        node=wait.node,
        kind=wait.kind,
        reason=reason(wait, row, using),
        since=wait.opened_at,
        deadline=wait.deadline_at,
        on_expiry=wait.on_expiry,
        ends=ends(wait, ways),
        event_type=wait.event_type,
        key=wait.key,
        answered=is_answered(wait),
    )


def is_answered(wait: Wait) -> bool:
    """Whether what was awaited has come. For a suspension nothing comes but a person's word."""
    return wait.evidence is not None and wait.kind not in SUSPENDING


def ends(wait: Wait, ways: Sequence[Way]) -> str:
    """Who or what can end it. Where a resume alone leads nowhere, what a person does instead."""
    if is_answered(wait):
        return "what lets the run go on"
    if wait.kind == "human" and ways and ways[0] is not Way.RESUME:
        *first, last = [way.value for way in ways]
        return f"a person, by {', '.join(first)} or {last}" if first else f"a person, by {last}"
    return WAIT_KINDS[wait.kind].ends


def reason(wait: Wait, row: Workflow, using: str) -> str:
    """Why it waits. Of a budget that is used up, what is lacking now: one of two may have been raised meanwhile; of several events, which have
    not come.
    """
    if wait.need and wait.kind == "event" and wait.closed_at is None:
        return f"{wait.reason}: {_lacking(wait, using)}"
    if wait.kind != "human" or wait.closed_at is not None or row.error_code != Verdict.BUDGET_EXHAUSTED:
        return wait.reason
    definition = registry.definition(row.flow_name, row.flow_version)
    if definition is None or row.node not in definition.nodes or not ledger.wanted(definition, row.node):
        return wait.reason  # what tools of a node draw on, no declaration says
    return ledger.lacking(definition, row.node, row.pk, row.intent_id, using, row.ledgers) or ROOM_AGAIN


def _lacking(wait: Wait, using: str) -> str:
    """How many events have come, and which have not."""
    missing = [f"{part.event_type} {part.key}" for part, filled in parts.of_wait(wait.pk, using) if not filled]
    listed = ", ".join(missing[:SHOWN]) + (f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else "")
    said = f"{wait.got} of {wait.need} have come"
    return said if wait.got >= wait.need else f"{said}, {listed} {'has' if len(missing) == 1 else 'have'} not"
