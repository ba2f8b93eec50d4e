"""What stands in `<app>/flows.py` beside the flows: event types, dependencies, limits, schedules. Each has a kind, and a name of its own there.

A kind is a frozen dataclass that inherits `Declared`; its things are found as flows are, by being made. Two of one kind and name that differ are
a mistake (outlast_flows.E040); the one that was made last counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from flows.core import payload
from flows.core.errors import DefinitionError

#: Every thing that was declared in this process, in order.
DECLARED: list[Declared] = []


@dataclass(frozen=True)
class Declared:
    """One of them, by its name. A kind that has a `__post_init__` of its own calls this one."""

    kind: ClassVar[str] = ""

    name: str

    def __post_init__(self) -> None:
        if not payload.is_name(self.name):
            raise DefinitionError(
                f"The name of {self.kind} {self.name!r:.80} must be text that is not empty, of at most {payload.MAX_NAME} characters."
            )
        self._declare()

    def _declare(self) -> None:
        """Keep it. A kind whose things may be made while the program runs has a class for those that keeps nothing."""
        DECLARED.append(self)


Kind = TypeVar("Kind", bound=Declared)


def of(kind: type[Kind]) -> dict[str, Kind]:
    """Name → thing, of all that were declared of a kind."""
    return {one.name: one for one in DECLARED if isinstance(one, kind)}


def twice() -> list[Declared]:
    """Those whose kind and name another one, which differs, had before them."""
    first: dict[tuple[str, str], Declared] = {}
    return [one for one in DECLARED if first.setdefault((one.kind, one.name), one) != one]
