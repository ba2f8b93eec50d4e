"""How a guarded statement is run, and the one seam that numbers the commits.

Statements go through Django's own connection, so they take part in the caller's transaction; they are prepared on the server unless a
transaction pooler stands between. Every write that commits passes `seam`, before and after: a test can stop the process at each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from flows.conf import conf
from flows.core.errors import HalfMove
from flows.store import prepared

#: Called with ("before" | "after", name) at every commit and ("within", name) after every statement inside a transaction of ours;
#: None in production.
seam: Callable[[str, str], None] | None = None

HALF_MOVE_STATE = "OL001"

_NAMED = re.compile(r"%\((\w+)\)s")


def run(name: str, statement: str, params: Mapping[str, Any], using: str) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows. Outside a transaction it is one commit, numbered by the seam.

    Raises:
        HalfMove: the statement moved one row and missed its partner; nothing was written.
    """
    connection = connections[using]
    if seam is None:
        return _execute(connection, statement, params)
    alone = not connection.in_atomic_block
    if alone:
        seam("before", name)
    rows = _execute(connection, statement, params)
    seam("after" if alone else "within", name)
    return rows


def _execute(connection: BaseDatabaseWrapper, statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    raw: psycopg.Connection[Any] = connection.connection
    text, names = _numbered(statement)
    values = [params[name] for name in names]
    with connection.wrap_database_errors:
        try:
            if may_prepare(connection):
                return prepared.of(raw).execute(text, values)
            cursor = psycopg.RawCursor(raw).execute(text, values, prepare=False)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if error.sqlstate == HALF_MOVE_STATE:
                raise HalfMove(str(error)) from error
            raise


@lru_cache(maxsize=256)
def _numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement with the server's own placeholders ($1, $2 …) and the names in their order; written once, not at every call."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return _NAMED.sub(number, statement).encode(), tuple(names)


def may_prepare(connection: BaseDatabaseWrapper) -> bool:
    """Whether statements may be prepared on the server: not behind a transaction pooler."""
    wanted = conf.PREPARED_STATEMENTS
    if wanted is None:
        return not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)
    return bool(wanted)


@contextmanager
def committing(name: str, using: str) -> Iterator[None]:
    """A short transaction that locks first and acts in new statements; one numbered commit unless it is nested."""
    nested = connections[using].in_atomic_block
    with transaction.atomic(using=using):
        yield
        if seam is not None and not nested:
            seam("before", name)
    if seam is not None and not nested:
        seam("after", name)


def literals(words: Iterable[str]) -> str:
    """Words of our own tables as SQL literals, with commas between."""
    return ", ".join(f"'{word}'" for word in words)


def loads(value: Any) -> Any:
    """A jsonb column as Django's connection hands it out (text), parsed."""
    return json.loads(value) if isinstance(value, str | bytes) else value


def dumps(value: Any) -> str:
    """Small JSON of our own making (notes, evidence)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
