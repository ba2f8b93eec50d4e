"""GitHub, Stripe and Slack: each as its documentation has it.

GitHub signs the body alone: neither the id nor a moment. Whoever captured a request could send it under a new id for ever, so a body that is
known is a repeat under any id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from flows.core.hooks.schemes import Refused, Scheme, Verified, away, digest, held, moment, named, unhex

#: Seconds by which a sender's clock may be ahead where only the past has a tolerance.
AHEAD = 60


@dataclass(frozen=True, kw_only=True)
class GitHub(Scheme):
    """`X-Hub-Signature-256: sha256=HEX` of the body, `X-GitHub-Delivery`."""

    name: ClassVar[str] = "github"
    takes: ClassVar[frozenset[str]] = frozenset({"same_body"})
    signatures: ClassVar[tuple[str, ...]] = ("x-hub-signature-256", "x-hub-signature")
    keeps: ClassVar[tuple[str, ...]] = ("x-github-event", "x-github-delivery", "x-github-hook-id")

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        given, sent_id = headers.get("x-hub-signature-256", ""), headers.get("x-github-delivery", "")
        if not given:
            return Refused.UNSIGNED
        if not sent_id.strip():
            return Refused.MALFORMED
        prefix, _, text = given.partition("=")
        number = held(secrets, [unhex(text)] if prefix == "sha256" else [], body)
        return Verified(named(sent_id), number, signed_id=False) if number else Refused.SIGNATURE


@dataclass(frozen=True, kw_only=True)
class Stripe(Scheme):
    """`Stripe-Signature: t=SECONDS,v1=HEX[,v1=HEX]` of `t.body`; the id is that of the event in the body."""

    name: ClassVar[str] = "stripe"
    takes: ClassVar[frozenset[str]] = frozenset({"tolerance"})
    signatures: ClassVar[tuple[str, ...]] = ("stripe-signature",)

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        given = headers.get("stripe-signature", "")
        if not given:
            return Refused.UNSIGNED
        parts = [tuple(part.strip().split("=", 1)) for part in given.split(",") if "=" in part]
        stamps = [text for name, text in parts if name == "t"]
        sent_at = moment(stamps[0]) if len(stamps) == 1 else None
        if sent_at is None:
            return Refused.MALFORMED
        signatures = [unhex(text) for name, text in parts if name == "v1"]
        number = held(secrets, signatures, f"{stamps[0]}.".encode() + body)
        if not number:
            return Refused.SIGNATURE
        return away(sent_at, now, self.tolerance, AHEAD) or Verified(_member(body, "id") or digest(body), number, sent_at=sent_at)


@dataclass(frozen=True, kw_only=True)
class Slack(Scheme):
    """`X-Slack-Signature: v0=HEX` of `v0:SECONDS:body`; the id is `event_id` of the body, or what was signed stands for one."""

    name: ClassVar[str] = "slack"
    takes: ClassVar[frozenset[str]] = frozenset({"tolerance"})
    signatures: ClassVar[tuple[str, ...]] = ("x-slack-signature",)
    keeps: ClassVar[tuple[str, ...]] = ("x-slack-request-timestamp", "x-slack-retry-num", "x-slack-retry-reason")

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        given, stamp = headers.get("x-slack-signature", ""), headers.get("x-slack-request-timestamp", "")
        if not given:
            return Refused.UNSIGNED
        sent_at = moment(stamp)
        if sent_at is None:
            return Refused.MALFORMED
        version, _, text = given.partition("=")
        number = held(secrets, [unhex(text)] if version == "v0" else [], f"v0:{stamp}:".encode() + body)
        if not number:
            return Refused.SIGNATURE
        sent_id = _member(body, "event_id") or digest(f"{stamp}:".encode() + body)
        return away(sent_at, now, self.tolerance, self.tolerance) or Verified(sent_id, number, sent_at=sent_at)


def challenge(body: Any) -> str | None:
    """What Slack wants to have back when an address is entered there; None: it is another request."""
    if not isinstance(body, Mapping) or body.get("type") != "url_verification":
        return None
    given = body.get("challenge")
    return given if isinstance(given, str) and 0 < len(given) <= 1000 else None


def _member(body: bytes, name: str) -> str:
    """A text in a JSON object; "" where it has none, or is no such object. Only read after the signature held."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    text = found.get(name) if isinstance(found, dict) else None
    return named(text) if isinstance(text, str) and text.strip() else ""
