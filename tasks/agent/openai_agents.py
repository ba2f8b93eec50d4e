"""Make an agent of the OpenAI Agents SDK the code of an `AgentTurn`; the agent is as it was (extra `outlast[openai-agents]`).

    turn = AgentTurn(durable(agent, prompt=question_of, choose=proposal_of), choices={"refund": "pay", "nothing": "done"})

What runs is a copy of the agent, and of those that it hands over to, whose models and tools go through `attempt.journal` (`openai_units`); tools
that need approval end the run as interruptions, and people are asked about them. See docs/how-to/openai-agents.md.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flows import Candidate
from flows.errors import DefinitionError
from tasks.agent.errors import translate
from tasks.agent.guarded import Guarded

try:
    from agents import Agent, Model, RunConfig, Runner
    from agents.run_config import ToolExecutionConfig

    from tasks.agent.openai_units import Copies, Provider, Recorded, Run, answered
except ImportError as error:
    raise ImportError(
        "tasks.agent.openai_agents needs the OpenAI Agents SDK: pip install 'outlast[openai-agents]'. "
        f"What is installed lacks something: {error}"
    ) from error

if TYPE_CHECKING:
    from approvals.tools import Guard
    from flows import Effect
    from flows.services.attempt import Attempt

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
#: Options that keep a conversation somewhere else, where each attempt would add to it again.
_ELSEWHERE = frozenset({"session", "conversation_id", "previous_response_id", "auto_previous_response_id"})


def durable(
    agent: Agent[Any],
    *,
    prompt: Callable[[Attempt], Any],
    choose: Callable[[Any], Candidate],
    approvals: Guard | Mapping[str, Guard] | None = None,
    effects: Mapping[str, Effect] | None = None,
    context: Callable[[Attempt], Any] | None = None,
    name: str = "",
    run_config: RunConfig | None = None,
    **options: Any,
) -> Callable[[Attempt], Awaitable[Candidate]]:
    """The code of an `AgentTurn` that runs this agent, each unit of it on record.

    Args:
        agent: as it is; nothing of it is changed, but that its client does not try again by itself (each try is a call that is charged).
        prompt: of the attempt, the input: text, or a list of items. choose: of the agent's final output, the candidate.
        approvals: tool → whom people are asked about each call of it; or one `Guard` for all tools that need approval.
        effects: tool → `Effect(reconcile=…)`: its calls happen once, also where a worker is lost in the middle of one.
        context: of the attempt, the run's context. name: under which units are recorded, the agent's own by default; do not change it.
        run_config: the SDK's; without one, its tracing is off. options: more for `Runner.run` (`max_turns`, `hooks`).

    Raises:
        DefinitionError: it could not work, with the way to write it.
    """
    called = _called(agent, name, options)
    guarded = Guarded(called, approvals, effects or {})
    config = run_config or RunConfig(tracing_disabled=True)
    Copies(Run(called, guarded, None)).of(agent)  # what could not work is said now

    async def turn(attempt: Attempt) -> Candidate:
        run = Run(called, guarded, attempt)
        inner = config.model
        own = replace(
            config,
            model=Recorded(inner, run) if isinstance(inner, Model) else inner,
            model_provider=Provider(config.model_provider, run),
            tool_execution=replace(config.tool_execution or ToolExecutionConfig(), max_function_tool_concurrency=1),
        )
        given = {"context": context(attempt)} if context is not None else {}
        copied = Copies(run).of(agent)
        try:
            result = await Runner.run(copied, prompt(attempt), run_config=own, **given, **options)
            while result.interruptions:
                state = answered(run, result)
                result = await Runner.run(copied, state, run_config=own, **options)
        except Exception as error:
            meaning = translate(error)
            if meaning is error:
                raise
            raise meaning from error
        return choose(result.final_output)

    turn.__name__ = turn.__qualname__ = called
    vars(turn)["agent"] = agent  # the check of its client (W132) looks at it
    return turn


def _called(agent: Agent[Any], name: str, options: Mapping[str, Any]) -> str:
    """The name under which the agent is recorded.

    Raises:
        DefinitionError: it has none that lasts, or its conversation would be kept elsewhere.
    """
    called = name or agent.name
    if not _NAME.fullmatch(called):
        raise DefinitionError(
            f"The agent is called {called!r:.80}, and what it does is recorded under its name: give it one of letters, digits, '_', '.' and "
            "'-', at most 60, by durable(…, name=…), and keep it."
        )
    if kept := _ELSEWHERE & set(options):
        raise DefinitionError(
            f"durable(…) of {called}: {', '.join(sorted(kept))} would keep a conversation elsewhere, to which each attempt adds again. Build "
            "prompt= from the record instead."
        )
    return called


__all__ = ["durable"]
