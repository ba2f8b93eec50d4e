"""Pipeline: an ordered list of deterministic steps; the current step and each result are persisted, code enforces the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from flows.core.effects import Function
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Open
from flows.core.nodes.activity import Activity, qualified
from flows.core.nodes.base import Node
from flows.core.state import GIVEN, State


@dataclass(frozen=True)
class Step:
    """One deterministic step.

    Args:
        name: unique in its pipeline. do: a function of the attempt. timeout: of one attempt of this step.
    """

    name: str
    do: Function
    timeout: timedelta = timedelta(minutes=10)


def first_step(node: Node) -> str:
    """The step that is opened by entering this node; "" if it has none."""
    return node.steps[0].name if isinstance(node, Pipeline) else ""


@dataclass(frozen=True)
class Pipeline(Activity):
    """Steps one after another, each an activity with its own timeout; the first failure stops the pipeline.

    The node's result is a mapping from step name to that step's result; later steps read earlier ones there.
    """

    kind: ClassVar[str] = "pipeline"

    do: Function = field(init=False, default="")
    steps: tuple[Step, ...] = ()

    def __init__(self, *steps: Step, **options: Any) -> None:
        self.__post_options__(options)
        object.__setattr__(self, "steps", tuple(steps))
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names) or not all(names):
            raise DefinitionError("A Pipeline needs at least one Step, and the names of its steps must differ.")
        if GIVEN in names:
            raise DefinitionError(f"{GIVEN!r} is no name for a Step: results that a migration gave are recorded under it.")

    def __post_options__(self, options: dict[str, Any]) -> None:
        plain = Activity("", **options)
        for name in Activity.__dataclass_fields__:
            object.__setattr__(self, name, getattr(plain, name))

    def step(self, name: str) -> Step:
        """The step of that name."""
        return next(step for step in self.steps if step.name == name)

    def enter(self, state: State) -> Move:
        return Open(self.name, self.steps[0].name)

    def completed(self, state: State, result: Any) -> Move:
        names = [step.name for step in self.steps]
        current = state.activity.step if state.activity else names[-1]
        following = names[names.index(current) + 1 :]
        return Open(self.name, following[0]) if following else Goto(self.then)

    def functions(self) -> Iterator[tuple[str, Function | None]]:
        for step in self.steps:
            yield step.name, step.do

    def shape(self) -> Mapping[str, Any]:
        return {**super().shape(), "do": "", "steps": [[step.name, qualified(step.do)] for step in self.steps]}
