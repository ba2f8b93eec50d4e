"""Rows of several tables in one statement and one snapshot: what a page shows of a run costs one look, and fits together.

Each query set becomes one part of a UNION ALL, its rows as JSON; they come back as model instances, with what the query set annotated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import DateTimeField, DecimalField, Field, ForeignKey, JSONField, Model, QuerySet, UUIDField

NOW = "SELECT 'now', to_json(flows_now())::text"
PART = "SELECT %s, coalesce(json_agg(row_to_json(x)), '[]')::text FROM ({}) x"


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows by the names of their query sets, and the moment on the durable clock."""

    now: datetime
    rows: dict[str, list[Any]]

    def __getitem__(self, name: str) -> list[Any]:
        return self.rows[name]

    def first(self, name: str) -> Any:
        """The first row of a query set; None: there is none."""
        return next(iter(self.rows[name]), None)


def read(using: str, **wanted: QuerySet[Any]) -> Batch:
    """Read query sets of models, each sliced and without joins: two columns of one name would be one."""
    parts: list[str] = [NOW]
    params: list[Any] = []
    for name, rows in wanted.items():
        try:
            statement, values = rows.using(using).query.sql_with_params()
        except EmptyResultSet:
            continue
        parts.append(PART.format(statement))
        params += [name, *values]
    with connections[using].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        found = dict(cursor.fetchall())
    now = datetime.fromisoformat(json.loads(found.pop("now")))
    return Batch(
        now, {name: [_made(rows.model, row, using) for row in json.loads(found.get(name, "[]"))] for name, rows in wanted.items()}
    )


def _made(model: type[Model], row: dict[str, Any], using: str) -> Model:
    """The instance of one row; columns that were deferred stay so, and what is no column is an annotation."""
    names, values = [], []
    for name, column, parse in _columns(model):
        if column in row:
            value = row.pop(column)
            names.append(name)
            values.append(value if value is None else parse(value))
    made = model.from_db(using, names, values)
    for name, value in row.items():
        setattr(made, name, value)
    return made


@cache
def _columns(model: type[Model]) -> tuple[tuple[str, str, Callable[[Any], Any]], ...]:
    """(attribute, column, how a JSON value becomes the column's) of each field."""
    fields = model._meta.concrete_fields  # noqa: SLF001 - the documented API
    return tuple((field.attname, str(field.column), _parser(field)) for field in fields)


def _parser(field: Field[Any, Any]) -> Callable[[Any], Any]:
    if isinstance(field, ForeignKey):
        return _parser(field.target_field)
    if isinstance(field, JSONField):
        return _same
    if isinstance(field, DateTimeField):
        return datetime.fromisoformat
    if isinstance(field, UUIDField):
        return UUID
    if isinstance(field, DecimalField):
        return _decimal
    if isinstance(field, ArrayField):
        parse = _parser(field.base_field)
        return lambda items: [parse(item) for item in items]
    return field.to_python


def _same(value: Any) -> Any:
    return value


def _decimal(value: Any) -> Decimal:
    """JSON knows no decimals; the shortest text of a float is the number that was written, up to fifteen digits."""
    return Decimal(str(value))
