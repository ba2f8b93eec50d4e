"""Canonical JSON: RFC 8785 byte for byte, and one digest for one value."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.core.canonical import MAX_SAFE_INTEGER, _number, canonical, digest
from flows.core.errors import PayloadError

#: RFC 8785, appendix B: IEEE 754 double in hex → its text.
APPENDIX_B = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
safe_integers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
safe_floats = st.floats(allow_nan=False, allow_infinity=False, max_value=2**52, min_value=-(2**52))
values = st.recursive(
    st.none() | st.booleans() | safe_integers | safe_floats | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1, 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return bool(type(a) is type(b) or {type(a), type(b)} == {int, float}) and a == b


@pytest.mark.parametrize(("bits", "expected"), APPENDIX_B)
def test_numbers_are_written_as_in_appendix_b(bits: str, expected: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert _number(value, "value") == expected


def test_the_example_of_section_3_2_2() -> None:
    value = {
        "numbers": [333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '€$\x0f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical(value) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_units_as_in_section_3_2_3() -> None:
    keys = {"€": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew", "1": "One", "😀": "Emoji", "\x80": "Control", "ö": "o"}
    assert list(json.loads(canonical(keys)).values()) == [
        "Carriage Return", "One", "Control", "o", "Euro Sign", "Emoji", "Hebrew",
    ]  # fmt: skip


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_reads_back_as_the_same_double(value: float) -> None:
    assert float(_number(value, "value")) == value


@given(values)
def test_canonical_text_reads_back_as_the_same_value_and_is_its_own_canonical_form(value: Any) -> None:
    text = canonical(value)
    assert same_json(json.loads(text), value)
    assert canonical(json.loads(text)) == text


@given(values, values)
def test_two_values_have_one_digest_exactly_if_they_are_equal(a: Any, b: Any) -> None:
    assert (digest(a) == digest(b)) == same_json(a, b)


@given(st.dictionaries(text, values, min_size=2, max_size=5), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(value)


@pytest.mark.parametrize(
    ("a", "b"), [(True, 1), (False, 0), (None, "null"), ("1", 1), ([], {}), ("", None), ([1, [2]], [[1], 2])]
)
def test_values_of_different_kinds_have_different_digests(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


def test_whole_numbers_have_one_form_with_and_without_a_fraction() -> None:
    assert canonical(1.0) == canonical(1) == "1"
    assert canonical(-0.0) == "0"


def test_a_tuple_is_a_list() -> None:
    assert canonical((1, "a")) == canonical([1, "a"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "it: nan is not a JSON number"),
        (math.inf, "it: inf is not a JSON number"),
        (2**53, "it: the integer 9007199254740992 is beyond 2^53; send it as a string"),
        (-(2**53), "it: the integer -9007199254740992 is beyond 2^53; send it as a string"),
        (1e23, "it: the number 1e+23 is beyond 2^53; send it as a string"),
        ({"a": [2**60]}, "it: the integer 1152921504606846976 is beyond 2^53; send it as a string"),
        ({1: "a"}, "it: the key 1 is not text; JSON objects have text keys"),
        ({"a": {2}}, "it: set is not JSON; return dicts, lists, text, numbers, booleans or None"),
        (b"bytes", "it: bytes is not JSON; return dicts, lists, text, numbers, booleans or None"),
        ("\ud800", "it: holds a lone surrogate, which is not text; clean it before it is returned"),
        ({"\udfff": 1}, "it: holds a lone surrogate, which is not text; clean it before it is returned"),
    ],
)
def test_what_is_not_canonical_is_refused_in_the_name_of_its_producer(value: Any, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        canonical(value, "it")
    assert str(caught.value) == message
    assert caught.value.producer == "it"


def test_deep_and_circular_values_are_refused_and_not_a_recursion_error() -> None:
    deep: Any = "leaf"
    for _ in range(5000):
        deep = {"inner": deep}
    circular: list[Any] = []
    circular += [circular, circular]
    for value in (deep, circular):
        with pytest.raises(PayloadError, match="nested too deeply"):
            canonical(value, "it")


def test_the_largest_safe_integers_are_accepted() -> None:
    assert canonical([MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER]) == "[9007199254740991,-9007199254740991]"


def test_a_digest_names_its_algorithm() -> None:
    assert digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
