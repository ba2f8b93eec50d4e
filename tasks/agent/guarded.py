"""Tools of a library's agent about which people are asked, or whose calls happen once. They are known by name, for the agent is as it was.

    a call of such a tool ──► made before, by this attempt or another: its answer stands
                         ├──► people must allow it: asked when the turn ends ──► ApprovalPending
                         └──► in flight, one commit ──► call ──► its answer, one commit
Guard, race and crash: those of guarded tools (0005) and of operations (0003): what is in doubt ends the attempt, and is reconciled.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from approvals.core.tools import Rule, Tool, ToolRefused, claim
from approvals.services import guard, standing
from approvals.tools import Guard
from flows import Effect
from flows.core.effects import TOOLS
from flows.errors import DefinitionError
from flows.services.effects import Call


class Guarded:
    """What is declared of the tools of one agent.

    Args:
        agent: its name, for errors. approvals: tool → whom people are asked; or one for all that ask for an approval. effects: tool → effect.

    Raises:
        DefinitionError: one of them could not work, or another agent has declared a tool of that name otherwise.
    """

    def __init__(self, agent: str, approvals: Guard | Mapping[str, Guard] | None, effects: Mapping[str, Effect]) -> None:
        self._agent, self._effects = agent, dict(effects)
        self._all = approvals if isinstance(approvals, Guard) else None
        self._named = dict(approvals) if isinstance(approvals, Mapping) else {}
        self._rules: dict[str, Rule] = {}
        if approvals is not None and not isinstance(approvals, Guard | Mapping):
            raise DefinitionError(f'approvals= of {agent} is Guard(role="finance"), or {{"refund": Guard(role="finance")}}.')
        for name, effect in self._effects.items():
            if not isinstance(effect, Effect):
                raise DefinitionError(f'effects= of {agent} is {{"refund": Effect(reconcile=…)}}; {name} is {effect!r:.60}.')
        for name in {*self._named, *self._effects}:
            self._rule(name, asks=name in self._named)

    def asks(self, name: str, *, wanted: bool) -> bool:
        """Whether people are asked about calls of this tool. `wanted`: the tool asks for an approval by itself."""
        return name in self._named or (wanted and self._all is not None)

    def happens(self, name: str) -> bool:
        """Whether its calls are effects, each of which happens once."""
        return name in self._effects

    def answers(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[ToolRefused | None]:
        """What people have said about calls that are about to be made, in order: None for one that is allowed.

        Raises:
            ApprovalPending: about some of them they are asked, all at once; let it out. DefinitionError: nobody is named for one of them.
        """
        return standing.answers([(self._tool(name, arguments, asks=True), arguments) for name, arguments in calls])

    @contextmanager
    def call(self, name: str, arguments: Mapping[str, Any], *, asks: bool) -> Iterator[Call]:
        """The block in which a call is made, unless it is `done`; what is known at its end is committed at once.

        Raises:
            ApprovalPending, ToolRefused: people are asked, or said no. AmbiguousOutcome: nobody knows whether it was made before.
        """
        tool = self._tool(name, arguments, asks=asks)
        if asks:
            with guard.made(tool, (), arguments) as (call, _):
                yield call
        else:
            with guard.made_unasked(tool, (), arguments) as call:
                yield call

    def _tool(self, name: str, arguments: Mapping[str, Any], *, asks: bool) -> Tool:
        parameters = [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in arguments]
        return Tool(self._rule(name, asks=asks), _nothing, inspect.Signature(parameters), bound=False)

    def _rule(self, name: str, *, asks: bool) -> Rule:
        if name not in self._rules:
            whom = self._named.get(name, self._all)
            if asks and whom is None:
                raise DefinitionError(
                    f"{name} of {self._agent} requires approval, and nobody is named who could give it: "
                    f'durable(…, approvals={{"{name}": Guard(role="…")}}).'
                )
            said = {one.name: getattr(whom, one.name) for one in fields(whom)} if whom is not None else {}
            known = f"{self._agent}.{name}"
            # What another turn of the same agent has said about the effect holds for this one, too.
            effect = self._effects.get(name) or TOOLS.get(known, Effect())
            self._rules[name] = Rule(name=known, effect=effect, unasked=whom is None, **said)
            claim(self._rules[name], (self._agent, name))
        return self._rules[name]


def _nothing() -> None:
    """A tool of a library is called by the library."""
