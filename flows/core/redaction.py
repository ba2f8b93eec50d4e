"""Redaction: fields of values that not everybody sees, by paths of the setting REDACT. Pure.

    "REDACT": ["input.card", "payload.**.password", "result.people.*.address", "evidence"]

A path begins with what kind of value it is about ("*": any), then names keys, one after the other; "*" is any key, "**" any number of keys, none
too. Lists are gone through. What a path ends at is hidden with all that is inside; a path of one word hides the whole value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: What stands where something is hidden.
HIDDEN = "(redacted)"
ANY, DEEP = "*", "**"

#: What is shown of values, by kind.
KINDS = (
    *(
        "input",
        "result",
        "checkpoint",
        "notes",
        "payload",
        "body",
        "request",
        "answer",
        "evidence",
        "terms",
        "candidate",
        "values",
    ),
    *("record", "late_result"),
)

Path = tuple[str, ...]


def faults(given: Any) -> Iterator[str]:
    """What is wrong with a value of the setting, each in a sentence that ends in the way out."""
    if isinstance(given, str) or not isinstance(given, list | tuple):
        yield f'is {given!r:.80}; list paths: "REDACT": ["input.card"]'
        return
    for path in given:
        parts = path.split(".") if isinstance(path, str) else []
        if not parts or not all(parts):
            yield f'lists {path!r:.80}; a path is words with dots between: "input.card"'
        elif parts[0] not in (ANY, *KINDS):
            yield f"lists {path!r:.80}; a path begins with one of {', '.join(KINDS)}, or *"


def paths(given: Any) -> tuple[Path, ...]:
    """The paths of the setting; a faulty one hides every value, for what it was to hide is not known."""
    return ((ANY,),) if next(faults(given), None) is not None else tuple(tuple(path.split(".")) for path in given)


def hide(kind: str, value: Any, hidden: Sequence[Path]) -> Any:
    """The value of that kind without what these paths lead to; the same object where they lead to nothing."""
    for first, *rest in hidden:
        if first in (ANY, kind) and value is not None:
            value = _hidden(value, tuple(rest))
    return value


def _hidden(value: Any, rest: Path) -> Any:
    if not rest:
        return HIDDEN
    if isinstance(value, list):
        return [_hidden(item, rest) for item in value]
    if not isinstance(value, dict):
        return HIDDEN if rest == (DEEP,) else value
    if rest[0] == DEEP:
        made = value if len(rest) == 1 else _hidden(value, rest[1:])
        if not isinstance(made, dict):
            return made
        return {key: HIDDEN if len(rest) == 1 else _hidden(item, rest) for key, item in made.items()}
    return {key: _hidden(item, rest[1:]) if rest[0] in (ANY, key) else item for key, item in value.items()}
