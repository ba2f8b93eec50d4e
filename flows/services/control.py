"""Pause, resume, cancel, supersede: each idempotent, each answering what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.definition import Flow
from flows.core.errors import PayloadError
from flows.core.history import BY_ENGINE
from flows.core.misuse import CannotResumeAt, OutcomeUnknown, UnknownIntent, UnknownWorkflow
from flows.core.protocol import LIVE, SUSPENDED, TERMINAL, IntentStatus, Outcome, Status
from flows.dispatch import after_commit, hints_for
from flows.models import Activity, Intent, Workflow
from flows.services import debounce, identify, ledger, obligations
from flows.services.start import Started, start
from flows.store import leave as store
from flows.store import locks
from flows.store.sql import committing, dumps


class Answer(StrEnum):
    """accepted: it is done (or will be at the next step). already: it was so before. too_late: it can no longer be. moved: it is not where
    who asks has seen it (`seen`), so nothing was done.
    """

    ACCEPTED = "accepted"
    ALREADY = "already"
    TOO_LATE = "too_late"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Controlled:
    """What a control verb did. `status` is the workflow's status afterwards."""

    answer: Answer
    status: str
    id: UUID

    def __bool__(self) -> bool:
        return self.answer is Answer.ACCEPTED


@dataclass(frozen=True, slots=True)
class Superseded:
    """What a supersede did: the intent's version now, the runs that were ended, and the run that was started for the new goal."""

    answer: Answer
    intent_id: UUID
    version: int
    ended: tuple[UUID, ...] = ()
    started: Started | None = None

    def __bool__(self) -> bool:
        return self.answer is Answer.ACCEPTED


_LIVE = sorted(status.value for status in LIVE - {Status.CANCELLING})
_COMPUTING = frozenset({Status.RUNNABLE, Status.RUNNING, Status.RECONCILING})


def seen_of(row: Workflow) -> str:
    """Where a run is, as a form carries it: what a person decides about it is about this and nothing else.

    At rest each arrow makes it another state. While it computes its steps do not: whoever stops it means whatever it is doing.
    """
    return f"computing:{row.epoch}" if row.status in _COMPUTING else f"{row.status}:{row.version}"


def cancel(workflow: Any, *, reason: str = "", by: Any = None, seen: str | None = None, using: str | None = None) -> Controlled:
    """Cancel a run: raise its epoch so that nothing late commits, end its attempt and waits, then cancelled. Twice is once.

    Args:
        workflow: the run, or its id. reason: why; kept in its log. by: who asks. seen: `seen_of` what was shown; None does not look.
    Raises:
        UnknownWorkflow: there is none. NotAUser: `by` is no stored user; so say all verbs here.
    """
    return _cancel(workflow, reason, by, None, using, seen)


def cancel_decided(workflow: UUID, code: str, using: str, deadlines: Sequence[str] = ()) -> Controlled:
    """The same, as the declared policy of a deadline or of a release: the engine decided it, and the log says so, and of which deadlines."""
    noted: dict[str, Any] = {BY_ENGINE: True, **({"deadline": list(deadlines)} if deadlines else {})}
    return _cancel(workflow, code, None, noted, using)


def _cancel(
    workflow: Any, reason: str, by: Any, noted: dict[str, Any] | None, using: str | None, seen: str | None = None
) -> Controlled:
    alias = identify.alias(using)
    row_id, who = identify.workflow_id(workflow), identify.label(by)
    with committing("cancel", alias):
        status = _locked_status(row_id, workflow, alias)
        if status not in TERMINAL and status != Status.CANCELLING and _has_moved(row_id, seen, alias):
            return Controlled(Answer.MOVED, status, row_id)
        if status == Status.CANCELLING and obligations.aim(row_id, Status.CANCELLED, alias):
            return Controlled(Answer.ACCEPTED, status, row_id)
        if status in (Status.CANCELLED, Status.CANCELLING):
            return Controlled(Answer.ALREADY, status, row_id)
        if status in TERMINAL:
            return Controlled(Answer.TOO_LATE, status, row_id)
        _on_the_way([row_id], Status.CANCELLED, "CANCEL_REQUESTED", "cancel", who, reason, alias, noted)
        ledger.settle_fenced([row_id], "CANCEL_REQUESTED", alias)
        status = _locked_status(row_id, workflow, alias)
    return Controlled(Answer.ACCEPTED, status, row_id)


def supersede(
    intent: Any,
    *,
    goal: str,
    reason: str = "",
    by: Any = None,
    flow: type[Flow] | None = None,
    input: Any = None,
    key: str | None = None,
    using: str | None = None,
) -> Superseded:
    """Give an intent a new goal: its version goes up and every live run of the old version ends as superseded. Twice is once:
    the same goal again, with nothing to end but what the same call started by its key, changes nothing.

    Args:
        intent: the intent, or a workflow of it. flow, input, key: start a run for the new goal, in the same transaction.
    Raises:
        UnknownIntent: there is none. PayloadError: the goal cannot be stored, or is empty.
    """
    alias = identify.alias(using)
    intent_id = identify.intent_id(intent)
    identify.user(by)
    payload.check_text(goal, "the goal", payload.MAX_TEXT)
    if not goal.strip():
        raise PayloadError("the goal", "is empty: say what is wanted now, or end the intent with flows.cancel_intent")
    with committing("supersede", alias):
        if flow is not None:
            debounce.lock_ahead(flow.definition, [(key, {} if input is None else input)], alias)
        found = locks.intent(intent_id, alias)
        if found is None:
            raise UnknownIntent(intent)
        if found[1] != IntentStatus.ACTIVE:
            return Superseded(Answer.TOO_LATE, intent_id, found[0])
        ids = store.lock_live_of_intent(intent_id, alias)
        if _is_repeat(intent_id, found[0], goal, ids, flow, key, alias):
            again = start(flow, input, key=key, intent=intent_id, by=by, using=alias) if flow is not None else None
            return Superseded(Answer.ALREADY, intent_id, found[0], started=again)
        version = _next_version(intent_id, goal, IntentStatus.ACTIVE, "superseded", reason, by, alias) or found[0]
        obliged = [row_id for row_id in obligations.obliged(ids, alias) if not obligations.aim(row_id, Status.SUPERSEDED, alias)]
        left = _leave(
            [row_id for row_id in ids if row_id not in set(obliged)],
            Status.SUPERSEDED, Outcome.SUPERSEDED, "INTENT_SUPERSEDED", 1, "supersede", str(version), reason, alias,
        )  # fmt: skip
        registry.ended(left, alias)
        _on_the_way(obliged, Status.SUPERSEDED, "INTENT_SUPERSEDED", "supersede", str(version), reason, alias)
        ledger.settle_fenced(ids, "INTENT_SUPERSEDED", alias)
        started = None
        if flow is not None:
            started = start(flow, input, key=key, intent=intent_id, by=by, using=alias)
    return Superseded(Answer.ACCEPTED, intent_id, version, tuple(ids), started)


def _is_repeat(
    intent_id: UUID, version: int, goal: str, live: Sequence[UUID], flow: type[Flow] | None, key: str | None, using: str
) -> bool:
    """Whether this supersede has been done: its goal is the current one, and what lives is the run that it started itself."""
    if version == 1 or not Intent.objects.using(using).filter(pk=intent_id, goal=goal).exists():
        return False
    if flow is None:
        return not live
    own = Workflow.objects.using(using).filter(
        flow_name=flow.definition.name, key=key, intent_id=intent_id, intent_version=version
    )
    ids = list(own.values_list("pk", flat=True)) if key is not None else []
    return bool(ids) and set(live) <= set(ids)


def cancel_intent(intent: Any, *, reason: str = "", by: Any = None, using: str | None = None) -> Superseded:
    """Nobody wants this any more: the intent is cancelled and every live run of it too. Twice is once.

    Raises:
        UnknownIntent: there is none.
    """
    alias = identify.alias(using)
    intent_id = identify.intent_id(intent)
    identify.user(by)
    with committing("cancel intent", alias):
        found = locks.intent(intent_id, alias)
        if found is None:
            raise UnknownIntent(intent)
        if found[1] != IntentStatus.ACTIVE:
            answer = Answer.ALREADY if found[1] == IntentStatus.CANCELLED else Answer.TOO_LATE
            return Superseded(answer, intent_id, found[0])
        version = _next_version(intent_id, None, IntentStatus.CANCELLED, "cancelled", reason, by, alias) or found[0]
        ids = store.lock_live_of_intent(intent_id, alias)
        for row_id in ids:
            cancel(row_id, reason=reason, by=by, using=alias)
    return Superseded(Answer.ACCEPTED, intent_id, version, tuple(ids))


def pause(workflow: Any, *, reason: str = "", by: Any = None, seen: str | None = None, using: str | None = None) -> Controlled:
    """Hold a run. A running attempt is not fenced: its result is kept, then the run is paused.

    Args:
        As `cancel`.
    Raises:
        UnknownWorkflow: there is none.
    """
    alias = identify.alias(using)
    row_id, who = identify.workflow_id(workflow), identify.label(by)
    with committing("pause", alias):
        status = _locked_status(row_id, workflow, alias)
        if status == Status.PAUSED:
            return Controlled(Answer.ALREADY, status, row_id)
        if status not in TERMINAL and _has_moved(row_id, seen, alias):
            return Controlled(Answer.MOVED, status, row_id)
        if status in (Status.RUNNING, Status.RECONCILING):
            asked = store.ask_pause(row_id, alias)
            return Controlled(Answer.ACCEPTED if asked else Answer.ALREADY, status, row_id)
        if not store.pause(row_id, who, _reason(reason), alias):
            return Controlled(Answer.TOO_LATE, status, row_id)
    return Controlled(Answer.ACCEPTED, Status.PAUSED, row_id)


def resume(
    workflow: Any, *, at: str | None = None, reason: str = "", by: Any = None, seen: str | None = None, using: str | None = None
) -> Controlled:
    """Let a paused run go on, or one that is suspended for a person, or that waits for its next attempt: that is made now. It becomes ready;
    the gate decides before anything runs.

    Args:
        at: of a run that a gate has suspended: the node where it goes on, one of those on which that gate stands: the candidate is decided
            anew, or verified anew, and what is outside is looked at anew. None: where it is.
        The others as `cancel`.

    Raises:
        UnknownWorkflow: there is none. OutcomeUnknown: nobody knows whether an effect of it happened, and only a person can say.
        CannotResumeAt: `at` is no node on which the one where it stopped stands, it is not suspended, the visits of `at` are spent, or
            its effect has happened and the result is still to be taken.
    """
    alias = identify.alias(using)
    row_id, who = identify.workflow_id(workflow), identify.label(by)
    with committing("resume", alias):
        status = _locked_status(row_id, workflow, alias)
        if status in (Status.WAITING, Status.PAUSED) and _has_moved(row_id, seen, alias):
            return Controlled(Answer.MOVED, status, row_id)
        if at is not None and status not in TERMINAL:
            _may_resume_at(row_id, at, alias)
        if status in (Status.RUNNING, Status.RECONCILING) and store.withdraw_pause(row_id, alias):
            return Controlled(Answer.ACCEPTED, status, row_id)
        if status in (Status.WAITING, Status.PAUSED) and (doubts := obligations.doubts(row_id, alias, again=at is not None)):
            raise OutcomeUnknown(row_id, doubts)
        ready = store.resume(row_id, at, who, _reason(reason), conf.PRIORITY_SECONDS, alias)
        if ready is None:
            return Controlled(Answer.TOO_LATE if status in TERMINAL else Answer.ALREADY, status, row_id)
        after_commit(hints_for([ready]), alias)
    return Controlled(Answer.ACCEPTED, Status.RUNNABLE, row_id)


def _may_resume_at(row_id: UUID, at: str, using: str) -> None:
    row = (
        Workflow.objects.using(using).only("flow_name", "flow_version", "node", "status", "outcome", "active_seq").get(pk=row_id)
    )
    definition = registry.definition(row.flow_name, row.flow_version)
    known = sorted(definition.again_at(row.node)) if definition is not None else []
    if at in known and row.status == Status.WAITING and row.outcome in SUSPENDED:
        assert definition is not None
        limit = definition.nodes[at].visits
        if obligations.has_happened(row_id, row.active_seq, using):
            said = f"its effect at {row.node} has happened, and its result is still to be taken"
        elif (
            limit is not None
            and Activity.objects.using(using).filter(workflow_id=row_id, node=at, visit__gte=limit.limit).exists()
        ):
            said = f"the {limit.limit} visits of {at} are spent"
        else:
            return
    elif definition is None:
        said = f"{row.flow_name}@{row.flow_version} is not loaded here, so nobody can say what {row.node} stands on"
    elif row.status != Status.WAITING or row.outcome not in SUSPENDED:
        said = f"it is {row.status}: only a run that is suspended for a person goes on elsewhere"
    else:
        said = f"it stopped at {row.node}, which stands on {', '.join(known) or 'no node'}"
    raise CannotResumeAt(f"Workflow {row_id} cannot go on at {at!r}: {said}. Resume it without a node, or cancel it.")


def _locked_status(row_id: UUID, asked: Any, using: str) -> str:
    if not locks.workflows([row_id], using):
        raise UnknownWorkflow(asked)
    status: str = Workflow.objects.using(using).values_list("status", flat=True).get(pk=row_id)
    return status


def _has_moved(row_id: UUID, seen: str | None, using: str) -> bool:
    """Whether a locked run is not where somebody has seen it."""
    return seen is not None and seen != seen_of(Workflow.objects.using(using).only("status", "version", "epoch").get(pk=row_id))


def _next_version(intent_id: UUID, goal: str | None, status: str, ended_as: str, reason: str, by: Any, using: str) -> int | None:
    return store.next_intent_version(
        intent_id,
        goal=goal,
        status=status,
        ended_as=ended_as,
        reason=identify.reason(reason),
        by=identify.user_key(by),
        by_label=identify.label(by),
        using=using,
    )


def _leave(
    ids: Iterable[UUID],
    to: str,
    outcome: str,
    code: str,
    epoch_step: int,
    trigger: str,
    ref: str,
    reason: str,
    using: str,
    *,
    target: str = "",
    noted: dict[str, Any] | None = None,
) -> list[UUID]:
    return store.leave(
        list(ids),
        sources=_LIVE,
        target=target,
        to=to,
        outcome=outcome,
        code=code,
        epoch_step=epoch_step,
        trigger=trigger,
        ref=ref,
        note=dumps({**({"reason": identify.reason(reason)} if reason else {}), **noted}) if noted else _reason(reason),
        using=using,
    )


def _on_the_way(
    ids: Sequence[UUID],
    target: Status,
    code: str,
    trigger: str,
    ref: str,
    reason: str,
    using: str,
    noted: dict[str, Any] | None = None,
) -> None:
    """Fence locked workflows; what they owe is serviced, and then they are at their end. Where nothing is owed, that is now."""
    left = _leave(ids, Status.CANCELLING, "", code, 1, trigger, ref, reason, using, target=target, noted=noted)
    registry.ended(left, using)
    for row_id in left:
        obligations.doubt(row_id, code, using, alive=True)
        obligations.go_on(row_id, using)
        obligations.still_asks(row_id, using)


def _reason(reason: str) -> str | None:
    return dumps({"reason": identify.reason(reason)}) if reason else None
