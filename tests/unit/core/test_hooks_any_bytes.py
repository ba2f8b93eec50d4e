"""What strangers can send: whatever it is, it is answered; nothing that is changed verifies; and an independent verifier agrees."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from flows.core import hooks
from flows.core.hooks import Refused, Verified, mapping
from tests.support import signing

pytestmark = pytest.mark.req("E4")

NOW = 1_800_000_000
NAMES = sorted({name for scheme in signing.SCHEMES for name in signing.signed(scheme, b"", signing.secrets(scheme)[0], now=NOW)})

#: As a server hands headers on: bytes read as Latin-1; and worse.
VALUES = st.one_of(
    st.text(st.characters(max_codepoint=255), max_size=80),
    st.text(max_size=40),
    st.from_regex(r"\A(t=|v1,|v0=|sha256=|v1=|,|=| |[0-9a-f]){0,12}\Z"),
    st.sampled_from([str(NOW), "v1,", "v1", ",", "t=", f"t={NOW},v1=", "sha256=", "v0=zz", "sha512=" + "0" * 128]),
)
HEADERS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=len(NAMES))


@pytest.mark.parametrize("name", signing.SCHEMES)
@given(headers=HEADERS, body=st.binary(max_size=200), now=st.floats(0, 1e11))
@settings(max_examples=100, deadline=None)
def test_any_headers_and_any_body_are_refused_and_raise_nothing(
    name: str, headers: dict[str, str], body: bytes, now: float
) -> None:
    scheme = hooks.scheme(name, signing.OPTIONS[name])
    keys = [scheme.key(secret) for secret in signing.secrets(name)]
    assert scheme.verify(headers, body, keys, now) in set(Refused)


@pytest.mark.parametrize("name", signing.SCHEMES)
@given(body=st.binary(min_size=1, max_size=200), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_flipped_bit_of_what_is_signed_never_verifies(name: str, body: bytes, data: st.DataObject) -> None:
    secret, *_ = signing.secrets(name)
    scheme = hooks.scheme(name, signing.OPTIONS[name])
    headers = signing.signed(name, body, secret, now=NOW)
    assert isinstance(scheme.verify(headers, body, [scheme.key(secret)], NOW), Verified)

    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8
    assert scheme.verify(headers, bytes(changed), [scheme.key(secret)], NOW) is Refused.SIGNATURE

    signed = [
        one for one in headers if one in ("webhook-id", "webhook-timestamp", "x-slack-request-timestamp", "x-id", "x-stamp")
    ]
    for one in signed:
        moved = headers | {one: headers[one][:-1] + chr(ord(headers[one][-1]) ^ 1)}
        assert scheme.verify(moved, body, [scheme.key(secret)], NOW) is Refused.SIGNATURE


@given(
    sent_id=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60),
    body=st.text(max_size=100).filter(lambda text: not any("\ud800" <= sign <= "\udfff" for sign in text)),
    changed=st.sampled_from(["", "id", "body", "signature", "secret"]),
    extra=st.sampled_from(["", "v1a,AAAA ", "v2,xyz ", "v1,AAAA "]),
)
@settings(max_examples=100, deadline=None)
def test_the_reference_library_agrees(sent_id: str, body: str, changed: str, extra: str) -> None:
    """Signed by one and looked at by both; of what it raises on, it is only asked what it can take."""
    now = int(time.time())
    oracle = Webhook(signing.SECRET)
    made = oracle.sign(sent_id, dt.datetime.fromtimestamp(now, dt.UTC), body)
    headers = {"webhook-id": sent_id, "webhook-timestamp": str(now), "webhook-signature": extra + made}
    secret = signing.SECRET
    if changed == "id":
        headers["webhook-id"] += "x"
    elif changed == "body":
        body += " "
    elif changed == "signature":
        headers["webhook-signature"] = f"{extra}v1,{'A' * 43}="
    elif changed == "secret":
        secret = signing.secrets("standard")[0]
    scheme = hooks.scheme("standard", {})
    ours = scheme.verify(headers, body.encode(), [scheme.key(secret)], now)
    assert isinstance(ours, Verified) == _taken(Webhook(secret), body, headers)
    assert isinstance(ours, Verified) == (changed == "")


def _taken(oracle: Webhook, body: str, headers: dict[str, str]) -> bool:
    try:
        oracle.verify(body, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


# ---------------------------------------------------------------- reading and mapping

TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "payload", "0", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def unmapped(act: Callable[[], Any]) -> str:
    """Why nothing could be made of it; "": something could."""
    try:
        act()
    except mapping.Unmapped as why:
        return why.code
    return ""


@given(
    body=st.binary(max_size=300),
    content_type=st.sampled_from(["", "application/json", f"{mapping.FORM}; charset=utf-8", "text/xml"]),
)
@settings(max_examples=200, deadline=None)
def test_any_body_is_read_or_said_to_be_none(body: bytes, content_type: str) -> None:
    assert unmapped(lambda: mapping.read(body, content_type)) in {"", "not_json"}


@given(
    body=TREES,
    event=st.sampled_from(["body.type", "x.{body.type}", "header.x-event", "fixed"]),
    key=st.sampled_from(["body.id", "body.0.x.0", "{body.x.y}/{header.x-event}", "body"]),
    payload=st.sampled_from(["", "body.payload"]),
    headers=st.dictionaries(st.just("x-event"), st.text(max_size=5)),
)
@settings(max_examples=200, deadline=None)
def test_any_value_is_mapped_to_text_or_to_nothing(
    body: Any, event: str, key: str, payload: str, headers: dict[str, str]
) -> None:
    rule = mapping.rule(event, key, payload)
    found: list[mapping.Mapped] = []
    why = unmapped(lambda: found.extend(rule.by_paths(mapping.Delivery("s", "1", headers, body))))
    assert why in {"", "no_type", "no_key"}
    assert [bool(one.type and one.key) for one in found] == [True] * (why == "")
