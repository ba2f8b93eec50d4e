"""Requests as senders of webhooks sign them, for each scheme."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"a secret that only two know......").decode()

SCHEMES = ("standard", "github", "stripe", "slack", "hmac")
OPTIONS: dict[str, dict[str, Any]] = {name: {} for name in SCHEMES} | {
    "hmac": {
        "signature_header": "X-Sig",
        "id_header": "X-Id",
        "timestamp_header": "X-Stamp",
        "template": "{timestamp}:{id}:{body}",
        "prefix": "sha512=",
        "algorithm": "sha512",
    }
}


def secrets(name: str) -> tuple[str, str, str]:
    """Three of them."""
    if name == "standard":
        first, second, third = ("whsec_" + base64.b64encode(bytes([number]) * 24).decode() for number in (1, 2, 3))
        return first, second, third
    return f"{name}-first-secret", f"{name}-second-secret", f"{name}-third-secret"


def signed(name: str, body: bytes, secret: str, *, now: int, sent_id: str = "d-1") -> dict[str, str]:
    """The headers of a request, by name in small letters."""

    def mac(content: bytes, algorithm: str = "sha256") -> bytes:
        key = base64.b64decode(secret.removeprefix("whsec_")) if name == "standard" else secret.encode()
        return hmac.new(key, content, getattr(hashlib, algorithm)).digest()

    known_by = sent_id.encode("utf-8", "surrogatepass")
    if name == "standard":
        made = base64.b64encode(mac(known_by + f".{now}.".encode() + body)).decode()
        return {"webhook-id": sent_id, "webhook-timestamp": str(now), "webhook-signature": f"v1,{made}"}
    if name == "github":
        return {"x-github-delivery": sent_id, "x-github-event": "push", "x-hub-signature-256": f"sha256={mac(body).hex()}"}
    if name == "stripe":
        return {"stripe-signature": f"t={now},v1={mac(f'{now}.'.encode() + body).hex()}"}
    if name == "slack":
        return {"x-slack-request-timestamp": str(now), "x-slack-signature": f"v0={mac(f'v0:{now}:'.encode() + body).hex()}"}
    made = mac(f"{now}:".encode() + known_by + b":" + body, "sha512").hex()
    return {"x-id": sent_id, "x-stamp": str(now), "x-sig": f"sha512={made}"}
