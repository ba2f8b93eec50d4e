"""Values at the edge: whatever is stored is valid, bounded JSON, and a refusal names the producer.

A stored value is either the plain JSON value or an envelope `{"$outlast": codec, "data": …}`. Plain is the codec "json"; another one
(encryption) writes its own envelope, so rows of both kinds live together, and what was stored before a codec was named stays readable.

    text      value → JSON text                  for what is only checked, hashed, or read by SQL
    encode    value → JSON text, sealed          for what is stored
    decode    what is stored → value
    reseal    what is stored → the same, sealed by the codec of now
Digests are of the value, never of what is stored: the same value is sealed to another text each time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from flows.core.errors import CheckpointTooLarge, PayloadError

ENVELOPE = "$outlast"

#: What stands where a value was erased, and what is read there.
ERASED_BY = "erased"
ERASED = {ENVELOPE: ERASED_BY}
ERASED_TEXT = "(erased)"
MAX_RESULT_BYTES = 256 * 1024

#: Characters of a name that is looked up (keys, event ids and types, sessions): an index entry has a bound.
MAX_NAME = 500
MAX_NAME_BYTES = 1000

#: Characters of a goal, and of what a run is about: lists print both.
MAX_TEXT = 20_000

#: Deeper values cannot be read back everywhere: parsers and copies recurse.
MAX_DEPTH = 100

_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Codec(Protocol):
    """How values lie in the record, beside plain JSON. Set by OUTLAST["CODEC"], for the whole process (`flows.codecs`)."""

    def seal(self, text: str) -> Mapping[str, Any]:
        """The envelope of a JSON text: JSON itself, with `"$outlast"` naming what opens it. The same text may give another one each time."""

    def open(self, envelope: Mapping[str, Any]) -> str:
        """The JSON text in an envelope. (One with `is_current(envelope) -> bool` also says what `flows codec rotate` need not write anew.)

        Raises:
            PayloadError: it was sealed by a codec or with a key that is not configured here, or it was altered.
        """


class _Used:
    """What this process stores values by."""

    codec: Codec | None = None


def use(codec: Codec | None) -> None:
    """From now on, values are stored by this codec; None: plain. What is stored already stays as it is."""
    _Used.codec = codec


def seals() -> bool:
    """Whether values are stored by a codec."""
    return _Used.codec is not None


def encode(value: Any, producer: str, max_bytes: int = MAX_RESULT_BYTES) -> str:
    """The JSON text to store for `value`; `max_bytes` bounds the value, not what a codec makes of it.

    Raises:
        PayloadError: as `text`.
    """
    return _sealed(text(value, producer, max_bytes))


def _sealed(plain: str) -> str:
    return plain if _Used.codec is None else _plain(dict(_Used.codec.seal(plain)))


def text(value: Any, producer: str, max_bytes: int = MAX_RESULT_BYTES) -> str:
    """The JSON text of `value`, as nobody has sealed it.

    Raises:
        PayloadError: not JSON, NaN, a NUL byte, a lone surrogate, or more than `max_bytes` bytes.
    """
    if isinstance(value, Mapping) and not isinstance(value, dict):
        value = dict(value)
    if isinstance(value, dict) and ENVELOPE in value:
        value = {ENVELOPE: "json", "data": value}
    try:
        found = _plain(value)
    except (TypeError, ValueError, RecursionError):
        raise PayloadError(producer, _explain(value)) from None
    if found.count("[") + found.count("{") > MAX_DEPTH and is_deep(value):
        raise PayloadError(producer, f"is nested too deeply; at most {MAX_DEPTH} levels are stored")
    if "\\u0000" in found and _has_nul(value):
        raise PayloadError(producer, "holds a NUL character, which PostgreSQL cannot store; remove it or send bytes as base64")
    try:
        size = len(found.encode("utf-8"))
    except UnicodeEncodeError:
        raise PayloadError(producer, "holds a lone surrogate, which is not text; clean it before it is returned") from None
    if size > max_bytes:
        raise PayloadError(
            producer,
            f"is {size:,} bytes; at most {max_bytes:,} are stored. Keep large data elsewhere and return a reference",
        )
    return found


def decode(value: Any) -> Any:
    """The value behind a stored one; the counterpart of `encode` for what the database driver already parsed.

    Raises:
        PayloadError: it was sealed by a codec, or with a key, that is not configured here, or it was altered.
    """
    if isinstance(value, dict) and ENVELOPE in value:
        if value[ENVELOPE] == "json":
            return value["data"]
        if value[ENVELOPE] == ERASED_BY:
            return ERASED_TEXT
        if _Used.codec is None:
            raise PayloadError(
                "a stored value", f'was written by the codec {value[ENVELOPE]!r:.40}; configure it in OUTLAST["CODEC"] to read it'
            )
        return decode(json.loads(_Used.codec.open(value)))
    return value


def reseal(stored: Any) -> Any:
    """A stored value as it would be stored today; the same object where it is so already.

    Raises:
        PayloadError: it was sealed by a codec, or with a key, that is not configured here, or it was altered.
    """
    codec = _Used.codec
    if codec is None or stored is None or is_erased(stored):
        return stored
    kind = stored.get(ENVELOPE) if isinstance(stored, dict) else None
    if kind is not None and kind != "json":
        current = getattr(codec, "is_current", None)
        return stored if current is not None and current(stored) else dict(codec.seal(codec.open(stored)))
    return dict(codec.seal(_plain(stored)))


def is_erased(stored: Any) -> bool:
    """Whether a stored value was erased: nothing brings it back."""
    return isinstance(stored, dict) and stored.get(ENVELOPE) == ERASED_BY


def encode_checkpoint(value: Any, producer: str, max_bytes: int) -> str:
    """The JSON text of a checkpoint.

    Raises:
        CheckpointTooLarge: names the largest keys; the caller keeps the previous checkpoint.
        PayloadError: not an object, or not JSON.
    """
    if not isinstance(value, Mapping):
        raise PayloadError(producer, "a checkpoint is an object of small, revision-level facts")
    plain = text(dict(value), producer, max_bytes=1 << 30)
    size = len(plain.encode())
    if size > max_bytes:
        sizes = sorted(((len(_plain(item).encode()), str(key)) for key, item in value.items()), reverse=True)[:3]
        largest = ", ".join(f"{key} ({count:,} bytes)" for count, key in sizes)
        raise CheckpointTooLarge(producer, f"is {size:,} bytes, at most {max_bytes:,} are kept; largest keys: {largest}")
    return _sealed(plain)


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
    found = as_text(value, producer)
    if most is not None and len(found) > most:
        raise PayloadError(producer, f"is {len(found):,} characters; at most {most:,} are kept. Give the rest as input")
    if not is_text(found):
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
