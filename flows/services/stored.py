"""Where values lie in what is stored, so that each is read and sealed where it is, and nothing inside one is taken for another.

Most columns are one value. The evidence of a wait says which event it was, and has the event's value inside; of several events, each one's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flows import registry
from flows.core.payload import ENVELOPE

#: Columns with values inside.
NESTED = {("outlast_wait", "evidence"), ("outlast_wait_part", "evidence")}
#: Tables with values that belong to no run.
MORE = {"outlast_start_key": ("input",), "outlast_schedule": ("input",), "outlast_event": ("payload",)}

Do = Callable[[Any], Any]


def columns() -> dict[str, tuple[str, ...]]:
    """Table → its columns with values."""
    return {one.table: one.values for one in registry.belongings() if one.values} | MORE


def each(table: str, column: str, stored: Any, do: Do) -> Any:
    """What is stored in that column with `do` done to each value in it; the same object where nothing changes."""
    return inside(stored, do) if (table, column) in NESTED else do(stored)


def inside(stored: Any, do: Do) -> Any:
    """The evidence of a wait with `do` done to each value in it."""
    if isinstance(stored, dict) and ENVELOPE not in stored:
        if "payload" in stored:
            return _with(stored, {"payload": do(stored["payload"])})
        if isinstance(stored.get("events"), list):
            return _with(stored, {"events": _all(stored["events"], lambda one: inside(one, do))})
    return do(stored)


def record(stored: Mapping[str, Any], do: Do) -> Any:
    """A whole archived record (table → rows) with `do` done to each value in it; the same object where nothing changes."""

    def rows(table: str, names: tuple[str, ...]) -> list[Any]:
        return _all(stored[table], lambda row: _with(row, {one: each(table, one, row[one], do) for one in names if one in row}))

    return _with(stored, {table: rows(table, names) for table, names in columns().items() if table in stored})


def _with(stored: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
    return stored if all(stored[name] is item for name, item in new.items()) else {**stored, **new}


def _all(stored: list[Any], do: Do) -> list[Any]:
    new = [do(one) for one in stored]
    return stored if all(one is other for one, other in zip(new, stored, strict=True)) else new
