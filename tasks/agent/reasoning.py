"""What a model thought is stored nowhere (O7): it ends in the adapter, before anything is on record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.core.turns import PRIVATE, PRIVATE_KEYS

_KINDS = ("part_kind", "kind", "type")


def without(answer: Any) -> Any:
    """The answer of a model, as JSON, without the parts and fields that hold its reasoning; all else as it was."""
    if isinstance(answer, Mapping):
        return {key: without(value) for key, value in answer.items() if key not in PRIVATE_KEYS}
    if isinstance(answer, list | tuple):
        return [without(one) for one in answer if not _private(one)]
    return answer


def _private(part: Any) -> bool:
    return isinstance(part, Mapping) and any(part.get(name) in PRIVATE for name in _KINDS if isinstance(part.get(name), str))


__all__ = ["without"]
