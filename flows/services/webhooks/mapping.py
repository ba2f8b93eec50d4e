"""What a verified delivery means, and its events into the inbox; and the same again for one of which nothing could be made.

A function of the project runs in a savepoint, and each statement of it for a second at most: whatever it raises, the delivery stays.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError, transaction

from flows import registry
from flows.conf import conf
from flows.core import canonical
from flows.core import payload as encoding
from flows.core.errors import OutlastError, PayloadError
from flows.core.hooks import Delivery, InvalidSource, Mapped
from flows.core.hooks import mapping as core
from flows.core.hooks.mapping import Unmapped
from flows.core.hooks.vendors import challenge
from flows.core.misuse import UsageError
from flows.models import WebhookDelivery, WebhookVerdict
from flows.services import identify, started_by, warrant
from flows.services.events import Reception, signal
from flows.services.webhooks import bodies, sources
from flows.services.webhooks.sources import Source
from flows.store import events as inbox
from flows.store import locks
from flows.store import webhooks as store
from flows.store.sql import committing
from flows.store.webhooks import Settled

logger = logging.getLogger(__name__)

PERMISSION = "outlast_flows.manage_webhooks"

#: A function's statement may take so long.
LONGEST = "1s"


class UnknownDelivery(UsageError):
    """There is no such delivery, or its source is gone."""

    code = "UNKNOWN_DELIVERY"


@dataclass(frozen=True, slots=True)
class Remapped:
    """What became of a delivery that was to be mapped anew. False: it had led to something already, and nothing was changed."""

    done: bool
    verdict: str
    code: str
    event_id: str

    def __bool__(self) -> bool:
        return self.done


def deliver(
    source: Source, delivery_id: str, headers: Mapping[str, str], body: bytes, sent_at: float | None, using: str
) -> Settled:
    """Map a verified delivery and signal what it means; all of it, or nothing and the reason. In the delivery's transaction.

    Args:
        headers: those that are kept. sent_at: seconds since 1970.
    """
    try:
        delivery = core.delivery(source.name, delivery_id, headers, body, sent_at)
        if source.scheme.name == "slack" and challenge(delivery.body) is not None:
            return Settled(WebhookVerdict.IGNORED, "url_verification")
        with transaction.atomic(using=using):
            found = mapped(source, delivery, using)
            return _signalled(core.events(found, source.name, delivery_id), using) if found else Settled(WebhookVerdict.IGNORED)
    except Unmapped as why:
        return Settled(WebhookVerdict.UNMAPPED, why.code)


def mapped(source: Source, delivery: Delivery, using: str) -> list[Mapped]:
    """The events that a delivery means; none: it concerns nobody.

    Raises:
        Unmapped: nothing can be made of it.
    """
    if not source.rule.function:
        return source.rule.by_paths(delivery)
    try:
        with transaction.atomic(using=using):
            before = store.limit_statements(LONGEST, using)
            given = registry.function(source.rule.function)(delivery)
            store.limit_statements(before, using)
    except Exception as error:
        logger.exception(
            "The mapping %s of the webhook source %s failed; the delivery is kept.", source.rule.function, source.name
        )
        raise Unmapped("function") from error
    return core.result(given, delivery)


def _signalled(events: Sequence[tuple[str, Mapped]], using: str) -> Settled:
    """Of several all start keys and channels first, then all that wait there, then one after the other: two deliveries never wait for each
    other.
    """
    try:
        arrivals = _arrivals(events)
        if len(events) > 1:
            channels = [(one.type, one.key) for _, one in events]
            started_by.lock_ahead([(one.event_id, one.type, one.key, one.payload) for one in arrivals if not one.about], using)
            locks.channels(channels, using)
            store.lock_waiting(channels, using)
        answers = [
            signal(
                event_id, one.type, key=one.key, payload=one.payload, position=one.position, about=one.about, using=using
            ).answer
            for event_id, one in events
        ]
    except (OutlastError, DataError) as error:
        logger.warning("A webhook's event cannot be stored; the delivery is kept: %s", error)
        raise Unmapped("payload") from error
    verdict = WebhookVerdict.CONFLICT if Reception.CONFLICT in answers else WebhookVerdict.ACCEPTED
    return Settled(verdict, "known_event" if verdict == WebhookVerdict.CONFLICT else "", events[0][0], len(events))


def _arrivals(events: Sequence[tuple[str, Mapped]]) -> list[inbox.Arrival]:
    """The events as the inbox takes them.

    Raises:
        PayloadError: one of them cannot be stored.
    """
    made = []
    for event_id, one in events:
        for name, value in (("event id", event_id), ("event type", one.type), ("event key", one.key)):
            encoding.check_name(value, name)
        producer = f"the payload of event {event_id}"
        if not isinstance(one.payload, Mapping):
            raise PayloadError(producer, f"must be an object (a dict), got {type(one.payload).__name__}")
        data: dict[str, Any] = dict(one.payload)
        text, digest = encoding.encode(data, producer, conf.MAX_PAYLOAD_BYTES), canonical.digest(data, producer)
        made.append(inbox.Arrival(event_id, one.type, one.key, text, digest, one.about or inbox.NOTHING, one.position))
    return made


def keep_conflict(
    source: Source, delivery_id: str, headers: Mapping[str, str], body: bytes, sent_at: float | None, using: str
) -> Settled:
    """What came under a known id with another body: into the inbox as conflicts, where no wait takes them. In the delivery's transaction."""
    try:
        delivery = core.delivery(source.name, delivery_id, headers, body, sent_at)
        with transaction.atomic(using=using):
            events = core.events(mapped(source, delivery, using), source.name, delivery_id)
            try:
                arrivals = _arrivals(events)
            except PayloadError as error:
                raise Unmapped("payload") from error
            locks.channels([(one.type, one.key) for one in arrivals], using)
            for arrival in arrivals:
                inbox.record_conflict(arrival, using)
    except Unmapped as why:
        return Settled(WebhookVerdict.CONFLICT, why.code)
    return Settled(WebhookVerdict.CONFLICT, "other_body", events[0][0] if events else "", len(events))


def map_anew(delivery: int, *, reason: str, by: Any = None, using: str | None = None) -> Remapped:
    """Map a delivery of which nothing could be made by what its source says today.

    Args:
        delivery: its number. reason: why, in words; kept with the delivery.
        by: the user, whose right is looked up anew; None: code of the project. using: the database alias of the record.
    Raises:
        UnknownDelivery: there is none, or its source is gone. InvalidSource: its source cannot be as it is described.
        PayloadError: its body was sealed with a key that is not here.
        ReasonMissing: nobody says why. NotPermitted: `by` is a user who may not.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    said = warrant.reason(reason, "why the delivery is mapped anew")
    with committing("map delivery", alias):
        number: Any = delivery
        known = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
        row = WebhookDelivery.objects.using(alias).select_for_update(no_key=True).filter(pk=delivery).first() if known else None
        if row is None:
            raise UnknownDelivery(f"There is no delivery {delivery!r:.40}. `flows webhooks deliveries` lists them.")
        if row.verdict != WebhookVerdict.UNMAPPED or row.body is None:
            return Remapped(False, row.verdict, row.code, row.event_id)
        source = sources.find(row.source, alias)
        if isinstance(source, InvalidSource):
            raise source
        if source is None:
            raise UnknownDelivery(f"The source {row.source!r} of delivery {delivery} is gone: describe it again, then map it.")
        body, sent_at = bodies.unpacked(row.body), row.sent_at.timestamp() if row.sent_at else None
        settled = deliver(source, row.delivery_id, row.headers, body, sent_at, alias)
        kept = bytes(row.body) if settled.verdict == WebhookVerdict.UNMAPPED else None
        store.settle(row.pk, row.verdict, settled, kept, alias, by=identify.label(by), reason=said)
    return Remapped(True, settled.verdict, settled.code, settled.event_id)
