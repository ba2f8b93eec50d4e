"""Prepared statements on one connection, by libpq's own blocking call: a fifth of the client's cost of a cursor.

psycopg's cursors are general (async, pipelines, server cursors); our statements are few, always the same, and always wait for their answer.
Values are still written and read by psycopg's own adaptation, so types and Django's settings for them are the same.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import capabilities
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

_UNKNOWN_STATEMENT = "26000"


@dataclass(slots=True)
class _Statement:
    """`plan` numbers the occasions on which it was prepared; 0: not yet."""

    name: bytes
    since: float
    uses: int = 0
    plan: int = 0


class Prepared:
    """What one connection has prepared. A statement is known by its text and the types of its values.

    It gets a new plan 1, 2, 4, 8 … seconds after it was first prepared, and after 128, 512, 2,048 … uses: a plan that was made while the
    tables were almost empty may read them from end to end, and a session keeps it until the next ANALYZE.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._pgconn, self._raw = raw.pgconn, raw
        self._transformer = Transformer(raw)
        self._numbers = itertools.count()
        self._known: dict[tuple[bytes, tuple[int, ...]], _Statement] = {}

    def execute(self, text: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run the statement and return its rows.

        Raises:
            psycopg.Error: as a cursor would.
        """
        transformer, pgconn = self._transformer, self._pgconn
        written = transformer.dump_sequence(values, [PyFormat.TEXT] * len(values))
        types = transformer.types or ()
        if pgconn.transaction_status == TransactionStatus.IDLE and not self._raw.autocommit:
            self._checked(pgconn.exec_(b"BEGIN"))
        result = pgconn.exec_prepared(self._name(text, types), written)  # type: ignore[arg-type]  # None is NULL
        if result.status == ExecStatus.FATAL_ERROR and self._was_discarded(result):
            result = pgconn.exec_prepared(self._name(text, types), written)  # type: ignore[arg-type]
        self._checked(result)
        if result.status != ExecStatus.TUPLES_OK or not result.ntuples:
            return []
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, _make_row)

    def _name(self, text: bytes, types: tuple[int, ...]) -> bytes:
        known = self._known.get((text, types))
        if known is None:
            known = self._known[text, types] = _Statement(b"outlast_%d" % next(self._numbers), time.monotonic())
        known.uses += 1
        plan = 1 + int(time.monotonic() - known.since).bit_length() + (known.uses >> 6).bit_length() // 2
        if plan != known.plan:
            if known.plan:
                self._forget(known.name)
                self._known[text, types] = known
                known.plan = 0
            self._checked(self._pgconn.prepare(known.name, text, types))
            known.plan = plan
        return known.name

    def _forget(self, name: bytes) -> None:
        """By the protocol's own message where libpq has it (17): poolers that know prepared statements know it, and not the SQL command."""
        if capabilities.has_send_close_prepared():
            self._checked(self._pgconn.close_prepared(name))
            return
        dropped = self._pgconn.exec_(b"DEALLOCATE " + name)
        if dropped.status == ExecStatus.FATAL_ERROR and not self._was_discarded(dropped):
            self._checked(dropped)

    def _was_discarded(self, result: Any) -> bool:
        """Somebody ran DISCARD or DEALLOCATE ALL: outside a transaction the statement can simply be prepared again."""
        error = error_from_result(result)
        if error.sqlstate != _UNKNOWN_STATEMENT or self._pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        self._known.clear()
        return True

    def _checked(self, result: Any) -> None:
        if result.status in (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE):
            error = error_from_result(result, encoding=self._raw.info.encoding)
            if self._pgconn.status == ConnStatus.BAD:  # no code comes from a server that is gone; a cursor says operational
                raise psycopg.OperationalError(str(error)) from None
            raise error


def _make_row(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(values)


def of(raw: psycopg.Connection[Any]) -> Prepared:
    """What that connection has prepared; it lives and dies with the connection."""
    found: Prepared | None = raw.__dict__.get("outlast_prepared")
    if found is None:
        found = raw.__dict__["outlast_prepared"] = Prepared(raw)
    return found
