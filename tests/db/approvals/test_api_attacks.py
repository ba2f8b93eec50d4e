"""What an attacker, a broken client or an unlucky moment sends to the API: each has its answer, none is an error of ours, nothing is decided."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.http import HttpRequest

from approvals.models import Delegation, KeptAnswer, Request, Review
from approvals.services.callers import Caller, Unauthenticated, sent_on_purpose
from flows.services.clock import now
from tests.support.api import Api, api
from tests.support.approving import AskYesOrNo, World
from tests.support.filling import VALUES, OrderParts
from tests.support.laddering import somebody

__all__ = ["api"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F2", "F3")]

EVIL = "</script><script>alert(1)</script>\u202e\u0007"

#: The users whose tokens `by_token` knows.
TOKENS: dict[str, Any] = {}


def by_token(request: HttpRequest) -> Caller | None:
    """As a project may write it: a token where there is one, else the session."""
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    if scheme in ("Bearer", "Basic"):
        if token not in TOKENS:
            raise Unauthenticated("Bearer")
        return Caller(TOKENS[token], header="Authorization")
    user: Any = request.user
    return Caller(user, header="Authorization") if user.is_authenticated else None


def untouched(request: Request) -> bool:
    row = Request.objects.get(pk=request.pk)
    return (row.status, row.given, row.answer) == ("pending", 0, "")


def permit(user: Any, *names: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=names))


# ---------------------------------------------------------------- the digest


@pytest.mark.parametrize("tag", ["", "*", "sha256:abc", '"a", "b"', '""', '"' + "x" * 201 + '"', 'W/"', '"a"b"', "\ud83d\ude00"])
def test_an_answer_names_exactly_one_digest(world: World, api: Any, tag: str) -> None:
    request = world.ask()
    tag = tag.encode("utf-16", "surrogatepass").decode("utf-16").encode().decode("latin-1")
    found = api("rita").post(f"/requests/{request.pk}/decide", {"verdict": "approve"}, headers={"If-Match": tag})
    assert (found.status, found.code) == (428, "DIGEST_REQUIRED")
    assert untouched(request)
    assert not Review.objects.exists()


def test_a_forged_digest_is_refused_and_recorded(world: World, api: Any) -> None:
    request = world.ask()
    found = api("rita").decide(request, seen="sha256:" + "f" * 64)
    assert (found.status, found.code) == (412, "STALE_CANDIDATE")
    assert (untouched(request), world.refusals(request)) == (True, ["STALE_CANDIDATE"])


def test_the_digest_of_the_candidate_before_decides_nothing(world: World, api: Any) -> None:
    first, rita = world.ask({"text": "A."}, {"text": "B."}), api("rita")
    rita.decide(first, "changes", comment="Better.")
    world.worker.run()
    second = world.request_of(world.workflow(first))
    assert rita.decide(second, seen=first.digest).status == 412
    assert rita.decide(first).code in ("ANSWERED_BEFORE", "NOT_WAITING")
    assert untouched(second)


def test_a_weak_tag_names_the_same_candidate(world: World, api: Any) -> None:
    """Middleware that compresses an answer marks its tag as weak."""
    request = world.ask()
    headers = {"If-Match": f'W/"{request.digest}"'}
    assert api("rita").post(f"/requests/{request.pk}/decide", {"verdict": "approve"}, headers=headers).status == 200


def test_a_tag_does_not_hide_that_the_request_has_moved(world: World, api: Any, settings: Any) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.http.ConditionalGetMiddleware"]
    request, rita = world.ask(), api("rita")
    tag = rita.get(f"/requests/{request.pk}").headers["ETag"]
    world.decide(request)
    assert rita.get(f"/requests/{request.pk}", headers={"If-None-Match": tag}).data["status"] == "approved"


def test_a_list_gives_no_digest(world: World, api: Any) -> None:
    """Nobody answers what they have not opened."""
    request = world.ask()
    assert request.digest.encode() not in api("rita").get("/requests").raw


# ---------------------------------------------------------------- who


def test_a_permission_taken_between_page_and_answer(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    assert rita.get(f"/requests/{request.pk}").data["may_answer"] == {"allowed": True, "code": None, "sentence": None}
    world.rita.user_permissions.remove(Permission.objects.get(codename="answer_request"))
    assert (rita.decide(request).status, rita.decide(request).code) == (403, "NOT_PERMITTED")
    world.rita.user_permissions.clear()
    assert rita.decide(request).status == 404
    world.rita.is_active = False
    world.rita.save()
    assert rita.decide(request).status == 401
    assert untouched(request)


def test_who_is_not_asked_or_accountable(world: World, api: Any) -> None:
    request = world.ask()
    somebody("dora")
    assert (api("dora").decide(request).code, api("sue").decide(request).code) == ("NOT_ASKED", "NOT_ASKED")
    assert (api("robin").decide(request).status, api("robin").decide(request).code) == (403, "SELF_APPROVAL")
    shown = api("robin").get(f"/requests/{request.pk}").data["may_answer"]
    assert (shown["allowed"], shown["code"]) == (False, "SELF_APPROVAL")
    assert api("robin").get("/requests").data["requests"] == []
    assert untouched(request)


def test_ids_tell_nothing_to_those_who_may_not_look(world: World, api: Any) -> None:
    """What exists and what does not give the same answer, to the byte."""
    request = world.ask()
    somebody("nora", permissions=())
    nora = api("nora")
    for verb, body in (
        ("", None),
        ("/decide", {"verdict": "approve"}),
        ("/assign", {"to": "nora"}),
        ("/revoke", {"reason": "x"}),
    ):
        answers = []
        for number in (request.pk, 10**9):
            path = f"/requests/{number}{verb}"
            answers.append(nora.get(path) if body is None else nora.post(path, body, seen=request.digest))
        assert answers[0].status == 404
        assert answers[0].raw == answers[1].raw
    given = Delegation.objects.create(
        giver=world.rita, giver_label="rita", taker=world.ron, taker_label="ron", starts_at=now("default"), reason="x",
        ends_at=now("default") + timedelta(days=1), made_at=now("default"), made_by_label="rita",
    )  # fmt: skip
    assert nora.post(f"/delegations/{given.pk}/end").raw == nora.post("/delegations/999999999/end").raw
    assert nora.get("/delegations").data["delegations"] == []


@pytest.mark.parametrize(
    "number", ["0", "-1", "1e3", "99999999999999999999", "9223372036854775808", "١٢", "1%00", "..", "1;2", "%20"]
)
def test_what_is_no_id_is_not_found(world: World, api: Any, number: str) -> None:
    rita = api("rita")
    for path in (f"/requests/{number}", f"/requests/{number}/nothing", f"/nothing/{number}"):
        assert rita.get(path).status == 404
    for path in (f"/requests/{number}/decide", f"/delegations/{number}/end"):
        assert rita.post(path, {"verdict": "approve"} if "requests" in path else {}, seen="x").status == 404


def test_names_are_told_only_to_those_who_may_use_them(world: World, api: Any) -> None:
    request, ron = world.ask(), api("ron")
    path = f"/requests/{request.pk}/assign"
    assert ron.post(path, {"to": "rita"}).raw == ron.post(path, {"to": "no such user"}).raw
    new = {"to": "rita", "until": "2100-01-01T00:00:00Z", "reason": "x"}
    assert ron.post("/delegations", new).raw == ron.post("/delegations", {**new, "to": "no such user"}).raw
    assert ron.post("/delegations", {**new, "giver": "rita"}).raw == ron.post("/delegations", {**new, "giver": "nobody"}).raw
    permit(world.ron, "assign_request")
    assert ron.post(path, {"to": "no such user"}).code == "UNKNOWN_USER"
    assert ron.post(path, {"to": "rita"}).data["request"]["looked_at_by"] == "rita"
    assert ron.post(path, {"to": "vera"}).code == "NOT_PERMITTED", "who may not answer is not asked to look"


# ---------------------------------------------------------------- credentials


def test_without_a_token_of_the_page_nothing_is_done(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    for csrf in ("", "x" * 32, "é"):
        assert rita.decide(request, csrf=csrf).code == "CSRF_FAILED"
    other = rita.decide(request, headers={"Origin": "https://evil.example"})
    assert (other.status, other.code) == (403, "CSRF_FAILED")
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
        "",
        "application/json; charset=utf-16",
    ):
        raw = json.dumps({"verdict": "approve"}).encode()
        found = rita.post(f"/requests/{request.pk}/decide", raw=raw, kind=kind, csrf="", seen=request.digest)
        assert (found.status, found.code) == (415, "NOT_JSON")
    assert untouched(request)


@pytest.fixture
def tokens(world: World, settings: Any) -> Any:
    TOKENS.clear()
    TOKENS["t-rita"] = world.rita
    settings.OUTLAST = {**settings.OUTLAST, "API_AUTHENTICATE": f"{__name__}.by_token"}
    yield TOKENS
    TOKENS.clear()


def test_a_token_in_a_header_needs_no_csrf(world: World, api: Any, tokens: Any) -> None:
    request, nobody = world.ask(), api(None)
    bearer = {"Authorization": "Bearer t-rita"}
    assert nobody.get(f"/requests/{request.pk}", headers=bearer).data["may_answer"]["allowed"] is True
    unknown = nobody.get("/requests", headers={"Authorization": "Bearer t-other"})
    assert (unknown.status, unknown.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert nobody.decide(request, headers=bearer).status == 200
    assert Review.objects.get().by == world.rita


def test_the_same_function_without_that_header_has_the_check_on(world: World, api: Any, tokens: Any) -> None:
    """It says "Authorization" of a session, too; this request has none, or one that browsers send by themselves."""
    request, rita = world.ask(), api("rita")
    assert rita.decide(request, csrf="").code == "CSRF_FAILED"
    tokens["dTpw"] = world.rita
    assert rita.decide(request, csrf="", headers={"Authorization": "Basic dTpw"}).code == "CSRF_FAILED"
    assert untouched(request)
    assert rita.decide(request).status == 200, "with the token of the page it may"


def test_a_token_of_a_user_as_they_were(world: World, api: Any, tokens: Any) -> None:
    """The function may keep users for an hour: rights are read anew."""
    request, nobody = world.ask(), api(None)
    bearer = {"Authorization": "Bearer t-rita"}
    assert world.rita.has_perm("outlast_approvals.answer_request")
    type(world.rita).objects.get(pk=world.rita.pk).user_permissions.clear()
    assert nobody.decide(request, headers=bearer).status == 404
    type(world.rita).objects.filter(pk=world.rita.pk).update(is_active=False)
    assert nobody.decide(request, headers=bearer).status == 401


@pytest.mark.parametrize(
    ("header", "value", "proof"),
    [
        ("Authorization", "Bearer abc", True),
        ("authorization", "Token abc", True),
        ("Authorization", "Bearer ", False),
        ("Authorization", "Basic abc", False),
        ("Authorization", "NEGOTIATE abc", False),
        ("X-Api-Key", "abc", True),
        ("X-Api-Key", " ", False),
        ("X-Forwarded-User", "rita", False),
        ("X-SSL-Client-Cert", "abc", False),
        ("Cookie", "a=b", False),
        ("Accept", "abc", False),
        ("Content-Type", "abc", False),
        ("", "abc", False),
    ],
)
def test_which_header_only_code_sends(header: str, value: str, *, proof: bool, rf: Any) -> None:
    request = rf.post("/", content_type="text/plain", headers={header: value} if header and header != "Content-Type" else {})
    assert sent_on_purpose(request, header) is proof


@pytest.mark.parametrize("given", ["rita", None, 7])
def test_a_function_that_gives_no_user_lets_nobody_in(world: World, api: Any, tokens: Any, given: Any) -> None:
    tokens["t-odd"] = given
    found = api(None).get("/requests", headers={"Authorization": "Bearer t-odd"})
    assert (found.status, found.code) == (401, "NOT_AUTHENTICATED")


# ---------------------------------------------------------------- bodies

DEEP = "[" * 30_000 + "]" * 30_000
BODIES = [
    b"{",
    b"null",
    b"[]",
    b'"approve"',
    b"7",
    b"\xff\xfe",
    b'{"verdict": "\xff"}',
    b'\xef\xbb\xbf{"verdict": "approve"}',
    b'{"verdict": "approve", "verdict": "deny"}',
    b'{"verdict": NaN}',
    b'{"verdict": 1e999}',
    b'{"verdict": ' + b"9" * 5000 + b"}",
    b'{"verdict": "\\ud800"}',
    b'{"verdict": "approve", "comment": "\\u0000"}',
    b'{"a": ' + DEEP.encode() + b"}",
    ("{" + '"a": {' * 200 + "}" * 200 + "}").encode(),
    b"verdict=approve",
]


@pytest.mark.parametrize("raw", BODIES, ids=lambda raw: raw[:30].decode("latin-1"))
def test_a_body_that_is_none_is_refused(world: World, api: Any, raw: bytes) -> None:
    request, rita = world.ask(), api("rita")
    permit(world.rita, "delegate_own")
    for path in (f"/requests/{request.pk}/decide", f"/requests/{request.pk}/revoke", "/delegations"):
        found = rita.post(path, raw=raw, seen=request.digest)
        assert (found.status, found.code) == (400, "MALFORMED_BODY")
    assert untouched(request)


@pytest.mark.parametrize(
    "value", [None, 7, 1.5, True, [], {}, ["approve"], {"a": "b"}, "", "x" * 4001, "approve\x00", "Approve", "revoke"]
)
def test_a_member_of_the_wrong_type_is_named(world: World, api: Any, value: Any) -> None:
    request, rita = world.ask(), api("rita")
    permit(world.rita, "delegate_own")
    new = {"to": "ron", "until": "2100-01-01T00:00:00Z", "reason": "x"}
    bodies = [
        *(
            (f"/requests/{request.pk}/decide", {"verdict": "approve", "comment": "", name: value})
            for name in ("verdict", "comment")
        ),
        (f"/requests/{request.pk}/assign", {"to": value}),
        (f"/requests/{request.pk}/revoke", {"reason": value}),
        (f"/requests/{request.pk}/answer", {"values": value}),
        (f"/requests/{request.pk}/answer", {"values": {"title": value}}),
        (f"/requests/{request.pk}/decide", {"verdict": "narrow", "comment": "x", "keep": value}),
        *(
            ("/delegations", {**new, name: value})
            for name in ("to", "until", "starts", "reason", "role", "pool", "flow", "giver")
        ),
    ]
    for path, body in bodies:
        found = rita.post(path, body, seen="sha256:0")
        optional = value in (None, "", [])  # most members may be left away, or be empty
        taken = (200, 201, 412) if optional else (412,) if isinstance(value, str) or path.endswith("/answer") else ()
        assert found.status in (400, 403, 422, *taken), (path, body, found.data)
        if found.status == 422 and found.code == "INVALID_BODY":
            assert {one["pointer"].removeprefix("#/") for one in found.data["errors"]} <= set(body)
    assert untouched(request)


@pytest.mark.req("C6")
@pytest.mark.parametrize(
    "value", [None, 7, 1.5, True, [], {}, {"name": "a", "size": 1}, "", "x" * 30_000, "../../etc/passwd", EVIL]
)
def test_a_form_takes_only_what_its_fields_take(world: World, api: Any, value: Any) -> None:
    request, rita = world.ask(flow=OrderParts), api("rita")
    for name in ("count", "size", "wanted_by", "contract", "nonsense"):
        found = rita.post(f"/requests/{request.pk}/answer", {"values": {**VALUES, name: value}}, seen=request.digest)
        if found.status == 200:  # an empty field that may be left away, or a number where one is wanted
            assert (name, value) in [("count", 7), ("wanted_by", None), ("wanted_by", ""), ("contract", None), ("contract", "")]
            request = world.ask(flow=OrderParts)
        else:
            assert (found.status, found.code) == (422, "ANSWER_INVALID")
            assert [one["pointer"] for one in found.data["errors"]] in ([f"#/values/{name}"], ["#/values"])
    assert untouched(request)


def test_members_that_nobody_knows_are_named_and_not_repeated(world: World, api: Any) -> None:
    request = world.ask()
    body = {"verdict": "approve", "coment": "x", "<script>alert(1)</script>": 1, "y" * 100: 2}
    found = api("rita").post(f"/requests/{request.pk}/decide", body, seen=request.digest)
    assert found.code == "INVALID_BODY"
    assert [one["pointer"] for one in found.data["errors"]] == ["#/coment", "#/?script?alert?1???script?", "#/" + "y" * 40 + "…"]
    many = api("rita").post(f"/requests/{request.pk}/decide", {f"m{n}": n for n in range(3000)}, seen=request.digest)
    assert len(many.data["errors"]) == 21
    assert untouched(request)


def test_a_body_that_is_too_large_is_not_read(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    for raw in (b" " * (64 * 1024 + 1), b'{"comment": "' + b"x" * 10_000_000 + b'"}'):
        found = rita.post(f"/requests/{request.pk}/decide", raw=raw, seen=request.digest)
        assert (found.status, found.code) == (413, "BODY_TOO_LARGE")
    assert untouched(request)


def test_the_longest_comment_fits_however_it_is_written(world: World, api: Any) -> None:
    request = world.ask()
    comment = "\U0001f600" * 4000
    assert len(json.dumps({"comment": comment})) > 48_000
    assert api("rita").decide(request, "deny", comment=comment).status == 200
    assert Review.objects.get().comment == comment


@pytest.mark.parametrize(
    "query",
    [
        {"queue": "theirs"},
        {"limit": "0"},
        {"limit": "101"},
        {"limit": "٣"},
        {"limit": "1" * 50},
        {"workflow": "x"},
        {"workflow": "\x00"},
        {"flow": "\x00"},
        {"queue": "all", "flow": "publish-news"},
        {"queue": ["mine", "all"]},
        {"cursor": ""},
        {"cursor": "x" * 5000},
        {"cursor": "é"},
        {"cursor": "W10"},
        {"cursor": "WyJtaW5lIiwxLDdd"},
        {"cursor": "WyJtaW5lIiwtMSxudWxsXQ"},
        {"cursor": "WyJtaW5lIiwxZTMwMCxudWxsXQ"},
        {"cursor": "WyJtaW5lIix0cnVlLG51bGxd"},
        {"cursor": "WyJtaW5lIiwxLCIyMDI2LTAxLTAxIl0"},
        {"cursor": "WyJhbGwiLDEsbnVsbF0"},
        {"order": "id"},
    ],
    ids=str,
)
def test_an_address_that_does_not_fit(world: World, api: Any, query: dict[str, Any]) -> None:
    assert api("rita").get("/requests", **query).status == 400


# ---------------------------------------------------------------- reading changes nothing


def test_a_get_changes_nothing(world: World, api: Any) -> None:
    request, rita = world.ask(), api("rita")
    before = Request.objects.values().get(pk=request.pk)
    for path in (f"/requests/{request.pk}", "/requests", "/delegations", "/openapi.json"):
        assert rita.get(path).status == 200
    for verb in ("decide", "assign", "revoke"):
        query = {"verdict": "approve", "to": "rita", "reason": "x"}
        assert rita.get(f"/requests/{request.pk}/{verb}", headers={"If-Match": f'"{request.digest}"'}, **query).status == 405
    assert Request.objects.values().get(pk=request.pk) == before
    assert not any(table.objects.exists() for table in (Review, KeptAnswer, LogEntry, Delegation))


# ---------------------------------------------------------------- text that is not ours


def test_text_of_a_model_is_a_value_and_nothing_else(world: World, api: Any) -> None:
    value = {"text": EVIL, "reason": EVIL}
    request = world.ask(value, flow=AskYesOrNo, goal="Goal", by=world.rita)
    found = api("ron").get(f"/requests/{request.pk}")
    assert found.data["candidate"]["unverified_value"] == value
    marked = [path for path, text in leaves(found.data) if text == EVIL]
    assert len(marked) == 3
    assert all(any(part.startswith("unverified_") for part in path) for path in marked)
    assert "\u202e" not in found.raw.decode("ascii")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        return itertools.chain.from_iterable(leaves(inner, (*path, name)) for name, inner in value.items())
    if isinstance(value, list):
        return itertools.chain.from_iterable(leaves(inner, path) for inner in value)
    return [(path, value)]


def test_a_candidate_altered_by_hand_can_only_be_refused(world: World, api: Any) -> None:
    from django.db import connection

    request, rita = world.ask(), api("rita")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER outlast_approval_request_moved")
        cursor.execute("""UPDATE outlast_approval_request SET candidate = jsonb_set(candidate, '{value,text}', '"Bye."')""")
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER outlast_approval_request_moved")
    shown = rita.get(f"/requests/{request.pk}").data
    assert shown["candidate"]["sound"] is False
    assert [one["verdict"] for one in shown["answers"]] == ["changes", "deny"]
    assert (rita.decide(request).status, rita.decide(request).code) == (409, "CANDIDATE_INVALID")
    assert rita.decide(request, "deny", comment="Somebody wrote to the table.").status == 200


assert Api
