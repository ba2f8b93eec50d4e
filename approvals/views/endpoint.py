"""The way of every request to the API, in this order; the first that does not hold is the answer.

    method (405) ► who (401) ► JSON (415) ► CSRF (403) ► size and form (413, 400) ► may see it (404) ► members (422) ► digest (428)
    ► the service (200; 403, 409, 412, 422)

GET and HEAD change nothing. A POST with an `Idempotency-Key` is acted on once (`approvals.services.once`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from approvals.services import once, people
from approvals.services.answering import Answered
from approvals.services.callers import Unauthenticated, sent_on_purpose
from approvals.services.decide import ACCEPTED, ALREADY, Decided, NobodyAnswers
from approvals.services.once import Outcome
from approvals.views import body, problems
from approvals.views.problems import Problem
from flows.conf import conf
from flows.core.errors import OutlastError
from flows.core.misuse import NotAUser
from flows.services import identify

READS = ("GET", "HEAD")


@dataclass(slots=True)
class Call:
    """One request to the API: who asks, what was sent, and the headers of the answer."""

    request: HttpRequest
    user: Any
    using: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    def once(self, act: Callable[[], Outcome]) -> Outcome:
        """Act; with an idempotency key at most once, and the answer is kept."""
        key = body.key(self.request)
        if key is None:
            return _acted(act)
        asked = once.asked(str(self.request.method), self.request.path, self.request.headers.get("If-Match", ""), body=self.body)
        return once.once(self.user.pk, key, asked, lambda: _acted(act), self.using)


Handler = Callable[..., Outcome]


def told(decided: Decided | Answered, **more: Any) -> Outcome:
    """What a service answered about a request.

    Raises:
        Problem: it changed nothing.
    """
    if decided.code not in (ACCEPTED, ALREADY):
        raise problems.refused(decided.code, decided.sentence)
    return Outcome(200, {"code": decided.code, "sentence": decided.sentence, **more})


def endpoint(**handlers: Handler) -> Callable[..., HttpResponse]:
    """A view of these handlers, by method in small letters."""
    allowed = [name.upper() for name in handlers]
    allowed += ["HEAD"] if "GET" in allowed else []

    def view(request: HttpRequest, **path: str) -> HttpResponse:
        # An ETag names a candidate, not the state of its request: no middleware may say "not modified" because of it.
        request.META.pop("HTTP_IF_NONE_MATCH", None)
        headers: dict[str, str] = {}
        try:
            handler = handlers.get("get" if request.method == "HEAD" else str(request.method).lower())
            if handler is None:
                raise _not_allowed(allowed)
            call = _admitted(request, headers)
            outcome = handler(call, **path)
        except Problem as problem:
            headers |= problem.headers
            outcome = problem.outcome
        except OutlastError as error:
            outcome = problems.raised(error).outcome
        return _response(outcome, headers)

    return csrf_exempt(view)  # checked in `_admitted`, for those who come with what a browser sends by itself


def unknown(_call: Call, **_path: str) -> Outcome:
    """Nothing is here."""
    raise Problem(404, "UNKNOWN_PATH", _("There is nothing here; openapi.json lists what there is."))


def _admitted(request: HttpRequest, headers: dict[str, str]) -> Call:
    """Who asks, by the project's function, as the database knows them now; and what they sent."""
    try:
        caller = _authenticator(conf.API_AUTHENTICATE)(request)
        if caller is None:
            raise Unauthenticated
        using = identify.alias(None)
        user = people.current(identify.user(caller.user, NobodyAnswers), using)
        if user is None or not user.is_active:
            raise Unauthenticated
    except Unauthenticated as refused:
        challenge = {"WWW-Authenticate": refused.challenge}
        raise Problem(401, "NOT_AUTHENTICATED", _("Log in first."), headers=challenge) from None
    except (NobodyAnswers, NotAUser):
        challenge = {"WWW-Authenticate": Unauthenticated().challenge}
        raise Problem(401, "NOT_AUTHENTICATED", _("Log in first."), headers=challenge) from None
    except PermissionDenied:
        raise Problem(403, "NOT_PERMITTED", _("These credentials may not be used here.")) from None
    if request.method in READS:
        return Call(request, user, using, {}, headers)
    if not body.is_json(request):
        raise Problem(415, "NOT_JSON", _("Send application/json in UTF-8."))
    if not sent_on_purpose(request, caller.header) and _csrf_fails(request):
        raise Problem(
            403, "CSRF_FAILED", _("Send the CSRF token of the session in the header X-CSRFToken, from a page of this site.")
        )
    return Call(request, user, using, body.read(request), headers)


@lru_cache(maxsize=8)
def _authenticator(path: str) -> Callable[[HttpRequest], Any]:
    found: Callable[[HttpRequest], Any] = import_string(path)
    return found


class _Csrf(CsrfViewMiddleware):
    """Django's own check, which answers with the reason."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _csrf_fails(request: HttpRequest) -> bool:
    check = _Csrf(lambda _request: HttpResponse())
    check.process_request(request)
    return check.process_view(request, None, (), {}) is not None  # type: ignore[arg-type]  # no view is exempt here


def _acted(act: Callable[[], Outcome]) -> Outcome:
    """What is done, with its refusals as outcomes: those are kept under a key, too."""
    try:
        return act()
    except Problem as problem:
        return problem.outcome
    except OutlastError as error:
        return problems.raised(error).outcome


def _not_allowed(allowed: list[str]) -> Problem:
    return Problem(405, "METHOD_NOT_ALLOWED", _("This method is not known here."), headers={"Allow": ", ".join(allowed)})


def _response(outcome: Outcome, headers: dict[str, str]) -> HttpResponse:
    """ASCII JSON, which no browser takes for anything else, and which nobody keeps."""
    kind = "application/problem+json" if outcome.status >= 400 else "application/json"
    response = HttpResponse(json.dumps(outcome.body), status=outcome.status, content_type=kind)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if outcome.again:
        response.headers["Idempotency-Replayed"] = "true"
    for name, value in headers.items():
        response.headers[name] = value
    return response
