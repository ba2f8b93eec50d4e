"""What every way of signing a webhook shares: what a verified request is, why one is refused, and the comparison that gives nothing away.

    request ► verify(headers, body, secrets, now) ► Verified(delivery id, moment, number of the secret)   or a code of `Refused`

Pure: no clock, no I/O. Whatever bytes come in, `verify` answers and never raises: it is the one place that strangers reach.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from flows.core.misuse import UsageError

#: Seconds that a signed moment may be away from now.
TOLERANCE = 300
#: The most of it that may be configured: a captured request could be sent again for so long, should its delivery be forgotten.
MOST_TOLERANCE = 24 * 3600

#: Characters of a sender's id; a longer one is known by its digest.
MAX_ID = 200

#: What becomes of a body that is known, under another id that nobody signed.
REPEAT, ACCEPT = "repeat", "accept"


class Refused(StrEnum):
    """Why a request was refused. It is counted, and never told to whom sent it."""

    METHOD = "method"
    UNKNOWN = "unknown_source"
    DISABLED = "disabled"
    LENGTH = "no_length"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    UNSIGNED = "no_signature"
    SIGNATURE = "bad_signature"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    UNUSABLE = "unusable"
    AWAY = "away"


class InvalidSource(UsageError):
    """A source of webhooks that cannot be as it is given. `part`: source, mapping, secret or tolerance."""

    code = "INVALID_SOURCE"

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part = part


@dataclass(frozen=True, slots=True)
class Verified:
    """What a request was found to be.

    Attributes:
        delivery_id: the sender's id of it, or the digest of what stands for one; 1 to `MAX_ID` characters.
        secret: the number of the first secret that held, from 1.
        signed_id: whether nobody but the sender could have given it that id.
        sent_at: seconds since 1970, where the moment is signed.
    """

    delivery_id: str
    secret: int
    signed_id: bool = True
    sent_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """A way of signing, with its options; made by `flows.core.hooks.scheme`.

    Attributes:
        tolerance: seconds that a signed moment may be away from now.
        same_body: where the id is not signed, a known body under another id is a "repeat"; or "accept" it as a delivery of its own.
    """

    name: ClassVar[str]
    #: Names of the options that mean something here.
    takes: ClassVar[frozenset[str]] = frozenset()
    #: Headers that hold a signature, and headers that are worth keeping.
    signatures: ClassVar[tuple[str, ...]] = ()
    keeps: ClassVar[tuple[str, ...]] = ()

    tolerance: int = TOLERANCE
    same_body: str = REPEAT

    def __post_init__(self) -> None:
        given: Any = self.tolerance
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_TOLERANCE:
            raise InvalidSource("tolerance", f"tolerance= is {given!r:.60}; it is 1 to {MOST_TOLERANCE} seconds (a day)")
        if self.same_body not in (REPEAT, ACCEPT):
            raise InvalidSource("source", f'same_body= is {self.same_body!r:.60}; it is "{REPEAT}" or "{ACCEPT}"')

    def hidden(self) -> tuple[str, ...]:
        """Names of headers that are never kept, and from which nothing is mapped."""
        return self.signatures

    def kept(self) -> tuple[str, ...]:
        """Names of headers that are kept."""
        return self.keeps

    def key(self, secret: str) -> bytes:
        """The key behind a secret as it is written down.

        Raises:
            InvalidSource: it cannot be one. The text does not show it.
        """
        if not secret.strip():
            raise InvalidSource("secret", "the secret is empty: anybody could sign with it")
        return secret.encode("utf-8", "surrogatepass")

    def verify(self, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Verified | Refused:
        """Whether the request was signed with one of these secrets, and is of now.

        Args:
            headers: by name in small letters. body: as it came. secrets: of `key`, each is tried. now: seconds since 1970.
        """
        raise NotImplementedError


def option_names(kind: type[Scheme]) -> tuple[str, ...]:
    """The options that a scheme takes, in order."""
    return tuple(field.name for field in fields(kind) if field.name in kind.takes)


def mac(key: bytes, content: bytes, algorithm: str = "sha256") -> bytes:
    """The HMAC of that content."""
    return hmac.digest(key, content, algorithm)


def held(secrets: Sequence[bytes], given: Iterable[bytes], content: bytes, algorithm: str = "sha256") -> int:
    """The number (from 1) of the first secret with which one of the given signatures was made; 0: of none.

    Every signature is compared with every secret, in constant time: how long it takes tells nothing.
    """
    found, signatures = 0, tuple(given)
    for number, key in enumerate(secrets, 1):
        expected = mac(key, content, algorithm)
        for one in signatures:
            if hmac.compare_digest(expected, one) and not found:
                found = number
    return found


def unhex(text: str) -> bytes:
    """The bytes behind hex; none where it is no hex, which equals no signature."""
    if not text.isascii() or not text.isalnum():
        return b""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def moment(text: str) -> int | None:
    """Seconds since 1970 as a header has them; None if it is no such number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 11 else None


def away(sent: int, now: float, past: float, ahead: float) -> Refused | None:
    """Whether a moment is too far from now."""
    if sent < now - past:
        return Refused.TOO_OLD
    return Refused.TOO_NEW if sent > now + ahead else None


def digest(content: bytes) -> str:
    """What a body is known by."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def named(text: str) -> str:
    """A sender's id as it is kept: one that is long, or that PostgreSQL could not store, by its digest."""
    if len(text) <= MAX_ID and text.isprintable():
        return text
    return digest(text.encode("utf-8", "surrogatepass"))
