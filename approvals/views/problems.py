"""Every refusal of the API in one form (RFC 9457): the HTTP status for machines in between, the stable code for the program, a sentence for
people. Nothing that was sent is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.binding import Code
from approvals.core.narrow import BadPart
from approvals.core.status import ANSWERS
from approvals.services.browsing import BadCursor
from approvals.services.decide import UnknownVerdict
from approvals.services.delegating import BadDelegation, UnknownDelegation
from approvals.services.locked import UnknownRequest
from approvals.services.once import KeyReused, Outcome
from approvals.services.taking_back import TOO_LATE
from flows.core import visible
from flows.core.errors import OutlastError, PayloadError
from flows.core.misuse import NotPermitted, ReasonMissing

#: What the services raise → the status that it is answered with.
RAISED: dict[type[OutlastError], int] = {
    UnknownRequest: 404,
    UnknownDelegation: 404,
    NotPermitted: 403,
    BadCursor: 400,
    KeyReused: 422,
    UnknownVerdict: 422,
    BadDelegation: 422,
    BadPart: 422,
    ReasonMissing: 422,
    PayloadError: 422,
}

#: Refusals of an answer: who may not, what is stale, what is not complete. Every other one is a conflict with what is on record.
REFUSED: dict[str, int] = {
    Code.USER_INACTIVE: 403,
    Code.NOT_PERMITTED: 403,
    Code.NOT_ASKED: 403,
    Code.SELF_APPROVAL: 403,
    Code.STALE_CANDIDATE: 412,
    Code.ANSWER_NOT_OFFERED: 422,
    Code.COMMENT_REQUIRED: 422,
}
#: What no caller of the API is told: the same answer again is no refusal, and where an answer counts only a page says beforehand.
UNTOLD = (Code.ALREADY, Code.PLACE_CHANGED)
CONFLICTS = frozenset({*(code.value for code in Code if code not in REFUSED and code not in UNTOLD), TOO_LATE})


class Problem(Exception):
    """A request that is refused. `errors`: (JSON pointer, sentence) of each member of the body that does not fit."""

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        *,
        errors: Sequence[tuple[str, str]] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.sentence = status, code, sentence
        self.errors, self.headers = errors, headers or {}

    @property
    def outcome(self) -> Outcome:
        body: dict[str, Any] = {
            "type": f"urn:outlast:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": visible.plain(self.sentence),
        }
        if self.errors:
            body["errors"] = [{"pointer": pointer, "detail": detail} for pointer, detail in self.errors]
        return Outcome(self.status, body)


def raised(error: OutlastError) -> Problem:
    """The problem behind an error of the services.

    Raises:
        OutlastError: the same, where it is no mistake of the caller's.
    """
    for kind, status in RAISED.items():
        if isinstance(error, kind):
            return Problem(status, error.code, _sentence(error))
    raise error


def _sentence(error: OutlastError) -> str:
    return {
        UnknownRequest.code: _("There is no such request, or you may not see it."),
        UnknownDelegation.code: _("There is no such delegation, or you may not see it."),
        UnknownVerdict.code: _("Say one of: %(known)s.") % {"known": ", ".join(ANSWERS)},
    }.get(error.code, str(error))


def refused(code: str, sentence: str) -> Problem:
    """The problem behind an answer of a service that changed nothing."""
    return Problem(REFUSED.get(code, 409), code, sentence)
