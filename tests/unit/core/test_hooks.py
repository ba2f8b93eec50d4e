"""Schemes of webhooks: the published vectors, rotation, moments, and what each calls the same delivery."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from flows.core import hooks
from flows.core.hooks import InvalidSource, Refused, Verified
from tests.support import signing

pytestmark = pytest.mark.req("E4")

NOW = 1_800_000_000

STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
STANDARD_BODY = b'{"test": 2432232314}'

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA"
    b"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554"
    b"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SLACK = {
    "x-slack-request-timestamp": "1531420618",
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
}


def verify(
    name: str, headers: dict[str, str], body: bytes, *secrets: str, now: float = NOW, **options: Any
) -> Verified | Refused:
    scheme = hooks.scheme(name, options)
    return scheme.verify(headers, body, [scheme.key(secret) for secret in secrets], now)


# ---------------------------------------------------------------- what is published


def test_the_vector_of_standard_webhooks() -> None:
    found = verify("standard", STANDARD, STANDARD_BODY, STANDARD_SECRET, now=1614265330)
    assert found == Verified("msg_p5jXN8AQM9LWM0D4loKWxJek", 1, sent_at=1614265330)


def test_the_vector_of_github() -> None:
    headers = {
        "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }
    found = verify("github", headers, b"Hello, World!", "It's a Secret to Everybody")
    assert found == Verified("72d3162e-cc78-11e3-81ab-4c9367dc0958", 1, signed_id=False)


def test_the_vector_of_slack() -> None:
    found = verify("slack", SLACK, SLACK_BODY, "8f742231b10e8888abcd99yyyzzz85a5", now=1531420618)
    assert isinstance(found, Verified)
    assert (found.secret, found.sent_at, found.signed_id) == (1, 1531420618, True)
    assert found.delivery_id == "sha256:" + hashlib.sha256(b"1531420618:" + SLACK_BODY).hexdigest()


def test_what_stripe_describes() -> None:
    """`Stripe-Signature: t=…,v1=…,v0=…`, where v1 is the HMAC of `t.body`; the scheme v0 is of test mode and made up."""
    body = b'{"id": "evt_1", "object": "event"}'
    made = hmac.new(b"whsec_stripe", f"{NOW}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"stripe-signature": f"t={NOW},v1={made},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"}
    assert verify("stripe", headers, body, "whsec_stripe") == Verified("evt_1", 1, sent_at=NOW)
    assert verify("stripe", {"stripe-signature": f"t={NOW},v0={made}"}, body, "whsec_stripe") is Refused.SIGNATURE


def test_the_same_webhook_as_we_send_it() -> None:
    """What goes out from here can come in here: the other direction is `approvals.services.channels.webhook`."""
    from approvals.services.channels.webhook import Webhook

    sent = Webhook(url="https://hooks.example.org", secret=signing.SECRET)._signed("notice-1", b"{}")
    stamp = int(sent["webhook-timestamp"])
    assert verify("standard", sent, b"{}", signing.SECRET, now=stamp) == Verified("notice-1", 1, sent_at=stamp)


# ---------------------------------------------------------------- rotation


@pytest.mark.parametrize("name", signing.SCHEMES)
def test_each_secret_is_tried_and_the_one_that_held_is_named(name: str) -> None:
    old, new, other = signing.secrets(name)
    headers = signing.signed(name, b'{"id": "1", "event_id": "1"}', old, now=NOW)
    options = signing.OPTIONS[name]
    found = verify(name, headers, b'{"id": "1", "event_id": "1"}', new, old, **options)
    assert isinstance(found, Verified)
    assert found.secret == 2
    assert verify(name, headers, b'{"id": "1", "event_id": "1"}', new, other, **options) is Refused.SIGNATURE
    assert verify(name, headers, b'{"id": "1", "event_id": "1"}', **options) is Refused.SIGNATURE


def test_one_of_several_signatures_is_enough() -> None:
    """A sender that rotates signs with both; a version that nobody knows is passed over."""
    other = base64.b64encode(b"x" * 32).decode()
    headers = STANDARD | {"webhook-signature": f"v1a,{other} v1,{other} {STANDARD['webhook-signature']} v2"}
    assert isinstance(verify("standard", headers, STANDARD_BODY, STANDARD_SECRET, now=1614265330), Verified)


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize(
    ("name", "past", "ahead"), [("standard", 300, 300), ("slack", 300, 300), ("stripe", 300, 60), ("hmac", 300, 300)]
)
def test_a_signed_moment_is_of_now(name: str, past: int, ahead: int) -> None:
    body, (secret, *_) = b"{}", signing.secrets(name)
    headers, options = signing.signed(name, body, secret, now=NOW), signing.OPTIONS[name]

    def at(now: int) -> Verified | Refused:
        return verify(name, headers, body, secret, now=now, **options)

    assert isinstance(at(NOW + past), Verified)
    assert isinstance(at(NOW - ahead), Verified)
    assert at(NOW + past + 1) is Refused.TOO_OLD
    assert at(NOW - ahead - 1) is Refused.TOO_NEW
    assert isinstance(verify(name, headers, body, secret, now=NOW + 900, **options, tolerance=1000), Verified)


def test_an_old_request_with_a_wrong_signature_is_not_told_that_it_is_old() -> None:
    assert verify("standard", STANDARD, b"{}", STANDARD_SECRET) is Refused.SIGNATURE


# ---------------------------------------------------------------- malformed


@pytest.mark.parametrize("name", signing.SCHEMES)
def test_without_a_signature_nothing_is_looked_at(name: str) -> None:
    secret, *_ = signing.secrets(name)
    assert verify(name, {}, b"{}", secret, **signing.OPTIONS[name]) is Refused.UNSIGNED


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("standard", {"webhook-id": " "}),
        ("standard", {"webhook-timestamp": "now"}),
        ("standard", {"webhook-timestamp": "١٢٣"}),
        ("github", {"x-github-delivery": ""}),
        ("stripe", {"stripe-signature": "v1=00"}),
        ("stripe", {"stripe-signature": "t=1,t=2,v1=00"}),
        ("slack", {"x-slack-request-timestamp": "-5"}),
        ("hmac", {"x-stamp": "9" * 40}),
        ("hmac", {"x-id": ""}),
    ],
)
def test_what_is_needed_and_is_not_there_is_malformed(name: str, lost: dict[str, str]) -> None:
    secret, *_ = signing.secrets(name)
    headers = signing.signed(name, b"{}", secret, now=NOW) | lost
    assert verify(name, headers, b"{}", secret, **signing.OPTIONS[name]) is Refused.MALFORMED


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("sent", ["x" * 300, "a\x00b", "a\nb", "\ud800"])
def test_an_id_that_cannot_be_kept_is_known_by_its_digest(sent: str) -> None:
    headers = signing.signed("standard", b"{}", signing.SECRET, now=NOW, sent_id=sent)
    found = verify("standard", headers, b"{}", signing.SECRET)
    assert isinstance(found, Verified)
    assert found.delivery_id.startswith("sha256:")


@pytest.mark.parametrize("body", [b'{"id": 5}', b'{"id": " "}', b"[1]", b"\xff", b"[" * 50_000])
def test_a_body_without_an_id_is_known_by_its_digest(body: bytes) -> None:
    secret, *_ = signing.secrets("stripe")
    found = verify("stripe", signing.signed("stripe", body, secret, now=NOW), body, secret)
    assert isinstance(found, Verified)
    assert found.delivery_id == "sha256:" + hashlib.sha256(body).hexdigest()


def test_a_generic_id_is_signed_only_where_the_template_says_so() -> None:
    secret, body = "a secret of some length", b"{}"
    plain = {"signature_header": "X-Sig", "id_header": "X-Id"}
    headers = {"x-sig": hmac.new(secret.encode(), body, "sha256").hexdigest(), "x-id": "1"}
    assert verify("hmac", headers, body, secret, **plain) == Verified("1", 1, signed_id=False)
    made = hmac.new(secret.encode(), b"1|" + body, "sha512").digest()
    signed = plain | {"template": "{id}|{body}", "algorithm": "sha512", "encoding": "base64", "prefix": "v="}
    headers["x-sig"] = "v=" + base64.b64encode(made).decode()
    assert verify("hmac", headers, body, secret, **signed) == Verified("1", 1)
    assert verify("hmac", headers | {"x-id": "2"}, body, secret, **signed) is Refused.SIGNATURE
    assert verify("hmac", headers | {"x-sig": headers["x-sig"][2:]}, body, secret, **signed) is Refused.SIGNATURE
    no_id = verify(
        "hmac", {"x-sig": hmac.new(secret.encode(), body, "sha256").hexdigest()}, body, secret, signature_header="X-Sig"
    )
    assert no_id == Verified("sha256:" + hashlib.sha256(body).hexdigest(), 1)


# ---------------------------------------------------------------- as they are described


@pytest.mark.parametrize(
    ("name", "options", "part", "said"),
    [
        ("gitlab", {}, "source", "there is no scheme"),
        (None, {}, "source", "there is no scheme"),
        ("github", [], "source", "an object"),
        ("github", {"tolerance": 5}, "source", "takes no option tolerance; it takes same_body"),
        ("github", {"same_body": "maybe"}, "source", "same_body="),
        ("standard", {"tolerance": 90_000}, "tolerance", "a day"),
        ("standard", {"tolerance": 0}, "tolerance", "a day"),
        ("standard", {"tolerance": True}, "tolerance", "a day"),
        ("hmac", {}, "source", "signature_header="),
        ("hmac", {"signature_header": 5}, "source", "is text"),
        ("hmac", {"signature_header": "X Sig"}, "source", "names a header"),
        ("hmac", {"signature_header": "X-Sig", "id_header": ":"}, "source", "names a header"),
        ("hmac", {"signature_header": "X-Sig", "algorithm": "md5"}, "source", "sha256"),
        ("hmac", {"signature_header": "X-Sig", "encoding": "utf-8"}, "source", "base64"),
        ("hmac", {"signature_header": "X-Sig", "template": "{timestamp}"}, "source", "{body} once"),
        ("hmac", {"signature_header": "X-Sig", "template": "{body}{secret}"}, "source", "{body} once"),
        ("hmac", {"signature_header": "X-Sig", "template": "{id}.{body}"}, "source", "id_header="),
        ("hmac", {"signature_header": "X-Sig", "template": "{timestamp}.{body}"}, "source", "belong together"),
        ("hmac", {"signature_header": "X-Sig", "timestamp_header": "X-Stamp"}, "source", "belong together"),
    ],
)
def test_a_scheme_that_cannot_be_says_why(name: Any, options: Any, part: str, said: str) -> None:
    with pytest.raises(InvalidSource, match=said.replace("{", r"\{")) as fault:
        hooks.scheme(name, options)
    assert fault.value.part == part


@pytest.mark.parametrize(
    ("name", "secret"), [("standard", "whsec_not base64"), ("standard", "whsec_"), ("github", " "), ("hmac", "")]
)
def test_a_secret_that_cannot_be_is_refused_and_not_shown(name: str, secret: str) -> None:
    with pytest.raises(InvalidSource) as fault:
        hooks.scheme(name, signing.OPTIONS[name]).key(secret)
    assert fault.value.part == "secret"
    assert "not base64" not in str(fault.value)
