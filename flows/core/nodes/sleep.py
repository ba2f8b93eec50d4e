"""Sleep: a node at which nothing computes until a moment comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest
from flows.core.nodes.base import Node, need_text
from flows.core.spans import in_utc
from flows.core.state import State, Trigger


@dataclass(frozen=True)
class Sleep(Node):
    """Wait until a moment; then the gate, then `then`. Waking authorises nothing.

    Args:
        span: how long, or `until=` a pure function of the state that gives an aware datetime.
    """

    kind: ClassVar[str] = "timer"

    span: timedelta | None = None
    until: Callable[[State], datetime] | None = field(kw_only=True, default=None)
    then: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        if (self.span is None) == (self.until is None):
            raise DefinitionError("Sleep takes either a span or until=.")

    def enter(self, state: State) -> Move:
        given = self.until(state) if self.until else state.now + (self.span or timedelta())
        wakes_at = in_utc(given)
        if wakes_at is None:
            raise DefinitionError(f"until= of sleep {self.name} must give a datetime with a time zone, got {given!r}.")
        return Park(self.name, self.kind, "sleeping", wakes_at=wakes_at)

    def resume(self, state: State, trigger: Trigger) -> Move:
        if state.wait is None:
            return self.enter(state)
        return Goto(self.then) if state.wait.due else Rest()

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "", need_text(self.then, "then=")
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "until", self.until
