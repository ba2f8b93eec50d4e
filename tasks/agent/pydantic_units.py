"""What a run of a Pydantic AI agent asks of its durable engine, and how the journal of the attempt answers.

    unit of the library                           in the journal    found again by
    request to a model, streamed or not           model             its place, whatever the prompt is now
    call of a tool                                tool              name and arguments, and which of equal ones
    discovery, argument validators, events,
    methods of capabilities                       unit              its place

The names of units are the library's own for engines with a journal (`AGENT__model.request`, `AGENT__function_toolset__ID.call_tool:TOOL`). They
are persisted, and a test pins them. Answers go in as the library's JSON, without reasoning (O7); a streamed answer goes in whole.
Crash: the unit in flight is made anew, unless it is an operation (`guarded`). Race: the attempt's fence, at each entry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import durable_exec
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    JournalCallableOperationBackend,
    ModelCompactMessagesId,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import ToolDenied

from flows import Paid
from tasks.agent.clients import no_retries
from tasks.agent.guarded import Guarded
from tasks.agent.pydantic_records import prompt_of, returned, usage_of, whole
from tasks.agent.reasoning import without
from tasks.agent.requests import request

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition

    from flows.services.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Running:
    """The attempt in which an agent runs now, and what was said of its tools."""

    attempt: Attempt
    guarded: Guarded


_running: ContextVar[Running | None] = ContextVar("outlast_pydantic_ai", default=None)
_asked: ContextVar[Any] = ContextVar("outlast_pydantic_ai_asked", default=None)


@contextmanager
def running(run: Running) -> Iterator[None]:
    """The block in which the agent is durable. Telemetry of what is only read again is left out, where the library can (2.68)."""
    token = _running.set(run)
    try:
        with ExitStack() as stack:
            if (scope := getattr(durable_exec, "replay_scope", None)) is not None:
                stack.enter_context(scope())
            yield
    finally:
        _running.reset(token)


def running_now() -> Running | None:
    """The attempt in which an agent runs here; None: there is none."""
    return _running.get()


class JournalDurability(BaseDurabilityCapability[Any]):
    """The library's durable engine, for one run of an agent in an attempt; outside one it does nothing."""

    engine_spec = DurabilityEngineSpec(
        engine_name="Outlast",
        durable_unit_noun="entry",
        durable_unit_plural="entries",
        durable_container_noun="agent turn",
        codec=JSON_CODEC,
        sequential_tools_in_durable_context=True,
    )

    @property
    def in_durable_context(self) -> bool:
        return _running.get() is not None

    def get_default_run_id(self) -> str | None:
        """The same over all attempts of a visit."""
        run = _running.get()
        return run.attempt.operation_id if run is not None else None

    def _find_model_id(self, model: Model[Any]) -> str | None:
        """A model that is handed to a run as an object (`agent.override(model=…)`): it is asked in this process, so it may be any.

        The library registers such ones for engines whose units run elsewhere; its own way stays for all that it knows.
        """
        try:
            return super()._find_model_id(model)
        except UserError:
            if self._models_by_id.setdefault(model.model_id, model) is not model:
                raise
            return model.model_id

    def get_durable_operation_backend(self) -> _Backend:
        config: RoleBasedOperationConfig[Any] = RoleBasedOperationConfig(model={}, event={}, capability={}, tool={})
        return _Backend(agent_name=self.name, default_model_id=self.default_model_id, config=config)

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """A tool for which somebody is named requires approval, whether it says so itself or not."""
        run = _running.get()
        if run is None:
            return tool_defs
        return [
            replace(one, kind="unapproved") if one.kind == "function" and run.guarded.asks(one.name, wanted=False) else one
            for one in tool_defs
        ]

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """What people have said about calls that require approval; about those of which they have said nothing they are asked."""
        run = _running.get()
        if run is None or not requests.approvals:
            return None
        said = run.guarded.answers(
            [(one.tool_name, _checked(ctx, one.tool_name, one.args_as_dict())) for one in requests.approvals]
        )
        answers: dict[str, Any] = {
            one.tool_call_id: True if refused is None else ToolDenied(f"{refused}. {refused.comment}".strip())
            for one, refused in zip(requests.approvals, said, strict=True)
        }
        return requests.build_results(approvals=answers)


def _checked(ctx: RunContext[Any], tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool will get them, with defaults and types, so that people are asked about what is executed."""
    known = ctx.tool_manager.tools if ctx.tool_manager is not None else None
    if known is None or tool not in known:
        return dict(arguments)
    return _plain(known[tool].args_validator.validate_python(dict(arguments), context=ctx.validation_context))


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = JSON_CODEC.dump(dict[str, Any], dict(arguments))
    return plain


class _Asking:
    """A bound operation that lets the backend see for what it is called."""

    def __init__(self, bound: Any) -> None:
        self._bound = bound
        self.operation = bound.operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        token = _asked.set(params)
        try:
            return await self._bound(params, config=config)
        finally:
            _asked.reset(token)


class _Backend(JournalCallableOperationBackend[Any]):
    """Each unit through the journal."""

    def bind(self, operation: Any) -> Any:
        return _Asking(super().bind(operation))

    async def execute(
        self, *, operation_id: Any, name: str, body: Callable[[], Awaitable[object]], cache_key: tuple[object, ...], config: Any
    ) -> object:
        run, params, made = _running.get(), _asked.get(), False
        assert run is not None

        async def noted() -> object:
            nonlocal made
            made = True
            return await body()

        if isinstance(operation_id, ModelRequestId | ModelCompactMessagesId):
            answer = await _model(run, name, operation_id.model_name, params, noted)
        elif isinstance(operation_id, ToolsetCallToolId):
            answer = await _tool(run, name, params, noted)
        else:
            answer = await run.attempt.journal.aunit(name, noted)
        if (record := getattr(durable_exec, "record_durable_unit", None)) is not None:
            record(executed=made)
        return answer


async def _model(run: Running, name: str, model: str, params: Any, body: Callable[[], Awaitable[Any]]) -> Any:
    """A request to a model, streamed or not."""

    async def ask() -> Paid:
        no_retries(params.run_context.model)
        answer = whole(without(await body()))
        response = answer.get("response", answer)
        return Paid(answer, usage=usage_of(response), model=str(response.get("model_name") or ""))

    messages = getattr(params, "request_context", params).messages
    return await request(run.attempt, name, ask, prompt=prompt_of(messages), model=model)


async def _tool(run: Running, name: str, params: Any, body: Callable[[], Awaitable[Any]]) -> Any:
    """A call of a tool. Its errors are the library's business: a retry is an answer to the model, what else it raises ends the run."""
    arguments, tool, guarded = _plain(params.tool_args), params.name, run.guarded
    asks = guarded.asks(tool, wanted=bool(params.ctx.tool_call_approved))

    async def call() -> Any:
        if not asks and not guarded.happens(tool):
            return await body()
        with guarded.call(tool, arguments, asks=asks) as made:
            if not made.done:
                made.record(await body())
        return returned(made.evidence)

    return await run.attempt.journal.atool(name, arguments, call, fatal=(Exception,))
