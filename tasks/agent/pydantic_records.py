"""How Pydantic AI writes down what a unit has brought, and what of that the journal wants to know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import ModelMessagesTypeAdapter

#: What differs between two requests that ask for the same.
_PASSING = frozenset({"timestamp", "run_id", "conversation_id"})


def whole(answer: Any) -> Any:
    """A streamed answer without its stream, which releases before 2.60 put beside it, reasoning included; its parts stand for that."""
    if not (isinstance(answer, Mapping) and "response" in answer):
        return answer
    parts = enumerate(answer["response"]["parts"])
    return {**answer, "events": [{"event_kind": "part_start", "index": number, "part": part} for number, part in parts]}


def returned(evidence: Any) -> Any:
    """The library's record of a call. What a reconcile function or a person has found out about one is what the tool returned."""
    if isinstance(evidence, Mapping) and evidence.get("kind") in _RECORDED:
        return evidence
    return {"kind": "tool_return", "result": evidence}


#: How the library records what a tool did.
_RECORDED = frozenset({"tool_return", "tool_content_result", "approval_required", "call_deferred", "model_retry", "validation_error",
                       "tool_failed", "run_cancelled"})  # fmt: skip


def prompt_of(messages: Any) -> Any:
    """What was asked, for its hash: equal requests have equal ones."""
    return _lasting(json.loads(ModelMessagesTypeAdapter.dump_json(messages)))


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in _PASSING}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def usage_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    said = answer.get("usage") or {}
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    used: dict[str, Any] = {name: int(said.get(name) or 0) for name in names}
    reasoning = said.get("output_reasoning_tokens") or (said.get("details") or {}).get("reasoning_tokens")
    if reasoning:
        used["reasoning_tokens"] = int(reasoning)
    if said.get("cost") is not None:
        used["cost"] = str(said["cost"])
    return used
