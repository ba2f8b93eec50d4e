"""Make an agent of Pydantic AI the code of an `AgentTurn`; the agent is as it was (extra `outlast[pydantic-ai]`).

    turn = AgentTurn(durable(agent, prompt=question_of, choose=proposal_of), choices={"refund": "pay", "nothing": "done"})

While it runs in an attempt, a capability on the library's public durable interface sends each unit through `attempt.journal`: a request to a
model, a call of a tool, whatever else the library wants recorded. So a later attempt of the visit uses what is on record; people are asked
about tools that require approval; tokens go to the budget. Outside an attempt the agent is what it always was. See docs/how-to/pydantic-ai.md.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from django.db import connections

from flows import Candidate
from flows.errors import DefinitionError, InvalidCandidate
from tasks.agent.errors import translate
from tasks.agent.guarded import Guarded

try:
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.agent import AbstractAgent

    from tasks.agent.pydantic_outside import Outside, token_of
    from tasks.agent.pydantic_units import JournalDurability, Running, running, running_now
except ImportError as error:
    raise ImportError(
        "tasks.agent.pydantic_ai needs Pydantic AI 2.40 or newer: pip install 'outlast[pydantic-ai]'. "
        f"What is installed lacks something: {error}"
    ) from error

if TYPE_CHECKING:
    from pydantic_ai import RunContext

    from approvals.tools import Guard
    from flows import Effect
    from flows.services.attempt import Attempt

#: Tools that are plain functions run in threads; so many at once are enough, for tools of a durable turn are called one after the other.
THREADS = 4

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def durable(
    agent: AbstractAgent[Any, Any],
    *,
    prompt: Callable[[Attempt], Any],
    choose: Callable[[Any], Candidate],
    approvals: Guard | Mapping[str, Guard] | None = None,
    effects: Mapping[str, Effect] | None = None,
    deps: Callable[[Attempt], Any] | None = None,
    name: str = "",
    outside: Outside | None = None,
    **options: Any,
) -> Callable[[Attempt], Awaitable[Candidate]]:
    """The code of an `AgentTurn` that runs this agent, each unit of it on record.

    Args:
        agent: as it is; nothing of it is changed, but that its client does not try again by itself (each try is a call that is charged).
        prompt: of the attempt, the user's prompt: text, or a list of contents. choose: of the agent's output, the candidate.
        approvals: tool → whom people are asked about each call of it; or one `Guard` for all tools that require approval.
        effects: tool → `Effect(reconcile=…)`: its calls happen once, also where a worker is lost in the middle of one.
        deps: of the attempt, the agent's dependencies. name: under which units are recorded, the agent's own by default; do not change it.
        outside: where the flow waits for calls that something outside answers (`CallDeferred`, tools that are executed elsewhere).
        options: more for `agent.run` (`usage_limits`, `model_settings`, `toolsets`, `model`, `capabilities`).

    Raises:
        DefinitionError: it could not work, with the way to write it.
    """
    called = _name(agent, name)
    if taken := {"user_prompt", "deps"} & set(options):
        raise DefinitionError(f"durable(…) of {called}: {', '.join(sorted(taken))} comes from prompt= and deps=.")
    guarded = Guarded(called, approvals, effects or {})
    capability: JournalDurability = JournalDurability(name=called)
    more = list(options.pop("capabilities", None) or ())
    if outside is not None:
        options["output_type"] = outside.output_types(agent, options.get("output_type"))

    async def turn(attempt: Attempt) -> Candidate:
        given = {"deps": deps(attempt)} if deps is not None else {}
        begins = outside.resumed(attempt) if outside is not None else None
        if isinstance(begins, Candidate):
            return begins
        given |= begins if begins is not None else {"user_prompt": prompt(attempt)}
        try:
            with running(Running(attempt, guarded)), Agent.using_thread_executor(_Threads(max_workers=THREADS)):
                result = await agent.run(capabilities=[*more, capability], infer_name=False, **given, **options)
        except Exception as error:
            meaning = translate(error)
            if meaning is error:
                raise
            raise meaning from error
        return _ended(attempt, result, choose, outside)

    turn.__name__ = turn.__qualname__ = called
    vars(turn)["agent"] = agent  # the check of its client (W132) looks at it
    return turn


def _name(agent: AbstractAgent[Any, Any], name: str) -> str:
    """Under what an agent's units are recorded.

    Raises:
        DefinitionError: it cannot be that.
    """
    called = name or agent.name or ""
    if not _NAME.fullmatch(called):
        raise DefinitionError(
            f"The agent is called {called!r:.80}, and what it does is recorded under its name: give it one of letters, digits, '_', '.' and "
            "'-', at most 60, by Agent(name=…) or durable(…, name=…), and keep it."
        )
    return called


def _ended(attempt: Attempt, result: Any, choose: Callable[[Any], Candidate], outside: Outside | None) -> Candidate:
    """What a run of the agent proposes, or for what it waits."""
    if outside is None:
        return choose(result.output)
    if isinstance(result.output, DeferredToolRequests):
        return outside.candidate(attempt, result.output, result.all_messages())
    made = choose(result.output)
    if made.choice == outside.choice:
        raise InvalidCandidate(f"{outside.choice!r} is what a turn ends with that waits; choose= cannot propose it")
    return made


def token(ctx: RunContext[Any]) -> str:
    """The token under which something outside answers the call of a tool that is running now: the key of the event that the flow waits for.

    Raises:
        DefinitionError: no attempt runs here.
    """
    run = running_now()
    if run is None or ctx.tool_call_id is None:
        raise DefinitionError("token(ctx) is of the call of a tool, in an agent that runs in an AgentTurn.")
    return token_of(run.attempt, ctx.tool_call_id)


class _Threads(ThreadPoolExecutor):
    """Threads for tools that are plain functions: none leaves a database connection behind."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_closing, fn, *args, **kwargs)


def _closing(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()


__all__ = ["Outside", "durable", "token"]
