"""The clients behind an agent's models, and their own retries, which nobody would see: a call is tried again by the flow, on record.

no retries of its own, or none that could be seen     nothing to do
`max_retries`, as OpenAI's and Anthropic's have it    0 from now on, for all who use this client
anything else                                         the check W132 says so
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Where a model keeps its client, and a wrapping model the models that it asks.
_CLIENTS = ("client", "_client")
_INSIDE = ("wrapped", "models", "model")
_DEPTH = 20


def clients(model: Any) -> Iterator[Any]:
    """The clients that this model, or the models inside it, send their requests with; each once."""
    left, seen = [model], set[int]()
    while left and len(seen) < _DEPTH:
        one = left.pop()
        if one is None or isinstance(one, str) or id(one) in seen:
            continue
        seen.add(id(one))
        found = next((own for name in _CLIENTS if (own := _own(one, name)) is not None), None)
        if found is not None:
            yield found
        for name in _INSIDE:
            inside = _own(one, name)
            left += list(inside) if isinstance(inside, list | tuple) else [inside]


def no_retries(model: Any) -> None:
    """Switch off the retries of the model's clients, where they let us."""
    for client in clients(model):
        if _tries(client):
            client.max_retries = 0


def retrying(model: Any) -> Iterator[str]:
    """The kinds of clients that may try again by themselves, where nobody can tell them from outside not to."""
    for client in clients(model):
        if not isinstance(getattr(client, "max_retries", None), int):
            yield f"{type(client).__module__}.{type(client).__qualname__}"


def _tries(client: Any) -> bool:
    tries = getattr(client, "max_retries", None)
    return isinstance(tries, int) and tries > 0


def _own(holder: Any, name: str) -> Any:
    """An attribute that is there without being asked for over a network or computed with a failure."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign library; what it cannot say is not there
        return None


__all__ = ["clients", "no_retries", "retrying"]
