"""The declared tools of an agent turn, called: each call is an entry of the journal, an effect of one is an operation besides.

unknown, arguments that do not fit     an answer that says so; `Stop(same=…)` bounds it
read-only                              called
effect                                 in flight ──► call ──► happened, then the entry; a later attempt knows it again, whatever its place
guarded                                people are asked; when they have answered, the journal finds the call, and it is made once
pipeline                               its steps are entries inside the tool's
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flows.core import canonical, payload, schema
from flows.core.effects import TOOL
from flows.core.errors import PayloadError
from flows.core.tools import AnyTool, PipelineTool, ToolStep
from flows.core.turn_errors import ToolFailed
from flows.core.turns import Keep
from flows.services.calling import Calling, making
from flows.services.journal import MAX_NAME, Journal

UNKNOWN, MISFIT = "TOOL_UNKNOWN", "TOOL_ARGUMENTS"


class Tools:
    """`attempt.tools`: the tools that the node declares.

    Attributes:
        specs: name, description and JSON schema of each, for a model. keep: how much of their answers a prompt holds.
    """

    def __init__(self, tools: Sequence[AnyTool], keep: Keep, journal: Journal, calling: Calling) -> None:
        self._tools = {one.name: one for one in tools}
        self.keep = keep
        self._journal, self._calling = journal, calling

    @property
    def specs(self) -> list[dict[str, Any]]:
        """What a model is told of each."""
        return [one.spec for one in self._tools.values()]

    def call(self, name: str, arguments: Any) -> Any:
        """Call a tool by name with JSON arguments, once, or get its recorded answer; an async one is run to its end.

        Raises:
            ToolFailed: there is no such tool, the arguments do not fit, or it raised: an answer to the model. ApprovalPending, BudgetPending:
            let it out. TurnStopped, LostOwnership, AmbiguousOutcome; what is `fatal`.
        """
        name, arguments, tool, wrong = self._asked(name, arguments)
        if tool is None or wrong is not None:
            return self._journal.tool(name, arguments, lambda: _raise(wrong))
        return self._journal.tool(name, arguments, lambda: _run(self._made(tool, arguments)), fatal=tool.fatal)

    async def acall(self, name: str, arguments: Any) -> Any:
        """Async twin of `call`."""
        name, arguments, tool, wrong = self._asked(name, arguments)

        async def made() -> Any:
            if tool is None or wrong is not None:
                _raise(wrong)
            assert tool is not None
            answer = self._made(tool, arguments)
            return await answer if inspect.iscoroutine(answer) else answer

        return await self._journal.atool(name, arguments, made, fatal=tool.fatal if tool is not None else ())

    def _asked(self, name: Any, arguments: Any) -> tuple[str, Any, AnyTool | None, ToolFailed | None]:
        """The call as it is recorded, and what is wrong with it; a model may ask for anything."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        try:
            payload.text(arguments, "its arguments")
            canonical.digest(arguments, "its arguments")
        except PayloadError as error:
            shown = name if tool is not None else "unknown"
            return shown, None, tool, ToolFailed(shown, MISFIT, error.problem)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            said = f"there is no tool {name!r:.80}; tools are {known}"
            return _as_name(name), arguments, None, ToolFailed(_as_name(name), UNKNOWN, said)
        fault = schema.misfit(arguments, tool.parameters)
        return name, arguments, tool, ToolFailed(name, MISFIT, fault) if fault else None

    def _made(self, tool: AnyTool, arguments: Mapping[str, Any]) -> Any:
        """The call's answer, or a coroutine that gives it."""
        if isinstance(tool, PipelineTool):
            return self._steps(tool, arguments)
        if tool.effect is None or tool.guarded:
            return tool.function(**arguments)
        if inspect.iscoroutinefunction(tool.function):
            return self._effect_later(tool.name, tool.function, arguments)
        return self._effect(tool.name, lambda: tool.function(**arguments), arguments)

    def _steps(self, tool: PipelineTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Each step in order, on record; one that raises stops the tool, and the model is told."""
        results: dict[str, Any] = {}
        for step in tool.steps:
            if step.when is None or step.when(dict(results)):
                results[step.name] = self._journal.unit(f"{tool.name}/{step.name}", self._step(tool, step, arguments, results))
        return results

    def _step(
        self, tool: PipelineTool, step: ToolStep, arguments: Mapping[str, Any], results: Mapping[str, Any]
    ) -> Callable[[], Any]:
        def done() -> Any:
            return _run(step.do(dict(arguments), dict(results)))

        if step.effect is None:
            return done
        return lambda: self._effect(f"{tool.name}.{step.name}", done, {"arguments": dict(arguments), "results": dict(results)})

    def _begin(self, name: str, request: Any) -> Any:
        self._calling.must_stand_alone(name)
        digest = canonical.digest({"tool": name, "request": request}, f"a call of {name}")
        number = self._calling.number(digest)
        named = f"{TOOL}{name}:{self._calling.activity_seq}:{digest.removeprefix('sha256:')[:32]}:{number}"
        return self._calling.begin(named, request, lambda: None)

    def _effect(self, name: str, function: Callable[[], Any], request: Any) -> Any:
        """One effect: made once, over all attempts."""
        call = self._begin(name, request)
        token = making.set(call)
        try:
            with self._calling.closing(call):
                if not call.done:
                    call.record(function())
        finally:
            making.reset(token)
            self._calling.tidy()
        return call.evidence

    async def _effect_later(self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        call = self._begin(name, arguments)
        token = making.set(call)
        try:
            with self._calling.closing(call):
                if not call.done:
                    call.record(await function(**arguments))
        finally:
            making.reset(token)
            self._calling.tidy()
        return call.evidence


def _run(answer: Any) -> Any:
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def _raise(error: Exception | None) -> None:
    assert error is not None
    raise error


def _as_name(name: Any) -> str:
    """A name that a model made up, as an entry has it."""
    text = name if isinstance(name, str) else "unknown"
    shown = "".join(sign if sign.isprintable() else "_" for sign in text)[:MAX_NAME].strip()
    return shown if payload.is_name(shown) else "unknown"
