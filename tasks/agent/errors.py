"""What a provider's error means to a flow, read from its status code, headers and class names; no provider's library is imported.

    429, 529                                             ──► CapacityUnavailable, with the wait that the provider asks for
    408, 409, 425, other 5xx; no connection was made     ──► Transient: made anew; nothing was done
    sent, and not answered: 504, a timeout, a connection
    that broke                                           ──► ActivityTimeout, a Transient: made anew; the call is charged, for it may be billed
    401, 402, 403, 407                                   ──► PolicyDenied
    other 4xx (400, 404, 413, 422 …)                     ──► CompetenceFailure: asking again gives the same
    a model that does not keep to its tools or its form  ──► CompetenceFailure: the recorded answers would give the same
    anything else                                        ──► stays what it is
A library wraps what its client raised, so causes are looked at, too; of several that failed in turn the one counts that gives most hope. One of
our own errors in the chain wins: a library only wrapped it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from flows.errors import (
    ActivityError,
    ActivityTimeout,
    CapacityUnavailable,
    CompetenceFailure,
    OutlastError,
    PolicyDenied,
    Transient,
)

#: No provider's wish keeps a run longer than this, in seconds.
LONGEST_WAIT = 24 * 3600.0

_BUSY = frozenset({429, 529})
_DENIED = frozenset({401, 402, 403, 407})
_AGAIN = frozenset({408, 409, 425})
GATEWAY_TIMEOUT = 504

#: Of builtin, HTTP and provider libraries: no request was sent.
_UNSENT = frozenset(
    {"ConnectError", "ConnectTimeout", "ConnectTimeoutError", "ConnectionRefusedError", "EndpointConnectionError", "PoolTimeout"}
)
#: A request was sent, at least in part, and no answer came.
_SENT = frozenset(
    {
        "BrokenPipeError", "ConnectionAbortedError", "ConnectionClosedError", "ConnectionResetError", "ModelFirstEventTimeout",
        "ReadError", "ReadTimeout", "ReadTimeoutError", "RemoteProtocolError", "WriteError", "WriteTimeout",
    }
)  # fmt: skip
#: They do not say whether one was sent: a time that was up counts as sent, a connection that failed does not.
_TIMEOUT = frozenset({"APIConnectionTimeoutError", "APITimeoutError", "TimeoutError", "TimeoutException"})
_CONNECTION = frozenset(
    {"APIConnectionError", "ConnectionError", "HTTPClientError", "NetworkError", "ServiceUnavailable", "TransportError"}
)
#: Of agent libraries: the model went on answering in a way that they cannot use.
_MODEL = frozenset({"UnexpectedModelBehavior", "ModelBehaviorError", "ToolRetryError"})
#: Of agent libraries: a bound of their own.
_BOUND = frozenset({"MaxTurnsExceeded", "UsageLimitExceeded"})

_DEPTH = 12


def translate(error: BaseException, *, now: datetime | None = None) -> BaseException:
    """The error of the taxonomy that this one stands for, or itself.

    Args:
        error: what a library or a provider's client raised. now: for a Retry-After that names a moment.

    Returns:
        An `OutlastError` found in its chain; or a new `ActivityError`, to be raised from it; or `error`.
    """
    chain = list(_chain(error))
    ours = next((one for one in chain if isinstance(one, OutlastError)), None)
    if ours is not None:
        return ours
    found = [meaning for meaning in (_meaning(one, now) for one in chain) if meaning is not None]
    if not found:
        return error
    best = min(found, key=_hope)
    if type(best) is Transient and _was_sent(chain):
        return ActivityTimeout(str(best), retry_after=best.retry_after)
    return best


def _hope(meaning: ActivityError) -> tuple[int, bool]:
    """Of a chain, or of several models that were tried in turn: what may pass by itself counts first, and who says when."""
    order: list[type[ActivityError]] = [CapacityUnavailable, Transient, PolicyDenied, CompetenceFailure]
    return order.index(type(meaning)), meaning.retry_after is None


def _was_sent(chain: list[BaseException]) -> bool:
    """Whether a request may have been billed of which no answer came: what says so most exactly in the chain counts."""
    names = [{kind.__name__ for kind in type(one).__mro__} for one in chain]
    exact = [bool(mine & _SENT) for mine in names if mine & (_SENT | _UNSENT)]
    if exact or any(_status(one) for one in chain):
        return any(exact) or any(_status(one) == GATEWAY_TIMEOUT for one in chain)
    return any(mine & _TIMEOUT for mine in names)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and what a group of them holds; each once."""
    seen: set[int] = set()
    left = [error]
    while left and len(seen) < _DEPTH:
        one = left.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        following = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if following is not None:
            left.append(following)


def _meaning(error: BaseException, now: datetime | None) -> ActivityError | None:
    status = _status(error)
    names = {kind.__name__ for kind in type(error).__mro__}
    told = f"{type(error).__name__}{f' {status}' if status else ''}"
    if status in _BUSY:
        return CapacityUnavailable(told, retry_after=retry_after(_headers(error), now))
    if status in _AGAIN or 500 <= status < 600:
        return Transient(told, retry_after=retry_after(_headers(error), now))
    if status in _DENIED:
        return PolicyDenied(told)
    if 400 <= status < 500:
        return CompetenceFailure(told)
    if names & (_UNSENT | _SENT | _TIMEOUT | _CONNECTION):
        return Transient(told)
    if names & (_MODEL | _BOUND):
        return CompetenceFailure(told)
    return None


def _status(error: BaseException) -> int:
    """The HTTP status that an error carries; 0: none."""
    response = getattr(error, "response", None)
    for holder, names in ((error, ("status_code", "http_status", "code", "status")), (response, ("status_code", "status"))):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:  # an HTTPStatus is one, too
                return int(value)
    if isinstance(response, Mapping):  # boto
        value = _mapping(response.get("ResponseMetadata")).get("HTTPStatusCode")
        return value if isinstance(value, int) else 0
    return 0


def _headers(error: BaseException) -> Mapping[str, Any]:
    response = getattr(error, "response", None)
    headers = getattr(error, "headers", None) or getattr(response, "headers", None)
    if headers is None and isinstance(response, Mapping):
        headers = _mapping(response.get("ResponseMetadata")).get("HTTPHeaders")
    try:
        return {str(name).lower(): value for name, value in dict(headers or {}).items()}
    except (TypeError, ValueError):
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def retry_after(headers: Mapping[str, Any], now: datetime | None = None) -> float | None:
    """The seconds that a provider asks us to wait, by `retry-after-ms` or `Retry-After` (seconds, or a date); None: it says nothing usable.

    Args:
        headers: by lower-case name. now: default the time of this machine; only for a date.
    """
    milliseconds, seconds = _number(headers.get("retry-after-ms")), _number(headers.get("retry-after"))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_WAIT)
    if seconds is not None:
        return min(seconds, LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(str(headers["retry-after"]))
    except (KeyError, TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - (now or datetime.now(UTC))).total_seconds()), LONGEST_WAIT)


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


__all__ = ["retry_after", "translate"]
