"""ContinueAsNew: this run ends, and another one of the same flow goes on for it, with a log of its own.

    entered ──► Finish(complete, CONTINUED), whose result is the input of the next run
The run that goes on has no results, visits or checkpoint of this one: what it needs is its input. What it owes nobody carries over, so a run
that holds a commitment, or whose children have not ended, does not continue: a person looks (`services/continuing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.moves import Finish, Move
from flows.core.nodes.activity import qualified
from flows.core.nodes.base import Node
from flows.core.protocol import Outcome, Status
from flows.core.state import State, Trigger

#: A run that is to continue has children that have not ended.
CHILDREN_OPEN = "CHILDREN_OPEN"


@dataclass(frozen=True)
class ContinueAsNew(Node):
    """The end of this run, and the start of the next one.

    Args:
        input: a pure function of the state; its value, an object (a dict), is the input of the next run.
    """

    kind: ClassVar[str] = "continue"
    durable: ClassVar[bool] = False
    ends: ClassVar[bool] = True

    input: Callable[[State], Mapping[str, Any]]

    def enter(self, state: State) -> Move:
        value = self.input(state)
        if not isinstance(value, Mapping):
            raise DefinitionError(f"input= of {self.name} must give an object (a dict), got {type(value).__name__}.")
        payload.text(dict(value), f"the input of the next {state.flow}")
        return Finish(self.name, Status.COMPLETE, Outcome.CONTINUED, dict(value))

    def resume(self, state: State, trigger: Trigger) -> Move:
        return self.enter(state)

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "input", self.input

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "input": qualified(self.input)}
