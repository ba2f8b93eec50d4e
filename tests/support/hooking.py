"""Sources of webhooks for tests, and requests to them over HTTP: what a fault of ours would raise is raised."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from django.http import HttpResponse
from django.test import Client

from flows.core.hooks import Delivery, Mapped
from tests.support import signing

SOURCE = "ci"

SETTING: dict[str, Any] = {
    "SCHEME": "standard",
    "SECRETS": ["setting:HOOK_SECRET"],
    "EVENT": "t.asked",
    "KEY": "body.key",
}

numbers = itertools.count(1)


def of(scheme: str, **changed: Any) -> dict[str, Any]:
    """A source of that scheme as the setting has it."""
    return {**SETTING, "SCHEME": scheme, "OPTIONS": signing.OPTIONS[scheme], **changed}


def post(
    body: Any,
    *,
    sent_id: str = "d-1",
    scheme: str = "standard",
    secret: str = signing.SECRET,
    name: str = SOURCE,
    now: int | None = None,
    **headers: str,
) -> HttpResponse:
    """Send a signed webhook; `headers` are added, in small letters with underscores."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = signing.signed(scheme, raw, secret, now=int(time.time()) if now is None else now, sent_id=sent_id)
    given |= {header.replace("_", "-"): value for header, value in headers.items()}
    content_type = given.pop("content-type", "application/json")
    answer: Any = Client(raise_request_exception=True).post(f"/flows/hooks/{name}", raw, content_type, headers=given)
    return answer


# ---------------------------------------------------------------- functions of a project

broken = False
asked: list[Delivery] = []


def by_function(delivery: Delivery) -> Any:
    """As an author writes one; `broken` has it raise."""
    asked.append(delivery)
    if broken:
        raise RuntimeError("mend me")
    if "keys" in delivery.body:
        return [Mapped("t.asked", key=key, payload={"key": key}) for key in delivery.body["keys"]]
    return Mapped("t.asked", key=delivery.body["key"]) if "key" in delivery.body else None


def breaking(delivery: Delivery) -> Any:
    """It leaves the transaction in a state in which nothing more can be asked, and says nothing of it."""
    from django.db import DatabaseError, connection

    with connection.cursor() as cursor:
        try:
            cursor.execute(delivery.body["sql"])
        except DatabaseError:
            return Mapped("t.asked", key="k")
    return None


def unfit(delivery: Delivery) -> Any:
    """Its answer is what the body says."""
    return Mapped(**delivery.body)
