"""Mistakes about agent turns: each id is found where the mistake is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows import AgentTurn, Budget, Effect, PipelineTool, Spend, Stop, Tool, ToolStep
from flows.core import lint
from flows.core.errors import DefinitionError
from flows.core.lint import PREFIX
from tests.support.flow_values import work
from tests.unit.core.test_lint import one

pytestmark = pytest.mark.req("G5", "O1")


def read(path: str) -> str:
    return path


def odd(at: object) -> None: ...


def sendMail(to: str) -> None: ...  # noqa: N802 - as others write it


def turn(*tools: Any, **options: Any) -> Any:
    return one(AgentTurn(work, choices={"a": "done"}, tools=tools, **options))


WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("E131", lambda: turn(odd), "no model can call the tool 'odd': at is object, which JSON has not."),
    ("E131", lambda: turn(read, Tool(read)), "Node 'first' has 2 tools that are called 'read'."),
    ("E131", lambda: turn(PipelineTool("p", [ToolStep("s", odd)], arguments={"x": object})), "x is object"),
    ("E132", lambda: turn(read, stop=Stop(tokens=1)), "bounds neither the calls of the model nor those of tools"),
    ("W131", lambda: turn(Tool(read, name="delete_page")), "the tool 'delete_page' says that it changes something"),
    ("W131", lambda: turn(sendMail), "the tool 'sendMail' says"),
    ("W131", lambda: turn(Tool(read, name="shop.pay")), "the tool 'shop.pay' says"),
]

RIGHT: list[Callable[[], Any]] = [
    lambda: turn(read, stop=Stop(calls=1)),
    lambda: turn(Tool(read, name="delete_page", effect=Effect(idempotent=True)), stop=Stop(tools=3)),
    lambda: turn(Tool(read, name="sender_of"), Tool(read, name="payments")),
]


@pytest.mark.parametrize(("id", "made", "message"), WRONG)
def test_the_mistake_is_found(id: str, made: Callable[[], Any], message: str) -> None:
    (found,) = [problem for problem in lint.problems(made()) if problem.id == PREFIX + id]
    assert message in found.message
    assert found.hint


@pytest.mark.parametrize("made", RIGHT)
def test_what_is_right_is_not_reported(made: Callable[[], Any]) -> None:
    assert [problem.id for problem in lint.problems(made())] == []


def test_one_call_needs_no_more_than_the_budget() -> None:
    from flows import COMPLETE, End
    from flows.core.definition import Definition
    from tests.support.flow_values import declare

    definition: Definition = declare(
        meta={"budget": Budget(model_tokens=100)},
        first=AgentTurn(work, choices={"a": "done"}, each=Spend(model_tokens=200)),
        done=End(COMPLETE),
    )
    assert [one.id for one in lint.problems(definition)] == [PREFIX + "E061"]


def test_what_cannot_be_declared_says_so() -> None:
    with pytest.raises(DefinitionError, match="are of the attempt"):
        turn(each=Spend(compute_seconds=3))
    with pytest.raises(DefinitionError, match="set aside for each call"):
        turn(each=Spend(model_tokens=3), spends=Spend(model_tokens=9))
    with pytest.raises(DefinitionError, match="tools= takes several functions"):
        one(AgentTurn(work, choices={"a": "done"}, tools=read))  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="whole number from 1"):
        Stop(calls=0)
