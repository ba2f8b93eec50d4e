"""Values at the edge: whatever is stored is valid, bounded JSON, and a refusal names the producer.

A stored value is either the plain JSON value or an envelope `{"$outlast": codec, "data": …}`. Plain is the codec "json";
another codec (encryption, external storage) only has to write the envelope, so rows of both kinds can live together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from flows.core.errors import CheckpointTooLarge, PayloadError

ENVELOPE = "$outlast"
MAX_RESULT_BYTES = 256 * 1024

#: Characters of a name that is looked up (keys, event ids and types, sessions): an index entry has a bound.
MAX_NAME = 500
MAX_NAME_BYTES = 1000

#: Characters of a goal, and of what a run is about: lists print both.
MAX_TEXT = 20_000

#: Deeper values cannot be read back everywhere: parsers and copies recurse.
MAX_DEPTH = 100

_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(value: Any, producer: str, max_bytes: int = MAX_RESULT_BYTES) -> str:
    """The JSON text to store for `value`.

    Raises:
        PayloadError: not JSON, NaN, a NUL byte, a lone surrogate, or more than `max_bytes` bytes.
    """
    if isinstance(value, Mapping) and not isinstance(value, dict):
        value = dict(value)
    if isinstance(value, dict) and ENVELOPE in value:
        value = {ENVELOPE: "json", "data": value}
    try:
        text = _plain(value)
    except (TypeError, ValueError, RecursionError):
        raise PayloadError(producer, _explain(value)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and is_deep(value):
        raise PayloadError(producer, f"is nested too deeply; at most {MAX_DEPTH} levels are stored")
    if "\\u0000" in text and _has_nul(value):
        raise PayloadError(producer, "holds a NUL character, which PostgreSQL cannot store; remove it or send bytes as base64")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise PayloadError(producer, "holds a lone surrogate, which is not text; clean it before it is returned") from None
    if size > max_bytes:
        raise PayloadError(
            producer,
            f"is {size:,} bytes; at most {max_bytes:,} are stored. Keep large data elsewhere and return a reference",
        )
    return text


def decode(value: Any) -> Any:
    """The value behind a stored one; the counterpart of `encode` for what the database driver already parsed."""
    if isinstance(value, dict) and ENVELOPE in value:
        if value[ENVELOPE] != "json":
            raise PayloadError("stored value", f"was written with codec {value[ENVELOPE]!r}, which is not configured here")
        return value["data"]
    return value


def encode_checkpoint(value: Any, producer: str, max_bytes: int) -> str:
    """The JSON text of a checkpoint.

    Raises:
        CheckpointTooLarge: names the largest keys; the caller keeps the previous checkpoint.
        PayloadError: not an object, or not JSON.
    """
    if not isinstance(value, Mapping):
        raise PayloadError(producer, "a checkpoint is an object of small, revision-level facts")
    text = encode(dict(value), producer, max_bytes=1 << 30)
    size = len(text.encode())
    if size > max_bytes:
        sizes = sorted(((len(_plain(item).encode()), str(key)) for key, item in value.items()), reverse=True)[:3]
        largest = ", ".join(f"{key} ({count:,} bytes)" for count, key in sizes)
        raise CheckpointTooLarge(producer, f"is {size:,} bytes, at most {max_bytes:,} are kept; largest keys: {largest}")
    return text


def check_name(value: object, producer: str) -> None:
    """A name that the record is searched by: a key, an event's id or type, a session.

    Raises:
        PayloadError: not text, empty or blank, longer than `MAX_NAME`, or not storable.
    """
    if not is_name(value):
        raise PayloadError(
            producer,
            f"must be text of 1 to {MAX_NAME} characters ({MAX_NAME_BYTES} bytes), without NUL or lone surrogates, got {value!r:.80}",
        )


def is_name(value: object) -> bool:
    """Whether this can be looked up by."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not is_text(value):
        return False
    return len(value.encode()) <= MAX_NAME_BYTES


def as_text(value: object, producer: str) -> str:
    """The value, if it is text at all.

    Raises:
        PayloadError: it is none.
    """
    if not isinstance(value, str):
        raise PayloadError(producer, f"must be text, got {type(value).__name__}")
    return value


def check_text(value: object, producer: str, most: int | None = None) -> None:
    """A text for people: a goal, a label.

    Args:
        most: characters of it, where lists and pages print it as it is.
    Raises:
        PayloadError: it is no text, too long, or holds what PostgreSQL cannot store.
    """
    text = as_text(value, producer)
    if most is not None and len(text) > most:
        raise PayloadError(producer, f"is {len(text):,} characters; at most {most:,} are kept. Give the rest as input")
    if not is_text(text):
        raise PayloadError(producer, f"holds a NUL character or a lone surrogate: {value!r:.80}")


def is_text(value: str) -> bool:
    """Whether PostgreSQL can store this text: no NUL, no lone surrogate."""
    return "\x00" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)


def is_deep(value: Any) -> bool:
    """Whether a value has more than `MAX_DEPTH` levels; looks at no more than that many."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inside = (inner for item in level for inner in _inside(item) if isinstance(inner, Mapping | list | tuple))
        level = list({id(inner): inner for inner in inside}.values())
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()


def _explain(value: Any) -> str:
    found = _first_fault(value, "", 0)
    return found or "is not JSON: return dicts, lists, text, numbers, booleans or None"


def _first_fault(value: Any, path: str, depth: int) -> str | None:
    if depth > MAX_DEPTH:
        return f"is nested too deeply{_at(path)}"
    if value is None or isinstance(value, str | bool | int):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"holds {value}, which is not a JSON number{_at(path)}"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str | int | float | bool | None.__class__):
                return f"has the key {key!r}{_at(path)}; JSON objects have text keys"
            if fault := _first_fault(item, f"{path}.{key}", depth + 1):
                return fault
        return None
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if fault := _first_fault(item, f"{path}[{index}]", depth + 1):
                return fault
        return None
    return f"holds a {type(value).__name__}{_at(path)}, which is not JSON"


def _at(path: str) -> str:
    return f" (at {path.lstrip('.'):.100})" if path else ""


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(_has_nul(item) for item in value)
    return False
