"""The end of a turn whose tools asked people: the activity stays open, and beside it stands one wait, with a request for each call.

    decided Park(beside) ──► nobody could answer one of them ─► human      one arrow; no request is made
                        ├──► it cannot be kept ────────────────► human
                        ├──► move, the plane writes its rows, each request is booked ─► waiting
                        └──► no budget for one of them ─► all of it is taken back ─► human
Guard: that of every arrow of an owner. No attempt is counted as failed, and nothing of its `retry=` is used.
"""

from __future__ import annotations

from dataclasses import replace

from flows import registry
from flows.core import moves
from flows.core.decide import DEFINITION_FAULT, Decided
from flows.core.errors import HalfMove, PayloadError
from flows.core.nodes.approval import NOBODY_ELIGIBLE
from flows.core.protocol import Outcome
from flows.core.verdicts import Verdict, suspension_of
from flows.services import arrows, ledger
from flows.services.arrows import Ending
from flows.services.owned import Owned
from flows.store import move as store
from flows.store.sql import committing


class _NoRoom(Exception):
    """Roll back: the budget has no room for one of the requests."""


def ask_people(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None) -> bool:
    """Make the end of the turn true; False if its guard was lost."""
    plane = registry.wait_plane(move.kind)
    if plane is None:
        raise HalfMove(f"a tool of {owned.label} asks people, and no app answers for waits of kind {move.kind}")
    try:
        with committing("ask people", owned.using):
            if reason := plane.lacking(owned.using, owned.row.id, move):
                return _stopped(owned, decided, move, ending, (Outcome.HUMAN_REQUIRED, NOBODY_ELIGIBLE, reason))
            made = store.move(arrows.asking(owned, decided, move, ending), owned.using)
            if made is None:
                return False
            plane.opened(owned.using, opening_of(owned, move, made, _visit(owned)))
            if not all(ledger.review(owned, move.node) for _ in move.detail["calls"]):
                raise _NoRoom
    except PayloadError as error:
        why = Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, str(error)[:300]
        return _stopped(owned, replace(decided, fault=error), move, ending, why)
    except _NoRoom:
        code = Verdict.BUDGET_EXHAUSTED
        reason = "the budget has no room for so many requests for approval"
        return _stopped(owned, decided, move, ending, (suspension_of(code), code, reason))
    return True


def opening_of(owned: Owned, move: moves.Park, made: store.Moved, visit: int) -> registry.Opening:
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
    )


def _stopped(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None, why: tuple[Outcome, str, str]) -> bool:
    stops = moves.Suspend(move.node, *why)
    return store.move(arrows.asked_in_vain(owned, replace(decided, move=stops), stops, ending), owned.using) is not None


def _visit(owned: Owned) -> int:
    return owned.state.activity.visit if owned.state.activity is not None else 0
