"""The short life of one attempt: author code is called once, and what came of it becomes a trigger and an ending.

    validate checkpoint ──► call ──► accept ──► encode ──► trigger and ending
Nothing of the database is held meanwhile; whatever the code raises is classified, never guessed at.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from django.db import connections

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.effects import Effect
from flows.core.errors import (
    ActivityError,
    AmbiguousOutcome,
    ApprovalPending,
    BudgetPending,
    CapacityUnavailable,
    DefinitionError,
    Failure,
    LostOwnership,
    classify,
)
from flows.core.failures import unlisted
from flows.core.nodes.activity import Activity
from flows.core.nodes.job import Job
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import AttemptOutcome
from flows.core.state import Completed, Failed, Pending, Trigger, Woken
from flows.services import effects, gating, obligations
from flows.services.arrows import REFUSED, Ending
from flows.services.attempt import Attempt, approved_of, timeout_left
from flows.services.authored import alone, call, ends_the_attempt, tidy, transaction_of, waits
from flows.services.calling import Calling, unsettled, within
from flows.services.clock import now
from flows.services.deciding import Deciding
from flows.services.effects import Call, Effects
from flows.services.given import Limits
from flows.services.owned import Owned
from flows.services.resuming import CheckpointConflict, conflict_of
from flows.store import attempts as store

logger = logging.getLogger("outlast.attempt")


def run(owned: Owned, limits: Limits, *, taken_over: bool) -> tuple[Trigger, Ending]:
    """Run the open activity once. `taken_over`: the first attempt of a turn, whose checkpoint must still name something real."""
    assert owned.definition is not None and owned.state.activity is not None
    node = owned.definition.nodes[owned.state.node]
    assert isinstance(node, Activity)
    begun = Effects(owned, limits.owns)
    deciding = Deciding(owned)
    calling = Calling(owned, begun)
    attempt = Attempt(owned, limits, begun, deciding, calling)
    function = registry.function(node.step(attempt.step).do if isinstance(node, Pipeline) else node.do)
    connection = connections[owned.using]
    before = transaction_of(connection)
    whole: Call | None = None
    returned = False
    try:
        with limits.limit(timeout_left(owned)):
            known = owned.state.activity.known
            if taken_over and not known:  # before the pass, which uses the approval up and sets the budget aside
                attempt.checkpoint_conflict = conflict_of(owned, attempt, node)
            if owned.definition.passes(node.name) and not known:
                gating.pass_gate(owned, attempt, limits.placements)
            if known:  # nothing is asked for, so nothing is compared either
                answer = effects.evidence_of_own(owned)
            else:
                own = node.effect_at(attempt.step)
                whole = begun.begin("", _request(own, owned)) if own is not None else None
                if whole is not None and whole.done and owned.state.activity.doubt:
                    raise AmbiguousOutcome(
                        f"{whole.id} has happened, and nobody knows yet what became of another effect of this visit"
                    )
                answer = _called(function, attempt, calling) if whole is None or not whole.done else whole.evidence
        returned = True
        if transaction_of(connection) != before:
            raise ActivityError(f"{attempt.node} returned inside an open transaction")
        text, said = _accepted(owned, attempt, node, answer, effect=whole is not None)
        settled = begun.at_return(whole, said)
    except gating.NotAllowed:
        return Woken(), REFUSED
    except gating.NoCapacity as none:
        return none.lacking, Ending(AttemptOutcome.RETURNED, code=CapacityUnavailable.code)
    except LostOwnership:
        obligations.calls_over(tuple(begun.open), owned.using)
        raise
    except BaseException as raised:  # author code: every error is classified and becomes part of the record
        error = alone(raised)
        if not ends_the_attempt(error):
            raise
        tidy(connection, before)
        if calling.lacking and not calling.wanted and not unsettled(owned, begun):
            gating.lacks(owned, calling.lacking)
            return Woken(), deciding.told(REFUSED)
        if calling.wanted and not (doubt := unsettled(owned, begun)):
            return Pending(tuple(calling.wanted)), deciding.told(REFUSED)
        failed = _misplaced(doubt if calling.wanted else "") if waits(error) else error
        trigger, ending = _failed(attempt, failed, begun, whole, returned=returned)
        return trigger, deciding.told(ending)
    ending = Ending(AttemptOutcome.SUCCEEDED, result=text, settled=settled)
    return Completed(payload.decode(json.loads(text))), deciding.told(ending)


def _accepted(owned: Owned, attempt: Attempt, node: Activity, answer: Any, *, effect: bool) -> tuple[str, str]:
    """The result to store, and what is recorded of the effect: what the code itself returned."""
    if isinstance(node, Job):
        owned.tell_time(now(owned.using))  # its time counts from the end of its start
    accepted = node.accept(answer, owned.state)
    text = payload.encode(accepted, f"the result of {attempt.flow}.{attempt.node}", conf.MAX_RESULT_BYTES)
    if not effect or accepted is answer:
        return text, text
    return text, payload.encode(answer, f"the answer of {attempt.flow}.{attempt.node}", conf.MAX_RESULT_BYTES)


def _called(function: Callable[[Any], Any], attempt: Attempt, calling: Calling) -> Any:
    """What the code returns; where a tool of it waits for people, the turn ends, whatever the code made of that.

    Raises:
        ApprovalPending: a tool waits. BudgetPending: a call of an agent turn has no budget.
    """
    with within(calling):
        answer = call(function, attempt)
    if calling.wanted:
        raise ApprovalPending
    if calling.lacking:
        raise BudgetPending
    return answer


def _misplaced(doubt: str) -> Exception:
    """Why a turn cannot end as one that waits for people."""
    if doubt:
        return AmbiguousOutcome(f"a tool waits for people, and nobody knows yet what became of {doubt}")
    return DefinitionError("ApprovalPending is raised by guarded tools; raised by hand it asks nobody.")


def _failed(
    attempt: Attempt, error: BaseException, begun: Effects, whole: Call | None, *, returned: bool
) -> tuple[Failed, Ending]:
    """What the code, or what must be done with its answer, raised: part of the record."""
    failure = classify(error)
    _log(attempt, failure, error)
    settled = begun.at_error(whole, error, returned=returned)
    ending = Ending(
        AttemptOutcome.FAILED,
        code=failure.code,
        error_class=failure.classes[0] if failure.classes else None,
        settled=settled,
        open=tuple(begun.open),
        explained=error.explained if isinstance(error, CheckpointConflict) else "",
        failure=unlisted(failure),
    )
    return Failed(failure, doubtful=bool(begun.open)), ending


def _request(effect: Effect, owned: Owned) -> Any:
    """What the node's effect will ask for: as its author says, or the candidate that people approved."""
    if effect.request is not None:
        return effect.request(owned.state)
    approved = approved_of(owned)
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


def _log(attempt: Attempt, failure: Failure, error: BaseException) -> None:
    extra = {"workflow": attempt.workflow_id, "node": attempt.node, "attempt": attempt.number, "code": failure.code}
    logger.warning("%s.%s attempt %s: %s", attempt.flow, attempt.node, attempt.number, failure.code, exc_info=error, extra=extra)
