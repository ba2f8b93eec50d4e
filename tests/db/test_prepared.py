"""Statements on one connection: prepared once, planned again as the tables grow, and none the worse for a DISCARD."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest
from django.db import connection

from flows.store import prepared
from flows.store.prepared import Prepared

ONE, TWO = b"SELECT $1::int + 1", b"SELECT $1::int + 2"


@pytest.fixture
def raw(transactional_db: None) -> psycopg.Connection[Any]:
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    raw.__dict__.pop("outlast_prepared", None)
    raw.execute("DEALLOCATE ALL")
    return raw


def names(raw: psycopg.Connection[Any]) -> set[str]:
    return {row[0] for row in raw.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE 'outlast%'")}


def plans(statements: Prepared) -> list[int]:
    return [statement.plan for statement in statements._known.values()]


def test_it_is_planned_again_after_many_uses(raw: psycopg.Connection[Any]) -> None:
    statements = prepared.of(raw)
    seen = set()
    for number in range(600):
        assert statements.execute(ONE, [number]) == [(number + 1,)]
        for statement in statements._known.values():
            statement.since = time.monotonic()  # as if no time had passed
        seen.add(plans(statements)[0])
    assert len(seen) >= 3
    assert len(names(raw)) == 1


@pytest.mark.parametrize("discard", ["DISCARD ALL", "DEALLOCATE ALL"])
@pytest.mark.parametrize("replan", [False, True])
def test_a_discard_is_made_good(raw: psycopg.Connection[Any], discard: str, replan: bool) -> None:  # noqa: FBT001
    statements = prepared.of(raw)
    for text in (ONE, TWO):
        statements.execute(text, [1])
    raw.execute(discard)
    if replan:
        for statement in statements._known.values():
            statement.since -= 100
    assert statements.execute(TWO, [1]) == [(3,)]
    assert statements.execute(ONE, [1]) == [(2,)]
    assert statements.execute(b"SELECT $1::int + 3", [1]) == [(4,)]
    assert len(names(raw)) == 3


def test_a_failed_transaction_keeps_what_is_prepared(raw: psycopg.Connection[Any]) -> None:
    statements = prepared.of(raw)
    statements.execute(ONE, [1])
    raw.execute("BEGIN")
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        statements.execute(ONE, [2**31 - 1])
    raw.execute("ROLLBACK")
    assert statements.execute(ONE, [1]) == [(2,)]
