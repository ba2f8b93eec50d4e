"""Canonical JSON (RFC 8785) and digests: the same value always gives the same bytes, so a hash can bind a decision to it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from flows.core.errors import PayloadError
from flows.core.payload import MAX_DEPTH, is_deep

MAX_SAFE_INTEGER = 2**53 - 1


def canonical(value: Any, producer: str = "value") -> str:
    """RFC 8785 text of a JSON value.

    Raises:
        PayloadError: not JSON, NaN or infinity, a number beyond 2^53 (send it as a string), nested too deeply, a lone surrogate.
    """
    parts: list[str] = []
    if is_deep(value):
        raise PayloadError(producer, f"is nested too deeply; at most {MAX_DEPTH} levels are stored")
    _write(value, parts, producer)
    text = "".join(parts)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise PayloadError(producer, "holds a lone surrogate, which is not text; clean it before it is returned") from None
    return text


def digest(value: Any, producer: str = "value") -> str:
    """`sha256:` and the hex digest of the canonical text."""
    return "sha256:" + hashlib.sha256(canonical(value, producer).encode()).hexdigest()


def _write(value: Any, parts: list[str], producer: str) -> None:
    if value is None or value is True or value is False:
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            shown = value if abs(value) < 10**40 else f"of {value.bit_length()} bits"  # Python refuses to print longer ones
            raise PayloadError(producer, f"the integer {shown} is beyond 2^53; send it as a string")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        if MAX_SAFE_INTEGER < abs(value) < math.inf:  # PostgreSQL would hand it back as an integer beyond 2^53
            raise PayloadError(producer, f"the number {value} is beyond 2^53; send it as a string")
        parts.append(_number(value, producer))
    elif isinstance(value, dict):
        _write_object(value, parts, producer)
    elif isinstance(value, list | tuple):
        parts.append("[")
        for index, item in enumerate(value):
            if index:
                parts.append(",")
            _write(item, parts, producer)
        parts.append("]")
    else:
        raise PayloadError(producer, f"{type(value).__name__} is not JSON; return dicts, lists, text, numbers, booleans or None")


def _write_object(value: dict[Any, Any], parts: list[str], producer: str) -> None:
    for key in value:
        if not isinstance(key, str):
            raise PayloadError(producer, f"the key {key!r} is not text; JSON objects have text keys")
    parts.append("{")
    for index, key in enumerate(sorted(value, key=lambda k: k.encode("utf-16-be", "surrogatepass"))):
        if index:
            parts.append(",")
        parts.append(json.dumps(key, ensure_ascii=False))
        parts.append(":")
        _write(value[key], parts, producer)
    parts.append("}")


def _number(value: float, producer: str) -> str:
    """A double as ECMAScript writes it, which is what RFC 8785 demands."""
    if not math.isfinite(value):
        raise PayloadError(producer, f"{value} is not a JSON number")
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction if fraction != "0" else ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    digits = digits.rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    tail = ("." + digits[1:]) if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power >= 0 else '-'}{abs(power)}"
