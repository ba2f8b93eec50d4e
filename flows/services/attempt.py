"""One attempt: what author code gets, and the short life of it.

    validate checkpoint ──► call ──► accept ──► encode ──► trigger and ending
Nothing of the database is held meanwhile; whatever the code raises is classified, never guessed at.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from django.db import connections

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.effects import Effect
from flows.core.errors import ActivityError, Failure, LostOwnership, StateConflict, classify
from flows.core.failures import unlisted
from flows.core.ids import operation_id
from flows.core.nodes.activity import Activity, Decision
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import LIVE, AttemptOutcome, Status
from flows.core.state import Completed, Failed, Trigger
from flows.services import effects, obligations
from flows.services.arrows import Ending
from flows.services.authored import tidy, transaction_of
from flows.services.effects import Call, Effects
from flows.services.operation import headers
from flows.services.owned import Owned
from flows.store import attempts as store
from flows.store.sql import loads

logger = logging.getLogger("outlast.attempt")

CONTINUE, CANCEL, LOST = "continue", "cancel", "lost"


class Limits(Protocol):
    """Where the attempt runs: interrupts it at its timeout, and knows whether the worker's lease still holds."""

    def limit(self, seconds: float) -> AbstractContextManager[None]:
        """Interrupt the body after that many seconds, where the pool can."""

    def extend(self, seconds: float) -> None:
        """Start the timeout again (a heartbeat)."""

    def owns(self) -> bool:
        """Whether this worker's lease holds, by its own clock."""


class Results(Mapping[str, Any]):
    """Results by node, the newest visit's; each read is a copy, so that code cannot change the record."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results

    def __getitem__(self, node: str) -> Any:
        return copy.deepcopy(self._results[node])

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


class Attempt:
    """One attempt at an activity, as handed to author code.

    Attributes:
        input, results: the workflow's input, and the newest result of each node.
        operation_id: the idempotency key for outside effects; the same over all attempts of this visit.
        headers: it, and the fences, to send along with a request.
        id, number: of this attempt. epoch, intent_version: to hand to systems that can fence.
        notes: what an earlier attempt of this visit left with `note`. checkpoint: the workflow's, as last saved.
        checkpoint_conflict: for a Decision, why the state that the checkpoint names is gone (other activities do not run then).
        approved: the frozen candidate that people approved, where the node's gate asks for an approval; execute exactly this.
    """

    def __init__(self, owned: Owned, limits: Limits, begun: Effects | None = None) -> None:
        state, activity = owned.state, owned.state.activity
        assert activity is not None
        self._owned, self._limits = owned, limits
        self.input: Mapping[str, Any] = copy.deepcopy(dict(state.input))
        self.results: Mapping[str, Any] = Results(state.results)
        self.workflow_id = state.workflow_id
        self.flow, self.key, self.node, self.step = state.flow, state.key, activity.node, activity.step
        self.visit, self.number = activity.visit, activity.number
        self.id = f"{state.workflow_id}/{activity.seq}/{activity.number}"
        name = f"{activity.node}.{activity.step}" if activity.step else activity.node
        self.operation_id = operation_id(state.workflow_id, name, activity.visit)
        self.epoch, self.intent_version = state.epoch, state.intent_version
        self.headers = headers(self.operation_id, self.id, self.intent_version, self.epoch)
        self._effects = begun or Effects(owned, limits.owns)
        self.user_id = owned.row.user_id
        self.last_error = activity.last_error
        self.notes: Any = copy.deepcopy(activity.notes)
        self.checkpoint: Mapping[str, Any] = payload.decode(loads(owned.row.checkpoint)) or {}
        self.checkpoint_conflict: str | None = None
        self.approved: Mapping[str, Any] | None = _approved(owned)

    def effect(self, name: str, request: Any = None) -> AbstractContextManager[Call]:
        """One of several effects of this activity, declared as `effects={NAME: Effect(…)}`: in flight, committed, before the block begins.

            with attempt.effect("charge", request={"order": 7, "amount": "12.00"}) as op:
                op.call(provider.charge, 7, "12.00", headers=op.headers)   # made once; later attempts get the recorded answer

        Raises:
            LostOwnership: this worker does not own the workflow any more. DefinitionError: the node declares no such effect.
            CompetenceFailure: the same operation was asked for with another request. PayloadError: the request cannot be stored.
        """
        return self._effects.named(name, request)

    def heartbeat(self) -> str:
        """Say that the work goes on: the timeout starts anew. Answers "continue", "cancel" (stop, clean up) or "lost" (stop at once)."""
        return self._beat(None)

    def note(self, notes: Any) -> str:
        """Save a bounded note for the next attempt of this visit; it is also a heartbeat, with the same answers.

        Raises:
            PayloadError: the note is too large or not JSON; the previous one is kept.
        """
        text = payload.encode(notes, f"the note of {self.flow}.{self.node}", conf.MAX_NOTE_BYTES)
        self.notes = json.loads(text)
        return self._beat(text)

    def save_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the workflow's checkpoint: small, revision-level facts that the next turn needs to go on.

        Raises:
            CheckpointTooLarge: names the largest keys; the previous checkpoint is kept.
            LostOwnership: this worker does not own the workflow any more; stop.
        """
        definition = self._owned.definition
        bound = definition.checkpoint.max_bytes if definition else 16 * 1024
        text = payload.encode_checkpoint(checkpoint, f"the checkpoint of {self.flow}", bound)
        row = self._owned.row
        if not store.save_checkpoint(row.id, row.version, row.epoch, self._owned.worker, text, self._owned.using):
            raise LostOwnership(f"workflow {row.id} is no longer this worker's")
        row.checkpoint = text
        self.checkpoint = json.loads(text)

    def _beat(self, notes: str | None) -> str:
        row, activity = self._owned.row, self._owned.state.activity
        assert activity is not None
        if not self._limits.owns():
            return LOST
        status, mine = store.heartbeat(
            row.id, row.version, row.epoch, self._owned.worker, activity.seq, activity.fence, notes, self._owned.using
        )
        if mine:
            self._limits.extend(_timeout(self._owned))
            return CONTINUE
        return CANCEL if status not in LIVE or status == Status.CANCELLING else LOST


def run(owned: Owned, limits: Limits, *, taken_over: bool) -> tuple[Trigger, Ending]:
    """Run the open activity once. `taken_over`: the first attempt of a turn, whose checkpoint must still name something real."""
    assert owned.definition is not None and owned.state.activity is not None
    node = owned.definition.nodes[owned.state.node]
    assert isinstance(node, Activity)
    begun = Effects(owned, limits.owns)
    attempt = Attempt(owned, limits, begun)
    function = registry.function(node.step(attempt.step).do if isinstance(node, Pipeline) else node.do)
    connection = connections[owned.using]
    before = transaction_of(connection)
    whole: Call | None = None
    returned = False
    try:
        with limits.limit(_timeout(owned)):
            if taken_over:
                _validate_checkpoint(owned, attempt, node)
            whole = begun.begin("", _request(node.own_effect, owned)) if node.own_effect is not None else None
            answer = _call(function, attempt) if whole is None or not whole.done else whole.evidence
        returned = True
        if transaction_of(connection) != before:
            raise ActivityError(f"{attempt.node} returned inside an open transaction")
        accepted = node.accept(answer, owned.state) if not attempt.step else answer
        text = payload.encode(accepted, f"the result of {attempt.flow}.{attempt.node}", conf.MAX_RESULT_BYTES)
        settled = begun.at_return(whole, text)
    except LostOwnership:
        obligations.calls_over(tuple(begun.open), owned.using)
        raise
    except Exception as error:  # noqa: BLE001 - author code: every error is classified and becomes part of the record
        failure = classify(error)
        _log(attempt, failure, error)
        tidy(connection, before)
        settled = begun.at_error(whole, error, returned=returned)
        class_name = failure.classes[0] if failure.classes else None
        ending = Ending(
            AttemptOutcome.FAILED,
            code=failure.code,
            error_class=class_name,
            settled=settled,
            open=tuple(begun.open),
            failure=unlisted(failure),
        )
        return Failed(failure, doubtful=bool(begun.open)), ending
    return Completed(payload.decode(json.loads(text))), Ending(AttemptOutcome.SUCCEEDED, result=text, settled=settled)


def _call(function: Callable[[Attempt], Any], attempt: Attempt) -> Any:
    answer = function(attempt)
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def _request(effect: Effect, owned: Owned) -> Any:
    """What the node's effect will ask for: as its author says, or the candidate that people approved."""
    if effect.request is not None:
        return effect.request(owned.state)
    approved = _approved(owned)
    return {"approved": approved["digest"]} if approved else None


def keep_late(owned: Owned, ending: Ending) -> bool:
    """Keep what came after the attempt was fenced: a result is evidence and moves nothing; an operation is known to have happened."""
    activity = owned.state.activity
    for settlement in ending.settled:
        effects.record(settlement, owned, late=True)
    if ending.open:
        obligations.calls_over(ending.open, owned.using)
    if activity is None or ending.result is None:
        return False
    return store.keep_late(owned.row.id, activity.seq, activity.number, ending.result, owned.using)


def _approved(owned: Owned) -> Mapping[str, Any] | None:
    node = owned.definition.nodes.get(owned.state.node) if owned.definition else None
    if node is None or node.gate is None or not node.gate.approved_by:
        return None
    fact = owned.facts.approvals.get(node.gate.approved_by)
    return copy.deepcopy(dict(fact.candidate)) if fact else None


def _validate_checkpoint(owned: Owned, attempt: Attempt, node: Activity) -> None:
    """A checkpoint that names a state which is gone ends the attempt; a Decision is told instead, for replanning is the way out."""
    policy = owned.definition.checkpoint if owned.definition else None
    if policy is None or policy.validate is None or not attempt.checkpoint:
        return
    problem = policy.validate(attempt)
    if problem and isinstance(node, Decision):
        attempt.checkpoint_conflict = problem
    elif problem:
        raise StateConflict(f"the checkpoint names a state that is gone: {problem}")


def _timeout(owned: Owned) -> float:
    assert owned.definition is not None and owned.state.activity is not None
    node = owned.definition.nodes[owned.state.node]
    assert isinstance(node, Activity)
    step = owned.state.activity.step
    span = node.step(step).timeout if isinstance(node, Pipeline) and step else node.timeout
    return span.total_seconds()


def _log(attempt: Attempt, failure: Failure, error: BaseException) -> None:
    extra = {"workflow": attempt.workflow_id, "node": attempt.node, "attempt": attempt.number, "code": failure.code}
    logger.warning("%s.%s attempt %s: %s", attempt.flow, attempt.node, attempt.number, failure.code, exc_info=error, extra=extra)


__all__ = ["CANCEL", "CONTINUE", "LOST", "Attempt", "Limits", "keep_late", "run"]
