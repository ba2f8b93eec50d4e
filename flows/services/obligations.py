"""What a workflow does next when something that it owed was settled: go on, or one step more on the way to its end.

    in doubt           nothing: no replan, no compensation and no end goes past an effect of which nobody knows
    reconciling        → runnable                      its next attempt takes what is recorded
    on its way to an end (`target`):
        children       nothing, while some run that it waits for
        compensate     cancelled, superseded, failed: completed effects that can be, the newest first, one after another
        release        commitments that have a release, each when no compensation may need it any more (flows/services/undoing.py says why)
        close          → target                        nothing is owed
The workflow must be locked. Everything here is idempotent: whoever settled the last thing makes the next step true, in the same transaction.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from flows import registry
from flows.conf import conf
from flows.core import commitments as core
from flows.core.effects import UNSETTLED, OperationKind, OperationStatus
from flows.core.ids import mitigation_id
from flows.core.nodes.activity import RETRIES_EXHAUSTED
from flows.core.protocol import Outcome, Status
from flows.core.retry import delay_before
from flows.dispatch import after_commit, hints_for, look_soon, service_after_commit
from flows.services import undoing
from flows.services.operation import declared
from flows.store import commitments, fans, operations
from flows.store import obligations as store
from flows.store.operations import Row
from flows.store.sql import dumps

OUTCOMES = {
    Status.COMPLETE: Outcome.COMPLETE,
    Status.CANCELLED: Outcome.CANCELLED,
    Status.SUPERSEDED: Outcome.SUPERSEDED,
    Status.FAILED: Outcome.FAILED,
}
CODES = {Status.CANCELLED: "CANCELLED", Status.SUPERSEDED: "INTENT_SUPERSEDED"}
#: A workflow on the way to one of these may be sent to a later one, never back.
BAD_ENDS = (Status.FAILED, Status.CANCELLED, Status.SUPERSEDED)
ESCALATED = "ESCALATED"
#: The workflow holds something that has no release; a person says that it is fulfilled, transferred or deferred.
COMMITMENT_OPEN = core.COMMITMENT_OPEN


def go_on(workflow: UUID, using: str, *, by_person: bool = False) -> None:
    """Make the next step true, if there is one. `by_person`: a person has just answered, which is as good as asking for one more attempt."""
    found = store.standing(workflow, using)
    if found.doubts:
        return
    if found.target:
        _towards(workflow, Status(found.target), using)
    elif found.status == Status.RECONCILING and not by_person and _exhausted(found):
        operations.ask_no_more(workflow, using)
        ask_person(workflow, RETRIES_EXHAUSTED, "", using)
    elif (
        found.status == Status.RECONCILING
        and not by_person
        and (delay := _pause(found))
        and store.retry_later(workflow, delay, using)
    ):
        _hint_soon(delay, using)
    elif found.status in (Status.RECONCILING, Status.WAITING):
        ready = store.reconciled(workflow, conf.PRIORITY_SECONDS, "", using)
        if ready is not None:
            after_commit(hints_for([ready]), using)


def _hint_soon(delay: timedelta, using: str) -> None:
    if delay <= timedelta(seconds=1.2):
        transaction.on_commit(lambda: look_soon(delay.total_seconds()), using=using)


def _pause(found: store.Standing) -> timedelta:
    """What the node's policy wants between two tries; an attempt that was lost with its worker is no try."""
    node = registry.activity(found.flow_name, found.flow_version, found.node)
    if node is None or not found.undone or not found.failures:
        return timedelta(0)
    return delay_before(node.retry, found.failures, random.random())


def _exhausted(found: store.Standing) -> bool:
    """Whether the effect that did not happen has been tried as often as its node allows."""
    node = registry.activity(found.flow_name, found.flow_version, found.node)
    return node is not None and found.undone and found.failures >= node.retry.max_attempts


def doubts(workflow: UUID, using: str, *, again: bool = False) -> list[str]:
    """The effects of a workflow of which nobody knows whether they happened; `again`: also those that its open activity may ask for again."""
    known = operations.of_workflow(workflow, using)
    return [row.id for row in known if row.kind == OperationKind.EFFECT and row.status in UNSETTLED and (again or not row.again)]


def has_happened(workflow: UUID, activity: int | None, using: str) -> bool:
    """Whether the own effect of that activity of a workflow has happened."""
    done = OperationStatus.SUCCEEDED, OperationStatus.COMPENSATED
    known = operations.of_workflow(workflow, using)
    return any(
        row.kind == OperationKind.EFFECT and not row.name and row.activity_seq == activity and row.status in done for row in known
    )


def obliged(workflows: Sequence[UUID], using: str) -> list[UUID]:
    """Those of these (locked) workflows that owe something, or have done something that may have to be undone."""
    return store.obliged(workflows, using)


def aim(workflow: UUID, target: Status, using: str) -> bool:
    """Let a (locked) workflow that is on the way to a bad end go to this one, if it weighs more: failed, cancelled, superseded."""
    lighter = BAD_ENDS[: BAD_ENDS.index(target)]
    return store.aim(workflow, target, lighter, using)


def doubt(workflow: UUID, code: str, using: str, *, alive: bool = False) -> None:
    """A locked workflow was fenced: what it had in flight is uncertain, and due after its grace; `alive`: after the end of its call."""
    begun = [
        row for row in operations.of_workflow(workflow, using) if row.kind == OperationKind.EFFECT and row.status in UNSETTLED
    ]
    asked = {row.id: declared(row) for row in begun}
    graces = {operation: found.grace if found is not None else timedelta(0) for operation, found in asked.items()}
    if operations.doubt(workflow, code, graces, using, alive=alive):
        service_after_commit(using)


def calls_over(ids: Sequence[str], using: str) -> bool:
    """A fenced attempt has ended, and does not know what became of these: ask now (after their grace). Whether any waited for that."""
    found = {operation: operations.get(operation, using) for operation in ids}
    graces = {}
    for operation, row in found.items():
        asked = declared(row) if row is not None else None
        graces[operation] = asked.grace if asked is not None else timedelta(0)
    over = bool(graces) and operations.over(graces, using)
    if over:
        service_after_commit(using)
    return over


def is_ending(workflow: UUID, using: str) -> bool:
    """Whether a (locked) workflow is on its way to an end: no activity of it runs any more."""
    return store.standing(workflow, using).target != ""


def ask_person(workflow: UUID, code: str, operation: str, using: str) -> None:
    """Nobody but a person can settle an operation of a locked workflow."""
    store.ask_person(workflow, code, operation, using)


def still_asks(workflow: UUID, using: str) -> None:
    """A workflow that was sent on its way to an end still needs the person that it needed before, who has been told."""
    found = store.stuck(workflow, using)
    if found is not None:
        store.ask_person(workflow, found[1], found[0], using, tell=False)


def escalate(workflow: UUID, operation: str, using: str) -> None:
    """A person could not tell either: the accountable user is told once more; what still waited for a probe waits for a person."""
    store.ask_person(workflow, ESCALATED, operation, using)


def resumed(workflow: UUID, using: str) -> None:
    """Something of a locked workflow was settled: if that was what a person was wanted for, it goes on by itself again."""
    store.resumed(workflow, using)


def _towards(workflow: UUID, target: Status, using: str) -> None:
    if fans.waits_for_some(workflow, using):
        return
    known = operations.of_workflow(workflow, using)
    left = undoing.left(known) if target in undoing.COMPENSATES else []
    if left:
        release_held(workflow, using, after=max(row.activity_seq for row in left))
        if not undoing.under_way(known):
            _plan_compensation(left[-1], using)
        return
    commitments.void(workflow, using)
    commitments.defer(workflow, using)
    release_held(workflow, using)
    if store.standing(workflow, using).owed == 0:
        _close(workflow, target, known, using)
    elif commitments.is_stuck(workflow, using):
        store.ask_person(workflow, COMMITMENT_OPEN, "", using, once=True)


def _plan_compensation(row: Row, using: str) -> None:
    operations.plan(
        mitigation_id(row.id, "compensate"),
        workflow=row.workflow_id,
        seq=row.activity_seq,
        node=row.node,
        name=row.name,
        kind=OperationKind.COMPENSATION,
        of=row.id,
        commitment=None,
        using=using,
    )
    service_after_commit(using)


def release_held(workflow: UUID, using: str, names: Sequence[str] | None = None, *, after: int | None = None) -> None:
    """Have what a locked workflow holds and can release released now, by the cleanup workers: all, only that of these names, or only what
    was begun after that activity.
    """
    releasing = commitments.begin_release(workflow, after, using, names)
    for one in releasing:
        operations.plan(
            mitigation_id(one.operation_id, f"release/{one.name}"),
            workflow=workflow,
            seq=one.activity_seq,
            node=one.node,
            name=one.name,
            kind=OperationKind.RELEASE,
            of=None,
            commitment=one.id,
            using=using,
        )
    if releasing:
        service_after_commit(using)


def _close(workflow: UUID, target: Status, known: list[Row], using: str) -> None:
    outcome = OUTCOMES[target]
    if target is Status.COMPLETE and commitments.has_deferred(workflow, using):
        outcome = Outcome.COMPLETE_WITH_DEFERRED_COMMITMENTS
    operations.abandon_planned(workflow, using)
    store.close(workflow, target=target, outcome=outcome, code=CODES.get(target), note=_note(target, known), using=using)


def _note(target: Status, known: list[Row]) -> str | None:
    """What was undone on the way to a bad end, and what was not: part of the record of that end."""
    effects = [row for row in known if row.kind == OperationKind.EFFECT]
    undone = [row.id for row in effects if row.status == OperationStatus.COMPENSATED]
    stands = [row.id for row in effects if row.status == OperationStatus.SUCCEEDED]
    if target not in undoing.COMPENSATES or not effects:
        return None
    return dumps({"undone": undone, "not_undone": stands})
