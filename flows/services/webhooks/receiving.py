"""A request from outside becomes a delivery: verified, kept once, mapped, signalled; all of it in one transaction, or nothing.

    refuse (no signature holds)         401, 400   nothing is written, but a sum
    accept, ignore, keep unmapped       202        the delivery's row is new
    repeat                              200        its id is known with this body; or nobody signed the id, and the body is known
    conflict                            202        its id is known with another body: kept beside it, and taken by nobody

The unique rows decide: who comes second waits for the first one's end. A sender that gets 503 has to send it again, and nothing was kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flows.core.hooks import Refused, Verified
from flows.core.hooks.mapping import Unmapped, read
from flows.core.hooks.schemes import ACCEPT, digest
from flows.core.hooks.vendors import challenge
from flows.models import WebhookVerdict
from flows.services import identify
from flows.services.webhooks.bodies import packed
from flows.services.webhooks.mapping import deliver, keep_conflict
from flows.services.webhooks.sources import Source
from flows.store import webhooks as store
from flows.store.sql import committing, dumps

#: A row that was there a moment ago may be gone; so often it is looked for.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer: refused with a code, or kept; `first` is False for a repeat. `challenge` goes back to whom asks for it."""

    refused: Refused | None = None
    first: bool = True
    challenge: str | None = None


@dataclass(frozen=True, slots=True)
class _Incoming:
    source: Source
    delivery_id: str
    headers: Mapping[str, str]
    body: bytes
    digest: str
    unsigned: bool
    secret: int
    sent_at: int | None

    def row(self, delivery_id: str, *, unsigned: bool) -> dict[str, Any]:
        return {
            "source": self.source.name,
            "delivery_id": delivery_id,
            "body_digest": self.digest,
            "unsigned_id": unsigned,
            "headers": dumps(self.headers),
            "verdict": WebhookVerdict.UNMAPPED.value,
            "secret": self.secret,
            "sent_at": datetime.fromtimestamp(self.sent_at, UTC) if self.sent_at is not None else None,
        }

    @property
    def parts(self) -> tuple[Source, str, Mapping[str, str], bytes, int | None]:
        return self.source, self.delivery_id, self.headers, self.body, self.sent_at


def receive(source: Source, headers: Mapping[str, str], body: bytes, *, now: float, using: str | None = None) -> Reply:
    """Take in a request.

    Args:
        headers: by name in small letters. body: as it came. now: seconds since 1970. using: the database alias of the record.
    Raises:
        DatabaseError: the record is away; nothing was kept. PayloadError: the codec cannot seal it now; the same.
    """
    alias, keys = identify.alias(using), source.keys
    if not keys:
        return Reply(Refused.UNUSABLE)
    verified = source.scheme.verify(headers, body, [key for _, key in keys], now)
    if isinstance(verified, Refused):
        return Reply(verified)
    incoming = _incoming(source, verified, keys[verified.secret - 1][0], headers, body)
    with committing("webhook", alias):
        first = _kept(incoming, alias)
    if first is None:
        return Reply(Refused.AWAY)
    return Reply(first=first, challenge=_challenge(incoming))


def _incoming(source: Source, verified: Verified, secret: int, headers: Mapping[str, str], body: bytes) -> _Incoming:
    unsigned = not verified.signed_id and source.scheme.same_body != ACCEPT
    kept = source.kept(headers)
    return _Incoming(source, verified.delivery_id, kept, body, digest(body), unsigned, secret, verified.sent_at)


def _kept(incoming: _Incoming, using: str) -> bool | None:
    """Whether it is the first of its kind; None: what it repeats came and went."""
    for _ in range(TRIES):
        number = store.keep(incoming.row(incoming.delivery_id, unsigned=incoming.unsigned), using)
        if number is not None:
            settled = deliver(*incoming.parts, using)
            unread = settled.verdict == WebhookVerdict.UNMAPPED
            store.settle(number, WebhookVerdict.UNMAPPED, settled, packed(incoming.body) if unread else None, using)
            return True
        found = store.known(incoming.source.name, incoming.delivery_id, incoming.digest, using, unsigned_id=incoming.unsigned)
        if found is not None:
            number, same = found
            if same:
                store.repeat(number, using)
            return False if same else _conflicting(incoming, number, using)
    return None


def _conflicting(incoming: _Incoming, known: int, using: str) -> bool:
    """Another body under a known id: a row of its own, whose body is kept for the people who look into it."""
    named = f"{incoming.delivery_id}~{incoming.digest.removeprefix('sha256:')[:12]}"
    number = store.keep(incoming.row(named, unsigned=False), using)
    if number is None:
        found = store.known(incoming.source.name, named, incoming.digest, using, unsigned_id=False)
        if found is not None:
            store.repeat(found[0], using)
        return False
    store.conflict(known, using)
    settled = keep_conflict(*incoming.parts, using)
    store.settle(number, WebhookVerdict.UNMAPPED, settled, packed(incoming.body), using)
    return True


def _challenge(incoming: _Incoming) -> str | None:
    if incoming.source.scheme.name != "slack":
        return None
    try:
        return challenge(read(incoming.body, incoming.headers.get("content-type", "")))
    except Unmapped:
        return None
