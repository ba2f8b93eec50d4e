"""Codec rotation: every value of the record is brought to how it would be stored today, so that an old key is needed no more.

    plain, or sealed with an older key ──► sealed with the newest     a page a transaction; a row that is so already is not written
Guard: the row is locked without waiting, and read again under the lock, so nothing that a worker wrote meanwhile is lost; what is in use is
looked at again at the end. Writers seal with the newest key themselves. A crash in the middle: what is done is done, and the same call goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connections

from flows.core import payload
from flows.core.misuse import NoCodec
from flows.services import identify, stored
from flows.services.retention.archiving import digest
from flows.services.webhooks import bodies
from flows.store import archive
from flows.store import resealing as store
from flows.store.resealing import Sealed
from flows.store.sql import committing

PAGE = 200
#: How often rows that were in use are looked at again.
TIMES = 5
BODIES = "outlast_webhook_delivery"
ARCHIVE = "outlast_archive"


@dataclass(frozen=True, slots=True)
class Rotated:
    """What became of one table: rows with values, those that were not as they would be stored today, and of these those in use till the end."""

    table: str
    rows: int
    sealed: int
    busy: int


def rotate(*, dry_run: bool = False, using: str | None = None) -> Iterator[Rotated]:
    """Bring every value to how it would be stored today, table by table.

    Raises:
        NoCodec: none is configured. PayloadError: a value needs a codec or a key that is not listed; what was done before it stays done.
    """
    alias = identify.alias(using)
    if not payload.seals():
        raise NoCodec
    for one in tables(alias):
        yield _table(one, dry_run=dry_run, using=alias)


def tables(using: str) -> list[Sealed]:
    """All tables with values that a codec seals."""
    found = [Sealed(table, _key(table, using), columns) for table, columns in stored.columns().items()]
    return [
        *found,
        Sealed(BODIES, _key(BODIES, using), ("body",), binary=True),
        Sealed(ARCHIVE, _key(ARCHIVE, using), ("record",)),
    ]


def _key(table: str, using: str) -> tuple[tuple[str, str], ...]:
    model: Any = next(model for model in apps.get_models() if model._meta.db_table == table)  # noqa: SLF001 - Django's documented way
    return tuple((field.column, field.rel_db_type(connections[using])) for field in model._meta.pk_fields)  # noqa: SLF001


def _table(one: Sealed, *, dry_run: bool, using: str) -> Rotated:
    rows = sealed = 0
    busy: list[Any] = []
    after: Any = None
    while page := store.page(one, after, PAGE, using):
        rows += len(page)
        stale = [place for place, values in page if _anew(one, values) is not None]
        left = stale if dry_run else _batch(one, stale, using)
        sealed += len(stale) - (0 if dry_run else len(left))
        busy += [] if dry_run else left
        after = page[-1][0]
    for _ in range(TIMES):
        before = len(busy)
        busy = _batch(one, busy, using) if busy else []
        sealed += before - len(busy)
    return Rotated(one.table, rows, sealed, len(busy))


def _batch(one: Sealed, places: list[Any], using: str) -> list[Any]:
    """Write these rows; those that are in use."""
    busy: list[Any] = []
    if places:
        with committing("seal anew", using):
            store.rewriting(using, on=True)
            for place in places:
                found = store.lock(one, place, using)
                anew = _anew(one, found[1]) if found is not None else None
                if found is None:
                    busy.append(place)
                elif anew is not None:
                    _write(one, place, anew, using)
            store.rewriting(using, on=False)
    return busy


def _anew(one: Sealed, values: list[Any]) -> list[Any] | None:
    """The values as they would be stored today; None: they are so."""
    if one.binary:
        made: list[Any] = [None if value is None else _body(bytes(value)) for value in values]
        return None if all(new is None or new == bytes(old) for new, old in zip(made, values, strict=True)) else made
    made = [_value(one.table, name, value) for name, value in zip(one.columns, values, strict=True)]
    return None if all(new is old for new, old in zip(made, values, strict=True)) else made


def _value(table: str, column: str, value: Any) -> Any:
    if value is None:
        return None
    return stored.record(value, payload.reseal) if table == ARCHIVE else stored.each(table, column, value, payload.reseal)


def _body(body: bytes) -> bytes:
    if body[:1] == bodies.SEALED:
        sealed = json.loads(body[1:])
        return body if payload.reseal(sealed) is sealed else bodies.packed(bodies.unpacked(body))
    return bodies.packed(bodies.unpacked(body))


def _write(one: Sealed, place: Any, values: list[Any], using: str) -> None:
    if one.table == ARCHIVE:
        found = archive.find(workflow=place[0], using=using)
        if found is not None:
            archive.replace(place[0], found[6], digest(values[0]), json.dumps(values[0]), using)
    elif one.binary:
        store.write(one, place, values, using)
    else:
        texts = [None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
        store.write(one, place, texts, using)
