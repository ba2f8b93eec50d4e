"""The parameters of each arrow out of running, one function an arrow; `flows/store/move.py` makes them true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flows.conf import conf
from flows.core import moves, payload
from flows.core.artifact import ModelCall
from flows.core.course import looks_again
from flows.core.decide import DEFINITION_FAULT, Decided
from flows.core.effects import OperationStatus
from flows.core.errors import PayloadError
from flows.core.history import BEGUN, COUNTED_BY, IN_DOUBT, KNOWN
from flows.core.nodes.activity import Activity
from flows.core.nodes.job import EXTERNAL_JOB, polls
from flows.core.protocol import ASKING, ActivityStatus, AttemptOutcome, Outcome, Status, TimerKind, WaitStatus
from flows.core.verdicts import Verdict
from flows.services.owned import Owned
from flows.store.move import Move
from flows.store.sql import dumps, loads


@dataclass(frozen=True, slots=True)
class Settlement:
    """What an attempt knows of an operation at its end: recorded with the arrow that ends it, or late. `evidence` is encoded."""

    operation: str
    status: OperationStatus
    attempt: int
    evidence: str | None = None
    external_id: str = ""
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the running attempt ended: with an encoded result, or with a code; what it knows of its operations.

    `open`: those it knows nothing of. `calls`: its model calls, `context_hash`: what it last built for one.
    `explained`: why its checkpoint is in conflict with what there is, for the log.
    `failure`: what of its failure does not follow from code and class (`flows.core.failures`).
    """

    outcome: AttemptOutcome
    result: str | None = None
    code: str | None = None
    error_class: str | None = None
    settled: tuple[Settlement, ...] = ()
    open: tuple[str, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    context_hash: str = ""
    explained: str = ""
    failure: Mapping[str, Any] | None = None


REFUSED = Ending(AttemptOutcome.REFUSED)
#: Kind of wait → the kind of timer that wakes it at `Park.wakes_at`; else it is a sleep's.
WAKES = {EXTERNAL_JOB: TimerKind.POLL}


def unknown_definition(owned: Owned) -> moves.Suspend:
    """No process of this version runs here any more, and nothing leads from it to a newer one: a person must migrate, nothing guesses."""
    row = owned.row
    return moves.Suspend(
        row.node,
        Outcome.WORKFLOW_MIGRATION_REQUIRED,
        Verdict.WORKFLOW_MIGRATION_REQUIRED,
        owned.blocked or f"{row.flow_name}@{row.flow_version} is not known to this worker",
    )


def opening(
    owned: Owned,
    decided: Decided,
    move: moves.Open,
    node: Activity,
    ending: Ending | None,
    *,
    visit: int,
    timeout: float,
    going_on: bool,
) -> Move:
    """Advance (general form), hand over, or advance into a pause."""
    arrow = _arrow(owned, Status.RUNNING if going_on else Status.PAUSED if owned.pause else Status.RUNNABLE, move.node)
    arrow.outcome = Outcome.WAITING if arrow.status == Status.PAUSED else ""
    arrow.open, arrow.step, arrow.visit, arrow.timeout = True, move.step, visit, timeout
    arrow.queue, arrow.placement = node.queue, node.placement
    _end_activity(owned, arrow, ending, ActivityStatus.FAILED)
    _close_wait(owned, arrow, decided)
    return _note(arrow, decided, move.via)


def parking(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None) -> Move:
    """park, or park into a pause."""
    arrow = _arrow(owned, Status.PAUSED if owned.pause else Status.WAITING, move.node)
    arrow.outcome, arrow.placement = Outcome.WAITING, ""
    _waits(arrow, move)
    if owned.definition is not None and owned.definition.probes:  # what the wait, or the question, stands on
        arrow.baselines = sorted(owned.definition.baselines_of(move.node))
    arrow.visit = move.visit_after(owned.state.visits)
    _end_activity(owned, arrow, ending, ActivityStatus.FAILED)
    _close_wait(owned, arrow, decided)
    noted = _noted(_note(arrow, decided, move.via), {"starts": move.detail.get("starts")})
    return _counted(owned, noted, move.node)


def beside(owned: Owned, decided: Decided, move: moves.Park, ending: Ending | None) -> Move:
    """The turn ends with questions to people, or for want of something: the activity is scheduled again, and what ends the wait wakes it."""
    arrow = _arrow(owned, Status.PAUSED if owned.pause else Status.WAITING, owned.row.node)
    arrow.outcome = Outcome.WAITING
    _waits(arrow, move)
    _end_activity(owned, arrow, ending, ActivityStatus.SCHEDULED)
    return _note(_given_back(arrow, "asked" if move.kind in ASKING else "parked"), decided, move.via)


def asked_in_vain(owned: Owned, decided: Decided, move: moves.Suspend, ending: Ending | None) -> Move:
    """It would have, and they cannot be asked: a person looks, and with their resume the code asks again."""
    return _given_back(suspend(owned, decided, move, ending), "asked")


def _given_back(arrow: Move, trigger: str) -> Move:
    """The attempt is given back: it has neither failed, nor was it refused."""
    arrow.attempt_outcome, arrow.trigger = AttemptOutcome.RETURNED, trigger
    return arrow


def _waits(arrow: Move, move: moves.Park) -> None:
    """The wait that the arrow opens."""
    arrow.wait_kind, arrow.reason, arrow.need = move.kind, move.reason, move.need
    arrow.event_type, arrow.wait_key = move.event_type, move.keys[0] if move.keys else ""
    arrow.deadline, arrow.deadline_at, arrow.on_expiry = move.deadline, move.deadline_at, move.on_expiry
    arrow.wakes_at, arrow.timer_kind = move.wakes_at, WAKES.get(move.kind, TimerKind.SLEEP)


def retry(owned: Owned, move: moves.RetryLater, ending: Ending | None) -> Move:
    """The same operation again, later: the activity is scheduled again and a timer wakes it."""
    arrow = _arrow(owned, Status.PAUSED if owned.pause else Status.WAITING, owned.row.node)
    arrow.outcome, arrow.error_code = Outcome.WAITING, move.code
    arrow.wait_kind, arrow.timer_kind, arrow.wakes_in = "retry_window", "retry", move.delay
    arrow.reason = f"trying again after {move.code}"
    _end_activity(owned, arrow, ending, ActivityStatus.SCHEDULED)
    arrow.end_status = ActivityStatus.SCHEDULED
    return arrow


def doubt(owned: Owned, code: str, ending: Ending | None) -> Move:
    """Nobody knows whether an effect of the attempt happened: the activity stays scheduled, and nothing goes on before that is known."""
    arrow = _arrow(owned, Status.RECONCILING, owned.row.node)
    arrow.outcome, arrow.error_code = Outcome.RECONCILIATION_REQUIRED, code
    arrow.wait_kind, arrow.reason = "reconciliation", f"finding out whether the effect of {owned.row.node} happened"
    _end_activity(owned, arrow, ending, ActivityStatus.SCHEDULED)
    return arrow


def suspend(owned: Owned, decided: Decided, move: moves.Suspend, ending: Ending | None) -> Move:
    """Stop until a person acts. An activity that failed stays scheduled: resuming tries the same operation again.

    Where the definition is what is wrong, a wait stays open with whatever arrived for it: the mended one takes it.
    """
    arrow = _arrow(owned, Status.WAITING, move.node)
    arrow.outcome, arrow.error_code, arrow.notice = move.outcome, move.code, True
    wait = owned.state.wait
    if wait is not None and looks_again(wait.kind, owned.state, decided, move):
        return _counted(owned, _note(arrow, decided, move.via), move.node)
    arrow.wait_kind, arrow.reason = "human", (move.reason or move.code)[:500]
    same = move.node == owned.row.node
    _end_activity(owned, arrow, ending or REFUSED, ActivityStatus.SCHEDULED if same else ActivityStatus.FAILED)
    _close_wait(owned, arrow, decided)
    return _counted(owned, _note(arrow, decided, move.via), move.node)


def finish(owned: Owned, decided: Decided, move: moves.Finish, ending: Ending | None) -> Move:
    """The end."""
    arrow = _arrow(owned, move.status, move.node)
    arrow.outcome, arrow.error_code, arrow.end = move.outcome, move.code, True
    arrow.epoch_step = 1 if move.status is Status.SUPERSEDED else 0
    arrow.notice = move.status is not Status.COMPLETE
    arrow.workflow_result = encoded_result(owned, move)
    _end_activity(owned, arrow, ending, ActivityStatus.FAILED)
    _close_wait(owned, arrow, decided)
    return _note(arrow, decided, move.via)


def towards_end(owned: Owned, decided: Decided, move: moves.Finish, ending: Ending | None) -> Move:
    """The end is decided, and something is owed before it: on the way to it, what is owed is serviced."""
    good = move.status is Status.COMPLETE
    arrow = _arrow(owned, Status.RECONCILING if good else Status.CANCELLING, move.node)
    arrow.outcome, arrow.target = Outcome.RECONCILIATION_REQUIRED if good else "", move.status
    arrow.error_code, arrow.notice = move.code, not good
    arrow.epoch_step = 1 if move.status is Status.SUPERSEDED else 0
    arrow.workflow_result = encoded_result(owned, move)
    _end_activity(owned, arrow, ending, ActivityStatus.FAILED)
    _close_wait(owned, arrow, decided)
    return _note(arrow, decided, move.via)


def with_storable_result(owned: Owned, decided: Decided, move: moves.Finish) -> Decided:
    """The same decision, or a visible suspension if the workflow's result cannot be stored."""
    try:
        encoded_result(owned, move)
    except PayloadError as error:
        return Decided(moves.Suspend(owned.row.node, Outcome.HUMAN_REQUIRED, DEFINITION_FAULT, str(error)[:300]), fault=error)
    return decided


def encoded_result(owned: Owned, move: moves.Finish) -> str | None:
    """The workflow's result as it is stored, or None.

    Raises:
        PayloadError: it cannot be stored.
    """
    if move.result is None:
        return None
    if move.outcome is Outcome.CONTINUED:
        return payload.encode(
            move.result, f"the input of the next {owned.row.flow_name}", min(conf.MAX_RESULT_BYTES, conf.MAX_INPUT_BYTES)
        )
    return payload.encode(move.result, f"the result of {owned.row.flow_name}", conf.MAX_RESULT_BYTES)


def pause_before_start(owned: Owned) -> Move:
    """A pause was asked between the claim and the start of the code: nothing ran, the attempt goes back."""
    arrow = _arrow(owned, Status.PAUSED, owned.row.node)
    arrow.outcome, arrow.trigger = Outcome.WAITING, "pause"
    _end_activity(owned, arrow, Ending(AttemptOutcome.RETURNED), ActivityStatus.SCHEDULED)
    arrow.end_status = ActivityStatus.SCHEDULED
    return arrow


def hand_over(owned: Owned) -> Move:
    """The run is for a worker that offers its release: nothing ran, the attempt goes back, and the workflow is ready again."""
    arrow = _arrow(owned, Status.RUNNABLE, owned.row.node)
    arrow.error_code = owned.row.error_code
    _end_activity(owned, arrow, Ending(AttemptOutcome.RETURNED), ActivityStatus.SCHEDULED)
    arrow.end_status, arrow.trigger, arrow.trigger_ref = ActivityStatus.SCHEDULED, "release", str(owned.worker)
    return arrow


def put_back(owned: Owned, *, doubtful: bool) -> Move:
    """The owner is gone: the workflow is ready again (or paused, if that was asked meanwhile), its attempt ended as lost.

    `doubtful`: it had begun an effect, of which nobody knows whether it happened.
    """
    lost = Ending(AttemptOutcome.LOST, code="WORKER_LOST")
    if doubtful:
        arrow = doubt(owned, "WORKER_LOST", lost)
        arrow.wake_seq = None
        return arrow
    arrow = _arrow(owned, Status.PAUSED if owned.pause else Status.RUNNABLE, owned.row.node)
    arrow.outcome = Outcome.WAITING if owned.pause else ""
    arrow.wake_seq, arrow.trigger, arrow.error_code = None, "lost", owned.row.error_code
    _end_activity(owned, arrow, lost, ActivityStatus.SCHEDULED)
    return arrow


def _arrow(owned: Owned, status: Status, node: str) -> Move:
    row = owned.row
    return Move(
        id=row.id,
        version=row.version,
        epoch=row.epoch,
        intent_version=row.intent_version,
        worker=owned.worker,
        pid=owned.pid,
        wake_seq=row.wake_seq,
        from_node=row.node,
        status=status,
        node=node,
        priority_seconds=conf.PRIORITY_SECONDS,
        trigger="decided",
    )


def _end_activity(owned: Owned, arrow: Move, ending: Ending | None, otherwise: ActivityStatus) -> None:
    """End the open activity: done with its result, else `otherwise`."""
    activity = owned.state.activity
    if activity is None:
        return
    ending = ending or REFUSED
    good = ending.outcome is AttemptOutcome.SUCCEEDED
    arrow.end_status = ActivityStatus.DONE if good else otherwise
    arrow.seq, arrow.fence = activity.seq, activity.fence
    arrow.result, arrow.attempt_outcome = ending.result, ending.outcome
    arrow.attempt_error, arrow.error_class = ending.code, ending.error_class
    if ending.explained:
        arrow.note = dumps({"conflict": ending.explained})
    arrow.trigger, arrow.trigger_ref = ("completed" if good else ending.outcome.value), str(activity.seq)
    before = {KNOWN: activity.known, BEGUN: activity.begun}
    _noted(arrow, {"failure": ending.failure, IN_DOUBT: ending is REFUSED and activity.doubt, **before})


def _close_wait(owned: Owned, arrow: Move, decided: Decided) -> None:
    wait = owned.state.wait
    if wait is None:
        return
    arrow.close_wait = wait.id
    answered = wait.evidence is not None or wait.kind == "timer" or polls(wait.kind, decided.move)
    arrow.wait_status = WaitStatus.SATISFIED if answered else WaitStatus.EXPIRED
    if decided.wait_result is not None:
        arrow.wait_result = payload.encode(decided.wait_result, f"the result of {wait.node}", payload.MAX_RESULT_BYTES * 2)
    if arrow.trigger in ("decided", AttemptOutcome.REFUSED.value):  # an attempt that has ended is what the arrow is about
        arrow.trigger, arrow.trigger_ref = ("woken" if answered else "expired"), str(wait.id)


def _note(arrow: Move, decided: Decided, via: tuple[str, ...]) -> Move:
    refusal = decided.refusal
    return _noted(
        arrow,
        {
            "via": list(via),
            "dropped": list(decided.dropped),
            "verdict": refusal.verdict.value if refusal is not None else None,
            "reason": refusal.reason if refusal is not None else None,
            "fault": type(decided.fault).__name__ if decided.fault is not None else None,
            "deadline": decided.handled_words,
        },
    )


def _counted(owned: Owned, arrow: Move, name: str) -> Move:
    """Note the versions of the calendars by which the node counts that is entered."""
    node = owned.definition.nodes.get(name) if owned.definition is not None else None
    known = owned.state.calendars
    counted = sorted(str(known[one]) for one in node.calendars if one in known) if node is not None else []
    return _noted(arrow, {COUNTED_BY: counted})


def _noted(arrow: Move, facts: Mapping[str, Any]) -> Move:
    """Add to the arrow's note what there is of these. Replay reads it: what the engine knew and no other row holds."""
    found = {name: value for name, value in facts.items() if value}
    if found:
        arrow.note = dumps({**(loads(arrow.note) or {}), **found})
    return arrow
