"""What a person may say of an operation, when, and the words of the answers. Whether it counts is decided in `flows.services.resolve`."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import Q

from flows.core.effects import OperationKind, OperationStatus
from flows.models import Operation
from flows.services.operation import can_be_asked
from flows.store.operations import Row

PERMISSION = "outlast_flows.resolve_operation"
#: Nobody but a person settles these. Each half is the condition of a partial index.
NEEDS_PERSON = Q(status=OperationStatus.UNCERTAIN, again=False, due_at__isnull=True, worker_id__isnull=True) | Q(
    status=OperationStatus.FAILED, kind__in=[OperationKind.COMPENSATION, OperationKind.RELEASE], due_at__isnull=True
)


class Verdict(StrEnum):
    """What a person may say of an operation."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    CANNOT_TELL = "cannot_tell"
    ASK_AGAIN = "ask_again"
    RETRY = "retry"
    GIVE_UP = "give_up"


#: What can be said of an operation in a status. What failed for certain is a compensation or a release; that it happened means that
#: somebody undid or released it by hand. `ASK_AGAIN` comes on top where the provider can be asked and nobody is going to.
OFFERED: dict[str, tuple[Verdict, ...]] = {
    OperationStatus.UNCERTAIN: (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.CANNOT_TELL),
    OperationStatus.FAILED: (Verdict.HAPPENED, Verdict.RETRY, Verdict.GIVE_UP),
}


class Code(StrEnum):
    """What became of a verdict."""

    ACCEPTED = "accepted"
    NEEDS_SECOND = "needs_second"
    KEPT = "kept"
    NOT_PERMITTED = "not_permitted"
    MOVED = "moved"
    NOT_OFFERED = "not_offered"
    SAME_PERSON = "same_person"
    NOBODY_TO_ASK = "nobody_to_ask"
    ASKED_ANYWAY = "asked_anyway"


SENTENCES: dict[Code, str] = {
    Code.ACCEPTED: "Recorded; the workflow goes on from it.",
    Code.NEEDS_SECOND: "Recorded; a second person must say the same before it counts.",
    Code.KEPT: "Recorded; the operation stays in doubt, and the accountable user was told.",
    Code.NOT_PERMITTED: "You may not say what became of an operation: that needs the permission outlast_flows.resolve_operation.",
    Code.MOVED: "The operation has moved since you looked at it; look again.",
    Code.NOT_OFFERED: "That cannot be said of an operation in this status.",
    Code.SAME_PERSON: "The second verdict must come from another person.",
    Code.NOBODY_TO_ASK: "Nobody can be asked: its flow, as this process knows it, declares no reconcile function. Say what became of it.",
    Code.ASKED_ANYWAY: "It is asked about anyway; its page says when.",
}

#: In place of the sentence of `ACCEPTED`: nothing is known yet from which the workflow could go on.
TRIED_ANEW: dict[Verdict, str] = {
    Verdict.ASK_AGAIN: "Recorded; the provider is asked again on the cleanup queue, and the workflow goes on once it is known.",
    Verdict.RETRY: "Recorded; the call is tried again on the cleanup queue.",
}


def seen_of(operation: Operation | Row) -> str:
    """The state of an operation, as a form carries it: a verdict is about this state and no other."""
    return f"{operation.status}:{operation.looks}"


def offered(operation: Operation | Row) -> tuple[Verdict, ...]:
    """What a person may say of it now. Of one in doubt also while probes go on: the first answer counts."""
    found = OFFERED.get(operation.status, ())
    if operation.status == OperationStatus.FAILED and operation.kind == OperationKind.EFFECT:
        return ()
    if operation.status == OperationStatus.UNCERTAIN and is_left(operation) and can_be_asked(operation):
        return (*found, Verdict.ASK_AGAIN)
    return found


def is_left(operation: Operation | Row) -> bool:
    """Whether nobody is going to ask about one in doubt, or for the same again."""
    return operation.due_at is None and not operation.again
