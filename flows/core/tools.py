"""The tools of an agent turn: plain functions of JSON arguments, with what they may do declared beside them. Pure (docs/decisions/0007).

read-only            called, and its answer is on record
effect=Effect(…)     an operation of the turn: in flight before the call, known again by later attempts, asked about in doubt
approval=Guard(…)    people are asked about exactly these arguments, then it is called once
PipelineTool         one tool for the model; code says what its steps are, which follows, and when it stops
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from flows.core import schema, typed
from flows.core.effects import Effect
from flows.core.errors import DefinitionError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
#: Beginnings of names of tools that say that something is changed.
CHANGING = frozenset(
    {"add", "buy", "cancel", "charge", "create", "delete", "deploy", "merge", "pay", "post", "publish", "push", "put", "refund", "remove"}
    | {"send", "set", "transfer", "update", "upload", "write", "book", "order", "drop", "insert", "execute"}
)  # fmt: skip
#: The attribute by which a guarded function is known (`approvals.tools.requires_approval`).
GUARDED = "outlast_guarded"


class Guarding(Protocol):
    """Who must allow a call (`approvals.tools.Guard`)."""

    def guard(self, function: Callable[..., Any], *, name: str, effect: Effect | None) -> Callable[..., Any]:
        """The function, guarded."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    Args:
        function: plain or async, of JSON arguments and with a JSON result. name: default the function's. describe: what the model is told of
        it; default the first paragraph of the function's docstring.
        effect: that a call changes the outside world, and what can be asked about one of which nobody knows whether it happened.
        approval: `Guard(role=…)`: people must allow each call.
        fatal: errors that end the attempt by their class; others are an answer to the model.
    """

    function: Callable[..., Any]
    name: str = field(kw_only=True, default="")
    describe: str = field(kw_only=True, default="")
    effect: Effect | None = field(kw_only=True, default=None)
    approval: Guarding | None = field(kw_only=True, default=None)
    fatal: tuple[type[Exception], ...] = field(kw_only=True, default=())

    def __post_init__(self) -> None:
        function: Any = self.function
        if not callable(function):
            raise DefinitionError(f"Tool(…) takes a function of JSON arguments; got {function!r:.60}.")
        object.__setattr__(self, "name", self.name or str(getattr(self.function, "__name__", "tool")))
        said = (self.function.__doc__ or "").strip().split("\n\n")[0]
        object.__setattr__(self, "describe", self.describe or " ".join(said.split()))
        named(self.name)
        checked_effect(f"Tool {self.name}", self.effect)
        if self.guarded and self.effect is not None and self.approval is None:
            raise DefinitionError(f"Tool {self.name} is guarded by @requires_approval: give it its effect there.")
        if self.approval is not None:
            guarded = self.approval.guard(self.function, name=self.name, effect=self.effect)
            object.__setattr__(self, "function", guarded)

    @property
    def guarded(self) -> bool:
        """Whether people must allow its calls."""
        return self.approval is not None or bool(getattr(self.function, GUARDED, False))

    @property
    def own_effects(self) -> Mapping[str, Effect]:
        """Name of an operation's tool → its effect, of those that nobody else declares."""
        return {self.name: self.effect} if self.effect is not None and not self.guarded else {}

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments.

        Raises:
            TypeError: it takes something that JSON has not.
        """
        return schema.of_function(self.function)

    @property
    def problem(self) -> str:
        """Why a model cannot call it; "": it can."""
        return _problem(self)

    @property
    def spec(self) -> dict[str, Any]:
        """What a model is told of it."""
        return {"name": self.name, "description": self.describe, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class ToolStep:
    """One step of a pipeline tool.

    Args:
        name: unique in its pipeline. do: a function of the tool's arguments and of the results so far, by step. effect: as of a Tool.
        when: a pure function of the results so far; where it says no, the step is left out.
    """

    name: str
    do: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
    effect: Effect | None = field(kw_only=True, default=None)
    when: Callable[[Mapping[str, Any]], bool] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        named(self.name)
        checked_effect(f"ToolStep {self.name}", self.effect)
        given: tuple[Any, ...] = (self.do, self.when or self.do)
        if not all(map(callable, given)):
            raise DefinitionError(f"ToolStep {self.name}: do= and when= are functions.")


@dataclass(frozen=True)
class PipelineTool:
    """One task-shaped tool: its steps run in order, each on record, so a crash goes on with the step that is open; the first error stops it.

    Args:
        name, describe: as of a Tool. steps: what it does. arguments: name → type of what the model passes.
        fatal: as of a Tool. The answer is a mapping from step to result.
    """

    name: str
    steps: Sequence[ToolStep]
    arguments: Mapping[str, Any] = field(kw_only=True, default_factory=dict)
    describe: str = field(kw_only=True, default="")
    fatal: tuple[type[Exception], ...] = field(kw_only=True, default=())

    guarded = False

    def __post_init__(self) -> None:
        named(self.name)
        given: Sequence[Any] = self.steps
        steps = [step.name for step in given if isinstance(step, ToolStep)]
        if not steps or len(steps) != len(given) or len(set(steps)) != len(steps):
            raise DefinitionError(
                f"PipelineTool {self.name} needs at least one ToolStep, and the names of its steps must differ."
            )

    @property
    def own_effects(self) -> Mapping[str, Effect]:
        """`tool.step` → its effect."""
        return {f"{self.name}.{step.name}": step.effect for step in self.steps if step.effect is not None}

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments.

        Raises:
            TypeError: it takes something that JSON has not.
        """
        properties = {name: schema.of_type(hint, name) for name, hint in self.arguments.items()}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    @property
    def problem(self) -> str:
        """Why a model cannot call it; "": it can."""
        return _problem(self)

    @property
    def spec(self) -> dict[str, Any]:
        """What a model is told of it."""
        return {"name": self.name, "description": self.describe, "parameters": dict(self.parameters)}


AnyTool = Tool | PipelineTool


def _problem(tool: AnyTool) -> str:
    try:
        tool.parameters  # noqa: B018 - made with the first look
    except TypeError as error:
        return str(error)
    return ""


def named(name: Any) -> None:
    """A name as models and operations take it.

    Raises:
        DefinitionError: it is none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DefinitionError(f"A tool is named by letters, digits, '_', '.' and '-', at most 100: not {name!r:.80}. Pass name=.")


def checked_effect(what: str, effect: Effect | None) -> None:
    """An effect as a call of a tool can have it.

    Raises:
        DefinitionError: it is none, or says what a tool's own arguments say.
    """
    if effect is None:
        return
    typed.must(f"{what}: effect=", effect, (Effect,), "effect=Effect(reconcile=…)")
    if effect.compensate is not None or effect.request is not None:
        raise DefinitionError(
            f"{what}: what undoes it is a tool of its own, and what it asks for are its arguments: no compensate=, no request=."
        )


def as_tools(given: Any) -> tuple[AnyTool, ...]:
    """Tools as they are declared: a plain function is a read-only one.

    Raises:
        DefinitionError: one is neither.
    """
    if not isinstance(given, list | tuple):
        raise DefinitionError(
            f"tools= takes several functions or Tools, as in tools=[read_file, Tool(refund, approval=…)]; got {given!r:.60}."
        )
    return tuple(one if isinstance(one, Tool | PipelineTool) else Tool(one) for one in given)
