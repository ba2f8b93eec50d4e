"""What an attempt is handed: where it runs, and the results before it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Limits(Protocol):
    """Where the attempt runs: interrupts it at its timeout, and knows whether the worker's lease still holds."""

    def limit(self, seconds: float) -> AbstractContextManager[None]:
        """Interrupt the body after that many seconds, where the pool can."""

    def extend(self, seconds: float) -> None:
        """Start the timeout again (a heartbeat)."""

    def owns(self) -> bool:
        """Whether this worker's lease holds, by its own clock."""

    @property
    def placements(self) -> Sequence[str]:
        """Placement labels offered."""


class Results(Mapping[str, Any]):
    """Results by node, the newest visit's; each read is a copy, so that code cannot change the record."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results

    def __getitem__(self, node: str) -> Any:
        return copy.deepcopy(self._results[node])

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)
