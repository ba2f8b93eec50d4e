"""Standard Webhooks (standardwebhooks.com): `webhook-id`, `webhook-timestamp`, `webhook-signature`.

Signed is `id.timestamp.body`. The header holds one or more `v1,BASE64` with spaces between; `v1a` (ed25519) is passed over. The id stays the
same when a sender tries again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from flows.core.hooks.schemes import InvalidSource, Refused, Scheme, Verified, away, held, moment, named

PREFIX = "whsec_"


@dataclass(frozen=True, kw_only=True)
class Standard(Scheme):
    """`whsec_` and base64 as secrets; the moment at most `tolerance` away on either side."""

    name: ClassVar[str] = "standard"
    takes: ClassVar[frozenset[str]] = frozenset({"tolerance"})
    signatures: ClassVar[tuple[str, ...]] = ("webhook-signature",)
    keeps: ClassVar[tuple[str, ...]] = ("webhook-id", "webhook-timestamp")

    def key(self, secret: str) -> bytes:
        text = secret.strip().removeprefix(PREFIX).rstrip("=")  # some senders leave the padding away
        try:
            found = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidSource("secret", f'a secret of Standard Webhooks is "{PREFIX}" and base64; this one is not') from None
        if not found:
            raise InvalidSource("secret", "the secret is empty: anybody could sign with it")
        return found

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        sent_id, stamp, given = (headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature"))
        if not given:
            return Refused.UNSIGNED
        sent_at = moment(stamp)
        if not sent_id.strip() or sent_at is None:
            return Refused.MALFORMED
        content = f"{sent_id}.{stamp}.".encode("utf-8", "surrogatepass") + body
        number = held(secrets, _signatures(given), content)
        if not number:
            return Refused.SIGNATURE
        return away(sent_at, now, self.tolerance, self.tolerance) or Verified(named(sent_id), number, sent_at=sent_at)


def _signatures(header: str) -> Iterator[bytes]:
    for one in header.split(" "):
        version, _, text = one.partition(",")
        if version == "v1" and text.isascii():
            try:
                yield base64.b64decode(text)
            except (binascii.Error, ValueError):
                continue
