"""Values at the edge: what is stored can be read back, and what cannot is refused in the name of its producer."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.core.errors import CheckpointTooLarge, PayloadError, Route, classify
from flows.core.payload import ENVELOPE, MAX_DEPTH, decode, encode, encode_checkpoint, is_text

text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.req("A5")
@given(values)
def test_what_is_stored_reads_back_as_it_was(value: Any) -> None:
    assert decode(json.loads(encode(value, "it"))) == value


@given(st.dictionaries(st.sampled_from([ENVELOPE, "data", "a"]), values, min_size=1))
def test_a_value_that_looks_like_an_envelope_reads_back_as_it_was(value: dict[str, Any]) -> None:
    assert decode(json.loads(encode(value, "it"))) == value


def test_a_value_of_an_unknown_codec_is_refused_and_not_handed_out_as_data() -> None:
    with pytest.raises(PayloadError, match="was written by the codec 'aes'; configure it"):
        decode({ENVELOPE: "aes", "data": "…"})


def test_a_frozen_mapping_is_stored_as_an_object() -> None:
    assert encode(MappingProxyType({"a": 1}), "it") == '{"a":1}'


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("a\x00b", "holds a NUL character, which PostgreSQL cannot store; remove it or send bytes as base64"),
        ({"a\x00": 1}, "holds a NUL character, which PostgreSQL cannot store; remove it or send bytes as base64"),
        ([{"a": ["\x00"]}], "holds a NUL character, which PostgreSQL cannot store; remove it or send bytes as base64"),
        ("\ud800", "holds a lone surrogate, which is not text; clean it before it is returned"),
        ({"a": "\udc80"}, "holds a lone surrogate, which is not text; clean it before it is returned"),
        (math.nan, "holds nan, which is not a JSON number"),
        ({"a": [1, -math.inf]}, "holds -inf, which is not a JSON number (at a[1])"),
        ({"a": {"b": {1}}}, "holds a set (at a.b), which is not JSON"),
        ([b"x"], "holds a bytes (at [0]), which is not JSON"),
        (object, "holds a type, which is not JSON"),
        ({(1, 2): 3}, "has the key (1, 2); JSON objects have text keys"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place_and_its_producer(value: Any, problem: str) -> None:
    with pytest.raises(PayloadError) as caught:
        encode(value, "the result of sample.first")
    assert caught.value.producer == "the result of sample.first"
    assert str(caught.value) == f"the result of sample.first: {problem}"


def test_the_words_backslash_u0000_are_text_like_any_other() -> None:
    assert decode(json.loads(encode({"a": "\\u0000"}, "it"))) == {"a": "\\u0000"}


def test_what_is_too_large_is_refused_with_both_sizes() -> None:
    assert len(encode("ä" * 4, "it", max_bytes=10)) == 6
    with pytest.raises(PayloadError, match=r"^it: is 12 bytes; at most 10 are stored\. Keep large data elsewhere"):
        encode("ä" * 5, "it", max_bytes=10)


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 500, 5000])
def test_what_is_nested_too_deeply_is_refused(levels: int) -> None:
    with pytest.raises(PayloadError, match=r"^it: is nested too deeply"):
        encode(nested(levels), "it")


def test_the_deepest_allowed_value_is_stored_and_copied_and_read() -> None:
    import copy

    value = nested(MAX_DEPTH)
    assert copy.deepcopy(json.loads(encode(value, "it"))) == value


def test_a_wide_value_is_not_a_deep_one() -> None:
    assert encode([[] for _ in range(1000)], "it")


def test_a_circular_value_is_refused() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(PayloadError, match="is nested too deeply"):
        encode(value, "it")


def test_a_payload_error_is_never_retried_and_ends_with_a_person() -> None:
    assert classify(PayloadError("it", "is odd")).route is Route.HUMAN


@pytest.mark.parametrize(
    ("value", "good"), [("", True), ("ä 😀\n", True), ("\x00", False), ("a\ud800", False), ("\udfff", False)]
)
def test_text_is_what_postgresql_can_store(value: str, *, good: bool) -> None:
    assert is_text(value) is good


@pytest.mark.req("A5")
def test_a_checkpoint_within_its_bound_is_kept() -> None:
    assert encode_checkpoint({"sha": "abc"}, "the checkpoint of sample", 13) == '{"sha":"abc"}'


@pytest.mark.req("A5")
def test_a_checkpoint_over_its_bound_is_refused_naming_its_largest_keys() -> None:
    with pytest.raises(CheckpointTooLarge) as caught:
        encode_checkpoint({"log": "x" * 50, "sha": "abc", "note": "y" * 20, "ä": "ä" * 15}, "the checkpoint of sample", 40)
    assert str(caught.value) == (
        "the checkpoint of sample: is 140 bytes, at most 40 are kept; largest keys: log (52 bytes), ä (32 bytes), note (22 bytes)"
    )
    assert caught.value.code == "CHECKPOINT_TOO_LARGE"


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_checkpoint_is_an_object(value: Any) -> None:
    with pytest.raises(PayloadError, match="a checkpoint is an object of small, revision-level facts"):
        encode_checkpoint(value, "it", 100)


def test_a_checkpoint_that_cannot_be_stored_is_refused_before_it_is_measured() -> None:
    with pytest.raises(PayloadError, match="holds nan") as caught:
        encode_checkpoint({"a": math.nan}, "it", 1)
    assert type(caught.value) is PayloadError
