"""What is different between two JSON candidates: bounded, by structure, and line by line inside long texts."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_CHANGES = 200
MAX_LINES = 1000
#: So many lines of all texts together are compared: each costs time, and a candidate may have many texts.
MAX_ALL_LINES = 5000
MAX_DEPTH = 50
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text: "+" is new, "-" is gone, " " is as before, "@" stands for lines that are left out."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs: added, removed or changed; `lines` instead of the two values for texts of several lines."""

    path: str
    kind: str
    before: str = ""
    after: str = ""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes, and whether there are more of them than are listed."""

    changes: tuple[Change, ...]
    more: bool = False


def compare(before: Any, after: Any) -> Diff:
    """What is different in `after`; equal values give no change. At most `MAX_CHANGES` places are listed."""
    found: list[Change] = []
    for change in _walk("", before, after, 0, _Left(MAX_ALL_LINES)):
        if len(found) == MAX_CHANGES:
            return Diff(tuple(found), more=True)
        found.append(change)
    return Diff(tuple(found))


def text_of(value: Any) -> str:
    """A value as it is shown: text as itself, everything else (and text that looks like it) as JSON."""
    if isinstance(value, str) and value and not _looks_like_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def join(path: str, key: str) -> str:
    """The path of a member; a key that could be taken for a path is quoted, so that no two places look alike."""
    if not re.fullmatch(r"[\w-]+", key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _looks_like_json(text: str) -> bool:
    if len(text) > 40:
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@dataclass(slots=True)
class _Left:
    """How many lines may still be compared."""

    lines: int


def _walk(path: str, before: Any, after: Any, depth: int, left: _Left) -> Iterator[Change]:
    if depth < MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _member(join(path, key), before, after, key, depth, left)
    elif depth < MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
        old, new = dict(enumerate(before)), dict(enumerate(after))
        for index in range(max(len(before), len(after))):
            yield from _member(f"{path}[{index}]", old, new, index, depth, left)
    elif not _same(before, after):
        yield _changed(path, before, after, left)


def _member(path: str, before: dict[Any, Any], after: dict[Any, Any], key: Any, depth: int, left: _Left) -> Iterator[Change]:
    if key not in after:
        yield Change(path, "removed", before=text_of(before[key]))
    elif key not in before:
        yield Change(path, "added", after=text_of(after[key]))
    else:
        yield from _walk(path, before[key], after[key], depth + 1, left)


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1 is 1.0."""
    if isinstance(before, dict | list) or isinstance(after, dict | list):
        return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    return bool(before == after)


def _changed(path: str, before: Any, after: Any, left: _Left) -> Change:
    if isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after):
        lines = _lines(before.split("\n"), after.split("\n"), left)
        if lines is not None:
            return Change(path, "changed", lines=lines)
    return Change(path, "changed", before=text_of(before), after=text_of(after))


def _lines(before: list[str], after: list[str], left: _Left) -> tuple[Line, ...] | None:
    """The changed lines with some context, or None if they are too many to compare."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    tail = next((i for i in range(shortest - head) if before[-1 - i] != after[-1 - i]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) > MAX_LINES or len(new) > MAX_LINES or len(old) + len(new) > left.lines:
        return None
    left.lines -= len(old) + len(new)
    lead, trail = before[max(0, head - CONTEXT) : head], before[len(before) - tail :][:CONTEXT] if tail else []
    lines = [Line("@", "")] if head > CONTEXT else []
    lines += [Line(" ", text) for text in lead]
    lines += _middle(old, new)
    lines += [Line(" ", text) for text in trail]
    return tuple(lines + ([Line("@", "")] if tail > CONTEXT else []))


def _middle(old: list[str], new: list[str]) -> list[Line]:
    lines: list[Line] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            same = [Line(" ", text) for text in old[i:j]]
            short = len(same) <= 2 * CONTEXT
            lines += same if short else [*same[:CONTEXT], Line("@", ""), *same[-CONTEXT:]]
        else:
            lines += [Line("-", text) for text in old[i:j]]
            lines += [Line("+", text) for text in new[k:m]]
    return lines
