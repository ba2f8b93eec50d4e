"""The end of a turn that leaves its activity open, with one wait beside it: its tools asked people, or it lacks something that is scarce.

    decided Park(beside) ──► nobody could end it, its plane says ─────────► human      one arrow; nothing is asked
                        ├──► it cannot be kept ───────────────────────────► human
                        ├──► move, the plane writes its rows, reviews are booked where the kind counts them ─► waiting
                        └──► no budget for one of these ─► all of it is taken back ─► human
Guard: that of every arrow of an owner. No attempt is counted as failed, and nothing of its `retry=` is used.
"""

from __future__ import annotations

from dataclasses import replace

from flows import registry
from flows.core import moves
from flows.core.decide import DEFINITION_FAULT, Decided
from flows.core.errors import HalfMove, PayloadError
from flows.core.nodes.approval import NOBODY_ELIGIBLE
from flows.core.protocol import ASKING, WAIT_KINDS, Outcome
from flows.core.verdicts import Verdict, suspension_of
from flows.services import arrows, ledger
from flows.services.arrows import Ending
from flows.services.owned import Owned
from flows.services.parking import opening_of
from flows.store import move as store
from flows.store.sql import committing


class _NoRoom(Exception):
    """Roll back: the budget has no room for one of the requests."""


def stand_beside(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None) -> bool:
    """Make the end of the turn true; False if its guard was lost."""
    plane = registry.wait_plane(move.kind)
    asks = move.kind in ASKING
    if plane is None and asks:
        raise HalfMove(f"a tool of {owned.label} asks people, and no app answers for waits of kind {move.kind}")
    try:
        with committing("ask people" if asks else "park beside", owned.using):
            if plane is not None and (reason := plane.lacking(owned.using, owned.row.id, move)):
                return _stopped(owned, decided, move, ending, (Outcome.HUMAN_REQUIRED, NOBODY_ELIGIBLE, reason))
            made = store.move(arrows.beside(owned, decided, move, ending), owned.using)
            if made is None:
                return False
            if plane is not None:
                plane.opened(owned.using, opening_of(owned, move, made, _visit(owned)))
            if WAIT_KINDS[move.kind].counts is not None and not all(
                ledger.review(owned, move.node) for _ in move.detail["calls"]
            ):
                raise _NoRoom
    except PayloadError as error:
        why = Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, str(error)[:300]
        return _stopped(owned, replace(decided, fault=error), move, ending, why)
    except _NoRoom:
        code = Verdict.BUDGET_EXHAUSTED
        reason = "the budget has no room for so many requests for approval"
        return _stopped(owned, decided, move, ending, (suspension_of(code), code, reason))
    return True


def _stopped(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None, why: tuple[Outcome, str, str]) -> bool:
    stops = moves.Suspend(move.node, *why)
    return store.move(arrows.asked_in_vain(owned, replace(decided, move=stops), stops, ending), owned.using) is not None


def _visit(owned: Owned) -> int:
    return owned.state.activity.visit if owned.state.activity is not None else 0
