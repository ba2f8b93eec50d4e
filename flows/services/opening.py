"""Entering the next activity in bulk: workflows of one claim whose waits were answered go on in one statement.

    claimed, its wait answered ──► ask the engine ──► a plain activity   open_woken: wait closed, activity running; one commit for all
                                                 └──► anything else      left to the turn, one by one (`proceed`)

Guard: each row has its own, that of an advance. A row that lost it is not opened, and the turn asks anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flows import registry
from flows.core import moves
from flows.core.course import visit_of
from flows.core.decide import Decided
from flows.core.nodes.activity import Activity
from flows.core.state import Woken
from flows.services import arrows, recording, releasing
from flows.services.follow import now_running, timeout_of
from flows.services.owned import Owned
from flows.services.proceed import Keeping, ask
from flows.store.advance import open_woken
from flows.store.move import Move


@dataclass(frozen=True, slots=True)
class _Opening:
    owned: Owned
    decided: Decided
    move: moves.Open
    arrow: Move


def open_batch(batch: Sequence[Owned], keeping: Keeping) -> None:
    """Let those of the batch that only have a wait to close and an activity to enter have it running; the others stay as they are."""
    openings = {made.owned.row.id: made for owned in batch if (made := _opening(owned, keeping)) is not None}
    if not openings:
        return
    for row_id, version, seq in open_woken([made.arrow for made in openings.values()], batch[0].using):
        made = openings[row_id]
        now_running(made.owned, Woken(), made.move, made.arrow.visit, version=version, seq=seq, decided=made.decided)


def _opening(owned: Owned, keeping: Keeping) -> _Opening | None:
    wait = owned.state.wait
    if owned.definition is None or owned.steps or owned.pause or wait is None or owned.state.activity is not None:
        return None
    if registry.wait_plane(wait.kind) is not None:
        return None
    decided = ask(owned, Woken())
    move = decided.move
    plain = decided.refusal is None and not (decided.handled or decided.releases or decided.release)
    plain = plain and recording.of(owned, Woken(), decided, None).empty  # the answer of a job ends what is owed for it
    if not isinstance(move, moves.Open) or not plain:
        return None
    node = owned.definition.nodes[move.node]
    assert isinstance(node, Activity)
    if not keeping.may_continue(node.queue, node.placement) or not releasing.may_run(owned, keeping.offers):
        return None
    if keeping.held(owned, move.node):
        return None
    visit, timeout = visit_of(owned.state, move, node), timeout_of(node, move.step)
    arrow = arrows.opening(owned, decided, move, node, None, visit=visit, timeout=timeout, going_on=True)
    return _Opening(owned, decided, move, arrow)
