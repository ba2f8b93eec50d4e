"""The baseline: an agent that is a conversation. It begins with the task, and holds each answer and each result whole.

restarted   a new conversation that begins again from the task, as an agent does whose process held its progress in memory
kept        the old conversation was written down, and goes on with all of it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.resume import model, shop
from flows import Tool
from flows.core.context import encoded

TOOLS: Mapping[str, Callable[..., Any]] = {tool.__name__: tool for tool in shop.TOOLS}


@dataclass
class Said:
    """A prompt: the whole conversation."""

    text: str
    tools: Sequence[Mapping[str, Any]] = field(default_factory=lambda: [Tool(tool).spec for tool in shop.TOOLS])


@dataclass
class Used:
    """What a runner has used. `tokens`: of each call of the model. `asked`: the tools that each has asked for. `tools`: that were called."""

    tokens: list[int] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    choice: str = ""


def talk(ask: model.Model, lines: list[str], limit: int | None = None) -> Used:
    """Go on with a conversation until there is a candidate, or until so many tokens are used; `lines` is written on."""
    used = Used()
    while limit is None or sum(used.tokens) < limit:
        answer = ask(Said("\n".join([model.TASK, *lines])))
        used.tokens.append(answer.usage["input_tokens"] + answer.usage["output_tokens"])
        used.asked.append([call.name for call in answer.calls])
        lines.append(f"assistant: {encoded(answer.recorded['calls'])}")
        if answer.candidate is not None:
            used.choice = answer.candidate.choice
            break
        for call in answer.calls:
            used.tools.append(call.name)
            lines.append(f"{call.name}: {encoded(TOOLS[call.name](**call.arguments))}")
    return used
