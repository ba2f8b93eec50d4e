"""What a model thought is stored nowhere (O7): it ends in the adapter, before anything is on record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.core.turns import is_private, private_keys


def without(answer: Any) -> Any:
    """The answer of a model, as JSON, without the parts and fields that hold its reasoning; all else as it was."""
    if isinstance(answer, Mapping):
        hidden = private_keys(answer)
        return {key: without(value) for key, value in answer.items() if key not in hidden}
    if isinstance(answer, list | tuple):
        return [without(one) for one in answer if not is_private(one)]
    return answer


__all__ = ["without"]
