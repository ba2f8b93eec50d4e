"""What every node kind is: a frozen declaration with two answers, `enter` and `resume`.

A new kind is a new class here; the engine (`flows/core/decide.py`) does not know any of them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flows.core.commitments import Commits
from flows.core.effects import Effect
from flows.core.errors import DefinitionError
from flows.core.moves import Move
from flows.core.policies import Deadline, Visits
from flows.core.requirements import Gate
from flows.core.state import Facts, State, Trigger
from flows.core.verdicts import Verdict

On = Mapping[type[BaseException] | Verdict, str]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A semantic boundary of the business process. Its name is the attribute's name in the Flow class."""

    kind: ClassVar[str] = ""
    durable: ClassVar[bool] = True
    asks_people: ClassVar[bool] = False
    ends: ClassVar[bool] = False

    name: str = field(default="", init=False)
    visits: Visits | None = None
    gate: Gate | None = None
    on: On = field(default_factory=dict)

    def __set_name__(self, owner: type, name: str) -> None:
        if not self.name:
            object.__setattr__(self, "name", name)

    def enter(self, state: State) -> Move:
        """The move that enters this node."""
        raise NotImplementedError

    def waiting(self, state: State) -> Move:
        """The move that opens its wait, where `state` stands in that: a migration asks whether it is the same wait."""
        return self.enter(state)

    def resume(self, state: State, trigger: Trigger) -> Move:
        """The move after something happened to this node: an attempt ended, a wait got its evidence."""
        raise NotImplementedError

    def dropped(self, facts: Facts) -> Move | None:
        """Where the flow goes on if this node is optional and there is no room for it now; None: it is done."""
        return None

    def targets(self) -> Iterator[tuple[str, str]]:
        """All (label, node name) that may be entered after this one."""
        for cause, target in self.on.items():
            yield (cause.value if isinstance(cause, Verdict) else cause.__name__), target
        if self.visits:
            yield f"after {self.visits.limit} visits", self.visits.then
        if self.gate and self.gate.approved_by:
            yield "approval required", self.gate.approved_by

    def all_effects(self) -> Iterator[Effect]:
        """The effects on the outside world."""
        return iter(())

    @property
    def commitments(self) -> tuple[Commits, ...]:
        """What this node begins to owe to somebody outside."""
        return ()

    @property
    def calendars(self) -> frozenset[str]:
        """The names of the calendars by which it counts when it is entered."""
        own = (getattr(self, "deadline", None), getattr(self, "expires", None))
        return frozenset(one.calendar for one in own if isinstance(one, Deadline) and one.business is not None)

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        """(parameter name, function) of every author function of this node, for the checks."""
        return iter(())

    def shape(self) -> Mapping[str, Any]:
        """What of this declaration makes up the definition's fingerprint: structure, not code or timing."""
        return {
            "kind": self.kind,
            "targets": sorted([label, target] for label, target in self.targets()),
            "gate": dict(self.gate.shape) if self.gate else None,
        }

    def route_for_verdict(self, verdict: Verdict) -> str | None:
        """The declared node for a refusal of the gate."""
        return self.on.get(verdict)

    def route_for_error(self, classes: tuple[str, ...]) -> str | None:
        """The declared node for a failure; the most specific class wins."""
        named = {cause.__name__: target for cause, target in self.on.items() if not isinstance(cause, Verdict)}
        return next((named[name] for name in classes if name in named), None)


def need_text(value: object, what: str) -> str:
    """`value` if it is a node name.

    Raises:
        DefinitionError: it is not.
    """
    if not isinstance(value, str) or not value:
        raise DefinitionError(f"{what} names a node as text, got {value!r}.")
    return value
