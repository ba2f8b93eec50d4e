"""What is kept of a model call: hashes and numbers. A name that could carry reasoning is refused, and its text is not repeated."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

import pytest

from flows.core.artifact import COUNTED, MAX_CALLS, ModelCall, digest_of, hash_of, model_call, usage_of
from flows.core.errors import PayloadError

pytestmark = pytest.mark.req("O1", "O7")

HASH = "sha256:" + "0" * 64
SECRET = "first I thought that the tests were wrong"


def call(model: Any = "m-1", **given: Any) -> ModelCall:
    return model_call("a model call of f.n", model, **given)


def test_prompt_and_output_are_hashed_and_not_kept() -> None:
    made = call(prompt=SECRET, output={"edits": [SECRET]})
    assert made.prompt_hash == "sha256:" + hashlib.sha256(SECRET.encode()).hexdigest()
    assert made.output_hash == hash_of({"edits": [SECRET]}, "x")
    assert SECRET not in repr(made)
    assert call(prompt_hash=HASH, output_hash=HASH[7:]).output_hash == HASH[7:]
    assert call(prompt=b"raw").prompt_hash == call(prompt="raw").prompt_hash
    assert call(prompt="\ud800").prompt_hash  # whatever a provider sent


@pytest.mark.parametrize("name", ["reasoning", "thinking", "text", "response", "messages"])
def test_what_could_be_reasoning_is_refused_by_name(name: str) -> None:
    with pytest.raises(PayloadError, match=rf"'{name}' cannot be kept: hashes and numbers only") as refused:
        call(unknown={name: SECRET})
    assert SECRET not in str(refused.value)
    with pytest.raises(PayloadError, match=rf"'{name}' cannot be kept in usage. It has input_tokens, ") as refused:
        call(usage={name: SECRET, "input_tokens": 1})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("given", [SECRET, "sha256:xyz", "abc", f"{HASH} {SECRET}", 7, ["x"]])
def test_a_text_in_place_of_a_hash_is_refused(given: Any) -> None:
    for name in ("prompt", "output"):
        with pytest.raises(PayloadError, match=f"{name}_hash is a hash in hexadecimal") as refused:
            call(**{f"{name}_hash": given})
        assert SECRET not in str(refused.value)
        with pytest.raises(PayloadError, match=f"give either {name} or {name}_hash"):
            call(**{name: "x", f"{name}_hash": HASH})


@pytest.mark.parametrize("model", ["", " ", None, 7, "x" * 201, f"m-1\n{SECRET}", "a\x00b"])
def test_a_model_has_a_short_name(model: Any) -> None:
    with pytest.raises(PayloadError, match="model is the name of the model, one line"):
        call(model)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True, 2**53, [SECRET], {"a": 1}])
def test_what_is_counted_is_a_whole_number(value: Any) -> None:
    for name in COUNTED:
        with pytest.raises(PayloadError, match=f"{name} is a whole number from 0"):
            call(usage={name: value})


@pytest.mark.parametrize("cost", [0.1, "-1", "1e3", "NaN", SECRET, True, Decimal(-1), Decimal("NaN"), Decimal("Infinity"), [1]])
def test_a_cost_is_an_exact_amount(cost: Any) -> None:
    with pytest.raises(PayloadError, match="cost is an amount as text or Decimal"):
        call(usage={"cost": cost})


def test_a_value_without_a_hash_is_refused_by_name() -> None:
    with pytest.raises(PayloadError, match="output is text, bytes or JSON; give output_hash"):
        call(output=object())
    with pytest.raises(PayloadError, match="usage is an object of numbers"):
        call(usage=7)


def test_usage_adds_up_over_the_calls_of_an_attempt() -> None:
    calls = [
        call(prompt_hash=HASH, usage={"input_tokens": 10, "cost": "0.1"}),
        call("m-2", usage={"input_tokens": 5, "output_tokens": 2, "reasoning_tokens": None, "cost": Decimal("0.20")}),
        call("m-3"),
    ]
    assert usage_of(calls) == {
        "input_tokens": 15, "output_tokens": 2, "cost": "0.30", "count": 3,
        "calls": [
            {"model": "m-1", "prompt_hash": HASH, "input_tokens": 10, "cost": "0.1"},
            {"model": "m-2", "input_tokens": 5, "output_tokens": 2, "cost": "0.20"},
            {"model": "m-3"},
        ],
    }  # fmt: skip
    assert usage_of([]) == {}


def test_the_list_of_calls_is_bounded_and_the_totals_are_not() -> None:
    found = usage_of([call(usage={"output_tokens": 1})] * (MAX_CALLS + 7))
    assert (found["output_tokens"], found["count"], len(found["calls"]), found["not_listed"]) == (107, 107, MAX_CALLS, 7)


def test_any_stored_value_has_a_digest() -> None:
    assert digest_of(None) == ""
    assert digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1}) != digest_of({"a": 1, "b": 2})
    assert digest_of({"n": 2**60}).startswith("sha256:")  # without a canonical form
