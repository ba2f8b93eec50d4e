"""What another app knows how to look for: it registers the query, and what mends a finding of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Search:
    """How an app looks for a kind of orphan that it alone knows (`flows.core.liveness`), and mends one.

    Attributes:
        statement: gives (subject, workflow, facts), at most `%(limit)s::int` of them.
        mend: called with the alias and the facts, in a transaction; whether it hit.
    """

    statement: str
    mend: Callable[[str, Mapping[str, Any]], bool]


_searches: dict[str, Search] = {}


def register(kind: str, search: Search) -> None:
    """Have the scan for orphans look for this kind so; called from `AppConfig.ready`."""
    _searches[kind] = search


def of(kind: str) -> Search | None:
    """How to look for that kind, if another app knows."""
    return _searches.get(kind)
