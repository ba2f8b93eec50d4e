"""Calls of tools that something outside answers, as waits of the flow: the turn ends with them, a `Wait` node waits, and the next visit goes on.

    model asks for a call that is deferred ──► candidate: the calls, and the messages so far ──► Wait for its event
                                                                                                  ├── event ────► turn: the next open call, or
                                                                                                  └── deadline ─► the agent goes on with answers
One call is waited for after the other, each under its own token; an event of a later one that comes early is kept by the inbox. What the
deadline brings back without an answer is told to the model. Guard: an event counts once, by its id. Crash: the visit's journal; a tool that is
called again hands out the same token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry
from pydantic_ai.messages import ModelMessagesTypeAdapter

from flows import Candidate
from flows.errors import DefinitionError
from tasks.agent.reasoning import without

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent

    from flows import Attempt, State

#: Where the turn's candidate keeps what is waited for.
KEPT = "outside"
NO_ANSWER = "No answer to this call arrived in time. Do without it, or call again."


@dataclass(frozen=True, slots=True)
class Outside:
    """Where a turn of an agent waits for calls that something outside answers.

    Args:
        choice: the choice with which the turn ends then; it leads to the Wait. turn, wait: the names of the AgentTurn and of the Wait, whose
            `key=` is this object's `key`, and whose event's payload is the answer to the call.
    """

    choice: str
    turn: str
    wait: str

    def key(self, state: State) -> str:
        """The token of the call that is waited for: the key of the event."""
        return str(state.results[self.turn]["value"][KEPT]["calls"][0]["token"])

    def output_types(self, agent: AbstractAgent[Any, Any], given: Any) -> list[Any]:
        """What a run may end with: what the agent's may, or calls that are deferred."""
        own = given if given is not None else agent.output_type
        types = list(own) if isinstance(own, list | tuple) else [own]
        return types if DeferredToolRequests in types else [*types, DeferredToolRequests]

    def candidate(self, attempt: Attempt, output: DeferredToolRequests, messages: Any) -> Candidate:
        """The turn ends with calls that something outside answers."""
        if attempt.node != self.turn:
            raise DefinitionError(f"Outside(turn={self.turn!r}, …) is of another node than {attempt.node}.")
        calls = [
            {
                "id": one.tool_call_id,
                "tool": one.tool_name,
                "arguments": one.args_as_dict(),
                "token": token_of(attempt, one.tool_call_id),
            }
            for one in output.calls
        ]
        history = without(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))
        return self._waits(attempt, {"calls": calls, "answers": {}, "history": history})

    def resumed(self, attempt: Attempt) -> Candidate | dict[str, Any] | None:
        """What this visit begins with: None, from the prompt; the same wait for the next call; or, for `agent.run`, the answers."""
        kept = self._before(attempt)
        if not kept:
            return None
        first = kept["calls"][0]["id"]
        event = self._event(attempt)
        known = event is not None and event != kept["heard"]
        answers = {**kept["answers"], first: {"said": attempt.results[self.wait]["payload"]} if known else None}
        if left := kept["calls"][1:]:
            return self._waits(attempt, {**kept, "calls": left, "answers": answers})
        said = {call: ModelRetry(NO_ANSWER) if one is None else one["said"] for call, one in answers.items()}
        history = ModelMessagesTypeAdapter.validate_python(kept["history"])
        return {"message_history": history, "deferred_tool_results": DeferredToolResults(calls=said)}

    def _waits(self, attempt: Attempt, kept: Mapping[str, Any]) -> Candidate:
        """The candidate; what the Wait has heard by now is of an earlier call."""
        return Candidate(self.choice, {KEPT: {**kept, "heard": self._event(attempt)}})

    def _event(self, attempt: Attempt) -> Any:
        """The id of the event that the Wait has heard last; None: of none."""
        return (attempt.results.get(self.wait) or {}).get("event")

    def _before(self, attempt: Attempt) -> dict[str, Any]:
        """What the visit before this one waits for; empty, where it ended otherwise."""
        made = attempt.results.get(attempt.node) or {}
        kept = (made.get("value") or {}).get(KEPT) if made.get("choice") == self.choice else None
        return dict(kept) if kept else {}


def token_of(attempt: Attempt, call: str) -> str:
    """The token under which the answer to a call is given: the same over all attempts of a visit, whatever the provider calls the call."""
    return f"{attempt.operation_id}/{hashlib.sha256(call.encode()).hexdigest()[:16]}"
