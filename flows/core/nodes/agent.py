"""AgentTurn: a Decision that may call a model and tools many times, each call on record (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from flows.core import typed
from flows.core.budget import MEASURED, Spend
from flows.core.effects import TOOL, Effect
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import Decision
from flows.core.nodes.base import need_text
from flows.core.protocol import BudgetKind
from flows.core.tools import as_tools
from flows.core.turn_errors import TurnStopped
from flows.core.turns import Keep, Stop


@dataclass(frozen=True)
class AgentTurn(Decision):
    """An isolated turn of an agent: bounded context in, a Candidate out, and in between calls that `attempt.journal` keeps.

    A later attempt of the visit uses what is on record, and pays again only for the call that was in flight. Everything of a Decision holds.

    Args:
        tools: functions, `Tool(…)` or `PipelineTool(…)`, for `attempt.tools` and `Loop`. keep: how much of their answers a prompt holds.
        stop: when it ends without an answer. stopped: the node to which it goes then; without one, a person.
        each: what one call of its model may use at most, `Spend(model_tokens=8000)`; set aside before the call. `model_calls=1` is added.
        timeout: of one call, of a model or a tool; each starts it anew.
    """

    kind: ClassVar[str] = "agent_turn"

    tools: Sequence[Any] = field(kw_only=True, default=())
    keep: Keep = field(kw_only=True, default=Keep())
    stop: Stop = field(kw_only=True, default=Stop(calls=12, tools=40))
    each: Spend | None = field(kw_only=True, default=None)
    stopped: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tools", as_tools(self.tools))
        typed.must("AgentTurn(keep=…)", self.keep, (Keep,), "AgentTurn(…, keep=Keep(results=4))")
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
    def tool_effects(self) -> Mapping[str, Effect]:
        """Name in an operation → the effect of a tool, or of a step of one, that declares it itself."""
        return {name: effect for tool in self.tools for name, effect in tool.own_effects.items()}

    def effect_named(self, name: str) -> Effect | None:
        own = self.tool_effects.get(name.split(":")[1]) if name.startswith(TOOL) else None
        return own or super().effect_named(name)

    def all_effects(self) -> Iterator[Effect]:
        yield from super().all_effects()
        yield from self.tool_effects.values()

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
