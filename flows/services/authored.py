"""Around a call of author code, plain or async: no transaction of it is left behind, for the arrows must commit on their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from psycopg.pq import TransactionStatus

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
