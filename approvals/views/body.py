"""What a client sends, read strictly and within bounds: a JSON object of known members, and known parameters. What does not fit is a problem,
never an error of ours; a member that nobody knows is refused, for a misspelt one would be lost without a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError
from django.utils.translation import gettext as _

from approvals.views.problems import Problem
from flows.core import payload
from flows.core.errors import PayloadError

#: Enough for a comment of 4,000 characters that are all written as escapes.
MAX_BODY = 64 * 1024
MAX_KEY = 200
MAX_TAG = 200

_KEY = re.compile(r"[\x21-\x7e]+")
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]+)"')


def is_json(request: HttpRequest) -> bool:
    """Whether the body says that it is JSON in UTF-8. No form of another site can say so."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    return request.content_type == "application/json" and charset.lower() in ("utf-8", "utf8")


def read(request: HttpRequest) -> dict[str, Any]:
    """The JSON object that was sent.

    Raises:
        Problem: too large, or none.
    """
    length = request.META.get("CONTENT_LENGTH") or ""
    try:
        if length.isdecimal() and (len(length) > 9 or int(length) > MAX_BODY):
            raise _too_large()
        raw = request.body if length else request.read(MAX_BODY + 1)
    except RequestDataTooBig:
        raise _too_large() from None
    except (UnreadablePostError, OSError):
        raise _malformed() from None
    if len(raw) > MAX_BODY:
        raise _too_large()
    return _parsed(raw)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant)
        payload.text(value, "the body", MAX_BODY * 2)
    except (ValueError, RecursionError, PayloadError):
        raise _malformed() from None
    if not isinstance(value, dict):
        raise _malformed()
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two members of one name mean different things to different readers."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member stands twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _too_large() -> Problem:
    return Problem(413, "BODY_TOO_LARGE", _("The body is too large: at most %(most)s bytes are read.") % {"most": MAX_BODY})


def _malformed() -> Problem:
    return Problem(400, "MALFORMED_BODY", _("The body is not a JSON object in UTF-8."))


# ---------------------------------------------------------------------- members


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a body. `null`: it may be null, or left away. `read` gives the value, or raises ValueError with a sentence."""

    read: Callable[[Any], Any]
    null: bool = False


def text(most: int, *, null: bool = False) -> Member:
    """Text of at most so many characters."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(_("must be text"))  # noqa: TRY004 - one kind of error for all that does not fit
        if len(value) > most:
            raise ValueError(_("is too long: at most %(most)s characters are taken") % {"most": most})
        return value

    return Member(read, null)


def moment(*, null: bool = False) -> Member:
    """A time with its zone, as RFC 3339 writes it."""

    def read(value: Any) -> datetime:
        try:
            found = datetime.fromisoformat(value) if isinstance(value, str) and len(value) <= 40 else None
        except ValueError:
            found = None
        if found is None or found.tzinfo is None or not 1 < found.year < 9999:
            raise ValueError(_("must be a time with its zone, such as 2030-01-31T12:00:00Z"))
        return found

    return Member(read, null)


def numbers(*, null: bool = False) -> Member:
    """A list of whole numbers from 0."""

    def read(value: Any) -> list[int]:
        if not isinstance(value, list) or not all(type(one) is int and 0 <= one < 2**31 for one in value):
            raise ValueError(_("must be a list of whole numbers from 0"))
        return value

    return Member(read, null)


def mapping() -> Member:
    """An object."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(_("must be an object"))  # noqa: TRY004 - one kind of error for all that does not fit
        return value

    return Member(read)


def members(body: Mapping[str, Any], **known: Member) -> dict[str, Any]:
    """Every known member, None where it is left away.

    Raises:
        Problem: names each that is missing, unknown, or does not fit.
    """
    errors = [(f"#/{_pointer(name)}", _("is not known here")) for name in body if name not in known][:20]
    found: dict[str, Any] = {}
    for name, member in known.items():
        value = body.get(name)
        found[name] = None
        if value is None:
            if not member.null:
                errors.append((f"#/{name}", _("is needed")))
            continue
        try:
            found[name] = member.read(value)
        except ValueError as error:
            errors.append((f"#/{name}", str(error)))
    if errors:
        raise Problem(422, "INVALID_BODY", _("Some members of the body do not fit; nothing was changed."), errors=errors)
    return found


def _pointer(name: str) -> str:
    """A member's name in a JSON pointer; of what is not a name, only its beginning."""
    plain = re.sub(r"[^\w-]", "?", name, flags=re.ASCII)
    return plain if len(plain) <= 40 else f"{plain[:40]}…"


# ---------------------------------------------------------------------- parameters and headers


def parameters(request: HttpRequest, **known: Callable[[str], Any]) -> dict[str, Any]:
    """Every known parameter of the address, None where it is left away.

    Raises:
        Problem: one is unknown, stands twice, or does not fit.
    """
    found: dict[str, Any] = dict.fromkeys(known)
    for name, values in request.GET.lists():
        if name not in known or len(values) != 1 or not payload.is_text(values[0]):
            raise _parameter(known)
        try:
            found[name] = known[name](values[0])
        except ValueError:
            raise _parameter(known) from None
    return found


def _parameter(known: Mapping[str, Any]) -> Problem:
    told = {"known": ", ".join(known) or "–"}
    return Problem(
        400,
        "BAD_PARAMETER",
        _("A parameter of the address is not known, stands twice, or does not fit. Known: %(known)s.") % told,
    )


def one_of(*words: str) -> Callable[[str], str]:
    """One of these words."""

    def read(value: str) -> str:
        if value not in words:
            raise ValueError(value)
        return value

    return read


def count(most: int) -> Callable[[str], int]:
    """A whole number from 1 to `most`."""

    def read(value: str) -> int:
        if not (value.isascii() and value.isdecimal() and len(value) <= 6 and 1 <= int(value) <= most):
            raise ValueError(value)
        return int(value)

    return read


def digest(request: HttpRequest) -> str:
    """The digest in `If-Match`: the candidate that the reviewer has seen. A server in between may have marked the tag as weak; it names the
    same candidate.

    Raises:
        Problem: there is none, or not exactly one.
    """
    found = _TAG.fullmatch(request.headers.get("If-Match", "").strip())
    if found is None or len(found[1]) > MAX_TAG:
        raise Problem(
            428,
            "DIGEST_REQUIRED",
            _("Send If-Match with the ETag of the request that was shown: an answer is for that candidate."),
        )
    return found[1]


def key(request: HttpRequest) -> str | None:
    """The idempotency key, if there is one.

    Raises:
        Problem: it cannot be one.
    """
    given = request.headers.get("Idempotency-Key")
    if given is None:
        return None
    if len(given) > MAX_KEY or not _KEY.fullmatch(given):
        raise Problem(400, "BAD_KEY", _("Idempotency-Key has 1 to %(most)s visible ASCII characters.") % {"most": MAX_KEY})
    return given
