"""HMAC as the rest of the world uses it: which header, over what, written how.

hmac(secret, template) with {id}, {timestamp} and {body} in the template; in hex or base64, after a prefix
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from flows.core.hooks.schemes import InvalidSource, Refused, Scheme, Verified, away, digest, held, moment, named, unhex

HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
FIELD = re.compile(r"\{(\w*)\}")
ALGORITHMS = ("sha256", "sha512")
ENCODINGS = ("hex", "base64")


@dataclass(frozen=True, kw_only=True)
class Hmac(Scheme):
    """Any other sender that signs with a shared secret.

    Attributes:
        signature_header: where the signature stands, after `prefix`, in `encoding` (hex, base64).
        template: what is signed: text with {body}, and where they are signed {id} and {timestamp}.
        id_header: where the sender's id stands; "": the body's digest is the id.
        timestamp_header: where the moment stands, in seconds since 1970; "": nothing is asked of a moment.
        algorithm: sha256 or sha512.
    """

    name: ClassVar[str] = "hmac"
    takes: ClassVar[frozenset[str]] = frozenset(
        {
            "signature_header",
            "template",
            "id_header",
            "timestamp_header",
            "algorithm",
            "encoding",
            "prefix",
            "tolerance",
            "same_body",
        }
    )

    signature_header: str = ""
    template: str = "{body}"
    id_header: str = ""
    timestamp_header: str = ""
    algorithm: str = "sha256"
    encoding: str = "hex"
    prefix: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("signature_header", "template", "id_header", "timestamp_header", "algorithm", "encoding", "prefix"):
            if not isinstance(getattr(self, name), str):
                raise _wrong(f"{name}= is text, not {type(getattr(self, name)).__name__}")
        for name in ("signature_header", "id_header", "timestamp_header"):
            if not HEADER.fullmatch(value := getattr(self, name)) and (value or name == "signature_header"):
                raise _wrong(f'{name}= names a header, such as "X-Signature"; it is {value!r:.60}')
        if self.algorithm not in ALGORITHMS or self.encoding not in ENCODINGS:
            raise _wrong(f"algorithm= is one of {', '.join(ALGORITHMS)}, encoding= one of {', '.join(ENCODINGS)}")
        signed = FIELD.findall(self.template)
        if signed.count("body") != 1 or len(set(signed)) != len(signed) or not set(signed) <= {"id", "timestamp", "body"}:
            raise _wrong(f"template= has {{body}} once, and {{id}} and {{timestamp}} at most once; it is {self.template!r:.60}")
        if "id" in signed and not self.id_header:
            raise _wrong("template= signs an {id}: id_header= names where it stands")
        if ("timestamp" in signed) != bool(self.timestamp_header):
            raise _wrong(
                "timestamp_header= and {timestamp} in template= belong together: a moment that is not signed says nothing"
            )

    def hidden(self) -> tuple[str, ...]:
        return (self.signature_header.lower(),)

    def kept(self) -> tuple[str, ...]:
        return tuple(name.lower() for name in (self.id_header, self.timestamp_header) if name)

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        given = headers.get(self.signature_header.lower(), "")
        if not given:
            return Refused.UNSIGNED
        sent_id, stamp = headers.get(self.id_header.lower(), ""), headers.get(self.timestamp_header.lower(), "")
        sent_at = moment(stamp)
        if (self.id_header and not sent_id.strip()) or (self.timestamp_header and sent_at is None):
            return Refused.MALFORMED
        content = self._signed(sent_id, stamp, body)
        number = held(secrets, self._signatures(given), content, self.algorithm)
        if not number:
            return Refused.SIGNATURE
        late = away(sent_at, now, self.tolerance, self.tolerance) if sent_at is not None else None
        name = named(sent_id) if self.id_header else digest(content)
        return late or Verified(name, number, not self.id_header or "{id}" in self.template, sent_at)

    def _signed(self, sent_id: str, stamp: str, body: bytes) -> bytes:
        values = {
            "id": sent_id.encode("utf-8", "surrogatepass"),
            "timestamp": stamp.encode("utf-8", "surrogatepass"),
            "body": body,
        }
        pieces = FIELD.split(self.template)  # text, name, text, name, … text
        return b"".join(values[piece] if number % 2 else piece.encode() for number, piece in enumerate(pieces))

    def _signatures(self, given: str) -> list[bytes]:
        if not given.startswith(self.prefix):
            return []
        text = given[len(self.prefix) :]
        if self.encoding == "hex":
            return [unhex(text)]
        try:
            return [base64.b64decode(text, validate=True)]
        except (binascii.Error, ValueError):
            return []


def _wrong(why: str) -> InvalidSource:
    return InvalidSource("source", why)
