"""What a tool's arguments are, from its signature, and which calls of a model fit."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from flows.core import schema
from flows.core.errors import PayloadError
from flows.core.turns import Stop, without_reasoning

pytestmark = pytest.mark.req("O1")


def every(
    text: str,
    number: int,
    *,
    share: float = 0.5,
    on: bool = False,
    names: list[str] | None = None,
    kind: Literal["a", "b"] = "a",
    more: dict[str, Any] | None = None,
    **rest: Any,
) -> None: ...


GOOD = [
    {"text": "x", "number": 1},
    {"text": "", "number": -3, "share": 2, "on": True, "names": ["a"], "kind": "b", "more": {}, "else": None},
    {"text": "x", "number": 1, "names": None},
]
BAD = [
    ([], "arguments must be of the type object"),
    ("unreadable: holds a NUL character", "arguments must be of the type object"),
    ({"text": "x"}, "arguments lack number"),
    ({"text": 7, "number": 1}, "text must be of the type string"),
    ({"text": "x", "number": True}, "number must be of the type integer"),
    ({"text": "x", "number": 1.5}, "number must be of the type integer"),
    ({"text": "x", "number": 1, "names": [1]}, "names must be of another type"),
    ({"text": "x", "number": 1, "kind": "c"}, "kind must be one of 'a', 'b'"),
]


@pytest.mark.parametrize("arguments", GOOD)
def test_what_fits(arguments: Any) -> None:
    assert schema.misfit(arguments, schema.of_function(every)) == ""


@pytest.mark.parametrize(("arguments", "why"), BAD)
def test_what_does_not_fit_is_told_without_the_value(arguments: Any, why: str) -> None:
    assert schema.misfit(arguments, schema.of_function(every)) == why


def test_unknown_arguments_are_named_with_those_that_there_are() -> None:
    found = schema.misfit({"path": "a", "sudo": True}, schema.of_function(lambda path: path))
    assert found == "arguments have no 'sudo'; they are path"


@pytest.mark.parametrize("answer", [{"a": [{"type": "thinking"}]}, {"kind": "reasoning"}, {"reasoning_content": "x"}])
def test_reasoning_is_found_wherever_it_is(answer: Any) -> None:
    with pytest.raises(PayloadError, match="a model's reasoning"):
        without_reasoning(answer, "an answer")


def test_what_is_no_reasoning_is_kept() -> None:
    without_reasoning({"type": "text", "reasoning": "of the refund", "kind": "thinker", "reasoning_content": ""}, "an answer")
    assert Stop().same == 3
