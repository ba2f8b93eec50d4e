"""Sealed values: nobody reads them without a key, nobody alters them unseen, and a key can be replaced by a newer one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from flows import codecs
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.payload import ENVELOPE

OLD, NEW = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab$ö\n{"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", ENVELOPE, "data", "key"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OLD_KEY", OLD)
    monkeypatch.setenv("NEW_KEY", NEW)
    yield
    payload.use(None)


def sealed(value: Any, *references: str) -> Any:
    payload.use(codecs.AesGcm(list(references)))
    return json.loads(payload.encode(value, "test"))


@given(value=JSON)
def test_every_value_comes_back_and_nothing_of_it_can_be_read(value: Any) -> None:
    payload.use(codecs.AesGcm(["env:NEW_KEY"]))
    stored = json.loads(payload.encode(value, "test"))
    assert set(stored) == {ENVELOPE, "key", "data"}
    assert stored[ENVELOPE] == "aes-gcm"
    assert payload.decode(stored) == value


def test_the_same_value_is_sealed_to_another_text_each_time() -> None:
    assert sealed({"a": 1}, "env:NEW_KEY") != sealed({"a": 1}, "env:NEW_KEY")


def test_what_was_stored_plain_stays_readable() -> None:
    plain = json.loads(payload.encode({"a": 1, ENVELOPE: "mine"}, "test"))
    payload.use(codecs.AesGcm(["env:NEW_KEY"]))
    assert payload.decode(plain) == {"a": 1, ENVELOPE: "mine"}
    assert payload.decode({"b": 2}) == {"b": 2}


def test_an_older_key_opens_and_the_newest_seals() -> None:
    before = sealed({"a": 1}, "env:OLD_KEY")
    after = sealed({"a": 1}, "env:NEW_KEY", "env:OLD_KEY")
    assert before["key"] != after["key"]
    assert payload.decode(before) == payload.decode(after) == {"a": 1}


def test_a_key_that_is_not_listed_any_more_is_named_by_its_id() -> None:
    before = sealed({"a": 1}, "env:OLD_KEY")
    payload.use(codecs.AesGcm(["env:NEW_KEY"]))
    with pytest.raises(PayloadError, match=f"sealed with the key '{before['key']}', which KEYS does not list"):
        payload.decode(before)


def test_without_the_codec_a_sealed_value_says_so() -> None:
    stored = sealed({"a": 1}, "env:NEW_KEY")
    payload.use(None)
    with pytest.raises(PayloadError, match="codec 'aes-gcm'; configure it in OUTLAST"):
        payload.decode(stored)


@pytest.mark.parametrize("change", ["flip", "cut", "more", "text", "nothing"])
def test_what_was_altered_is_not_opened(change: str) -> None:
    stored = sealed({"a": 1}, "env:NEW_KEY")
    raw = bytearray(base64.b64decode(stored["data"]))
    raw[-1] ^= 1
    altered = {
        "flip": {**stored, "data": base64.b64encode(bytes(raw)).decode()},
        "cut": {**stored, "data": stored["data"][:8]},
        "more": {**stored, "value": {"a": 2}},
        "text": {**stored, "data": "no base64 ö"},
        "nothing": {**stored, "data": None},
    }[change]
    with pytest.raises(PayloadError, match="altered since it was sealed"):
        payload.decode(altered)


def test_a_bound_is_that_of_the_value_not_of_what_is_stored() -> None:
    payload.use(codecs.AesGcm(["env:NEW_KEY"]))
    assert len(payload.encode("x" * 98, "test", max_bytes=100)) > 100
    with pytest.raises(PayloadError, match="is 101 bytes"):
        payload.encode("x" * 99, "test", max_bytes=100)


def test_what_is_only_checked_stays_text() -> None:
    payload.use(codecs.AesGcm(["env:NEW_KEY"]))
    assert payload.text({"a": 1}, "test") == '{"a":1}'


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("flows.codecs.AesGcm", "CODEC.. is None, or"),
        ({"KEYS": ["env:NEW_KEY"]}, "CODEC.. is None, or"),
        ({"BACKEND": "nowhere.Codec"}, "cannot be imported"),
        ({"BACKEND": "flows.codecs.AesGcm"}, "does not take these options"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": []}, "KEYS lists references"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": "env:NEW_KEY"}, "KEYS lists references"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": [NEW]}, "a key in KEYS is a reference"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:NOT_THERE"]}, "env:NOT_THERE is not set"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:NO_BASE64"]}, "env:NO_BASE64 is not base64"),
        ({"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:SHORT"]}, "env:SHORT has 3 bytes; it needs 32"),
        ({"BACKEND": "datetime.date", "YEAR": 2026, "MONTH": 1, "DAY": 1}, "has no seal and open"),
    ],
)
def test_a_codec_that_cannot_be_made_says_why_and_shows_no_key(given: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_BASE64", "no base64!")
    monkeypatch.setenv("SHORT", base64.b64encode(b"abc").decode())
    with pytest.raises(ImproperlyConfigured, match=why) as raised:
        codecs.made(given)
    assert NEW not in str(raised.value)
    assert "no base64!" not in str(raised.value)


def test_a_key_may_stand_in_the_settings(settings: Any) -> None:
    settings.KEY_OF_TEST = bytes(32)
    assert codecs.made({"BACKEND": "flows.codecs.AesGcm", "KEYS": ["setting:KEY_OF_TEST"]}) is not None


def test_nothing_is_stored_plain_because_a_key_is_missing(settings: Any) -> None:
    settings.OUTLAST = {
        **getattr(settings, "OUTLAST", {}),
        "CODEC": {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:NOT_THERE"]},
    }
    with pytest.raises(ImproperlyConfigured, match="NOT_THERE is not set"):
        payload.encode({"a": 1}, "test")
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": None}
    assert payload.encode({"a": 1}, "test") == '{"a":1}'
