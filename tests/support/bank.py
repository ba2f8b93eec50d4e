"""The bank's support agent of Pydantic AI's own documentation (its page "Introduction", example "Tools & Dependency Injection"), as it stands
there, but for the model, which tests script; and beside it an agent with an effect and an approval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.support.turnings import at, happened

# ---------------------------------------------------------------- the agent of the documentation


class DatabaseConn:
    """This is a fake database for example purposes."""

    async def customer_name(self, *, id: int) -> str | None:
        return "John" if id == 123 else None

    async def customer_balance(self, *, id: int, include_pending: bool) -> float:
        at("before tool customer_balance")
        happened("tool customer_balance")
        at("after tool customer_balance")
        if id == 123 and include_pending:
            return 123.45
        raise ValueError("Customer not found")


@dataclass
class SupportDependencies:
    customer_id: int
    db: DatabaseConn


class SupportOutput(BaseModel):
    support_advice: str = Field(description="Advice returned to the customer")
    block_card: bool = Field(description="Whether to block the customer's card")
    risk: int = Field(description="Risk level of query", ge=0, le=10)


support_agent = Agent(
    "test",
    deps_type=SupportDependencies,
    output_type=SupportOutput,
    instructions=("You are a support agent in our bank, give the customer support and judge the risk level of their query."),
)


@support_agent.instructions
async def add_customer_name(ctx: RunContext[SupportDependencies]) -> str:
    customer_name = await ctx.deps.db.customer_name(id=ctx.deps.customer_id)
    return f"The customer's name is {customer_name!r}"


@support_agent.tool
async def customer_balance(ctx: RunContext[SupportDependencies], include_pending: bool) -> float:  # noqa: FBT001 - as it is written there
    """Returns the customer's current account balance."""
    return await ctx.deps.db.customer_balance(id=ctx.deps.customer_id, include_pending=include_pending)


# ---------------------------------------------------------------- models that answer by the script


def scripted(*answers: list[Any] | Exception, name: str = "scripted") -> FunctionModel:
    """A model that answers the n-th request of a run with the n-th answer, whoever asks."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        number = sum(isinstance(one, ModelResponse) for one in messages)
        at(f"before model {number}")
        happened(f"model {number}")
        at(f"after model {number}")
        given = answers[number]
        if isinstance(given, Exception):
            raise given
        return ModelResponse(parts=list(given))

    return FunctionModel(answer, model_name=name)


def calls(tool: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(tool, arguments)


def thinks(text: str) -> ThinkingPart:
    return ThinkingPart(text)


def says(text: str) -> TextPart:
    return TextPart(text)


def support_model() -> FunctionModel:
    """Looks at the balance, then answers."""
    answer = {"support_advice": "Your balance is 123.45.", "block_card": False, "risk": 1}
    return scripted(
        [thinks("the secret of it"), calls("customer_balance", include_pending=True)], [calls("final_result", **answer)]
    )


# ---------------------------------------------------------------- an agent with an effect and an approval


def cashier(model: FunctionModel, tool: Callable[..., Any] | None = None, **options: Any) -> Agent[None, str]:
    """Looks up an order, refunds it where a person allows it, and tells the customer."""
    agent: Agent[None, str] = Agent(model, name="cashier", **options)

    @agent.tool_plain
    def lookup(order: int) -> dict[str, Any]:
        at("before tool lookup")
        happened(f"tool lookup {order}")
        at("after tool lookup")
        return {"order": order, "paid": "10.00"}

    @agent.tool_plain(requires_approval=True)
    async def pay_back(order: int, amount: str = "1.00") -> str:
        at("before tool pay_back")
        happened(f"tool pay_back {order} {amount}")
        at("after tool pay_back")
        return f"paid back {amount}"

    @agent.tool_plain
    async def tell(customer: str) -> str:
        at("before tool tell")
        happened(f"tool tell {customer}")
        at("after tool tell")
        return "told"

    return agent
