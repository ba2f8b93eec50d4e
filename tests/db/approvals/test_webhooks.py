"""Signed webhooks, received by a real server on this machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import flows
from approvals.models import Notice
from approvals.services.channels import BadChannel, Webhook, webhook
from approvals.services.channels.base import make
from flows import checks
from flows.services import notices
from tests.docs.test_code_blocks import blocks
from tests.support import noticing
from tests.support.approving import World

SECRET = "whsec_" + base64.b64encode(b"the key of our test, 32 bytes ok").decode()
OLD = "whsec_" + base64.b64encode(b"the key that went before this one").decode()
BACKEND = "approvals.services.channels.Webhook"

NOTICES = Path(__file__).parents[3] / "docs" / "how-to" / "notices.md"

db = pytest.mark.django_db(transaction=True)


class Receiver:
    """A server that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def hooked(settings: Any, receiver: Receiver, **options: Any) -> None:
    given = {"url": receiver.url, "secret": SECRET, "allow_private": True, **options}
    settings.OUTLAST = {"ADMIN_URL": noticing.SITE, "NOTICE_CHANNELS": {"hook": {"BACKEND": BACKEND, "OPTIONS": given}}}


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """As the page about Standard Webhooks says it, apart from our own code."""
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    wanted = hmac.digest(base64.b64decode(secret[6:]), signed, hashlib.sha256)
    return any(
        version == "v1" and base64.b64decode(given) == wanted
        for version, _, given in (one.partition(",") for one in headers["webhook-signature"].split(" "))
    )


@db
@pytest.mark.req("F5")
def test_each_event_is_one_signed_post(world: World, settings: Any, receiver: Receiver) -> None:
    hooked(settings, receiver)
    request = world.ask(key="news-7", goal="Publish a secret goal")
    assert notices.send_owed("default") == 1
    world.decide(request)
    assert notices.send_owed("default") == 1
    assert notices.send_owed("default") == 0
    (path, headers, body), (_, decided, second) = receiver.got
    assert (path, headers["content-type"], headers["webhook-id"]) == ("/hook", "application/json", f"asked-{request.pk}-0")
    assert is_signed(headers, body, SECRET)
    assert is_signed(decided, second, SECRET)
    assert not is_signed(headers, body + b" ", SECRET)
    assert not is_signed({**headers, "webhook-timestamp": "1"}, body, SECRET)
    assert not is_signed(headers, body, OLD)
    assert request.expires_at is not None
    told = json.loads(body)
    assert (told["type"], sorted(told)) == ("request.asked", ["data", "timestamp", "type"])
    assert told["data"] == {
        "request": request.pk, "revision": 1, "number": 0, "flow": "publish-news", "key": "news-7", "node": "ask",
        "workflow": str(request.workflow_id), "step": 1, "steps": 1, "asked": request.asked, "status": "pending", "answer": "",
        "asked_at": request.asked_at.isoformat(), "expires_at": request.expires_at.isoformat(),
        "url": f"{noticing.SITE}/outlast_approvals/request/{request.pk}/decide/",
    }  # fmt: skip
    told = json.loads(second)
    assert (told["type"], told["data"]["status"], told["data"]["answer"]) == ("request.decided", "approved", "approved")
    assert b"Hello." not in body + second, "not the candidate"
    assert b"secret goal" not in body + second
    assert b"rita" not in body + second, "no person"


@pytest.mark.req("F5")
def test_the_signature_is_that_of_the_standards_own_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook.time, "time", lambda: 1614265330.9)
    hook = Webhook(url="https://hooks.example/", secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert hook._signed("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.req("F5")
def test_what_the_documentation_tells_receivers_to_do_takes_ours_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (block for block in blocks(NOTICES) if "def is_ours" in block)
    names: dict[str, Any] = {}
    exec(compile(code, NOTICES.name, "exec"), names)  # our own documentation
    is_ours, body = names["is_ours"], b'{"type":"request.asked"}'
    headers = Webhook(url="https://hooks.example/", secret=[OLD, SECRET])._signed("asked-1-0", body)
    assert is_ours(headers, body, SECRET)
    assert is_ours(headers, body, OLD)
    other = "whsec_" + base64.b64encode(bytes(32)).decode()
    assert not is_ours(headers, body, other)
    assert not is_ours(headers, body + b" ", SECRET)
    for name, value in {"webhook-id": "asked-2-0", "webhook-timestamp": "soon", "webhook-signature": "v1 \u00e9"}.items():
        assert not is_ours({**headers, name: value}, body, SECRET)
        assert not is_ours({key: one for key, one in headers.items() if key != name}, body, SECRET)
    later = webhook.time.time() + 301
    monkeypatch.setattr(names["time"], "time", lambda: later)
    assert not is_ours(headers, body, SECRET), "somebody sends it again"


@db
def test_while_a_secret_is_exchanged_both_are_used(world: World, settings: Any, receiver: Receiver) -> None:
    hooked(settings, receiver, secret=[SECRET, OLD])
    world.ask()
    notices.send_owed("default")
    ((_, headers, body),) = receiver.got
    assert is_signed(headers, body, SECRET)
    assert is_signed(headers, body, OLD)


@db
@pytest.mark.parametrize("status", [302, 307, 404, 500])
def test_what_was_not_taken_is_sent_again_under_the_same_id_and_nothing_is_followed(
    world: World, settings: Any, receiver: Receiver, status: int
) -> None:
    hooked(settings, receiver)
    receiver.answers = [status]
    world.ask()
    assert notices.send_owed("default") == 0
    assert notices.send_owed("default") == 0
    row = Notice.objects.get(channel="hook")
    assert (row.tries, row.why, row.sent_at) == (1, "RefusedError", None)
    world.clock.move(seconds=4)
    assert notices.send_owed("default") == 1
    assert [path for path, *_ in receiver.got] == ["/hook", "/hook"]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1


@db
def test_this_machine_is_not_posted_to_unless_that_is_allowed(
    world: World, settings: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked(settings, receiver)
    monkeypatch.setattr(Webhook, "__init__", _forgetting(Webhook.__init__))
    world.ask()
    assert notices.send_owed("default") == 0
    assert (receiver.got, Notice.objects.get(channel="hook").why) == ([], "PrivateAddressError")


def _forgetting(init: Any) -> Any:
    """An address that was a public one when the setting was written."""

    def made(self: Webhook, **options: Any) -> None:
        init(self, **options)
        self._private = False

    return made


@db
def test_a_question_that_was_never_posted_is_not_withdrawn(world: World, settings: Any, receiver: Receiver) -> None:
    hooked(settings, receiver)
    first, second = world.ask(), world.ask()
    flows.cancel(first.workflow)
    notices.send_owed("default")
    flows.cancel(second.workflow)
    notices.send_owed("default")
    said = [(json.loads(body)["type"], json.loads(body)["data"]["request"]) for *_, body in receiver.got]
    assert said == [("request.asked", second.pk), ("request.withdrawn", second.pk)]


@db
def test_a_message_for_slack_is_a_text_with_a_link(world: World, settings: Any, receiver: Receiver) -> None:
    hooked(settings, receiver, form="slack", secret=())
    request = world.ask(key="<!channel> & co")
    notices.send_owed("default")
    world.decide(request, "deny", comment="No.")
    notices.send_owed("default")
    asked, decided = (json.loads(body) for *_, body in receiver.got)
    assert request.expires_at is not None
    link = f"<{noticing.SITE}/outlast_approvals/request/{request.pk}/decide/|publish-news &lt;!channel&gt; &amp; co: ask>"
    expires = f"Expires: {request.expires_at:%Y-%m-%d %H:%M} UTC"
    assert asked["text"].split("\n") == [f"An answer is needed: {link}", f"Asked: {request.asked}", expires]
    assert decided["text"].split("\n") == [f"Answered: {link}", "Answer: denied"]
    assert "webhook-signature" not in receiver.got[0][1], "its address is the secret"


@db
def test_without_the_admins_address_slack_is_told_where_in_the_admin(world: World, settings: Any, receiver: Receiver) -> None:
    hooked(settings, receiver, form="slack")
    settings.OUTLAST = {**settings.OUTLAST, "ADMIN_URL": ""}
    request = world.ask(key="k")
    notices.send_owed("default")
    text = json.loads(receiver.got[0][2])["text"]
    assert text.startswith(f"An answer is needed: publish-news k: ask (outlast_approvals/request/{request.pk}/decide/)\n")


GOOD = {"url": "https://hooks.example/", "secret": SECRET}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"OPTIONS": {**GOOD, "url": "http://hooks.example/"}}, "url begins with https://"),
        ({"OPTIONS": {**GOOD, "url": "https:///x"}}, "url begins with https://"),
        ({"OPTIONS": {**GOOD, "url": "ftp://hooks.example/", "allow_private": True}}, "url begins with https://"),
        ({"OPTIONS": {"url": GOOD["url"]}}, "secret is missing"),
        ({"OPTIONS": {**GOOD, "secret": "whsec_not base64!"}}, 'secret is "whsec_" and base64'),
        ({"OPTIONS": {**GOOD, "secret": "whsec_c2hvcnQ="}}, "secret is base64 of 5 bytes; it has 24 to 64"),
        ({"OPTIONS": {**GOOD, "form": "xml"}}, "form is one of json, slack"),
        ({"OPTIONS": {**GOOD, "to": "x"}}, "unexpected keyword argument 'to'"),
        ({"OPTIONS": GOOD, "KINDS": ["asked", "told"]}, "KINDS is a list of some of asked, "),
        ({"OPTIONS": GOOD, "KINDS": "asked"}, "KINDS is a list of some of asked, "),
        ({"OPTIONS": GOOD, "OPTION": {}}, "has OPTION; known are BACKEND, KINDS and OPTIONS"),
        ({"BACKEND": "no.such.channel"}, "No module named 'no'"),
        ({"BACKEND": 3}, "is no dict with a BACKEND"),
    ],
)
def test_a_channel_that_cannot_be_made_is_found_by_a_check_that_shows_no_secret(settings: Any, given: Any, says: str) -> None:
    channel = {"BACKEND": BACKEND, **given}
    settings.OUTLAST = {"NOTICE_CHANNELS": {"hook": channel}}
    (message,) = checks.check_settings()
    assert message.id == "outlast_flows.E110"
    assert message.msg.startswith("settings.OUTLAST['NOTICE_CHANNELS']['hook']: ")
    assert says in message.msg
    assert SECRET not in str(message)
    with pytest.raises(BadChannel, match="NOTICE_CHANNELS"):
        make("hook", channel)


@pytest.mark.parametrize("value", [None, [], "mail"])
def test_channels_are_a_dict(settings: Any, value: Any) -> None:
    settings.OUTLAST = {"NOTICE_CHANNELS": value}
    (message,) = checks.check_settings()
    assert (message.id, message.msg) == (
        "outlast_flows.E110",
        f"settings.OUTLAST['NOTICE_CHANNELS'] is a {type(value).__name__}.",
    )


def test_channels_that_can_be_made_are_no_finding(settings: Any) -> None:
    hook = {"BACKEND": BACKEND, "KINDS": ["asked"], "OPTIONS": GOOD}
    for channels in ({}, {"mail": noticing.MAIL, "hook": hook, "own": noticing.FEED}):
        settings.OUTLAST = {"NOTICE_CHANNELS": channels}
        assert checks.check_settings() == []
