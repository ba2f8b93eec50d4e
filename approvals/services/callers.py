"""Who calls the API. The project says it with a function of the request (setting `API_AUTHENTICATE`); by default it is the session's user.

A browser sends cookies (and Basic, Digest, Negotiate, and client certificates) by itself, whoever wrote the page; so what comes with them
needs a CSRF token. A header that only code can set is proof of its own: the function names it, and `sent_on_purpose` looks whether this very
request has it. A function that falls back to the session for a request without that header cannot switch the check off by mistake.

No model is imported here: a system check imports this before the apps are ready.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

#: Schemes of `Authorization` that browsers answer by themselves, once a person has typed or stored something.
_BY_BROWSERS = frozenset({"basic", "digest", "negotiate", "ntlm", "kerberos", "mutual", "hoba"})

#: Names that only code gives a header. A page of another site cannot send one without asking this server first (CORS). What a proxy adds
#: (`X-Forwarded-…`, `X-Real-…`, `X-SSL-…`, `X-Client-…`) may stand for a cookie or a certificate.
_OWN = re.compile(r"x-(?!forwarded|real|ssl|client|original|remote)[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind a request. `header`: the name of the header that the credential was read from; "": from what browsers send."""

    user: Any
    header: str = ""


class Unauthenticated(Exception):
    """Nobody is known by these credentials; `challenge` is what the answer's `WWW-Authenticate` says."""

    def __init__(self, challenge: str = 'Cookie realm="approvals"') -> None:
        super().__init__(challenge)
        self.challenge = challenge


def session(request: HttpRequest) -> Caller | None:
    """The user who is logged in, as the pages of the project know them. Every unsafe request needs a CSRF token."""
    user = getattr(request, "user", None)
    return Caller(user) if user is not None and user.is_authenticated else None


def sent_on_purpose(request: HttpRequest, header: str) -> bool:
    """Whether this request has the header, and no browser sends it by itself; then no CSRF token is needed."""
    name, value = header.strip().lower(), request.headers.get(header.strip(), "") if header else ""
    if not value.strip():
        return False
    if name == "authorization":
        scheme, _space, credentials = value.strip().partition(" ")
        return bool(credentials.strip()) and scheme.lower() not in _BY_BROWSERS
    return _OWN.fullmatch(name) is not None
