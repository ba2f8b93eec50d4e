"""Webhooks over HTTP: each arrow with its answer, its row and what it wakes; nothing sent is a 500, and nothing that is good is lost."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.test import AsyncRequestFactory, Client, RequestFactory

import flows
from flows.models import Event, Wait, WebhookDelivery, WebhookRefusal, WebhookSource
from flows.services.webhooks import bodies, mapping, refusals, sources
from flows.store import sql
from flows.store import webhooks as store
from flows.testing import LocalWorker
from flows.views import webhooks as views
from tests.factories import Ask, status
from tests.support import hooking, signing
from tests.support.hooking import post
from tests.support.trace import Died

pytestmark = pytest.mark.req("E4")

USING = "default"


@pytest.fixture(autouse=True)
def source(transactional_db: None, settings: Any, caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """One source; `source(SCHEME=…)` describes it anew. Nothing that is sent in a test is an error of ours."""
    settings.HOOK_SECRET = signing.SECRET

    def describe(**changed: Any) -> None:
        given = {**hooking.SETTING, **changed}
        settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": {hooking.SOURCE: given}}

    describe()
    sources.forget()
    hooking.broken, hooking.asked = False, []
    refusals.tally = refusals.Tally()
    yield describe
    sources.forget()
    assert [record.message for record in caplog.records if record.name == views.__name__] == []


def row() -> WebhookDelivery:
    return WebhookDelivery.objects.get()


def facts(one: WebhookDelivery) -> tuple[str, str, str, int, int]:
    return one.verdict, one.code, one.event_id, one.times, one.conflicts


def refused() -> dict[tuple[str, str], int]:
    """(source, why) → how many, of this test."""
    refusals.tally.write(USING, now=True)
    return {(one.source, one.code): one.count for one in WebhookRefusal.objects.all()}


# ---------------------------------------------------------------- accept, repeat, ignore


@pytest.mark.req("E1")
def test_a_signed_webhook_wakes_who_waits_for_it(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    answer = post({"key": "k", "n": 1}, user_agent="robot/1", authorization="Bearer x", cookie="a=b")
    assert (answer.status_code, answer.content, answer.headers["Cache-Control"]) == (202, b"", "no-store")
    assert status(run) == ("runnable", "", "ask")
    assert Wait.objects.get(workflow_id=run.id).evidence == {"id": "ci:d-1", "payload": {"key": "k", "n": 1}}
    one = row()
    assert facts(one) == ("accepted", "", "ci:d-1", 1, 0)
    assert (one.body, one.secret, one.unsigned_id, one.events) == (None, 1, False, 1)
    assert set(one.headers) == {"content-type", "user-agent", "webhook-id", "webhook-timestamp"}
    assert one.sent_at is not None
    assert abs(one.sent_at.timestamp() - time.time()) < 60


@pytest.mark.parametrize("scheme", signing.SCHEMES)
def test_each_scheme_is_taken_in_and_known_again(source: Any, settings: Any, scheme: str) -> None:
    secret = settings.HOOK_SECRET = signing.secrets(scheme)[0]
    source(**hooking.of(scheme))
    body, now = {"key": "k", "id": "d-1", "event_id": "d-1"}, int(time.time())
    assert post(body, scheme=scheme, secret=secret, now=now).status_code == 202
    assert post(body, scheme=scheme, secret=secret, now=now).status_code == 200
    assert Event.objects.get().deliveries == 1
    assert facts(row()) == ("accepted", "", "ci:d-1", 2, 0)
    assert post(body, scheme=scheme, secret=signing.secrets(scheme)[1], now=now).status_code == 401


def test_the_same_again_changes_nothing_though_it_was_signed_anew(worker: LocalWorker) -> None:
    run = Ask.start({"key": "k"})
    worker.run()
    now = int(time.time())
    assert [post({"key": "k"}, now=now - late).status_code for late in (100, 0)] == [202, 200]
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")
    assert facts(row()) == ("accepted", "", "ci:d-1", 2, 0)


def test_the_secret_that_held_is_named(source: Any, settings: Any) -> None:
    settings.NEW_SECRET = signing.secrets("standard")[0]
    source(SECRETS=["setting:NOT_SET", "setting:NEW_SECRET", "setting:HOOK_SECRET"])
    post({"key": "k"}, sent_id="old")
    post({"key": "k"}, sent_id="new", secret=settings.NEW_SECRET)
    assert dict(WebhookDelivery.objects.values_list("delivery_id", "secret")) == {"old": 3, "new": 2}


def test_what_concerns_nobody_is_ignored(source: Any) -> None:
    source(EVENT="tests.support.hooking.by_function", KEY="")
    assert post({"other": 1}).status_code == 202
    assert facts(row()) == ("ignored", "", "", 1, 0)
    assert row().body is None
    assert not Event.objects.exists()
    assert post({"other": 1}).status_code == 200


def test_one_delivery_may_mean_several_events(source: Any, worker: LocalWorker) -> None:
    source(EVENT="tests.support.hooking.by_function", KEY="", HEADERS=["X-Team"])
    runs = [Ask.start({"key": key}) for key in ("b", "a", "c")]
    worker.run()
    assert post({"keys": ["a", "b", "c"]}, x_team="red").status_code == 202
    assert [status(run)[0] for run in runs] == ["runnable"] * 3
    assert list(Event.objects.order_by("id").values_list("event_id", "key")) == [
        ("ci:d-1#1", "a"),
        ("ci:d-1#2", "b"),
        ("ci:d-1#3", "c"),
    ]
    assert (row().event_id, row().events) == ("ci:d-1#1", 3)
    assert hooking.asked[0].headers["x-team"] == "red"
    assert "webhook-signature" not in hooking.asked[0].headers


# ---------------------------------------------------------------- replay of what is not signed


def test_a_captured_github_body_under_a_new_id_wakes_nobody(source: Any, settings: Any, worker: LocalWorker) -> None:
    settings.HOOK_SECRET = secret = signing.secrets("github")[0]
    source(**hooking.of("github"))
    assert post({"key": "k"}, scheme="github", secret=secret, sent_id="one").status_code == 202
    run = Ask.start({"key": "k"})
    worker.run()  # it takes the early one
    assert status(run) == ("waiting", "WAITING", "again")
    second = Ask.start({"key": "k"})
    worker.run()
    assert post({"key": "k"}, scheme="github", secret=secret, sent_id="two").status_code == 200
    assert status(second) == ("waiting", "WAITING", "ask")
    assert facts(row()) == ("accepted", "", "ci:one", 2, 0)


def test_a_source_may_say_that_a_known_body_is_another_delivery(source: Any, settings: Any) -> None:
    settings.HOOK_SECRET = secret = signing.secrets("github")[0]
    source(**hooking.of("github", OPTIONS={"same_body": "accept"}))
    assert [post({"key": "k"}, scheme="github", secret=secret, sent_id=one).status_code for one in ("1", "2", "2")] == [
        202,
        202,
        200,
    ]
    assert sorted(Event.objects.values_list("event_id", flat=True)) == ["ci:1", "ci:2"]


def test_the_body_of_another_source_is_another_one(settings: Any) -> None:
    settings.HOOK_SECRET = secret = signing.secrets("github")[0]
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOKS": {"a": hooking.of("github"), "b": hooking.of("github")}}
    assert [post({"key": "k"}, scheme="github", secret=secret, name=one).status_code for one in ("a", "b")] == [202, 202]


# ---------------------------------------------------------------- conflict


def test_another_body_under_a_known_id_is_kept_and_never_taken(worker: LocalWorker) -> None:
    assert [post({"key": "k", "n": n}).status_code for n in (1, 2, 2, 1)] == [202, 202, 200, 200]
    first, second = WebhookDelivery.objects.order_by("id")
    assert facts(first) == ("accepted", "", "ci:d-1", 2, 1)
    assert (second.verdict, second.code, second.event_id, second.times) == ("conflict", "other_body", "ci:d-1", 2)
    assert second.delivery_id.startswith("d-1~")
    assert second.body is not None
    assert json.loads(bodies.unpacked(second.body)) == {"key": "k", "n": 2}
    assert sorted(Event.objects.values_list("status", "payload__n")) == [("conflict", 2), ("pending", 1)]
    run = Ask.start({"key": "k"})
    worker.run()
    assert Wait.objects.filter(workflow_id=run.id).order_by("id")[0].result["payload"]["n"] == 1


def test_a_conflict_of_which_nothing_can_be_made_is_kept_as_it_came() -> None:
    assert [post(body).status_code for body in ({"key": "k"}, b"no json", {"other": 1})] == [202] * 3
    found = {one.code: one for one in WebhookDelivery.objects.filter(verdict="conflict")}
    assert set(found) == {"not_json", "no_key"}
    assert bodies.unpacked(found["not_json"].body or b"") == b"no json"
    assert WebhookDelivery.objects.get(delivery_id="d-1").conflicts == 2
    assert Event.objects.count() == 1


def test_a_conflict_of_something_ignored_is_never_taken(source: Any) -> None:
    source(EVENT="tests.support.hooking.by_function", KEY="")
    assert [post(body).status_code for body in ({"other": 1}, {"key": "k"})] == [202, 202]
    assert list(Event.objects.values_list("event_id", "status")) == [("ci:d-1", "conflict")]


def test_an_event_that_somebody_else_signalled_under_its_id_is_a_conflict() -> None:
    flows.signal("ci:d-1", "t.asked", key="k", payload={"mine": True})
    assert post({"key": "k"}).status_code == 202
    assert facts(row())[:3] == ("conflict", "known_event", "ci:d-1")


# ---------------------------------------------------------------- unmapped, and map anew


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff\x00", "not_json"),
        (b'{"key": NaN}', "not_json"),
        (b"[" * 5000, "not_json"),
        (b'{"other": 1}', "no_key"),
        (b'{"key": ["k"]}', "no_key"),
        (b'{"key": "k", "a": "\\u0000"}', "payload"),
        (b'{"key": "k", "a": "\\ud800"}', "payload"),
        (b'{"key": "a\\u0000b"}', "payload"),
        (b'{"key": "' + b"x" * 600 + b'"}', "payload"),
        (b'{"key": "k", "a": 12345678901234567890}', "payload"),
        (b'{"key": "k", "a": 1e400}', "payload"),
        (b'{"key": "k", "a": ' + b"[" * 150 + b"]" * 150 + b"}", "payload"),
        (b'{"key": "k", "a": "' + b"x" * 300_000 + b'"}', "payload"),
    ],
)
def test_what_cannot_be_made_an_event_is_kept_as_it_came(body: bytes, code: str) -> None:
    assert post(body).status_code == 202
    one = row()
    assert facts(one) == ("unmapped", code, "", 1, 0)
    assert bodies.unpacked(one.body or b"") == body
    assert not Event.objects.exists()
    assert post(body).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"type": "t", "key": 5},
        {"type": "", "key": "k"},
        {"type": "t", "key": "k", "payload": [1]},
        {"type": "t", "key": "k", "position": -1},
        {"type": "t", "key": "k", "about": "run 5"},
    ],
)
def test_what_a_function_answers_that_cannot_be_kept_is_unmapped(source: Any, body: dict[str, Any]) -> None:
    source(EVENT="tests.support.hooking.unfit", KEY="")
    assert post(body).status_code == 202
    assert facts(row())[:2] == ("unmapped", "payload")


@pytest.mark.parametrize("sql", ["SELECT 1/0", "SELECT pg_sleep(20)", "no sql"])
def test_whatever_a_function_does_to_its_transaction_the_delivery_stays(
    source: Any, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "LONGEST", "50ms")
    source(EVENT="tests.support.hooking.breaking", KEY="")
    assert post({"sql": sql}).status_code == 202
    assert facts(row())[:2] == ("unmapped", "function")


def test_the_limit_of_a_functions_statements_ends_with_it(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source(EVENT="tests.support.hooking.breaking", KEY="")
    limits, limit = [], store.limit_statements
    monkeypatch.setattr(
        store, "limit_statements", lambda most, using: limits.append((most, found := limit(most, using))) or found
    )
    assert post({"sql": "SELECT 1"}).status_code == 202
    assert limits == [("1s", "0"), ("0", "1s")]


def test_a_function_that_is_gone_loses_nothing(source: Any) -> None:
    source(EVENT="tests.support.nowhere.at_all", KEY="")
    assert post({"key": "k"}).status_code == 202
    assert facts(row())[:2] == ("unmapped", "function")


def test_a_delivery_is_mapped_anew_after_its_mapping_was_mended(source: Any, worker: LocalWorker, admin_user: Any) -> None:
    source(EVENT="tests.support.hooking.by_function", KEY="")
    hooking.broken = True
    assert post({"key": "k"}).status_code == 202
    one = row()
    assert facts(one)[:2] == ("unmapped", "function")
    assert mapping.map_anew(one.pk, reason="Try again") == mapping.Remapped(True, "unmapped", "function", "")
    hooking.broken = False
    run = Ask.start({"key": "k"})
    worker.run()
    done = mapping.map_anew(one.pk, reason="The mapping is mended", by=admin_user)
    assert done == mapping.Remapped(True, "accepted", "", "ci:d-1")
    assert status(run)[0] == "runnable"
    one.refresh_from_db()
    assert (one.body, one.mapped_by, one.reason) == (None, "admin", "The mapping is mended")
    again = mapping.map_anew(one.pk, reason="Twice is once", by=admin_user)
    assert (bool(again), again.verdict) == (False, "accepted")
    assert Event.objects.get().deliveries == 1


def test_what_a_codec_seals_is_sealed_here_too(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And while it cannot seal, nothing is kept: the sender has it."""
    monkeypatch.setenv("HOOK_TEST_KEY", base64.b64encode(b"k" * 32).decode())
    sealed = {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:HOOK_TEST_KEY"]}
    plain = dict(settings.OUTLAST)
    settings.OUTLAST = {**plain, "CODEC": sealed}
    assert post(b"a secret").status_code == 202
    one = row()
    assert b"secret" not in bytes(one.body or b"")
    assert bodies.unpacked(one.body or b"") == b"a secret"
    assert mapping.map_anew(one.pk, reason="try").code == "not_json"
    settings.OUTLAST = {**plain, "CODEC": {**sealed, "KEYS": ["env:HOOK_TEST_NOT_SET"]}}
    assert post(b"another", sent_id="d-2").status_code == 503
    settings.OUTLAST = plain
    with pytest.raises(flows.errors.PayloadError, match="CODEC"):
        mapping.map_anew(one.pk, reason="try")
    assert WebhookDelivery.objects.count() == 1
    caplog.clear()


def test_who_maps_anew_may_and_says_why(source: Any, django_user_model: Any) -> None:
    post(b"no json")
    number = row().pk
    with pytest.raises(flows.errors.ReasonMissing):
        mapping.map_anew(number, reason=" ")
    with pytest.raises(flows.errors.NotPermitted):
        mapping.map_anew(number, reason="r", by=django_user_model.objects.create_user("eve"))
    with pytest.raises(mapping.UnknownDelivery, match="no delivery"):
        mapping.map_anew(number + 1, reason="r")
    WebhookDelivery.objects.update(source="gone")
    with pytest.raises(mapping.UnknownDelivery, match="is gone"):
        mapping.map_anew(number, reason="r")


# ---------------------------------------------------------------- refuse


def test_nothing_is_kept_of_what_no_signature_holds_for() -> None:
    assert post({"key": "k"}, secret=signing.secrets("standard")[0]).status_code == 401
    assert post({"key": "k"}, now=int(time.time()) - 301).status_code == 401
    assert post({"key": "k"}, now=int(time.time()) + 330).status_code == 401
    assert post({"key": "k"}, webhook_signature="").status_code == 401
    assert post({"key": "k"}, webhook_timestamp="soon").status_code == 400
    assert not WebhookDelivery.objects.exists()
    assert refused() == {
        ("ci", "bad_signature"): 1, ("ci", "too_old"): 1, ("ci", "too_new"): 1, ("ci", "no_signature"): 1, ("ci", "malformed"): 1,
    }  # fmt: skip


def test_a_source_that_is_not_there_or_not_enabled_is_not_found(source: Any) -> None:
    assert post({"key": "k"}, name="other").status_code == 404
    source(ENABLED=False)
    assert post({"key": "k"}).status_code == 404
    assert refused() == {("", "unknown_source"): 1, ("ci", "disabled"): 1}


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options", "trace"])
def test_only_post_is_taken(method: str) -> None:
    answer = getattr(Client(), method)("/flows/hooks/ci")
    assert (answer.status_code, answer.content, answer.headers["Allow"]) == (405, b"", "POST")


def test_the_length_is_given_and_within_bounds(settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOK_MAX_BYTES": 100}
    assert post(b"x" * 101).status_code == 413
    assert post(b"x" * 100).status_code == 202
    make = RequestFactory().generic

    def sent(length: str | None, body: bytes = b"{}") -> int:
        request = make("POST", "/flows/hooks/ci", body, "application/json")
        if length is None:
            del request.META["CONTENT_LENGTH"]
        else:
            request.META["CONTENT_LENGTH"] = length
        return views.hook(request, "ci").status_code

    assert sent(None) == 411
    assert sent("") == 411
    assert sent("-5") == sent("many") == sent("3") == sent("1") == 400
    assert sent("9" * 30) == sent("1000") == 413
    assert sent("2", b"x" * 200) == 413, "the bound is that of what was read"


def test_under_asgi_a_body_without_a_length_is_read(settings: Any) -> None:
    """The server hands it out whole; the bound is that of what was read."""
    settings.OUTLAST = {**settings.OUTLAST, "WEBHOOK_MAX_BYTES": 100}

    def sent(raw: bytes) -> int:
        headers = {**signing.signed("standard", raw, signing.SECRET, now=int(time.time())), "transfer-encoding": "chunked"}
        request = AsyncRequestFactory().generic("POST", "/flows/hooks/ci", raw, "application/json", headers=headers)
        request.META.pop("CONTENT_LENGTH", None)
        return views.hook(request, "ci").status_code

    assert sent(b'{"key": "k"}') == 202
    assert sent(b"x" * 101) == 413
    assert WebhookDelivery.objects.count() == 1


def test_a_sender_that_goes_away_is_malformed() -> None:
    class Gone:
        def read(self, *_: Any) -> bytes:
            raise OSError("connection reset")

    request = RequestFactory().post("/flows/hooks/ci", b"{}", "application/json")
    request._stream = Gone()  # type: ignore[attr-defined]
    assert views.hook(request, "ci").status_code == 400


def test_no_secret_that_is_set_means_later(source: Any, settings: Any) -> None:
    settings.HOOK_SECRET = " "
    answer = post({"key": "k"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
    source(SCHEME="nothing")
    assert post({"key": "k"}).status_code == 503
    assert refused() == {("ci", "unusable"): 2}


def test_refusals_are_added_up_and_written_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(store, "add_refusals", lambda sums, using: written.append(sum(sums.values())))
    monkeypatch.setattr(refusals, "PACE", 1000.0)
    for _ in range(20):
        post({"key": "k"}, webhook_signature="v1,AAAA")
    assert written == [1], "the first is written at once, the others with the next second's"
    refusals.tally.write(USING, now=True)
    assert written == [1, 19]


def test_refusals_outlive_a_record_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store, "add_refusals", away)
        assert post({"key": "k"}, webhook_signature="").status_code == 401
    assert refused() == {("ci", "no_signature"): 1}


# ---------------------------------------------------------------- the record is away


@pytest.mark.parametrize("error", [OperationalError("the server is away"), RuntimeError("a fault of ours")])
def test_what_cannot_be_kept_is_not_said_to_be(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(store, "settle", fail)
        answer = post({"key": "k"})
    assert (answer.status_code, answer.headers["Retry-After"], answer.content) == (503, "30", b"")
    assert not WebhookDelivery.objects.exists()
    assert not Event.objects.exists()
    caplog.clear()
    assert post({"key": "k"}).status_code == 202


@pytest.mark.parametrize(
    "point", ["within keep delivery", "within record event", "within wake", "within settle delivery", "before webhook"]
)
def test_a_process_that_dies_on_the_way_has_kept_nothing(
    worker: LocalWorker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run = Ask.start({"key": "k"})
    worker.run()

    def die(when: str, name: str) -> None:
        if f"{when} {name}" == point:
            raise Died

    monkeypatch.setattr(sql, "seam", die)
    with pytest.raises(Died):
        post({"key": "k"})
    monkeypatch.setattr(sql, "seam", None)
    assert not WebhookDelivery.objects.exists()
    assert status(run)[0] == "waiting"
    caplog.clear()
    assert post({"key": "k"}).status_code == 202
    assert status(run)[0] == "runnable"


def test_a_process_that_dies_before_it_answers_has_kept_it_once(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender was told nothing, and sends it again."""
    run = Ask.start({"key": "k"})
    worker.run()

    def die(when: str, name: str) -> None:
        if (when, name) == ("after", "webhook"):
            raise Died

    monkeypatch.setattr(sql, "seam", die)
    with pytest.raises(Died):
        post({"key": "k"})
    monkeypatch.setattr(sql, "seam", None)
    assert status(run)[0] == "runnable"
    assert post({"key": "k"}).status_code == 200
    worker.run()
    assert status(run) == ("waiting", "WAITING", "again")


# ---------------------------------------------------------------- Slack


def test_slack_gets_its_challenge_back(source: Any, settings: Any) -> None:
    settings.HOOK_SECRET = secret = signing.secrets("slack")[0]
    source(**hooking.of("slack"))
    body, now = {"type": "url_verification", "challenge": "<b>3eZbrw</b>"}, int(time.time())
    for _ in range(2):
        answer = post(body, scheme="slack", secret=secret, now=now)
        assert (answer.status_code, json.loads(answer.content)) == (200, {"challenge": "<b>3eZbrw</b>"})
        assert (answer.headers["Content-Type"], answer.headers["X-Content-Type-Options"]) == ("application/json", "nosniff")
    assert facts(row())[:3] == ("ignored", "url_verification", "")
    assert post(body, scheme="slack", secret=signing.secrets("slack")[1]).status_code == 401


def test_a_form_of_slack_is_read(source: Any, settings: Any) -> None:
    settings.HOOK_SECRET = secret = signing.secrets("slack")[0]
    source(**hooking.of("slack", EVENT="slack.{body.payload.type}", KEY="body.payload.user.id", PAYLOAD="body.payload"))
    body = b"payload=%7B%22type%22%3A%22block_actions%22%2C%22user%22%3A%7B%22id%22%3A%22U1%22%7D%7D"
    assert post(body, scheme="slack", secret=secret, content_type="application/x-www-form-urlencoded").status_code == 202
    event = Event.objects.get()
    assert (event.type, event.key, event.payload) == (
        "slack.block_actions",
        "U1",
        {"type": "block_actions", "user": {"id": "U1"}},
    )


# ---------------------------------------------------------------- sources


def described(**changed: Any) -> WebhookSource:
    given = {
        "name": "rows", "scheme": "standard", "secrets": ["setting:HOOK_SECRET"], "event_type": "t.asked", "event_key": "body.key",
        "reason": "r", "updated_at": "2026-01-01T00:00Z",
    }  # fmt: skip
    return WebhookSource.objects.create(**{**given, **changed})


def test_a_row_is_a_source_too_and_the_setting_wins() -> None:
    described()
    described(name="ci", event_type="other")
    assert post({"key": "k"}, name="rows").status_code == 202
    assert post({"key": "k"}, name="ci").status_code == 202
    assert sorted(Event.objects.values_list("event_id", "type")) == [("ci:d-1", "t.asked"), ("rows:d-1", "t.asked")]


def test_rows_are_read_at_most_every_ten_seconds(monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any) -> None:
    sources.find("any", USING)
    described()
    with django_assert_num_queries(0):
        assert [sources.find(f"stranger-{n}", USING) for n in range(50)] == [None] * 50
        assert sources.find("rows", USING) is None
    later = time.monotonic() + sources.FRESH + 1
    monkeypatch.setattr(sources.time, "monotonic", lambda: later)
    assert isinstance(sources.find("rows", USING), sources.Source)


def test_a_row_names_no_function_and_one_that_cannot_be_means_later(settings: Any) -> None:
    described(event_type="os.system", event_key="")
    assert post({"key": "k"}, name="rows").status_code == 503
    assert not WebhookDelivery.objects.exists()
