"""The door for webhooks: strangers may knock with anything; no answer says more than a number, and none is a 500.

    method (405) ► source (404) ► length (411, 413) ► the whole body (400) ► signature and moment (401, 400) ► kept (202, 200)

CSRF is off for this view alone: it reads no cookie, and what it acts on is signed. It takes no part in a transaction around the request: 202 is
said after the commit.
"""

from __future__ import annotations

import logging
import time

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from flows.conf import conf
from flows.core.hooks import InvalidSource, Refused
from flows.services import identify
from flows.services.webhooks import refusals, sources
from flows.services.webhooks.receiving import Reply, receive

logger = logging.getLogger(__name__)

STATUS = {
    Refused.METHOD: 405,
    Refused.UNKNOWN: 404,
    Refused.DISABLED: 404,
    Refused.LENGTH: 411,
    Refused.TOO_LARGE: 413,
    Refused.MALFORMED: 400,
    Refused.UNSIGNED: 401,
    Refused.SIGNATURE: 401,
    Refused.TOO_OLD: 401,
    Refused.TOO_NEW: 401,
    Refused.UNUSABLE: 503,
    Refused.AWAY: 503,
}
RETRY_AFTER = "30"


@csrf_exempt
@transaction.non_atomic_requests
def hook(request: HttpRequest, name: str) -> HttpResponse:
    """Take in a webhook of the source of that name."""
    alias = identify.alias(None)
    try:
        found, reply = _taken(request, name, alias)
    except DatabaseError:
        logger.warning("A webhook could not be kept; its sender has to send it again.", exc_info=True)
        return _answer(Refused.AWAY)
    except Exception:  # a fault of ours must not lose what somebody sent: any other answer could be taken for a final one
        logger.exception("A webhook could not be taken in; its sender has to send it again.")
        return _answer(Refused.AWAY)
    if reply.refused is not None:
        refusals.tally.add(name if found else "", reply.refused, alias)
        return _answer(reply.refused)
    refusals.tally.write(alias)
    if reply.challenge is not None:
        return _plain(JsonResponse({"challenge": reply.challenge}))
    return _plain(HttpResponse(status=202 if reply.first else 200))


def _taken(request: HttpRequest, name: str, alias: str) -> tuple[bool, Reply]:
    """Whether there is such a source, and the answer."""
    if request.method != "POST":
        return False, Reply(Refused.METHOD)
    source = sources.find(name, alias)
    if source is None:
        return False, Reply(Refused.UNKNOWN)
    if isinstance(source, InvalidSource):
        return True, Reply(Refused.UNUSABLE)
    if not source.enabled:
        return True, Reply(Refused.DISABLED)
    body = _body(request)
    if isinstance(body, Refused):
        return True, Reply(body)
    headers = {header.lower(): value for header, value in request.headers.items()}
    return True, receive(source, headers, body, now=time.time(), using=alias)


def _body(request: HttpRequest) -> bytes | Refused:
    """The whole body. A WSGI server that is told no length hands out none of it, so that cannot be told from an empty one."""
    most, length = int(conf.WEBHOOK_MAX_BYTES), request.META.get("CONTENT_LENGTH") or ""
    if not length and not isinstance(request, ASGIRequest):
        return Refused.LENGTH
    if length and not (length.isascii() and length.isdecimal()):
        return Refused.MALFORMED
    if len(length) > 12 or (length and int(length) > most):
        return Refused.TOO_LARGE
    try:
        body = request.read(most + 1)
    except (OSError, ValueError):  # the sender went away; or a middleware has read the stream
        return Refused.MALFORMED
    if len(body) > most:
        return Refused.TOO_LARGE
    return Refused.MALFORMED if length and len(body) != int(length) else body


def _answer(refused: Refused) -> HttpResponse:
    response = HttpResponse(status=STATUS[refused])
    if refused is Refused.METHOD:
        response.headers["Allow"] = "POST"
    if response.status_code == 503:
        response.headers["Retry-After"] = RETRY_AFTER
    return _plain(response)


def _plain(response: HttpResponse) -> HttpResponse:
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
