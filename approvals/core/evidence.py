"""A JSON value as rows that a person can read, nothing left out; and a model's own words kept apart from the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from approvals.core.diff import MAX_DEPTH, join, text_of

MAX_ROWS = 500

#: Members in which authors put what a model says about its own proposal. They are shown last, and as unverified.
WORDS = frozenset({"comment", "explanation", "message", "notes", "rationale", "reason", "summary"})


@dataclass(frozen=True, slots=True)
class Row:
    """One leaf of a value: where it is, and its text; `block` for a text of several lines or many characters."""

    path: str
    text: str
    block: bool = False


def rows(value: Any) -> list[Row]:
    """All leaves in order. A value with more than `MAX_ROWS` of them is one block of JSON instead: nothing is hidden."""
    found: list[Row] = []
    for row in _leaves("", value, 0):
        if len(found) == MAX_ROWS:
            return [Row("", json.dumps(value, ensure_ascii=False, indent=1), block=True)]
        found.append(row)
    return found


def apart(value: Any) -> tuple[Any, dict[str, str]]:
    """(the rest, the model's own words): free text at the top of a value, by `WORDS`; a bare text is words altogether."""
    if isinstance(value, str):
        return None, {"": value}
    if not isinstance(value, dict):
        return value, {}
    words = {key: item for key, item in value.items() if key in WORDS and isinstance(item, str)}
    return {key: item for key, item in value.items() if key not in words}, words


def _leaves(path: str, value: Any, depth: int) -> Iterator[Row]:
    if depth < MAX_DEPTH and isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(join(path, key), item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{index}]", item, depth + 1)
    else:
        text = text_of(value)
        yield Row(path, text, block="\n" in text or len(text) > 200)
