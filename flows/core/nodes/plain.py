"""Branch and End: nodes that the engine resolves at once; they hold no row of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import Finish, Goto, Move
from flows.core.nodes.activity import qualified
from flows.core.nodes.base import Node, need_text
from flows.core.protocol import Outcome, Status
from flows.core.state import State, Trigger

COMPLETE = Outcome.COMPLETE
FAILED = Outcome.FAILED

_ENDS = {Outcome.COMPLETE: Status.COMPLETE, Outcome.FAILED: Status.FAILED}


@dataclass(frozen=True)
class Branch(Node):
    """A deterministic choice: a pure function of the state that returns one of the declared choices."""

    kind: ClassVar[str] = "branch"
    durable: ClassVar[bool] = False

    choose: Callable[[State], str]
    choices: Mapping[str, str] = field(kw_only=True, default_factory=dict)

    def enter(self, state: State) -> Move:
        choice = self.choose(state)
        if choice not in self.choices:
            raise DefinitionError(f"Branch {self.name} answered {choice!r}; declared are {', '.join(sorted(self.choices))}.")
        return Goto(self.choices[choice])

    def resume(self, state: State, trigger: Trigger) -> Move:
        return self.enter(state)

    def targets(self) -> Iterator[tuple[str, str]]:
        for choice, target in self.choices.items():
            yield choice, need_text(target, "choices=")
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "choose", self.choose

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "choose": qualified(self.choose)}


@dataclass(frozen=True)
class End(Node):
    """The end of the flow.

    Args:
        outcome: COMPLETE or FAILED. result: optional pure function of the state; its value is the workflow's result.
    """

    kind: ClassVar[str] = "end"
    durable: ClassVar[bool] = False
    ends: ClassVar[bool] = True

    outcome: Outcome
    result: Callable[[State], Any] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if self.outcome not in _ENDS:
            raise DefinitionError("End takes COMPLETE or FAILED.")

    def enter(self, state: State) -> Move:
        value = self.result(state) if self.result else None
        payload.text(value, f"the result of {state.flow}")
        code = None if self.outcome is Outcome.COMPLETE else f"ENDED_AT:{self.name}"
        return Finish(self.name, _ENDS[self.outcome], self.outcome, value, code)

    def resume(self, state: State, trigger: Trigger) -> Move:
        return self.enter(state)

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "result", self.result

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "outcome": self.outcome.value}
