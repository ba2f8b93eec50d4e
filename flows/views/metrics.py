"""GET metrics: the figures of the record for a monitoring system, as plain text. By token, or by the permission to see them."""

from __future__ import annotations

import hmac
import os

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from flows.conf import conf
from flows.core import metrics
from flows.services import exposing

PERMISSION = "outlast_flows.view_measure"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
def shown(request: HttpRequest) -> HttpResponse:
    """The metrics, for whoever has the token (`Authorization: Bearer …`) or is signed in and may see measures."""
    if not _may(request):
        answer = HttpResponse("The metrics want a token (OUTLAST['METRICS_TOKEN']) or a user who may see measures.\n", status=401)
        answer["Content-Type"], answer["WWW-Authenticate"] = "text/plain; charset=utf-8", "Bearer"
        return answer
    found = HttpResponse(metrics.as_text(exposing.samples()), content_type=CONTENT_TYPE)
    found["Cache-Control"] = "no-store"
    return found


def _may(request: HttpRequest) -> bool:
    wanted, given = token(), request.headers.get("Authorization", "")
    if wanted and hmac.compare_digest(given.encode(), f"Bearer {wanted}".encode()):
        return True
    user = getattr(request, "user", None)
    return user is not None and user.is_active and user.has_perm(PERMISSION)


def token() -> str:
    """The token of the settings; `env:NAME` is read from the environment. "": none, so that only permissions count.

    Raises:
        ImproperlyConfigured: it is no text.
    """
    given = conf.METRICS_TOKEN
    if not isinstance(given, str):
        raise ImproperlyConfigured(f"OUTLAST['METRICS_TOKEN'] is {given!r:.40}: write a text, or \"env:NAME\".")
    return os.environ.get(given.removeprefix("env:"), "") if given.startswith("env:") else given
