"""The servicing turn: looks at operations that are due. Protected capacity: it takes nothing else, and nothing else takes its place.

    uncertain                     ask the provider (`reconcile`), or where the same may be asked for twice, have it asked for again
    a compensation or a release   make the call; it is in flight with the look, and what is not known of it is asked about likewise
A look is one question or one call, outside any transaction, with its own time limit; whoever answers too late is fenced by the look's number.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from django.db import connections

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.effects import (
    NOT_RECONCILABLE,
    SERVICING_FAILED,
    Askable,
    AskAgain,
    AskPerson,
    DidNotHappen,
    Happened,
    Next,
    OperationKind,
    OperationStatus,
    Servicing,
    Settle,
    Unknown,
    after_call,
    after_error,
    after_probe,
    at_doubt,
)
from flows.core.errors import classify
from flows.core.retry import delay_before
from flows.dispatch import service
from flows.services import obligations, settling
from flows.services.authored import call, tidy, transaction_of
from flows.services.capacity import probing
from flows.services.operation import declared, view
from flows.store import locks, looks, resolutions
from flows.store import operations as store
from flows.store.operations import Row
from flows.store.sql import committing

logger = logging.getLogger("outlast.servicing")

#: Nothing in this process's flows says what could be asked or done: the declaration was taken away.
NOT_DECLARED = "NOT_DECLARED"


class Host(Protocol):
    """What a servicing turn needs of the process that it runs in; `flows.services.turn.Host` has it all."""

    @property
    def pid(self) -> int: ...

    @property
    def flows(self) -> Sequence[str]: ...

    @property
    def versions(self) -> Sequence[int]: ...

    def worker(self) -> UUID | None: ...

    def owns(self) -> bool: ...

    def stopping(self) -> bool: ...

    def limit(self, seconds: float) -> AbstractContextManager[None]: ...


def run_servicing(host: Host, using: str) -> int:
    """Look at what is due, for one slice; how many operations, and dependencies, were looked at."""
    ends, count = time.monotonic() + conf.SLICE_SECONDS, 0
    while not host.stopping():
        worker = host.worker()
        if worker is None or not host.owns():
            break
        taken = looks.look(worker, host.pid, host.flows, host.versions, 1, using)
        for operation, number in taken:
            _look(host, operation, number, using)
        count += len(taken)
        if not taken:
            break
        if time.monotonic() >= ends:
            service()  # there is probably more
            break
    return count + probing.run(host, using)


def _look(host: Host, operation: str, number: int, using: str) -> None:
    row = store.get(operation, using)
    if row is None or row.looks != number:
        return
    asked = declared(row)
    if asked is None:
        _apply(row, number, AskPerson(NOT_DECLARED), using)
    elif row.kind != OperationKind.EFFECT and row.status == OperationStatus.IN_FLIGHT:
        assert isinstance(asked, Servicing)
        _call(host, row, number, asked, using)
    else:
        following = at_doubt(asked, row.tries - 1, row.lost)
        if isinstance(following, AskAgain):
            _ask(host, row, number, asked, using)
        else:
            _apply(row, number, following, using)


def _ask(host: Host, row: Row, number: int, asked: Askable, using: str) -> None:
    """One question to the provider. Whatever is no answer is Unknown."""
    if not looks.may_take(row.id, number, asked.timeout.total_seconds(), using):
        return
    answer: Any
    try:
        answer = _run(host, asked.reconcile, row, asked.timeout, using)
        following = after_probe(asked, answer, row.tries, random.random())
        evidence = _encoded(row, answer.evidence) if isinstance(answer, Happened | DidNotHappen) else None
    except Exception as error:
        logger.warning("reconcile of %s: %s", row.id, type(error).__name__, exc_info=error)
        answer, evidence = Unknown(type(error).__name__), None
        following = after_probe(asked, answer, row.tries, random.random())
    if isinstance(answer, Unknown):
        _apply(row, number, following, using, answer=answer)
        return
    happened = isinstance(answer, Happened)
    settling.settle(
        row.id,
        row.workflow_id,
        status=OperationStatus.SUCCEEDED if happened else OperationStatus.PLANNED,
        source="probe",
        evidence=evidence,
        external_id=answer.external_id if happened else "",
        looks=number,
        due=_pause(row) if not happened and row.kind != OperationKind.EFFECT else None,
        using=using,
    )


def _call(host: Host, row: Row, number: int, servicing: Servicing, using: str) -> None:
    """One call of a compensation or a release. An error that does not say that nothing happened leaves it in doubt."""
    if row.attempt > servicing.probes.max_attempts:  # it was found again and again that the call had not happened
        _apply(row, number, AskPerson(SERVICING_FAILED), using, status=OperationStatus.FAILED)
        return
    if not looks.may_take(row.id, number, servicing.timeout.total_seconds(), using):
        return
    try:
        evidence = _encoded(row, _run(host, servicing.do, row, servicing.timeout, using))
    except Exception as error:
        logger.warning("%s of %s: %s", row.kind, row.id, type(error).__name__, exc_info=error)
        code = classify(error).code
        if after_error(error) is OperationStatus.FAILED:
            _apply(
                row, number, after_call(servicing, row.attempt, random.random()), using, code=code, status=OperationStatus.FAILED
            )
        else:
            _apply(row, number, AskAgain(servicing.grace), using, code=code, status=OperationStatus.UNCERTAIN)
        return
    settling.settle(
        row.id,
        row.workflow_id,
        status=OperationStatus.SUCCEEDED,
        source="attempt",
        evidence=evidence,
        looks=number,
        using=using,
    )


def _apply(
    row: Row,
    number: int,
    following: Next,
    using: str,
    *,
    code: str | None = None,
    status: OperationStatus | None = None,
    answer: Unknown | None = None,
) -> None:
    """Make true what follows from a look that settled nothing; an answer that came too late is kept all the same."""
    with committing("look", using):
        locks.workflows([row.workflow_id], using)
        match following:
            case Settle(status=OperationStatus.PLANNED) if row.kind != OperationKind.EFFECT:  # the same may be asked for twice
                store.settle(row.id, status="planned", by="idempotent", looks=number, due=_pause(row), using=using)
            case Settle(status=OperationStatus.PLANNED) if obligations.is_ending(row.workflow_id, using):
                # Its activity will not run any more, and nobody else can ask for it again.
                if looks.later(row.id, number, delay=None, code=NOT_RECONCILABLE, status=None, using=using):
                    obligations.ask_person(row.workflow_id, NOT_RECONCILABLE, row.id, using)
            case Settle(status=OperationStatus.PLANNED):
                if store.ask_again(row.id, row.workflow_id, number, using):
                    obligations.go_on(row.workflow_id, using)
            case AskAgain(delay=delay):
                looks.later(row.id, number, delay=delay, code=code or "OUTCOME_UNKNOWN", status=status, using=using)
            case AskPerson(code=why):
                if looks.later(row.id, number, delay=None, code=why, status=status, using=using):
                    obligations.ask_person(row.workflow_id, why, row.id, using)
            case _:
                raise AssertionError(f"{following!r} settles nothing")
        if answer is not None:
            resolutions.add(row.id, source="probe", answer="unknown", reason=answer.reason[:500], counted=False, using=using)


def _pause(row: Row) -> timedelta:
    """Before a compensation or a release is called again that has not happened; a call that was lost with its worker is no try."""
    asked = declared(row)
    if asked is None or not row.attempt:
        return timedelta(0)
    return delay_before(asked.probes, row.attempt, random.random())


def _run(host: Host, function: Any, row: Row, timeout: timedelta, using: str) -> Any:
    do: Callable[[Any], Any] = registry.function(function)
    connection = connections[using]
    before = transaction_of(connection)
    try:
        with host.limit(timeout.total_seconds()):
            return call(do, view(row, using))
    finally:
        tidy(connection, before)


def _encoded(row: Row, value: Any) -> str | None:
    if value is None:
        return None
    return payload.encode(value, f"the evidence of {row.id}", conf.MAX_RESULT_BYTES)
