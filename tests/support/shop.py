"""The same cashier as an agent of the OpenAI Agents SDK, and a model that answers by a script; `turnings` keeps what was asked."""

from __future__ import annotations

from typing import Any

from agents import Agent, Model, ModelResponse, Usage, function_tool
from agents.testing import assistant_message, function_call
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from tests.support.turnings import at, happened


class Script(Model):
    """Answers the n-th request of a run with the n-th answer, whoever asks: a list of output items, or an error."""

    model = "scripted"

    def __init__(self, *answers: Any) -> None:
        self._answers = answers

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        number = answered(input)
        at(f"before model {number}")
        happened(f"model {number}")
        at(f"after model {number}")
        given = self._answers[number]
        if isinstance(given, Exception):
            raise given
        return ModelResponse(
            output=list(given), usage=Usage(requests=1, input_tokens=10, output_tokens=5), response_id=f"resp-{number}"
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def answered(input: Any) -> int:
    """How many answers of the model an input holds: runs of items that are its own."""
    own = (
        [item.get("type") == "function_call" or item.get("role") == "assistant" for item in input]
        if isinstance(input, list)
        else []
    )
    return sum(is_own and not before for is_own, before in zip(own, [False, *own], strict=False))


_numbers = iter(range(1_000_000))


def calls(tool: str, **arguments: Any) -> Any:
    return function_call(tool, arguments, call_id=f"call-{next(_numbers)}")


def says(text: str) -> Any:
    return assistant_message(text)


def thinks(text: str) -> Any:
    return ResponseReasoningItem(id="rs-1", summary=[Summary(text=text, type="summary_text")], type="reasoning")


def cashier(model: Any, **options: Any) -> Agent[Any]:
    """Looks up an order, pays it back where a person allows it, and tells the customer."""

    @function_tool
    def lookup(order: int) -> dict[str, Any]:
        at("before tool lookup")
        happened(f"tool lookup {order}")
        at("after tool lookup")
        return {"order": order, "paid": "10.00"}

    @function_tool(needs_approval=True, strict_mode=False)
    async def pay_back(order: int, amount: str = "1.00") -> str:
        at("before tool pay_back")
        happened(f"tool pay_back {order} {amount}")
        at("after tool pay_back")
        return f"paid back {amount}"

    @function_tool
    async def tell(customer: str) -> str:
        at("before tool tell")
        happened(f"tool tell {customer}")
        at("after tool tell")
        return "told"

    return Agent(name="clerk", model=model, tools=[lookup, pay_back, tell], **options)
