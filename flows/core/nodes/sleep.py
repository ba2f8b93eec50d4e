"""Sleep: a node at which nothing computes until a moment comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from flows.core import calendars
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.windows import Window
from flows.core.spans import in_utc
from flows.core.state import State, Trigger


@dataclass(frozen=True)
class Sleep(Node):
    """Wait until a moment; then the gate, then `then`. Waking authorises nothing.

    Args:
        span: how long; or
        until: a pure function of the state that gives an aware datetime, or Window("office"): until that calendar is open; or
        business: so much of the time in which `calendar` is open.
    """

    kind: ClassVar[str] = "timer"

    span: timedelta | None = None
    until: Callable[[State], datetime] | Window | None = field(kw_only=True, default=None)
    business: timedelta | None = field(kw_only=True, default=None)
    calendar: str = field(kw_only=True, default="")
    then: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.span, self.until, self.business)) != 1:
            raise DefinitionError("Sleep takes either a span, until= or business=.")

    @property
    def calendars(self) -> frozenset[str]:
        if isinstance(self.until, Window):
            return frozenset({self.until.calendar})
        return frozenset({self.calendar} if self.business is not None else ())

    def enter(self, state: State) -> Move:
        given = self._moment(state)
        wakes_at = in_utc(given)
        if wakes_at is None:
            raise DefinitionError(f"until= of sleep {self.name} must give a datetime with a time zone, got {given!r}.")
        return Park(self.name, self.kind, "sleeping", wakes_at=wakes_at)

    def _moment(self, state: State) -> datetime:
        if isinstance(self.until, Window):
            return calendars.opens(self.until.calendar, state.now, state.calendars)
        if self.business is not None:
            return calendars.passed(self.calendar, state.now, self.business, state.calendars)
        return self.until(state) if self.until is not None else state.now + (self.span or timedelta())

    def resume(self, state: State, trigger: Trigger) -> Move:
        if state.wait is None:
            return self.enter(state)
        return Goto(self.then) if state.wait.due else Rest()

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "", need_text(self.then, "then=")
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "until", self.until if not isinstance(self.until, Window) else None
