"""The loop of an agent turn, as code: prompt, model, tools, and again, until the model answers with a candidate (docs/decisions/0007).

    build the prompt ──► model ──► a candidate: the turn is over
              ▲            └──► calls of tools ──► each on record ──┐
              └─────────────────────────────────────────────────────┘
A prompt is built from durable state, not remembered: instructions, the context (facts and fenced data), one line for each call so far, and
the newest results. It does not grow with the turn. The model names tools and choices that are declared, never a node.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.core import canonical, payload
from flows.core.context import Context, Untrusted, encoded
from flows.core.errors import InvalidCandidate, PayloadError, TurnEnds
from flows.core.nodes.activity import Candidate
from flows.core.turn_errors import ToolFailed
from flows.core.turns import Entry, EntryKind, Keep, Paid

#: Characters of a call's arguments in the index.
SHOWN = 120


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool by name, with JSON arguments."""

    name: str
    arguments: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says: calls of tools, or the candidate that ends the turn.

    Args:
        calls: made in order; several that need an approval are asked about at once. candidate: where there is one, calls are not made.
        usage, model: as of `Paid`. text: what it says besides, without reasoning; kept with the answer, and read by nobody here.
    """

    calls: Sequence[ToolCall] = ()
    candidate: Candidate | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    text: str = ""

    @property
    def recorded(self) -> dict[str, Any]:
        """As it is kept."""
        proposed = self.candidate
        return {
            "calls": [{"name": str(one.name)[:200], "arguments": _readable(one.arguments)} for one in self.calls],
            "candidate": None
            if proposed is None
            else {"choice": proposed.choice, "value": proposed.value, "evidence": proposed.evidence},
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked. `tools`: name, description and JSON schema of each. `context`: facts and fenced data; nothing in it instructs."""

    instructions: str
    context: Context
    tools: Sequence[Mapping[str, Any]]

    @property
    def text(self) -> str:
        """All of it but the tools, for a model that takes one text."""
        return f"{self.instructions}\n\n{Context.HOW_TO_READ}\n\n{self.context.text}"

    @property
    def hash(self) -> str:
        """Of text and tools."""
        return "sha256:" + hashlib.sha256(f"{self.text}\0{encoded(list(self.tools))}".encode()).hexdigest()


@dataclass(frozen=True)
class Loop:
    """A `do` for an AgentTurn: asks the model, calls the declared tools, and asks again.

    Args:
        model: a function of a Prompt that returns an Answer, plain or async; the only thing that is written for a provider.
        instructions: the author's text. context: a function of the attempt that gives what code knows besides, name → `Fact(…)` or
        `Untrusted(…)`: outlines, revision history. max_tokens: the bound of the context. name: the model's name, for the record.
    """

    model: Callable[[Prompt], Any]
    instructions: str = field(kw_only=True, default="")
    context: Callable[[Any], Mapping[str, Any]] | None = field(kw_only=True, default=None)
    max_tokens: int = field(kw_only=True, default=16_000)
    name: str = field(kw_only=True, default="model")

    def __post_init__(self) -> None:
        # The fingerprint of a flow names the functions of its nodes.
        name = f"Loop({getattr(self.model, '__qualname__', type(self.model).__qualname__)})"
        object.__setattr__(self, "__qualname__", name)

    def __call__(self, attempt: Any) -> Candidate:
        """Run the turn.

        Raises:
            InvalidCandidate: the model neither calls a tool nor proposes anything. What `attempt.journal` raises.
        """
        while True:
            prompt = self.prompt(attempt)
            said = attempt.journal.model("model", lambda asked=prompt: self._ask(asked), prompt_hash=prompt.hash, model=self.name)
            if said["candidate"] is not None:
                return Candidate(**said["candidate"])
            if not said["calls"]:
                raise InvalidCandidate(f"{attempt.node}: the model neither called a tool nor proposed anything")
            self._call(attempt, said["calls"])

    def prompt(self, attempt: Any) -> Prompt:
        """What the model is asked now."""
        keep: Keep = attempt.tools.keep
        entries = attempt.journal.entries
        extra = dict(self.context(attempt)) if self.context is not None else {}
        extra |= seen(entries, keep)
        built = attempt.context(max_tokens=self.max_tokens, extra=extra, item_bytes=keep.bytes)
        return Prompt(self.instructions, built, attempt.tools.specs)

    def _ask(self, prompt: Prompt) -> Paid:
        answer = self.model(prompt)
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        if not isinstance(answer, Answer):
            raise InvalidCandidate(
                f"the model function returned {type(answer).__name__}; it returns Answer(calls=[…]) or Answer(candidate=…)"
            )
        said = answer.recorded
        try:
            payload.text(said, "the answer of the model")
        except PayloadError as error:
            raise InvalidCandidate(f"the answer of the model cannot be stored: {error.problem}") from None
        return Paid(said, usage=answer.usage, model=answer.model)

    def _call(self, attempt: Any, calls: Sequence[Mapping[str, Any]]) -> None:
        """Every call of one answer; what waits for people ends the turn when all were made."""
        ends: TurnEnds | None = None
        for one in calls:
            try:
                attempt.tools.call(one["name"], one["arguments"])
            except ToolFailed:
                continue  # it is on record, and the next prompt tells it
            except TurnEnds as waits:
                ends = ends or waits
        if ends is not None:
            raise ends


def _readable(arguments: Any) -> Any:
    """Arguments as JSON keeps them; what it cannot keep is no argument of any tool, and the model is told what is wrong with it."""
    try:
        canonical.canonical(json.loads(payload.text(arguments, "arguments")), "arguments")
    except PayloadError as error:
        return f"unreadable: {error.problem}"
    return arguments


def seen(entries: Sequence[Entry], keep: Keep) -> dict[str, Untrusted]:
    """What a prompt holds of the calls so far: one line each, and the newest results whole. All of it is data."""
    tools = [one for one in entries if one.kind is EntryKind.TOOL]
    found: dict[str, Untrusted] = {}
    if tools:
        lines = [line(one) for one in tools[-keep.lines :]]
        if len(tools) > keep.lines:
            lines.insert(0, f"({len(tools) - keep.lines} earlier calls)")
        found["calls so far"] = Untrusted("\n".join(lines), source="the journal")
    for one in reversed(tools[-keep.results :] if keep.results else []):
        found[f"result {one.number} {one.name}"] = Untrusted(one.answer, source=f"tool:{one.name}")
    return found


def line(entry: Entry) -> str:
    """One call in one line, made by code."""
    asked = encoded(entry.request) if entry.request is not None else entry.request_hash
    shown = asked if len(asked) <= SHOWN else f"{asked[:SHOWN]}…"
    came = f"error {entry.code}" if entry.failed else f"{entry.answer_bytes:,} bytes, {entry.answer_hash[:19]}"
    return f"{entry.number} {entry.name} {shown} → {came}"
