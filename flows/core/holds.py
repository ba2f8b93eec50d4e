"""What may be held: everything, the runs of a flow, those of one key or tenant, or the work that needs a dependency."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from flows.core import payload
from flows.core.errors import DefinitionError, PayloadError
from flows.core.misuse import CannotHold


class Scope(StrEnum):
    """What a hold is about. ALL has no name; the others have the name of a flow, a key of runs, a dependency, a tenant."""

    ALL = "all"
    FLOW = "flow"
    KEY = "key"
    DEPENDENCY = "dependency"
    TENANT = "tenant"


def check(scope: object, name: object) -> tuple[Scope, str]:
    """The scope and the name, if they go together.

    Raises:
        CannotHold: there is no such scope, a name is missing or too much, or it is none.
    """
    try:
        known = Scope(scope)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise CannotHold(f"There is no scope {scope!r:.60}: hold {', '.join(one.value for one in Scope)}.") from None
    if known is Scope.ALL:
        if name not in ("", None):
            raise CannotHold(f"A hold of everything has no name, and {name!r:.60} is given. Leave it away, or name a scope.")
        return known, ""
    if not isinstance(name, str) or not payload.is_name(name):
        raise CannotHold(f"A hold of the scope {known.value!r} needs a name, and {name!r:.60} is none.")
    return known, name


def lines(name: str, version: int, nodes: Iterable[tuple[str, Any]]) -> list[str]:
    """What of a flow needs which dependency, in the words that a claim compares: dependency, flow@version and node, a line each."""
    found = []
    for node_name, node in nodes:
        try:
            needed = getattr(node, "needed", ())
        except (DefinitionError, PayloadError, TypeError, ValueError):  # a check says so (needs= that names nothing)
            continue
        if isinstance(needed, tuple):
            found += [f"{one}\n{name}@{version}\n{node_name}" for one in needed]
    return found
