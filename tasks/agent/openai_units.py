"""What a run of the OpenAI Agents SDK calls, through the journal of the attempt: copies of agents whose models and tools are recorded.

    request to a model, of whichever agent       model      `AGENT__model.request`     found again by its place
    call of a function tool                      tool       `AGENT__tool:TOOL`         by its arguments, and which of equal ones
The names are persisted, and a test pins them. Answers go in as the SDK's JSON, without reasoning (O7). Crash: the call in flight is made anew,
unless it is an operation (`guarded`). Race: the attempt's fence, at each entry.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agents import Agent, FunctionTool, Handoff, Model, ModelProvider, ModelResponse
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from flows import Paid
from flows.errors import DefinitionError
from tasks.agent.clients import no_retries
from tasks.agent.guarded import Guarded
from tasks.agent.reasoning import without
from tasks.agent.requests import request

if TYPE_CHECKING:
    from flows.services.attempt import Attempt

_ANSWER: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)
#: Tools that are carried out here and are no functions; those that the provider carries out are part of its answer.
_LOCAL = frozenset({"ApplyPatchTool", "ComputerTool", "CustomTool", "LocalShellTool", "ShellTool"})


@dataclass(frozen=True, slots=True)
class Run:
    """The attempt in which the agent runs, and what was said of its tools."""

    name: str
    guarded: Guarded
    attempt: Attempt | None


def answered(run: Run, result: Any) -> Any:
    """The state of the run with what people have said; about those calls of which they have said nothing they are asked."""
    state = result.to_state()
    items = list(state.get_interruptions())
    said = run.guarded.answers([(str(one.tool_name), _asked_for(one)) for one in items])
    for item, refused in zip(items, said, strict=True):
        if refused is None:
            state.approve(item)
        else:
            state.reject(item, rejection_message=f"{refused}. {refused.comment}".strip())
    return state


# ---------------------------------------------------------------- models


class Recorded(Model):
    """A model whose answers are on record."""

    def __init__(self, inner: Model, run: Run) -> None:
        self._inner, self._run = inner, run

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        async def ask() -> Paid:
            no_retries(self._inner)
            given = await self._inner.get_response(system_instructions, input, *args, **kwargs)
            return Paid(_without(_ANSWER.dump_python(given, mode="json", by_alias=True, exclude_unset=True)), usage=_usage(given))

        assert self._run.attempt is not None
        asked = to_jsonable_python([system_instructions, input], fallback=str)
        name = f"{self._run.name}__model.request"
        model = str(getattr(self._inner, "model", "") or type(self._inner).__name__)
        return _ANSWER.validate_python(await request(self._run.attempt, name, ask, prompt=asked, model=model))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """A durable turn never streams: there is nobody who listens."""
        raise NotImplementedError

    async def close(self) -> None:
        await self._inner.close()


class Provider(ModelProvider):
    """The models of another provider, recorded."""

    def __init__(self, inner: ModelProvider, run: Run) -> None:
        self._inner, self._run = inner, run

    def get_model(self, model_name: str | None) -> Model:
        return Recorded(self._inner.get_model(model_name), self._run)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _without(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without reasoning. What stood with it goes on without the id by which the provider would want it back."""
    kept: dict[str, Any] = without(answer)
    if len(kept["output"]) < len(answer["output"]):
        kept["output"] = [{**one, "id": None} if one.get("type") == "function_call" else one for one in kept["output"]]
    return kept


def _usage(answer: ModelResponse) -> dict[str, Any]:
    used = answer.usage
    named = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": getattr(used.input_tokens_details, "cached_tokens", 0),
        "reasoning_tokens": getattr(used.output_tokens_details, "reasoning_tokens", 0),
    }
    return {name: int(value or 0) for name, value in named.items()}


# ---------------------------------------------------------------- tools


class Copies:
    """Copies of an agent, and of those that it hands over to, whose tools and models are recorded."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._made: dict[int, Agent[Any]] = {}

    def of(self, agent: Agent[Any]) -> Agent[Any]:
        """The copy of this agent."""
        if id(agent) in self._made:
            return self._made[id(agent)]
        if agent.mcp_servers:
            raise DefinitionError(
                f"The agent {agent.name!r:.80} takes tools from MCP servers, which answer outside of the journal. Give it function tools that "
                "call them."
            )
        made = self._made[id(agent)] = copy.copy(agent)
        made.tools = [self._tool(agent, tool) for tool in agent.tools]
        if isinstance(agent.model, Model):
            made.model = Recorded(agent.model, self._run)
        made.handoffs = [self._handoff(one) if isinstance(one, Handoff) else self.of(one) for one in agent.handoffs]
        return made

    def _handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        async def hand_over(*args: Any) -> Any:
            return self.of(await handoff.on_invoke_handoff(*args))

        return replace(handoff, on_invoke_handoff=hand_over)

    def _tool(self, agent: Agent[Any], tool: Any) -> Any:
        if type(tool).__name__ in _LOCAL:
            raise DefinitionError(
                f"The agent {agent.name!r:.80} has a {type(tool).__name__}, which is carried out here and outside of the journal. Give it a "
                "function tool that does the same."
            )
        if not isinstance(tool, FunctionTool):
            return tool
        run, made = self._run, copy.copy(tool)
        if run.guarded.asks(tool.name, wanted=False):
            made.needs_approval = True
        needs = made.needs_approval

        async def invoke(ctx: Any, given: str) -> Any:
            asked = _arguments(given, tool.params_json_schema)
            wanted = needs if isinstance(needs, bool) else bool(await needs(ctx, asked, ctx.tool_call_id))
            asks = run.guarded.asks(tool.name, wanted=wanted)

            async def call() -> Any:
                if not asks and not run.guarded.happens(tool.name):
                    return _plain(await tool.on_invoke_tool(ctx, given))
                with run.guarded.call(tool.name, asked, asks=asks) as made:
                    if not made.done:
                        made.record(_plain(await tool.on_invoke_tool(ctx, given)))
                return made.evidence

            assert run.attempt is not None
            return await run.attempt.journal.atool(f"{run.name}__tool:{tool.name}", asked, call, fatal=(Exception,))

        made.on_invoke_tool = invoke
        return made


def _asked_for(item: Any) -> dict[str, Any]:
    """The arguments of a call that waits for people."""
    raw = item.raw_item
    given = raw.get("arguments") if isinstance(raw, Mapping) else getattr(raw, "arguments", "")
    schemas = (
        tool.params_json_schema for tool in item.agent.tools if isinstance(tool, FunctionTool) and tool.name == item.tool_name
    )
    return _arguments(str(given or ""), next(schemas, {}))


def _arguments(given: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool gets them, with the defaults of its schema; what is no JSON object is shown as it is."""
    try:
        said = json.loads(given or "{}")
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return {"input": given}
    properties = schema.get("properties", {})
    return {**{name: one["default"] for name, one in properties.items() if "default" in one}, **said}


def _plain(answer: Any) -> Any:
    """What a tool returned, as JSON; what is none is text, as the SDK makes it."""
    return to_jsonable_python(answer, fallback=str)
