"""Around a call of author code, plain or async: no transaction of it is left behind, for the arrows must commit on their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from psycopg.pq import TransactionStatus

from flows.core.errors import ApprovalPending, TurnEnds

P = ParamSpec("P")
R = TypeVar("R")


def call(function: Callable[[Any], Any], argument: Any) -> Any:
    """What a function of the author returns; an async one is run to its end."""
    answer = function(argument)
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


@contextmanager
def beside_loop() -> Iterator[None]:
    """For our own short, synchronous work, asked for by async code: Django refuses its connections to a thread whose event loop is running.

    The loop waits for it, as for any plain function. It must not be left between: nothing is awaited inside.
    """
    loop = asyncio._get_running_loop()  # noqa: SLF001 - there is no other way to say that the loop is set aside for a moment
    if loop is None:
        yield
        return
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)  # noqa: SLF001


def from_anywhere(function: Callable[P, R]) -> Callable[P, R]:
    """Let async author code call this method as plain code does."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with beside_loop():
            return function(*args, **kwargs)

    return called


def transaction_of(connection: Any) -> tuple[int, bool]:
    """How deep in `atomic` blocks, and whether statements commit only later: a worker's is (0, False), a test's own may be deeper."""
    raw = connection.connection
    if raw is None or raw.closed:
        return 0, False
    depth = len(connection.savepoint_ids) + 1 if connection.in_atomic_block else 0
    return depth, not connection.autocommit or raw.pgconn.transaction_status != TransactionStatus.IDLE


def tidy(connection: Any, before: tuple[int, bool]) -> None:
    """Leave no transaction of the author's code behind: the arrows must commit on their own."""
    if transaction_of(connection) != before or (connection.connection is not None and connection.connection.closed):
        connection.in_atomic_block = False
        connection.savepoint_ids = []
        connection.needs_rollback = False
        connection.close()


# ---------------------------------------------------------------- what it lets out


def alone(error: BaseException) -> BaseException:
    """The one error in a group, as a task group makes it of one; else the error as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def ends_the_attempt(error: BaseException) -> bool:
    """Whether it ends the attempt and no more: an error, a tool that waits, a task that was given up. What else there is ends the process."""
    if isinstance(error, BaseExceptionGroup):
        return all(ends_the_attempt(one) for one in error.exceptions)
    return isinstance(error, Exception | TurnEnds | asyncio.CancelledError | GeneratorExit)


def waits(error: BaseException) -> bool:
    """Whether it says that a tool waits for people, by itself or among others."""
    return isinstance(error, ApprovalPending) or (
        isinstance(error, BaseExceptionGroup) and error.subgroup(ApprovalPending) is not None
    )
