"""AgentTurn: a Decision that may call a model and tools many times, each call on record (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from flows.core import typed
from flows.core.budget import MEASURED, Spend
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import Decision
from flows.core.nodes.base import need_text
from flows.core.protocol import BudgetKind
from flows.core.turn_errors import TurnStopped
from flows.core.turns import Stop


@dataclass(frozen=True)
class AgentTurn(Decision):
    """An isolated turn of an agent: bounded context in, a Candidate out, and in between calls that `attempt.journal` keeps.

    A later attempt of the visit uses what is on record, and pays again only for the call that was in flight. Everything of a Decision holds.

    Args:
        stop: when it ends without an answer. stopped: the node to which it goes then; without one, a person.
        each: what one call of its model may use at most, `Spend(model_tokens=8000)`; set aside before the call. `model_calls=1` is added.
        timeout: of one call, of a model or a tool; each starts it anew.
    """

    kind: ClassVar[str] = "agent_turn"

    stop: Stop = field(kw_only=True, default=Stop(calls=12, tools=40))
    each: Spend | None = field(kw_only=True, default=None)
    stopped: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        super().__post_init__()
        typed.must("AgentTurn(stop=…)", self.stop, (Stop,), "AgentTurn(…, stop=Stop(calls=12))")
        if self.each is not None:
            typed.must("AgentTurn(each=…)", self.each, (Spend,), "AgentTurn(…, each=Spend(model_tokens=8000))")
            if measured := [kind.value for kind in self.each.amounts if kind in MEASURED]:
                raise DefinitionError(f"AgentTurn(each=…): {', '.join(measured)} are of the attempt; give them in spends=.")
            if twice := set(self.of_model) & set(self.spends.amounts if self.spends is not None else {}):
                named = ", ".join(sorted(kind.value for kind in twice))
                raise DefinitionError(
                    f"AgentTurn: {named} are set aside for each call, so spends= cannot set them aside for all of them."
                )

    @property
    def of_model(self) -> Mapping[BudgetKind, Decimal]:
        """What one call of the model sets aside."""
        said = self.each.amounts if self.each is not None else {}
        return {BudgetKind.MODEL_CALLS: Decimal(1), **{kind: amount for kind, amount in said.items() if amount}}

    def route_for_error(self, classes: tuple[str, ...]) -> str | None:
        routed = super().route_for_error(classes)
        return routed or (self.stopped if self.stopped and TurnStopped.__name__ in classes else None)

    def targets(self) -> Iterator[tuple[str, str]]:
        yield from super().targets()
        if self.stopped:
            yield "stopped", need_text(self.stopped, "stopped=")
