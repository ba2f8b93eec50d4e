"""What people say about operations that nobody else can settle: one service, behind the admin, the command and a test.

    lock workflow ──► read anew, judge ──► resolution kept ──► operation settled, workflow goes on     one transaction
                           └─ refused ──► nothing but the answer to who asked

A verdict names the state that the person has seen (`seen`): if the operation moved meanwhile, the verdict was about something else.
Two people are needed where the effect declares it: the first verdict is kept and waits for the second, by another person.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from flows.conf import conf
from flows.core import payload
from flows.core.effects import OperationKind, OperationStatus
from flows.core.misuse import UsageError
from flows.dispatch import service_after_commit
from flows.models import Resolution
from flows.services import identify, obligations, settling, warrant
from flows.services.verdicts import PERMISSION, SENTENCES, TRIED_ANEW, Code, Verdict, is_left, offered, seen_of
from flows.store import commitments, locks, looks, resolutions
from flows.store import operations as store
from flows.store.operations import Row
from flows.store.sql import committing

logger = logging.getLogger("outlast.resolve")

MAX_REASON = 4000


class UnknownOperation(UsageError):
    """No operation with that id."""

    code = "UNKNOWN_OPERATION"

    def __init__(self, operation: object) -> None:
        super().__init__(f"There is no operation {operation!s:.200}. `manage.py flows show WORKFLOW` names those of a workflow.")


class NobodyResolves(UsageError):
    """A verdict needs a user who gives it."""

    code = "NOBODY_RESOLVES"

    def __init__(self) -> None:
        super().__init__("What became of an operation is said by a user of this project: pass by=user.")


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of a verdict, and why, for a person."""

    code: Code
    operation: str
    verdict: str = field(default="", compare=False)

    @property
    def sentence(self) -> str:
        if self.code is Code.ACCEPTED and self.verdict in TRIED_ANEW:
            return TRIED_ANEW[Verdict(self.verdict)]
        return SENTENCES[self.code]

    def __bool__(self) -> bool:
        return self.code in (Code.ACCEPTED, Code.NEEDS_SECOND, Code.KEPT)


@dataclass(frozen=True, slots=True)
class _Given:
    verdict: Verdict
    user: Any
    label: str
    reason: str
    external_id: str
    evidence: str | None


def resolve(
    operation: Any,
    *,
    verdict: Verdict | str,
    by: Any,
    reason: str,
    external_id: str = "",
    evidence: Any = None,
    seen: str | None = None,
    using: str | None = None,
) -> Resolved:
    """Say what became of an operation that is in doubt, or what shall be done about one whose call failed.

    Args:
        verdict: one of `Verdict`. by: the user; rights are looked up anew. reason: how they know, in words.
        external_id: the provider's own name for what happened. evidence: any JSON value; for an effect that happened it becomes the
            activity's result. seen: `seen_of` what was shown; None does not look.
    Raises:
        UnknownOperation, NobodyResolves, ValueError (the verdict): the call makes no sense. ReasonMissing: nobody says how they know.
        PayloadError: something cannot be stored.
    """
    alias = identify.alias(using)
    operation_id = str(getattr(operation, "pk", operation))
    identify.user(by, NobodyResolves)
    payload.check_text(reason, "the reason")
    payload.check_text(external_id, "the external id")
    text = None if evidence is None else payload.encode(evidence, "the evidence", conf.MAX_RESULT_BYTES)
    said = warrant.reason(reason, "how you know what became of it", most=MAX_REASON)
    given = _Given(Verdict(verdict), by, identify.label(by), said, external_id.strip()[:500], text)
    with committing("resolve", alias):
        first = store.get(operation_id, alias)
        if first is None:
            raise UnknownOperation(operation_id)
        locks.workflows([first.workflow_id], alias)
        row = store.get(operation_id, alias)
        assert row is not None
        code = _refusal(row, given, seen, alias) or _accept(row, given, alias)
    logger.info("operation %s: %s, %s", operation_id, given.verdict, code, extra={"operation": operation_id, "code": code})
    return Resolved(code, operation_id, given.verdict.value)


def _refusal(row: Row, given: _Given, seen: str | None, using: str) -> Code | None:
    if not warrant.is_permitted(given.user, PERMISSION, using):
        return Code.NOT_PERMITTED
    if seen is not None and seen != seen_of(row):
        return Code.MOVED
    if given.verdict in offered(row):
        return None
    if given.verdict is Verdict.ASK_AGAIN and row.status == OperationStatus.UNCERTAIN:
        return Code.NOBODY_TO_ASK if is_left(row) else Code.ASKED_ANYWAY
    return Code.NOT_OFFERED


def _accept(row: Row, given: _Given, using: str) -> Code:
    if given.verdict is Verdict.CANNOT_TELL:
        _keep(row, given, "unknown", using)
        obligations.escalate(row.workflow_id, row.id, using)
        return Code.KEPT
    if given.verdict is Verdict.ASK_AGAIN:
        return _ask_again(row, given, using)
    if given.verdict in (Verdict.RETRY, Verdict.GIVE_UP):
        return _go_on_with(row, given, using)
    if (code := _second_person(row, given, using)) is not None:
        if code is Code.NEEDS_SECOND:
            _keep(row, given, given.verdict.value, using)
        return code
    if row.status == OperationStatus.FAILED and not looks.by_hand(row.id, row.looks, using):
        return Code.MOVED  # a worker has taken it just now
    happened = given.verdict is Verdict.HAPPENED
    counted = settling.settle(
        row.id,
        row.workflow_id,
        status=OperationStatus.SUCCEEDED if happened else OperationStatus.PLANNED,
        source="person",
        evidence=given.evidence,
        external_id=given.external_id,
        reason=given.reason,
        by=given.user.pk,
        by_label=given.label,
        due=timedelta(0) if not happened and row.kind != OperationKind.EFFECT else None,
        using=using,
    )
    return Code.ACCEPTED if counted else Code.MOVED


def _ask_again(row: Row, given: _Given, using: str) -> Code:
    """The question anew, with all its tries. A workflow that waits for a person waits on, until there is an answer; a cleanup goes on."""
    if not looks.ask_again(row.id, row.looks, using):
        return Code.MOVED
    service_after_commit(using)
    _keep(row, given, Verdict.RETRY.value, using)  # in the words of a Resolution
    obligations.resumed(row.workflow_id, using)
    return Code.ACCEPTED


def _go_on_with(row: Row, given: _Given, using: str) -> Code:
    """A compensation or a release whose call failed for certain: once more, or never. A worker may have taken it just now."""
    if given.verdict is Verdict.RETRY:
        moved = looks.again(row.id, using)
        if moved:
            service_after_commit(using)
    elif row.commitment_id is not None:  # who gives its release up is whose business it is from now on
        moved = bool(
            commitments.end(
                row.workflow_id,
                status="transferred",
                by=given.label,
                commitment=row.commitment_id,
                holder=given.label,
                reason=given.reason,
                using=using,
            )
        )
    else:
        moved = store.settle(
            row.id, status="abandoned", by=given.label, code=row.error_code, looks=row.looks, sources=["failed"], using=using
        )
    if not moved:
        return Code.MOVED
    _keep(row, given, given.verdict.value, using)
    obligations.resumed(row.workflow_id, using)
    if given.verdict is Verdict.GIVE_UP:
        obligations.go_on(row.workflow_id, using, by_person=True)
    return Code.ACCEPTED


def _second_person(row: Row, given: _Given, using: str) -> Code | None:
    """Where the effect wants two people: whether this is the first verdict, or the same one by the same person. None: it counts.

    The same is said by who says the same of everything that is taken over: answer, external id and evidence.
    """
    if not row.two_people:
        return None
    rows = Resolution.objects.using(using).filter(
        operation_id=row.id, source="person", answer=given.verdict.value, at__gte=row.doubt_since, external_id=given.external_id
    )
    wanted = None if given.evidence is None else payload.decode(json.loads(given.evidence))
    said = [
        by
        for by, evidence in rows.values_list("by_id", "evidence")
        if (evidence is None) == (given.evidence is None) and payload.decode(evidence) == wanted
    ]
    if not said:
        return Code.NEEDS_SECOND
    return None if any(by != given.user.pk for by in said) else Code.SAME_PERSON


def _keep(row: Row, given: _Given, answer: str, using: str) -> None:
    resolutions.add(
        row.id,
        source="person",
        answer=answer,
        counted=False,
        evidence=given.evidence,
        external_id=given.external_id,
        reason=given.reason,
        by=given.user.pk,
        by_label=given.label,
        using=using,
    )


__all__ = [
    "MAX_REASON",
    "PERMISSION",
    "SENTENCES",
    "Code",
    "NobodyResolves",
    "Resolved",
    "UnknownOperation",
    "Verdict",
    "offered",
    "resolve",
    "seen_of",
]
