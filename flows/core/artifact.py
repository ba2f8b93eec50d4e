"""What is kept of a model call: hashes and numbers, never text (O1, O7). A name that could carry a model's reasoning is refused, not dropped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from flows.core import canonical, payload
from flows.core.errors import PayloadError

#: Counted in pieces.
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COST = "cost"
#: So many calls of one attempt are listed one by one; the totals count them all.
MAX_CALLS = 100
MAX_MODEL = 200

_HASH = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,15}:)?[0-9a-f]{32,128}")
_MONEY = re.compile(r"\d{1,12}(?:\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call: which model, what it was asked and what it said by their hashes, on which context, and what it used."""

    model: str
    prompt_hash: str = ""
    output_hash: str = ""
    context_hash: str = ""
    usage: Mapping[str, int | str] = field(default_factory=dict)


def model_call(
    producer: str,
    model: object,
    *,
    prompt: Any = None,
    prompt_hash: str = "",
    output: Any = None,
    output_hash: str = "",
    context_hash: str = "",
    usage: Mapping[str, Any] | None = None,
    unknown: Mapping[str, Any] | None = None,
) -> ModelCall:
    """A call as it is recorded; `prompt` and `output` (text, bytes or JSON) are hashed here and not kept.

    Raises:
        PayloadError: names what cannot be kept, never its value.
    """
    if unknown:
        raise PayloadError(
            producer,
            f"{_named(unknown)} cannot be kept: hashes and numbers only, a model's reasoning nowhere. "
            "Give model, prompt or prompt_hash, output or output_hash, usage",
        )
    if not payload.is_name(model) or len(str(model)) > MAX_MODEL or len(str(model).splitlines()) > 1:
        raise PayloadError(producer, f"model is the name of the model, one line of at most {MAX_MODEL} characters")
    return ModelCall(
        model=str(model),
        prompt_hash=_hash("prompt", prompt, prompt_hash, producer),
        output_hash=_hash("output", output, output_hash, producer),
        context_hash=context_hash,
        usage=_used(usage or {}, producer),
    )


def hash_of(value: Any, producer: str) -> str:
    """`sha256:` and the hex digest: of a text's bytes in UTF-8, of bytes as they are, of any other JSON value in its canonical form.

    Raises:
        PayloadError: it is none of these.
    """
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return "sha256:" + hashlib.sha256(value).hexdigest()
    return canonical.digest(value, producer)


def digest_of(stored: Any) -> str:
    """The digest of a value that is stored already; "" for none. Where it has no canonical form (numbers beyond 2^53), that of its JSON text."""
    if stored is None:
        return ""
    try:
        return canonical.digest(stored)
    except PayloadError:
        text = json.dumps(stored, sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def usage_of(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """The totals of an attempt, and its calls in order; {} where none was recorded."""
    if not calls:
        return {}
    totals: dict[str, Any] = {}
    for name in COUNTED:
        if found := [call.usage[name] for call in calls if name in call.usage]:
            totals[name] = sum(int(one) for one in found)
    if costs := [Decimal(str(call.usage[COST])) for call in calls if COST in call.usage]:
        totals[COST] = f"{sum(costs):f}"
    listed = [
        {
            "model": call.model,
            **{name: value for name in ("prompt_hash", "output_hash", "context_hash") if (value := getattr(call, name))},
            **call.usage,
        }
        for call in calls[:MAX_CALLS]
    ]
    more = {"not_listed": len(calls) - MAX_CALLS} if len(calls) > MAX_CALLS else {}
    return {**totals, "count": len(calls), "calls": listed, **more}


def _hash(name: str, value: Any, given: object, producer: str) -> str:
    if value is not None and given:
        raise PayloadError(producer, f"give either {name} or {name}_hash")
    if value is not None:
        try:
            return hash_of(value, producer)
        except PayloadError:
            raise PayloadError(producer, f"{name} is text, bytes or JSON; give {name}_hash for anything else") from None
    if given and not (isinstance(given, str) and _HASH.fullmatch(given)):
        raise PayloadError(producer, f"{name}_hash is a hash in hexadecimal, such as sha256:9f86…")
    return str(given or "")


def _used(usage: Mapping[str, Any], producer: str) -> dict[str, int | str]:
    if not isinstance(usage, Mapping):
        raise PayloadError(producer, "usage is an object of numbers")
    if unknown := {str(name): None for name in usage if name not in (*COUNTED, COST)}:
        raise PayloadError(producer, f"{_named(unknown)} cannot be kept in usage. It has {', '.join((*COUNTED, COST))}")
    found: dict[str, int | str] = {}
    for name, value in usage.items():
        if value is None:
            continue
        if name == COST:
            found[name] = _money(value, producer)
        elif isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= canonical.MAX_SAFE_INTEGER:
            raise PayloadError(producer, f"usage: {name} is a whole number from 0")
        else:
            found[name] = value
    return found


def _money(value: object, producer: str) -> str:
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal) or not _MONEY.fullmatch(text):
        raise PayloadError(producer, 'usage: cost is an amount as text or Decimal, such as "0.0125"; a float is not exact')
    return text


def _named(unknown: Mapping[str, Any]) -> str:
    """Names only, and short: they too come from outside."""
    names = [repr(str(name)[:40]) for name in sorted(unknown, key=str)[:5]]
    return ", ".join(names) + (" and more" if len(unknown) > len(names) else "")
