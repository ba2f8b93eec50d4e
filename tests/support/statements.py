"""Statements that go past Django's own log: those of `flows.store`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from flows.store import sql


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements of the store inside the block."""
    found: list[str] = []
    run = sql._execute

    def execute(connection: Any, statement: str, params: Mapping[str, Any]) -> Any:
        found.append(statement)
        return run(connection, statement, params)

    with mock.patch.object(sql, "_execute", execute):
        yield found
