"""One decision made true: ask the engine, turn its move into exactly one arrow, and go on or let go.

    decide ──► (hot) advance: activity done, next one running          one statement, one commit
          └──► move: anything else out of running                      one statement, or lock-then-act where another row decides:
                     a wait of a node       `parking`: channel locks, look for what came early, move, the plane writes its rows
                     one beside an activity `asking`
A lost guard: read again, decide again with the same trigger. No longer the owner: stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeGuard

from flows import registry
from flows.core import moves
from flows.core.course import visit_of
from flows.core.decide import Decided, decide
from flows.core.errors import LostOwnership
from flows.core.gate import Refusal
from flows.core.nodes.activity import Activity
from flows.core.protocol import Outcome, Status
from flows.core.state import Completed, Failed, Trigger, Woken
from flows.core.verdicts import Verdict
from flows.dispatch import after_commit, hints_for
from flows.services import arrows, continuing, control, effects, ledger, notices, obligations, parking, recording, releasing
from flows.services.arrows import Ending
from flows.services.asking import stand_beside
from flows.services.children import leaving
from flows.services.clock import now
from flows.services.follow import now_running, timeout_of
from flows.services.owned import Owned, reload
from flows.store import advance as hot
from flows.store import attempts, fans, locks
from flows.store import move as store
from flows.store.sql import committing, dumps

logger = logging.getLogger("outlast.flows")

MAX_REDECISIONS = 50


class Progress(Enum):
    """RUN: an activity is open under this owner. LEFT: the workflow waits, ended or was handed over. LOST: somebody else moved it."""

    RUN = "run"
    LEFT = "left"
    LOST = "lost"


def _nothing(_owned: Owned, _node: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Keeping:
    """Whether the owner may go on with the next activity: asked with its queue and placement, and with the release of a pinned run; and
    whether this run is held at that node.
    """

    may_continue: Callable[[str, str], bool]
    offers: Callable[[str], bool] = bool  # every name is offered
    held: Callable[[Owned, str], bool] = _nothing


def proceed(owned: Owned, trigger: Trigger, keeping: Keeping, ending: Ending | None = None) -> Progress:
    """Decide what comes next after `trigger` and make it true."""
    if isinstance(trigger, Failed):
        trigger = effects.known_doubts(owned, trigger, ending)
    for _ in range(MAX_REDECISIONS):
        decided = ask(owned, trigger)
        if decided.fault is not None:
            logger.error("workflow %s (%s): a function of the flow raised", owned.row.id, owned.label, exc_info=decided.fault)
        try:
            progress = _with_settled(owned, trigger, decided, keeping, ending)
        except parking.Again:
            progress = None
        if progress is not None:
            return progress
        if not reload(owned):
            return Progress.LOST
    raise LostOwnership(f"workflow {owned.row.id} was interrupted {MAX_REDECISIONS} times in one decision; it is put back")


def ask(owned: Owned, trigger: Trigger) -> Decided:
    """What the engine decides now; a result that cannot be stored is a visible suspension."""
    if owned.definition is None or owned.blocked:
        missing = arrows.unknown_definition(owned)
        return Decided(missing, refusal=Refusal(Verdict.WORKFLOW_MIGRATION_REQUIRED, missing.reason))
    owned.tell_time()
    decided = decide(owned.definition, owned.state, trigger, owned.facts)
    move = decided.move
    sets = isinstance(move, moves.Park) and (move.wakes_at is not None or move.deadline_at is not None)
    if isinstance(trigger, Completed | Failed) and sets:
        owned.tell_time(now(owned.using))  # a moment that is set after code has run is set by the one clock
        decided = decide(owned.definition, owned.state, trigger, owned.facts)
    if isinstance(decided.move, moves.Finish):
        decided = arrows.with_storable_result(owned, decided, decided.move)
    return decided


def _with_settled(owned: Owned, trigger: Trigger, decided: Decided, keeping: Keeping, ending: Ending | None) -> Progress | None:
    """The move, and with it what the ending knows besides: one commit."""
    continues = continuing.continues(decided)
    if continues:
        continuing.count_first(owned)
    noted = recording.of(owned, trigger, decided, ending)
    if noted.empty:
        return _commit(owned, trigger, decided, keeping, ending)
    with recording.kept(owned), committing("effect", owned.using):
        if isinstance(decided.move, moves.Park):  # the lock order: the workflow is held from here on
            locks.channels(decided.move.channels, owned.using)
        if continues:
            continuing.share(owned)
        if not noted.before():
            raise parking.Again
        progress = _commit(owned, trigger, decided, keeping, ending)
        if progress is None:
            raise parking.Again
        noted.after()
    return progress


def _commit(owned: Owned, trigger: Trigger, decided: Decided, keeping: Keeping, ending: Ending | None) -> Progress | None:
    """Make the decided move true; None if its guard was lost."""
    match decided.move:
        case moves.Run():
            return _run(owned, keeping)
        case moves.Rest():
            row = owned.row
            rested = store.rest(row.id, row.version, row.epoch, owned.worker, row.wake_seq, owned.using)
            return Progress.LEFT if rested else None
        case moves.CancelSelf(code=code):
            return _cancel(owned, code, decided, ending)
        case moves.Open() as move:
            return _open(owned, trigger, decided, move, keeping, ending)
        case moves.Park(beside=True) as move:
            return Progress.LEFT if stand_beside(owned, decided, move, ending) else None
        case moves.Park() as move:
            return _park(owned, trigger, decided, move, keeping, ending)
        case moves.RetryLater() as move:
            return _leave(owned, arrows.retry(owned, move, ending))
        case moves.Reconcile(code=code):
            return _doubt(owned, code, ending)
        case moves.Suspend() as move:
            return _leave(owned, arrows.suspend(owned, decided, move, ending))
        case moves.Finish(outcome=Outcome.CONTINUED) as move:
            return Progress.LEFT if continuing.go_on(owned, decided, move, ending) else None
        case moves.Finish() as move:
            if _is_plain_end(owned, trigger, decided, move, ending):
                return _complete(owned, move, ending)
            if _owes(owned, move):
                return _towards_end(owned, arrows.towards_end(owned, decided, move, ending))
            return _end(owned, arrows.finish(owned, decided, move, ending))
    raise AssertionError(f"the engine returned {decided.move!r}")


def _is_plain(ending: Ending | None, owned: Owned, trigger: Trigger, decided: Decided) -> TypeGuard[Ending]:
    """A good result, and nothing else that the arrow must carry."""
    return (
        ending is not None
        and isinstance(trigger, Completed)
        and owned.state.activity is not None
        and not owned.state.activity.begun
        and not decided.handled
        and not decided.dropped
        and decided.refusal is None
    )


def _is_plain_end(owned: Owned, trigger: Trigger, decided: Decided, move: moves.Finish, ending: Ending | None) -> bool:
    """A complete workflow that owes nothing: no timer of a deadline, no wait, no pause asked."""
    definition = owned.definition
    bound = definition is None or definition.deadlines or definition.commits or definition.has_children
    plain = move.status is Status.COMPLETE and not bound and not owned.pause and not owned.row.owed
    return plain and _is_plain(ending, owned, trigger, decided)


def _complete(owned: Owned, move: moves.Finish, ending: Ending | None) -> Progress | None:
    assert ending is not None
    result = arrows.encoded_result(owned, move)
    return Progress.LEFT if hot.complete(_done(owned, move.node, ending, move.via), result, owned.using) else None


def _owes(owned: Owned, move: moves.Finish) -> bool:
    """Whether something is to be serviced before this end: what is owed, and before a bad end what can be undone."""
    if owned.row.owed or owned.definition is None:
        return bool(owned.row.owed)
    if owned.definition.has_children and fans.waits_for_some(owned.row.id, owned.using):
        return True
    asks = owned.definition.commits or (move.status is not Status.COMPLETE and owned.definition.compensates)
    return asks and bool(obligations.obliged([owned.row.id], owned.using))


def _end(owned: Owned, arrow: store.Move) -> Progress | None:
    """The end, with what becomes of its children."""
    if owned.definition is None or not owned.definition.has_children:
        return _leave(owned, arrow)
    try:
        with committing("end", owned.using):
            if not parking.leave(owned, arrow):
                return None
            leaving.part([owned.row.id], owned.using)
    except leaving.StillRuns:  # they were started since it was looked
        raise parking.Again from None
    return Progress.LEFT


def _towards_end(owned: Owned, arrow: store.Move) -> Progress | None:
    with committing("end", owned.using):
        if store.move(arrow, owned.using) is None:
            return None
        parking.close_plane(owned, arrow)
        if arrow.target == Status.SUPERSEDED:
            registry.ended([owned.row.id], owned.using)
        else:
            leaving.part([owned.row.id], owned.using)
        obligations.doubt(owned.row.id, arrow.error_code or "", owned.using)  # nobody will ask for it again
        obligations.go_on(owned.row.id, owned.using)
    return Progress.LEFT


def _doubt(owned: Owned, code: str, ending: Ending | None) -> Progress | None:
    with committing("doubt", owned.using):
        if store.move(arrows.doubt(owned, code, ending), owned.using) is None:
            return None
        obligations.doubt(owned.row.id, code, owned.using)
    return Progress.LEFT


def _cancel(owned: Owned, code: str, decided: Decided, ending: Ending | None) -> Progress | None:
    """Cancel as a deadline says, unless something arrived or somebody else moved it; the result that came meanwhile is evidence.

    Nobody asked for it, so the accountable user is told.
    """
    row, activity = owned.row, owned.state.activity
    with committing("cancel", owned.using):
        if not locks.workflow_as_seen(row.id, row.version, row.wake_seq, owned.using):
            return None
        if ending is not None and activity is not None and ledger.draws(owned, activity, ending):
            ledger.settle(owned, activity, ending)  # before it is fenced: of that nobody would know what was used
        control.cancel_decided(row.id, code, owned.using, decided.handled_words)
        if activity is not None and ending is not None and ending.result is not None:
            attempts.keep_late(row.id, activity.seq, activity.number, ending.result, owned.using)
        if row.user_id is not None:
            notices.owe(row.id, row.user_id, Outcome.CANCELLED, code, owned.using)
    return Progress.LEFT


def _run(owned: Owned, keeping: Keeping) -> Progress | None:
    if owned.pause:
        return Progress.LEFT if store.move(arrows.pause_before_start(owned), owned.using) else None
    if keeping.held(owned, owned.row.node):  # since it was claimed
        return Progress.LEFT if store.move(arrows.hand_over(owned), owned.using) else None
    if releasing.may_run(owned, keeping.offers):
        return Progress.RUN
    return Progress.LEFT if releasing.hand_over(owned) else None


def _open(
    owned: Owned, trigger: Trigger, decided: Decided, move: moves.Open, keeping: Keeping, ending: Ending | None
) -> Progress | None:
    assert owned.definition is not None
    node = owned.definition.nodes[move.node]
    assert isinstance(node, Activity)
    going_on = not owned.pause and keeping.may_continue(node.queue, node.placement) and releasing.may_run(owned, keeping.offers)
    held = going_on and keeping.held(owned, move.node)  # what is let go anyway, the claim looks at
    going_on = going_on and not held
    visit, timeout = visit_of(owned.state, move, node), timeout_of(node, move.step)
    if going_on and _is_plain(ending, owned, trigger, decided):
        done = _done(owned, move.node, ending, move.via)
        made = hot.advance(done, step=move.step, visit=visit, timeout=timeout, placement=node.placement, using=owned.using)
        if made is None:
            return None
        now_running(owned, trigger, move, visit, version=made[0], seq=made[1], decided=decided)
        return Progress.RUN
    arrow = arrows.opening(owned, decided, move, node, ending, visit=visit, timeout=timeout, going_on=going_on)
    with committing("move", owned.using):
        made_move = store.move(arrow, owned.using)
        if made_move is None:
            return None
        parking.close_plane(owned, arrow)
        if not (going_on or owned.pause or held):
            owned.hinted = True
            after_commit(hints_for([(owned.row.id, made_move.queue, owned.row.flow_name, move.node)]), owned.using)
    if not going_on:
        return Progress.LEFT
    now_running(owned, trigger, move, visit, version=made_move.version, seq=made_move.active_seq or 0, decided=decided)
    return Progress.RUN


def _park(
    owned: Owned, trigger: Trigger, decided: Decided, move: moves.Park, keeping: Keeping, ending: Ending | None
) -> Progress | None:
    parked = parking.park(owned, trigger, decided, move, ending)
    if parked is parking.Parked.GOES_ON:
        return proceed(owned, Woken(), keeping)
    return Progress.LEFT if parked is not None else None


def _leave(owned: Owned, arrow: store.Move) -> Progress | None:
    """Make a move that lets go of the workflow."""
    return Progress.LEFT if parking.leave(owned, arrow) else None


def _done(owned: Owned, node: str, ending: Ending, via: tuple[str, ...]) -> hot.Done:
    row, activity = owned.row, owned.state.activity
    assert activity is not None and ending.result is not None
    return hot.Done(
        id=row.id,
        version=row.version,
        epoch=row.epoch,
        intent_version=row.intent_version,
        worker=owned.worker,
        wake_seq=row.wake_seq,
        seq=activity.seq,
        fence=activity.fence,
        from_node=row.node,
        result=ending.result,
        node=node,
        note=dumps({"via": via}) if via else None,
    )
