"""What providers' errors mean: by status, headers and class names, with stand-ins and with the classes of real libraries (O5)."""

from __future__ import annotations

import http
import subprocess
import sys
from datetime import UTC, datetime
from email.message import Message
from urllib.error import HTTPError

import pytest

from flows.errors import ActivityTimeout, CapacityUnavailable, CompetenceFailure, LostOwnership, PolicyDenied, Transient
from tasks.agent.errors import LONGEST_WAIT, retry_after, translate

pytestmark = pytest.mark.req("O5")


class Response:
    def __init__(self, status, headers=None):
        self.status_code, self.headers = status, headers or {}


class APIStatusError(Exception):
    """As the clients of OpenAI and Anthropic raise it."""

    def __init__(self, status, headers=None):
        super().__init__(f"the secret answer of a provider, {status}")
        self.status_code, self.response = status, Response(status, headers)


class ModelHTTPError(Exception):
    """As an agent library wraps it: the headers are only at its cause."""

    def __init__(self, status):
        super().__init__("wrapped")
        self.status_code = status


class ClientError(Exception):
    """As boto raises it."""

    def __init__(self, status, headers):
        super().__init__("boto")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers}}


class GoogleError(Exception):
    code = http.HTTPStatus.SERVICE_UNAVAILABLE


class APITimeoutError(Exception):
    pass


class MaxTurnsExceeded(Exception):
    pass


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, CompetenceFailure),
        (401, PolicyDenied),
        (402, PolicyDenied),
        (403, PolicyDenied),
        (404, CompetenceFailure),
        (408, Transient),
        (409, Transient),
        (413, CompetenceFailure),
        (422, CompetenceFailure),
        (429, CapacityUnavailable),
        (500, Transient),
        (503, Transient),
        (529, CapacityUnavailable),
    ],
)
def test_a_status_means_one_class(status, kind):
    assert type(translate(APIStatusError(status))) is kind


def test_a_busy_provider_says_how_long_to_wait_also_through_a_wrapper():
    wrapped = ModelHTTPError(429)
    wrapped.__cause__ = APIStatusError(429, {"Retry-After": "7"})
    found = translate(wrapped)
    assert isinstance(found, CapacityUnavailable)
    assert found.retry_after == 7, "the wrapper has no headers; its cause has"


def test_what_a_provider_said_is_not_repeated():
    assert "secret" not in str(translate(APIStatusError(400)))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "999999999"}, LONGEST_WAIT),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_and_bounded(headers, seconds):
    assert retry_after(headers, datetime(2026, 11, 30, 12, 0, tzinfo=UTC)) == seconds


def caused(error, cause):
    error.__cause__ = cause
    return error


def named(*names):
    """An error whose class, and the classes that it is of, are called so."""
    made = Exception
    for name in reversed(names):
        made = type(name, (made,), {})
    return made()


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(), GoogleError(), APIStatusError(500), APIStatusError(408), named("APIConnectionError"),
        named("ConnectTimeout", "TimeoutException"), caused(APITimeoutError(), named("ConnectTimeout", "TimeoutException")),
        caused(named("APIConnectionError"), named("ConnectError")), caused(named("APIConnectionError"), ConnectionRefusedError()),
    ],
    ids=repr,
)  # fmt: skip
def test_where_nothing_was_done_it_is_transient_and_costs_nothing(error):
    assert type(translate(error)) is Transient


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(), TimeoutError(), APITimeoutError(), APIStatusError(504), named("ReadTimeout", "TimeoutException"),
        caused(named("APIConnectionError"), named("RemoteProtocolError")), caused(APITimeoutError(), named("ReadTimeout")),
        ExceptionGroup("all failed", [APIStatusError(401), named("ReadTimeout")]),
        ExceptionGroup("all failed", [APIStatusError(503), named("ReadError")]),
    ],
    ids=repr,
)  # fmt: skip
def test_what_was_sent_and_not_answered_is_charged(error):
    assert type(translate(error)) is ActivityTimeout


def test_boto_and_urllib_carry_their_status_elsewhere():
    found = translate(ClientError(429, {"Retry-After": "3"}))
    assert isinstance(found, CapacityUnavailable)
    assert found.retry_after == 3
    headers = Message()
    headers["Retry-After"] = "4"
    with HTTPError("https://example.org", 429, "busy", headers, None) as error:
        found = translate(error)
    assert isinstance(found, CapacityUnavailable)
    assert found.retry_after == 4


def test_of_several_models_that_failed_in_turn_the_most_hopeful_counts():
    assert type(translate(ExceptionGroup("all failed", [APIStatusError(401), APIStatusError(503)]))) is Transient


def test_a_bound_of_the_library_is_for_a_person():
    assert type(translate(MaxTurnsExceeded())) is CompetenceFailure


def test_one_of_ours_that_a_library_wrapped_is_found():
    ours = LostOwnership("fenced")
    wrapped = RuntimeError("Error running tool")
    wrapped.__cause__ = ours
    assert translate(wrapped) is ours


def test_anything_else_stays_what_it_is():
    error = KeyError("order")
    assert translate(error) is error
    loop = ValueError("a")
    loop.__cause__ = KeyError("b")
    loop.__cause__.__cause__ = loop
    assert translate(loop) is loop


def test_the_classes_of_real_clients():
    openai = pytest.importorskip("openai", reason="openai comes with openai-agents")
    http_library = pytest.importorskip("httpx2", reason="the HTTP library of that client")
    request = http_library.Request("POST", "https://example.org")
    response = http_library.Response(429, headers={"retry-after": "2"}, request=request)
    busy = translate(openai.RateLimitError("busy", response=response, body=None))
    assert isinstance(busy, CapacityUnavailable)
    assert busy.retry_after == 2
    assert type(translate(openai.APIConnectionError(request=request))) is Transient
    assert type(translate(openai.APITimeoutError(request=request))) is ActivityTimeout


def test_no_library_of_a_provider_is_imported():
    code = "import sys, tasks.agent.errors; print(sorted({'openai', 'pydantic_ai', 'agents', 'httpx', 'anthropic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
