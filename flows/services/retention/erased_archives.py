"""Erasing in archives: records in the table are written anew without their values; files are named, for nobody writes them anew here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.payload import ERASED, ERASED_TEXT
from flows.services.retention.archiving import digest
from flows.store import archive


def erase(ids: Sequence[UUID], using: str) -> int:
    """Erase the values in these records; how many had some left."""
    count = 0
    for one in ids:
        found = archive.find(workflow=one, using=using)
        if found is None or found[8] is None:
            continue
        record = erased(found[8])
        if record != found[8]:
            count += archive.replace(one, found[6], digest(record), json.dumps(record), using)
    return count


def erased(record: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """A record without its values: what is erased is what is erased of a run that is still there, and its goal."""
    values = {one.table: one.values for one in registry.belongings()}
    texts = {one.table: one.texts for one in registry.belongings()}
    texts |= {"outlast_intent": ("goal",), "outlast_intent_revision": ("goal", "reason")}
    made: dict[str, list[dict[str, Any]]] = {}
    for table, rows in record.items():
        blank = dict.fromkeys(values.get(table, ()), ERASED)
        words = dict.fromkeys(texts.get(table, ()), ERASED_TEXT)
        if table != "outlast_session_link":
            made[table] = [{name: _instead(name, item, blank, words) for name, item in row.items()} for row in rows]
    return made


def _instead(name: str, item: Any, blank: dict[str, Any], words: dict[str, str]) -> Any:
    if item is None or item == "":
        return item
    return blank.get(name, words.get(name, item))
