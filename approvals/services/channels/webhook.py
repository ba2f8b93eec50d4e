"""Webhooks: one signed POST an event, as https://www.standardwebhooks.com has it; as JSON, or as a message for Slack's incoming webhooks.

webhook-id          the same at every try: a receiver that knows it already has been told
webhook-timestamp   when it was sent, in seconds
webhook-signature   v1,BASE64 of HMAC-SHA256 over "id.timestamp.body"; one for each secret, so that a secret can be exchanged
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from approvals.core.notices import NoticeKind
from approvals.services.channels.base import Note
from approvals.services.channels.posting import post

PREFIX = "whsec_"
#: A secret has so many bytes.
LEAST, MOST = 24, 64


class Webhook:
    """Posts each event to one address. What it tells holds names, times and a link: no goal, no candidate, no person."""

    personal = False

    def __init__(
        self,
        *,
        url: str,
        secret: str | Sequence[str] = (),
        form: str = "json",
        timeout: float = 5.0,
        allow_private: bool = False,
    ) -> None:
        """Args:
            url: where to. secret: "whsec_" and base64 of 24 to 64 bytes, or several while one is exchanged; needed unless `form` is "slack",
                whose address is the secret. timeout: seconds, of each step (`posting.STEPS` times that in all). allow_private: it may lead to
                this machine or a private network, and without TLS.
        Raises:
            ValueError: they do not fit. No secret is in the message.
        """
        parts = urlsplit(url)
        if parts.scheme not in (("https", "http") if allow_private else ("https",)) or not parts.hostname:
            raise ValueError("url begins with https:// (or http:// with allow_private) and names a host")
        if form not in FORMS:
            raise ValueError(f"form is one of {', '.join(FORMS)}")
        given = [secret] if isinstance(secret, str) else list(secret)
        self._keys = [_key(one) for one in given if one]
        if not self._keys and form != "slack":
            raise ValueError('secret is missing: "whsec_" and base64 of 32 random bytes')
        self._url, self._form, self._timeout, self._private = url, form, timeout, allow_private

    def reaches(self, user: Any) -> bool:
        """It is for all."""
        return True

    def send(self, notes: Sequence[Note]) -> None:
        """One POST."""
        for note in notes:
            body = json.dumps(FORMS[self._form](note), ensure_ascii=False, separators=(",", ":")).encode()
            headers = {"Content-Type": "application/json", "User-Agent": "outlast", **self._signed(note.id, body)}
            post(self._url, body, headers, timeout=self._timeout, private=self._private)

    def _signed(self, message: str, body: bytes) -> dict[str, str]:
        """The three headers. The time is that of this try, by the clock that the receiver compares it with."""
        stamp = str(int(time.time()))
        headers = {"webhook-id": message, "webhook-timestamp": stamp}
        content = f"{message}.{stamp}.".encode() + body
        signed = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in self._keys]
        return {**headers, "webhook-signature": " ".join(f"v1,{one}" for one in signed)} if signed else headers


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f'secret is "{PREFIX}" and base64') from None
    if not LEAST <= len(key) <= MOST:
        raise ValueError(f"secret is base64 of {len(key)} bytes; it has {LEAST} to {MOST}")
    return key


def _as_json(note: Note) -> dict[str, Any]:
    """Type, time of the event and data, as Standard Webhooks recommends; a receiver reads what is current behind the link."""
    return {
        "type": f"request.{note.kind}",
        "timestamp": note.at.astimezone(UTC).isoformat(),
        "data": {
            "request": note.request,
            "revision": note.revision,
            "number": note.number,
            "flow": note.flow,
            "key": note.key,
            "node": note.node,
            "workflow": note.workflow,
            "step": note.step,
            "steps": note.steps,
            "asked": note.whom,
            "status": note.status,
            "answer": note.answer,
            "asked_at": note.asked_at.astimezone(UTC).isoformat(),
            "expires_at": note.expires_at.astimezone(UTC).isoformat() if note.expires_at else None,
            "url": note.url,
        },
    }


def _as_slack(note: Note) -> dict[str, Any]:
    """A text with a link. Slack reads &, < and > as its own; what people wrote is escaped as it asks."""
    title = f"{note.flow} {note.key}: {note.node}"
    where = f"<{_slack(note.url)}|{_slack(title)}>" if "://" in note.url else _slack(f"{title} ({note.url})")
    parts = [f"{_slack(_says(note.kind))} {where}"]
    if note.kind not in (NoticeKind.DECIDED, NoticeKind.REVOKED, NoticeKind.WITHDRAWN):
        parts.append(_slack(_("Asked: %(whom)s") % {"whom": note.whom}))
        if note.expires_at:
            parts.append(_slack(_("Expires: %(when)s") % {"when": f"{note.expires_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"}))
    if note.kind is NoticeKind.DECIDED:
        parts.append(_slack(_("Answer: %(answer)s") % {"answer": note.answer}))
    return {"text": "\n".join(parts), "unfurl_links": False}


FORMS: dict[str, Callable[[Note], dict[str, Any]]] = {"json": _as_json, "slack": _as_slack}


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _says(kind: NoticeKind) -> str:
    return {
        NoticeKind.ASKED: _("An answer is needed:"),
        NoticeKind.REMINDER: _("An answer is still needed:"),
        NoticeKind.ESCALATED: _("Escalated, an answer is still needed:"),
        NoticeKind.ASSIGNED: _("Somebody was asked to look at it:"),
        NoticeKind.DECIDED: _("Answered:"),
        NoticeKind.REVOKED: _("The approval was taken back:"),
        NoticeKind.WITHDRAWN: _("No answer is needed any more:"),
    }[kind]
