"""Who sends: processes that deliver their share of the storm, by `flows.signal` and by signed requests over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.storm.flows import HOOK, TYPES

#: Seconds that a sender waits for an answer.
PATIENCE = 60


class Delivery(NamedTuple):
    """One event for a run; `by_http`: as a request."""

    event_id: str
    type: str
    key: str
    by_http: bool


class Sent(NamedTuple):
    """What one sender saw: seconds from its first to its last delivery, and how many got each answer."""

    began: float
    ended: float
    answers: dict[str, int]


def planned(signals: int, requests: int, duplicates: float, seed: int) -> list[Delivery]:
    """So many deliveries, of which this share are repeats of others, in an order that chance makes."""
    dice = random.Random(seed)
    found: list[Delivery] = []
    for count, by_http in ((signals, False), (requests, True)):
        unique = [_delivery(number, by_http) for number in range(count - int(count * duplicates))]
        found += [*unique, *(dice.choice(unique) for _ in range(count - len(unique)))]
    dice.shuffle(found)
    return found


def _delivery(number: int, by_http: bool) -> Delivery:  # noqa: FBT001 - one of two kinds
    if by_http:
        return Delivery(f"h{number}", HOOK, f"hook-{number}", by_http)
    run, which = divmod(number, len(TYPES))
    return Delivery(f"s{number}", TYPES[which], f"run-{run}", by_http)


def send(deliveries: Sequence[Delivery], address: str, line: Any, told: Any) -> None:
    """One process: waits for the others at the line, delivers, and tells what it saw."""
    import django

    django.setup()
    import flows

    web = http.client.HTTPConnection(*address.split(":"), timeout=PATIENCE) if address else None
    answers: dict[str, int] = {}
    line.wait(PATIENCE)
    began = time.monotonic()
    for one in deliveries:
        if one.by_http and web is not None:
            answer = _request(web, one)
        else:
            answer = flows.signal(one.event_id, one.type, key=one.key, payload={"id": one.event_id}).answer.value
        answers[answer] = answers.get(answer, 0) + 1
    told.put(Sent(began, time.monotonic(), answers))


def _request(web: http.client.HTTPConnection, one: Delivery) -> str:
    body = json.dumps({"key": one.key, "id": one.event_id}).encode()
    stamp = str(int(time.time()))
    secret = base64.b64decode(os.environ["STORM_SECRET"].removeprefix("whsec_"))
    signed = base64.b64encode(hmac.new(secret, f"{one.event_id}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
    headers = {
        "content-type": "application/json",
        "webhook-id": one.event_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{signed}",
    }
    web.request("POST", "/flows/hooks/storm", body, headers)
    answer = web.getresponse()
    answer.read()
    return f"http {answer.status}"
