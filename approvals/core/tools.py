"""A tool that people must allow: whom it asks, and what exactly a call of it is. Pure.

    declared   Rule: role, pool, permission or steps, how long it waits; checked when the module is loaded
    called     arguments bound to the signature, defaults applied ──► candidate: {choice: tool, value: {arguments, target, tool_version}}
    executed   the arguments as they are recorded in the candidate, bound back to the signature

Two calls are the same exactly if their candidates have the same digest (RFC 8785).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from flows.core import canonical, payload, typed
from flows.core.effects import TOOLS, Effect
from flows.core.errors import ActivityError, DefinitionError, PayloadError, Route
from flows.core.nodes.audience import Escalation, Reviewers
from flows.core.spans import bounded
from flows.core.state import State

ANSWERS = ("approved", "changes", "denied")
#: So many times at most one activity asks people about its tools; a code that goes on asking after that is at fault.
MAX_REQUESTS = 50

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_OWN = ("self", "cls")


class ToolRefused(ActivityError):
    """People did not allow a call. An agent may catch it and go on; let out, it stops the activity for a person, or goes where `on=` says.

    Attributes:
        tool: its name. comment: what people said; data from outside, for a model too. request: the id of the request.
    """

    code = "TOOL_REFUSED"
    route = Route.HUMAN
    says = "was not allowed"

    def __init__(self, tool: str, comment: str = "", request: int | None = None) -> None:
        super().__init__(f"{tool} {self.says}" + (f" (request {request})" if request is not None else ""))
        self.tool, self.comment, self.request = tool, comment, request


class ToolDenied(ToolRefused):
    """Somebody who was asked said no; `comment` says why."""

    code = "TOOL_DENIED"
    says = "was denied"


class ToolChangesRequested(ToolRefused):
    """Somebody who was asked wants another call; `comment` says which."""

    code = "TOOL_CHANGES_REQUESTED"
    says = "was not allowed as it is: changes are asked for"


class ToolExpired(ToolRefused):
    """Nobody has answered in time. Silence allows nothing."""

    code = "TOOL_APPROVAL_EXPIRED"
    says = "was not answered in time"


class ToolAskedTooOften(ToolRefused):
    """The activity has asked people as often as it may."""

    code = "TOOL_ASKED_TOO_OFTEN"
    says = f"cannot ask any more: {MAX_REQUESTS} requests were made in this visit"


class ToolApprovalUnsound(ToolRefused):
    """What is recorded as approved does not hash to its recorded digest: somebody wrote to the table. Nothing was executed."""

    code = "CANDIDATE_INVALID"
    says = "is approved, and the recorded call does not hash to the recorded digest"


class OutsideAttempt(DefinitionError):
    """A guarded tool was called where no attempt runs."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} asks people for approval, and is called outside of any activity, so there is nobody to ask on behalf of. Call it in the "
            f"function of an Activity; in a thread of your own, run it by contextvars.copy_context().run(…). A test of the plain function "
            f"calls {tool}.__wrapped__."
        )


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Who must allow the calls of a tool; `requires_approval` says what each option means, and they are checked together with the tool."""

    version: str = "1"
    role: str = ""
    pool: str = ""
    permission: str = ""
    need: int = 1
    steps: Sequence[Reviewers] = ()
    expires: timedelta = timedelta(hours=24)
    reminders: Sequence[timedelta] = ()
    escalation: Sequence[Escalation] = ()
    self_approval: bool = False
    target: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Rule(Asking):
    """What is declared of a guarded tool; `requires_approval` says what each option means.

    Args:
        unasked: its calls happen once each, and people are asked about none.

    Raises:
        DefinitionError: it could not work, with the way to write it.
    """

    name: str
    effect: Effect = field(default=Effect())
    unasked: bool = False

    def __post_init__(self) -> None:
        what = f"requires_approval(…) of {self.name}"
        if not (payload.is_name(self.name) and _NAME.fullmatch(self.name)):
            raise DefinitionError(
                f"A tool is named by letters, digits, '_', '.' and '-', at most 100: not {self.name!r:.80}. Pass name=."
            )
        if not payload.is_name(self.version):
            raise DefinitionError(f'{what}: version={self.version!r:.40} must be text, such as version="2".')
        typed.must(f"{what}: self_approval=", self.self_approval, (bool,), "self_approval=True")
        typed.must(f"{what}: effect=", self.effect, (Effect,), "effect=Effect(reconcile=…)")
        if self.effect.compensate is not None or self.effect.request is not None:
            raise DefinitionError(
                f"{what}: effect= says how to find out about a call (reconcile=, idempotent=, probes=, timeout=, grace=, second_person=). What "
                "undoes it is a tool of its own, and what it asks for are its arguments."
            )
        if not self.unasked:
            self._check_people(what)
        self._check_times(what)
        if self.target is not None and not callable(self.target):
            raise DefinitionError(f"{what}: target={self.target!r:.60} must be a function of the tool's own arguments.")

    def _check_people(self, what: str) -> None:
        own = Reviewers(self.role, pool=self.pool, permission=self.permission, need=self.need)
        if not isinstance(self.steps, list | tuple) or not all(isinstance(one, Reviewers) for one in self.steps):
            raise DefinitionError(f'{what}: steps= takes several Reviewers, as in steps=[Reviewers("finance", need=2)].')
        if self.steps and (not own.empty or self.need != 1):
            raise DefinitionError(
                f"{what}: say whom it asks either by steps= or by role=, pool=, permission= and need=, not by both."
            )
        if any(one.empty for one in self.ladder):
            raise DefinitionError(
                f'{what} names nobody whom to ask: role="finance", pool=, permission=, or steps=[Reviewers(…)].'
            )

    def _check_times(self, what: str) -> None:
        typed.span(f"{what}: expires=", self.expires, "expires=hours(24)")
        if bounded(f"{what}: expires=", self.expires) <= timedelta(0):
            raise DefinitionError(f"{what}: expires={self.expires!r} must be a span of time, such as hours(24).")
        for moment in self.reminders:
            typed.span(f"{what}: reminders=", moment, "reminders=[hours(4)]")
            if not timedelta(0) < moment < self.expires:
                raise DefinitionError(f"{what}: a reminder comes after the question and before it expires; {moment!r} does not.")
        for one in self.escalation:
            typed.must(f"{what}: escalation=", one, (Escalation,), 'escalation=[Escalation("managers", hours=8)]')
            if one.after >= self.expires:
                raise DefinitionError(f'{what}: escalation= takes moments before it expires: [Escalation("managers", hours=8)].')

    @property
    def ladder(self) -> tuple[Reviewers, ...]:
        """The steps as declared; one made of the rule's own options where none are."""
        return tuple(self.steps) or (Reviewers(self.role, pool=self.pool, permission=self.permission, need=self.need),)

    @cached_property
    def ladder_digest(self) -> str:
        """The digest of the steps and the escalation, as declared."""
        asks = {"steps": [step.shape for step in self.ladder], "escalation": [one.frozen for one in self.escalation]}
        return canonical.digest(asks, f"the steps of {self.name}")

    def asks(self, state: State) -> dict[str, Any]:
        """What is asked of whom in this state, as it is kept with a request.

        Raises:
            DefinitionError: no step applies.
        """
        steps = [step.frozen(state) for step in self.ladder if step.when is None or step.when(state)]
        if not steps:
            raise DefinitionError(f"No step of {self.name} applies, so nobody would be asked.")
        return {
            "steps": steps,
            "escalation": [one.frozen for one in self.escalation],
            "ladder": self.ladder_digest,
            "reminders": [moment.total_seconds() for moment in self.reminders],
            "expires": self.expires.total_seconds(),
            "self_approval": self.self_approval,
            "answers": list(ANSWERS),
        }


@dataclass(frozen=True)
class Tool:
    """A guarded function: its rule, its signature, and what of a call is its own object (`self`, `cls`) and no argument."""

    rule: Rule
    function: Callable[..., Any]
    signature: inspect.Signature
    bound: bool

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The object that a method is called on, and the arguments."""
        return (args[:1], args[1:]) if self.bound else ((), args)

    def candidate(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The call as people are asked about it, with its digest.

        Raises:
            TypeError: the arguments do not fit the function. PayloadError: one is not JSON; names tool and argument.
        """
        given = self.signature.bind(*args, **kwargs)
        given.apply_defaults()
        arguments = {name: _as_recorded(value, f"{self.rule.name}, argument {name}") for name, value in given.arguments.items()}
        target = self.rule.target(*args, **kwargs) if self.rule.target is not None else None
        target = _as_recorded(target, f"{self.rule.name}, its target")
        value = {"arguments": arguments, "target": target, "tool_version": self.rule.version}
        body = {"choice": self.rule.name, "value": value}
        return {**body, "digest": digest_of(body)}

    def arguments(self, candidate: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a recorded call, for the function."""
        given = inspect.BoundArguments(self.signature, dict(candidate["value"]["arguments"]))
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                given.arguments[name] = tuple(given.arguments[name])
        return given.args, given.kwargs


def tool_of(rule: Rule, function: Callable[..., Any]) -> Tool:
    """The tool behind a decorated function; what can be asked about its calls is known from then on.

    Raises:
        DefinitionError: it is no plain or async function, or another tool has its name.
    """
    if isinstance(function, staticmethod | classmethod):
        raise DefinitionError(f"Write @requires_approval under @{type(function).__name__} at {rule.name}, not over it.")
    if not inspect.isroutine(function):
        raise DefinitionError(f"@requires_approval guards functions; {rule.name} is {typed.kind_of(function)}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"{rule.name} yields; a guarded tool returns one JSON value, which is recorded.")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    bound = bool(parameters) and parameters[0].name in _OWN
    claim(rule, (str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", rule.name))))
    return Tool(rule, function, signature.replace(parameters=parameters[1:]) if bound else signature, bound)


def digest_of(candidate: Mapping[str, Any]) -> str:
    """The digest that binds an answer to a call."""
    return canonical.digest({"choice": candidate["choice"], "value": candidate["value"]}, f"a call of {candidate['choice']}")


#: Tool → where it is written: one name, one tool.
_WRITTEN: dict[str, tuple[str, str]] = {}


def claim(rule: Rule, where: tuple[str, str]) -> None:
    """Make the tool known by its name, with what can be asked about its calls. `where`: what declares it, and as what.

    Raises:
        DefinitionError: another tool has its name.
    """
    other = _WRITTEN.setdefault(rule.name, where)
    if other != where:
        raise DefinitionError(
            f"Two tools are called {rule.name}: {'.'.join(other)} and {'.'.join(where)}. People could not tell them apart: pass name=."
        )
    TOOLS[rule.name] = rule.effect


def _as_recorded(value: Any, producer: str) -> Any:
    """The value as JSON keeps it; what people see, what is hashed and what is executed is this, and not the object that it was made of."""
    try:
        plain = payload.decode(json.loads(payload.text(value, producer)))
        canonical.canonical(plain, producer)
    except PayloadError as error:
        raise PayloadError(producer, error.problem.replace("return dicts", "pass dicts")) from None
    return plain
