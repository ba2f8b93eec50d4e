"""Values sealed anew, a page of a table at a time: read, locked without waiting, read again, written. A row that is in use is left for later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flows.store.erasing import REWRITE
from flows.store.sql import loads, run


@dataclass(frozen=True, slots=True)
class Sealed:
    """A table with sealed values: its key (column, type) and the columns. `binary`: they are bytes, not JSON."""

    table: str
    key: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    binary: bool = False

    @property
    def names(self) -> str:
        """The key's columns."""
        return ", ".join(name for name, _ in self.key)

    @property
    def placed(self) -> str:
        """The key's values as parameters."""
        return ", ".join(f"%(k{number})s::{kind}" for number, (_, kind) in enumerate(self.key))

    def params(self, place: Sequence[Any]) -> dict[str, Any]:
        """One key as those parameters."""
        return {f"k{number}": value for number, value in enumerate(place)}


Row = tuple[tuple[Any, ...], list[Any]]

PAGE = "SELECT {names}, {columns} FROM {table} WHERE ({filled}) {after} ORDER BY {names} LIMIT %(limit)s::int"
LOCK = "SELECT {names}, {columns} FROM {table} WHERE ({names}) = ({placed}) FOR NO KEY UPDATE SKIP LOCKED"
WRITE = "UPDATE {table} SET {sets} WHERE ({names}) = ({placed})"


def page(one: Sealed, after: Sequence[Any] | None, limit: int, using: str) -> list[Row]:
    """The next rows after that key that have a value: (key, values)."""
    filled = " OR ".join(f"{name} IS NOT NULL" for name in one.columns)
    following = f"AND ({one.names}) > ({one.placed})" if after is not None else ""
    statement = PAGE.format(names=one.names, columns=", ".join(one.columns), table=one.table, filled=filled, after=following)
    return [_row(one, row) for row in run("page to seal", statement, {**one.params(after or ()), "limit": limit}, using)]


def lock(one: Sealed, place: Sequence[Any], using: str) -> Row | None:
    """Lock a row and read it again; None: it is in use, or gone."""
    statement = LOCK.format(names=one.names, columns=", ".join(one.columns), table=one.table, placed=one.placed)
    rows = run("lock to seal", statement, one.params(place), using)
    return _row(one, rows[0]) if rows else None


def _row(one: Sealed, row: Sequence[Any]) -> Row:
    width = len(one.key)
    return tuple(row[:width]), list(row[width:]) if one.binary else [loads(value) for value in row[width:]]


def write(one: Sealed, place: Sequence[Any], values: Sequence[Any], using: str) -> None:
    """Write a locked row's values, as bytes or JSON texts."""
    kind = "bytea" if one.binary else "jsonb"
    sets = ", ".join(f"{name} = %(v{number})s::{kind}" for number, name in enumerate(one.columns))
    params = {**one.params(place), **{f"v{number}": value for number, value in enumerate(values)}}
    run("seal anew", WRITE.format(table=one.table, sets=sets, names=one.names, placed=one.placed), params, using)


def rewriting(using: str, *, on: bool) -> None:
    """Let values of what is append-only be written, or not any more; for this transaction."""
    run("rewrite on" if on else "rewrite off", REWRITE, {"to": "on" if on else ""}, using)
