"""A wait is opened and the workflow lets go, or what it waits for was there before it: then the same turn goes on.

    decided Park ──► nobody could end it, its plane says ──────────────────────────► human
                ├──► it cannot be kept ────────────────────────────────────────► human
                └──► channels locked, in the order of their numbers
                     ├── enough came early, or the plane answers at once ────► running, with the evidence on the wait
                     └── nothing has come ───────────────────────────────────► waiting
                     and in the same transaction the plane writes what stands behind the wait, and of a wait for several events its parts
                     are written, each filled by the oldest that came early for it
Guard: that of every arrow of an owner. What arrives at the same time has locked the channel, or finds the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any

from flows import registry
from flows.core import moves
from flows.core.decide import DEFINITION_FAULT, Decided
from flows.core.errors import PayloadError
from flows.core.nodes.approval import NOBODY_ELIGIBLE
from flows.core.protocol import WAIT_KINDS, Outcome, Status
from flows.core.state import Trigger, WaitState
from flows.dispatch import look_soon
from flows.services import arrows, filling, ledger
from flows.services.arrows import Ending
from flows.services.follow import known_results, still_passed
from flows.services.owned import Owned, evidence_of
from flows.store import events, locks, parts
from flows.store import move as store
from flows.store.sql import committing, dumps, loads


class Parked(Enum):
    """WAITS: the workflow has let go. GOES_ON: its wait was answered when it was opened, and its owner decides on that."""

    WAITS = "waits"
    GOES_ON = "goes on"


class Again(Exception):
    """Roll back and decide again: another row said no meanwhile."""


def park(owned: Owned, trigger: Trigger, decided: Decided, move: moves.Park, ending: Ending | None) -> Parked | None:
    """Open the wait of a node; None if the arrow's guard was lost. What cannot be kept (a question with a NUL in it, say) stops the workflow.

    Raises:
        Again: the budget has no room for it any more.
    """
    try:
        return _park(owned, trigger, decided, move, ending)
    except PayloadError as error:  # all of it is rolled back
        fault = moves.Suspend(move.node, Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, str(error)[:300], via=move.via)
        left = leave(owned, arrows.suspend(owned, replace(decided, move=fault, fault=error), fault, ending))
        return Parked.WAITS if left else None


def _park(owned: Owned, trigger: Trigger, decided: Decided, move: moves.Park, ending: Ending | None) -> Parked | None:
    arrow = arrows.parking(owned, decided, move, ending)
    plane = registry.wait_plane(move.kind)
    if not move.channels and plane is None:
        return Parked.WAITS if leave(owned, arrow) else None
    with committing("park", owned.using):
        if plane is not None and (reason := plane.lacking(owned.using, owned.row.id, move)):
            nobody = moves.Suspend(move.node, Outcome.HUMAN_REQUIRED, NOBODY_ELIGIBLE, reason, via=move.via)
            left = leave(owned, arrows.suspend(owned, replace(decided, move=nobody), nobody, ending))
            return Parked.WAITS if left else None
        locks.channels(move.channels, owned.using)
        early = events.early(move.channels, owned.row.id, owned.using) if move.channels else []
        filled = filling.fill_early(move.parts, move.need, early) if move.parts else {}
        answer = plane.at_once(owned.using, owned.row.id, move) if plane is not None and not early else None
        if early and move.event_type:
            arrow.evidence = dumps({"id": early[0].event_id, "payload": loads(early[0].payload)})
        elif move.parts and len(filled) == move.need:
            arrow.evidence = dumps(filling.evidence_of(filled))
        elif answer is not None:
            arrow.evidence = dumps(dict(answer))
        goes_on = arrow.evidence is not None and not owned.pause
        if goes_on:
            arrow.status, arrow.outcome = "running", ""
        made = store.move(arrow, owned.using)
        if made is None:
            return None
        close_plane(owned, arrow)
        if early and move.event_type:
            events.consume(early[0].id, made.wait_id, owned.row.id, owned.using)
        if move.parts:
            parts.open_parts(made.wait_id or 0, owned.row.id, move.parts, filled, owned.using)
        if plane is not None:
            plane.opened(owned.using, opening_of(owned, move, made, arrow.visit, answer))
            if WAIT_KINDS[move.kind].counts is not None and not ledger.review(owned, move.node):
                raise Again
    if not goes_on:
        return Parked.WAITS
    _answered(owned, trigger, decided, move, made, arrow)
    return Parked.GOES_ON


def _answered(owned: Owned, trigger: Trigger, decided: Decided, move: moves.Park, made: store.Moved, arrow: store.Move) -> None:
    """What the wait is for was there before it: the owner is asked about that next."""
    row, evidence = owned.row, evidence_of(loads(arrow.evidence))
    row.node, row.version, row.error_code, row.active_seq = move.node, made.version, None, None
    owned.state = replace(
        owned.state,
        node=move.node,
        activity=None,
        results=known_results(owned, trigger, decided),
        visits=MappingProxyType({**owned.state.visits, move.node: arrow.visit}),
        passed=still_passed(owned.state, decided),
        wait=WaitState(
            made.wait_id or 0, move.node, move.kind, arrow.visit, evidence, False, move.reason, on_expiry=move.on_expiry
        ),
    )


def opening_of(
    owned: Owned, move: moves.Park, made: store.Moved, visit: int, answer: Mapping[str, Any] | None = None
) -> registry.Opening:
    """What the plane of a wait is told of the wait that was just opened."""
    row = owned.row
    return registry.Opening(
        wait_id=made.wait_id or 0,
        workflow_id=row.id,
        intent_id=row.intent_id,
        intent_version=row.intent_version,
        epoch=row.epoch,
        policy_version=row.policy_version,
        user_id=row.user_id,
        visit=visit,
        park=move,
        deadline_at=made.deadline_at,
        activity_seq=made.active_seq,
        answer=answer,
    )


def leave(owned: Owned, arrow: store.Move) -> bool:
    """Make a move that lets go of the workflow; False if its guard was lost."""
    ends = arrow.status == Status.SUPERSEDED
    with committing("move", owned.using) if ends or _closes_plane(owned, arrow) else nullcontext():
        made = store.move(arrow, owned.using)
        if made is None:
            return False
        close_plane(owned, arrow)
        if ends:
            registry.ended([owned.row.id], owned.using)
    if arrow.wakes_in is not None or arrow.wakes_at is not None:
        _hint_soon(owned, arrow)
    return True


def _hint_soon(owned: Owned, arrow: store.Move) -> None:
    """A timer within the next second is not left to the next tick: lateness is milliseconds."""
    wait = arrow.wakes_in if arrow.wakes_in is not None else (arrow.wakes_at or owned.state.now) - owned.state.now
    if wait <= timedelta(seconds=1.2):
        look_soon(wait.total_seconds())


def _closes_plane(owned: Owned, arrow: store.Move) -> bool:
    wait = owned.state.wait
    return arrow.close_wait is not None and wait is not None and registry.wait_plane(wait.kind) is not None


def close_plane(owned: Owned, arrow: store.Move) -> None:
    """Tell the plane of the wait that this arrow closes, if it has one; in the arrow's transaction."""
    wait = owned.state.wait
    if arrow.close_wait is None or wait is None:
        return
    plane = registry.wait_plane(wait.kind)
    if plane is not None:
        plane.closed(owned.using, [wait.id], arrow.wait_status)
