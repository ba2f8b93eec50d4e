"""manage.py flows webhooks: who may send, what was sent, whether a captured request would be taken, and a delivery mapped anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from flows.core import canonical, payload
from flows.core.errors import PayloadError
from flows.core.hooks import InvalidSource, Refused
from flows.core.hooks import mapping as core
from flows.core.hooks.mapping import Unmapped
from flows.management import find, given, verbs, words
from flows.models import WebhookDelivery, WebhookVerdict
from flows.services import identify
from flows.services.webhooks import mapping, sources
from flows.services.webhooks.sources import Source

SOURCES = ("name", "of", "scheme", "enabled", "secrets", "wrong")
DELIVERIES = ("id", "source", "delivery", "verdict", "why", "event", "times", "conflicts", "secret", "received")
EVENTS = ("event", "type", "key", "digest")
MOST = 1000


def add(verb: verbs.Verb) -> None:
    """The verb `webhooks`, and those below it."""
    below = verbs.below(verb("webhooks", "Who may send webhooks, what was sent, and a delivery mapped anew."))
    below("list", "every source, and whether its secrets are set")
    shown = below("deliveries", "the newest deliveries")
    shown.add_argument("--source", metavar="NAME")
    shown.add_argument("--verdict", choices=list(WebhookVerdict.values))
    shown.add_argument("--limit", type=given.positive, default=50, metavar="N", help=f"so many: 50, at most {MOST}")
    check = below("check", "verify a captured request and say what it would become; nothing is written")
    check.add_argument("name", metavar="SOURCE")
    check.add_argument("--body", required=True, metavar="FILE", help="the body, byte for byte")
    check.add_argument("--headers", dest="file", required=True, metavar="FILE", help="Name: value, a line each")
    check.add_argument("--at", type=float, metavar="SECONDS", help="the moment at which it is looked at, since 1970; now")
    anew = below("map", "map a delivery of which nothing could be made by what its source says today")
    anew.add_argument("id", type=given.positive, metavar="ID")
    anew.add_argument("--reason", required=True, metavar="TEXT")
    anew.add_argument("--by", required=True, metavar="USERNAME", help=f"who says so: needs {mapping.PERMISSION}")


def do(_verb: str, *, database: str | None, what: str, **options: Any) -> verbs.Report:
    """What the verb gives.

    Raises:
        CommandError: wrong usage. OutlastError: there is no such delivery, or nobody says why.
    """
    if what == "list":
        return _sources(identify.alias(database))
    made: Callable[..., verbs.Report] = _check if what == "check" else _map if what == "map" else _deliveries
    return made(identify.alias(database), **options)


def _sources(using: str) -> verbs.Report:
    rows = []
    for name, one in sources.all_sources(using):
        of = "setting" if sources.is_of_setting(name) else "admin"
        if isinstance(one, Source):
            rows.append((name, of, one.scheme.name, one.enabled, f"{len(one.keys)} of {len(one.secrets)} are set", ""))
        else:
            rows.append((name, of, "", False, "", str(one)))
    wrong = ", ".join(row[0] for row in rows if row[5])
    table = words.table(SOURCES, rows, whole=("wrong",))
    return verbs.Report([dict(zip(SOURCES, row, strict=True)) for row in rows], table, "", f"cannot be: {wrong}" if wrong else "")


def _deliveries(using: str, *, source: str | None, verdict: str | None, limit: int, **_: Any) -> verbs.Report:
    rows = WebhookDelivery.objects.using(using).order_by("-pk")
    rows = rows.filter(source=source) if source else rows
    rows = rows.filter(verdict=verdict) if verdict else rows
    found = [
        (d.pk, d.source, d.delivery_id, d.verdict, d.code, d.event_id, d.times, d.conflicts, d.secret, d.received_at)
        for d in rows.defer("body", "headers")[: min(limit, MOST)]
    ]
    return verbs.Report([dict(zip(DELIVERIES, row, strict=True)) for row in found], words.table(DELIVERIES, found))


def _check(using: str, *, name: str, body: str, file: str, at: float | None, **_: Any) -> verbs.Report:
    source = sources.find(name, using)
    if isinstance(source, InvalidSource):
        raise source
    if source is None:
        raise CommandError(f"There is no source {name!r}. `flows webhooks list` shows those that there are.", returncode=1)
    raw, headers = _read(body, "--body"), _headers(_read(file, "--headers"))
    verified = source.scheme.verify(headers, raw, [key for _, key in source.keys], time.time() if at is None else at)
    if isinstance(verified, Refused):
        return verbs.Report({"refused": verified}, "", wrong=f"refused: {verified}")
    data: dict[str, Any] = {"delivery": verified.delivery_id, "secret": source.keys[verified.secret - 1][0], "events": []}
    said = f"verified with secret {data['secret']}; the delivery is {verified.delivery_id}"
    try:
        delivery = core.delivery(source.name, verified.delivery_id, source.kept(headers), raw, verified.sent_at)
        events = core.events(mapping.mapped(source, delivery, using), source.name, verified.delivery_id)
        rows = [(event_id, one.type, one.key, canonical.digest(_payload(one.payload, event_id))) for event_id, one in events]
    except (Unmapped, PayloadError) as why:
        code = why.code if isinstance(why, Unmapped) else "payload"
        return verbs.Report({**data, "unmapped": code}, "", said, f"nothing can be made of it: {code}")
    data["events"] = [dict(zip(EVENTS, row, strict=True)) for row in rows]
    return verbs.Report(data, words.table(EVENTS, rows), said if rows else f"{said}; it is ignored")


def _payload(value: Any, event_id: str) -> dict[str, Any]:
    producer = f"the payload of event {event_id}"
    if not isinstance(value, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {type(value).__name__}")
    payload.encode(dict(value), producer)
    return dict(value)


def _read(file: str, what: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{what} cannot be read: {error.strerror}.", returncode=given.WRONG_USAGE) from error


def _headers(raw: bytes) -> dict[str, str]:
    """Names and values as a server hands them on: bytes read as Latin-1."""
    pairs = (line.partition(":") for line in raw.decode("latin-1").splitlines() if line.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _map(using: str, *, id: int, reason: str, by: str, **_: Any) -> verbs.Report:
    who = find.permitted(by, mapping.PERMISSION, using)
    found = mapping.map_anew(id, reason=reason, by=who, using=using)
    data = {"id": id, "done": found.done, "verdict": found.verdict, "why": found.code, "event": found.event_id}
    why = f" ({found.code})" if found.code else ""
    if not found:
        return verbs.Report(data, f"{id} was {found.verdict} already: nothing was changed")
    wrong = f"{id} is still unmapped{why}" if found.verdict == WebhookVerdict.UNMAPPED else ""
    return verbs.Report(data, "" if wrong else f"{id} is {found.verdict}{why} {found.event_id}".rstrip(), wrong=wrong)
