"""Around a call of author code, plain or async: no transaction of it is left behind, for the arrows must commit on their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from psycopg.pq import TransactionStatus


def call(function: Callable[[Any], Any], argument: Any) -> Any:
    """What a function of the author returns; an async one is run to its end."""
    answer = function(argument)
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


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
