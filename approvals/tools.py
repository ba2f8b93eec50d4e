"""Tools that people must allow, for the code of activities and agents:

    @requires_approval(role="finance")
    def refund(order, amount): …

A call asks people about exactly these arguments and ends the turn (`ApprovalPending`). When they have answered, the activity runs again and
makes the same call: then it is executed, once. See docs/how-to/tool-approvals.md.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from approvals.core.tools import (
    Asking,
    OutsideAttempt,
    Rule,
    Tool,
    ToolApprovalUnsound,
    ToolAskedTooOften,
    ToolChangesRequested,
    ToolDenied,
    ToolExpired,
    ToolRefused,
    tool_of,
)
from flows.core.effects import Effect
from flows.core.errors import ApprovalPending, TurnEnds
from flows.core.nodes.audience import Escalation, Reviewers
from flows.core.tools import GUARDED

if TYPE_CHECKING:
    from approvals.services.guard import Allowed
    from flows.services.effects import Call

P = ParamSpec("P")
R = TypeVar("R")


def requires_approval(
    *,
    role: str = "",
    pool: str = "",
    permission: str = "",
    need: int = 1,
    steps: Sequence[Reviewers] = (),
    expires: timedelta = timedelta(hours=24),
    reminders: Sequence[timedelta] = (),
    escalation: Sequence[Escalation] = (),
    self_approval: bool = False,
    name: str | None = None,
    version: str = "1",
    target: Callable[..., Any] | None = None,
    effect: Effect | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Guard a tool: a function, an async one or a method, of JSON arguments and with a JSON result.

    Args:
        role, pool, permission, need, or steps: whom it asks, as in `Approval`. self_approval: whether the accountable user may answer.
        expires: how long they may answer, and how long an approval may wait to be used. Nobody's answer allows nothing.
        reminders, escalation: as in `Approval`.
        name: of the tool; default the function's. version: of the tool; another one is another call. target: a function of the tool's own
            arguments that says what it acts on, for reviewers; part of what is approved.
        effect: what can be asked about a call of which nobody knows whether it happened: `Effect(reconcile=…)`, `Effect(idempotent=True)`.

    A call raises:
        ApprovalPending: people are asked; let it out. ToolRefused: `ToolDenied`, `ToolChangesRequested`, `ToolExpired`.
        OutsideAttempt: it is not called by an activity's code.
    """

    def guard(function: Callable[P, R]) -> Callable[P, R]:
        called = str(getattr(function, "__name__", "tool")) if name is None else name
        rule = Rule(
            name=called,
            version=version,
            role=role,
            pool=pool,
            permission=permission,
            need=need,
            steps=steps,
            expires=expires,
            reminders=reminders,
            escalation=escalation,
            self_approval=self_approval,
            target=target,
            effect=effect or Effect(),
        )
        tool = tool_of(rule, function)
        wrapper: Any = _asynchronous(tool) if inspect.iscoroutinefunction(function) else _plain(tool)
        guarded: Callable[P, R] = functools.wraps(function)(wrapper)
        setattr(guarded, GUARDED, True)
        return guarded

    return guard


@dataclass(frozen=True, kw_only=True)
class Guard(Asking):
    """Who must allow the calls of a tool that is declared elsewhere: of an agent turn, or of an agent's library.

        Tool(refund, approval=Guard(role="finance"))
        durable(agent, approvals={"refund": Guard(role="finance")}, …)

    Args:
        Those of `requires_approval`, but name and effect, which are the tool's.
    """

    def guard(self, function: Callable[..., Any], *, name: str, effect: Effect | None = None) -> Callable[..., Any]:
        """The function, guarded under this name.

        Raises:
            DefinitionError: it could not work, with the way to write it.
        """
        options = {one.name: getattr(self, one.name) for one in fields(self)}
        guarded: Callable[..., Any] = requires_approval(**options, name=name, effect=effect)(function)
        return guarded


def gather(*calls: Callable[[], Any]) -> list[Any]:
    """Make several calls of one turn: all that need an approval are asked about at once, and answered each by itself.

        one, two = gather(lambda: refund(7, "10.00"), lambda: refund(8, "5.00"))

    Returns what each returned, in order. Where one was refused, that is raised after all were made.

    Raises:
        ApprovalPending: one of them waits, whatever became of the others; the next turn makes the calls anew.
    """
    made, raised = [], []
    for call in calls:
        try:
            made.append(call())
        except (Exception, TurnEnds) as error:  # noqa: BLE001 - kept until the others were made, and raised
            raised.append(error)
    return _all(made, raised)


async def agather(*calls: Awaitable[Any]) -> list[Any]:
    """The same for async tools, which run side by side.

        one, two = await agather(refund(7, "10.00"), refund(8, "5.00"))

    Raises:
        ApprovalPending: as `gather`.
    """
    done = await asyncio.gather(*calls, return_exceptions=True)
    return _all(
        [one for one in done if not isinstance(one, BaseException)], [one for one in done if isinstance(one, BaseException)]
    )


def current_call() -> Call:
    """Inside a guarded tool: the call that is made, with `id`, the same over all attempts at it, and `headers`, to send to a provider.

    Raises:
        DefinitionError: no guarded tool runs here.
    """
    from approvals.services import guard

    return guard.current_call()


def _made(tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> AbstractContextManager[tuple[Call, Allowed]]:
    from approvals.services import guard

    return guard.made(tool, args, kwargs)


def _all(made: list[Any], raised: Sequence[BaseException]) -> list[Any]:
    first = next((error for error in raised if isinstance(error, TurnEnds)), raised[0] if raised else None)
    if first is not None:
        raise first
    return made


def _plain(tool: Tool) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        own, given = tool.split(args)
        with _made(tool, given, kwargs) as (call, may):
            if not call.done:
                call.record(tool.function(*own, *may.args, **may.kwargs))
        return call.evidence

    return guarded


def _asynchronous(tool: Tool) -> Callable[..., Any]:
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        own, given = tool.split(args)
        with _made(tool, given, kwargs) as (call, may):
            if not call.done:
                call.record(await tool.function(*own, *may.args, **may.kwargs))
        return call.evidence

    return guarded


__all__ = [
    "ApprovalPending",
    "Guard",
    "OutsideAttempt",
    "ToolApprovalUnsound",
    "ToolAskedTooOften",
    "ToolChangesRequested",
    "ToolDenied",
    "ToolExpired",
    "ToolRefused",
    "agather",
    "current_call",
    "gather",
    "requires_approval",
]
