"""The description of the API and the API are the same: each path, method, status and member, both ways."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from jsonschema import Draft202012Validator

from approvals.services.decide import ACCEPTED
from approvals.urls import urlpatterns
from approvals.views import body, delegations, problems, requests
from approvals.views.description import described
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Deadline, Decision, End, Flow, Visits
from flows.errors import VerificationFailed
from flows.services.clock import now
from tests.support import approving
from tests.support.api import Api, Seen, api, template_of
from tests.support.approving import ROLE, AskYesOrNo, World
from tests.support.filling import VALUES, OrderParts
from tests.support.laddering import LONG, ask_long, somebody

__all__ = ["api"]

pytestmark = pytest.mark.django_db(transaction=True)


def looked(attempt: Any) -> None:
    """Finds fault with what is marked."""
    if "bad" in attempt.results["propose"]["value"]["files"]:
        raise VerificationFailed("a file is bad")


BIG = '{"comment": "' + "x" * body.MAX_BODY + '"}'


class KeepAPart(Flow):
    """A part of the list may be kept; a machine has looked at the candidate before anybody is asked."""

    propose = Decision(approving.propose, choices={"release": "look"}, visits=Visits(6, then="stopped"))
    look = Activity(looked, verifies="propose", on={VerificationFailed: "ask"}, then="ask")
    ask = Approval(
        candidate="propose",
        role=ROLE,
        subset="files",
        expires=Deadline(hours=24, then=ESCALATE),
        approved="done",
        changes="propose",
        denied="stopped",
    )
    done = End(COMPLETE)
    stopped = End(FAILED)


def operations() -> dict[tuple[str, str], Any]:
    return {
        (path, method): operation
        for path, item in described()["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post")
    }


def all_members() -> set[str]:
    """Every member that the description names, with its schema's name."""
    found = set()

    def look(schema: Any, at: str) -> None:
        for name, inner in schema.get("properties", {}).items():
            found.add(f"{at}.{name}")
            look(inner, f"{at}.{name}")
        for inner in [schema.get("items"), *schema.get("anyOf", [])]:
            if isinstance(inner, dict):
                look(inner, at)

    for name, schema in described()["components"]["schemas"].items():
        look(schema, name)
    return found


def permit(user: Any, *names: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=names))


# ---------------------------------------------------------------- the description alone


def test_it_is_sound_and_closed() -> None:
    for name, schema in described()["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False, name
        assert set(schema["required"]) <= set(schema["properties"]), name
    text = str(described())
    for reference in set(re.findall(r"#/components/(\w+)/(\w+)", text)):
        assert reference[1] in described()["components"][reference[0]]


def test_it_names_every_address() -> None:
    routes = {"/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(one.pattern)) for one in urlpatterns}
    assert routes - {"/", "/{rest}"} == set(described()["paths"])


def test_it_names_every_code_of_the_services() -> None:
    answers = operations()["/requests/{number}/decide", "post"]["responses"]

    def codes(status: int) -> set[str]:
        return set(
            answers[str(status)]["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"]
        )

    for code, status in problems.REFUSED.items():
        assert code in codes(status)
    assert codes(409) == problems.CONFLICTS - {"TOO_LATE"}


def test_its_bounds_are_those_of_the_code() -> None:
    schemas, paths = described()["components"]["schemas"], described()["paths"]
    assert schemas["Decision"]["properties"]["comment"]["maxLength"] == requests.MAX_COMMENT
    assert schemas["Assignment"]["properties"]["to"]["maxLength"] == requests.MAX_NAME
    new = {name: one.get("maxLength") for name, one in schemas["NewDelegation"]["properties"].items()}
    assert (new["to"], new["reason"], new["role"]) == (requests.MAX_NAME, delegations.MAX_REASON, delegations.MAX_SCOPE)
    limits = {one["name"]: one["schema"] for one in paths["/requests"]["get"]["parameters"]}
    assert (limits["limit"]["maximum"], limits["limit"]["default"]) == (requests.MAX_PAGE, requests.PAGE)
    assert described()["components"]["parameters"]["key"]["schema"]["maxLength"] == body.MAX_KEY


# ---------------------------------------------------------------- the API beside it


def test_everything_described_is_there_and_everything_there_is_described(world: World, api: Any, monkeypatch: Any) -> None:
    """One long story; the client holds every answer to the description."""
    seen = Seen()
    monkeypatch.setattr(Api, "seen", seen)
    rita, ron, vera, nobody = api("rita"), api("ron"), api("vera"), api(None)
    somebody("nora", permissions=())
    nora = api("nora")
    every_post = [path for path, method in operations() if method == "post"]

    first = world.ask({"text": "Hello.\nA.\n", "reason": "I am sure."}, {"text": "Hello.\nB.\n", "n": 1}, key="k", subject="s")
    at = f"/requests/{first.pk}"
    ask_long(world)
    assert rita.get("/openapi.json").data == described()
    for path, method in operations():
        assert method == "post" or nobody.get(filled(path, first)).status == 401
    for path in every_post:
        target = filled(path, first)
        assert nobody.post(target, {}).status == 401
        assert rita.post(target, {}, csrf="").status == 403
        assert rita.post(target, raw="{", seen=first.digest).status == 400
        assert rita.post(target, raw=BIG).status == 413
        assert rita.post(target, raw="a=1", kind="text/plain").status == 415
        assert rita.post(target, {"nonsense": 1}).status in (404, 422)

    # the queue
    page = rita.get("/requests", limit=1)
    assert (len(page.data["requests"]), page.status) == (1, 200)
    assert rita.get("/requests", limit=1, cursor=page.data["next"], flow="publish-long-news", queue="mine").status == 200
    assert rita.get("/requests", workflow=str(first.workflow_id)).data["requests"][0]["id"] == first.pk
    assert rita.get("/requests", nonsense=1).status == 400
    assert nora.get("/requests").status == 403

    # one of it
    assert rita.get(at).headers["ETag"] == f'"{first.digest}"'
    assert rita.get(at, nonsense=1).status == 400
    assert nora.get(at).status == 404
    assert rita.post(f"{at}/assign", {"to": "rita"}).data["request"]["looked_at_by"] == "rita"
    assert (rita.post(f"{at}/assign", {"to": "ron"}).code, nora.post(f"{at}/assign", {}).code) == (
        "NOT_PERMITTED",
        "UNKNOWN_REQUEST",
    )

    # answers
    assert rita.post(f"{at}/decide", {"verdict": "approve"}).status == 428
    assert rita.decide(first, seen="sha256:" + "0" * 64).status == 412
    assert vera.decide(first).status == 403
    assert nora.decide(first).status == 404
    assert rita.decide(first, "changes").code == "COMMENT_REQUIRED"
    assert rita.decide(first, "changes", comment="B, please.").data["ends"] is True
    assert ron.decide(first).status == 409
    assert ron.post(f"{at}/assign", {"to": "ron"}).status == 409
    world.worker.run()
    second = world.request_of(world.workflow(first))
    since = rita.get(f"/requests/{second.pk}").data["since"]
    assert (since["answered_by_you"], since["unverified_changes"] != []) == (True, True)
    rita.decide(second, key="one")
    assert rita.decide(second, key="one").headers["Idempotency-Replayed"] == "true"

    # taken back
    back = f"/requests/{second.pk}/revoke"
    assert vera.post(back, {"reason": "No."}).status == 403
    assert nora.post(back, {"reason": "No."}).status == 404
    assert rita.post(f"{at}/revoke", {"reason": "No."}).status == 403
    assert rita.post(back, {"reason": " "}).code == "REASON_MISSING"
    assert rita.post(back, {"reason": "A mistake."}).status == 200
    sue = api("sue")
    assert sue.post(f"{at}/revoke", {"reason": "No."}).code == "TOO_LATE"

    # delegations
    permit(world.rita, "delegate_own")
    until = (now("default") + timedelta(days=2)).isoformat()
    new = {"to": "ron", "until": until, "reason": "On leave"}
    scoped = {"starts": now("default").isoformat(), "giver": "rita", "role": "r", "pool": "p", "flow": "f"}
    made = rita.post("/delegations", {**new, **scoped})
    assert made.status == 201
    assert rita.post("/delegations", new).status == 201
    assert rita.post("/delegations", {**new, "to": "rita"}).code == "BAD_DELEGATION"
    assert vera.post("/delegations", new).status == 403
    listed = rita.get("/delegations", limit=1)
    assert rita.get("/delegations", limit=1, cursor=listed.data["next"], of="me").data["delegations"][0]["id"] == made.data["id"]
    assert rita.get("/delegations", limit=0).status == 400
    assert nora.get("/delegations", of="everybody").status == 403
    assert vera.get("/delegations", of="everybody").status == 200
    end = f"/delegations/{made.data['id']}/end"
    assert (nora.post(end).status, vera.post(end).status) == (404, 403)
    assert rita.post(end, {"nonsense": 1}).status == 422
    assert (rita.post(end).code, ron.post(end).code) == (ACCEPTED, "already")
    assert rita.get("/delegations").status == 200

    # what the rest of the members is for: steps, an escalation, in somebody's name
    long = ask_long(world, {**LONG, "reason": "Because."}, input={"evidence": [{"seen": "this"}]})
    world.clock.move(hours=9)
    world.worker.tick()
    ron.post(f"/requests/{long.pk}/assign", {"to": "ron"})
    assert vera.decide(long).status == 403
    assert ron.decide(long).data["ends"] is False
    shown = ron.get(f"/requests/{long.pk}").data
    assert [step["state"] for step in shown["ladder"]["steps"]] == ["now", "later"]
    assert [one["asked"] for one in shown["ladder"]["escalation"]] == [True, False]
    assert (shown["asks"]["given"], shown["asks"]["need"], shown["may_answer"]["code"]) == (1, 2, "COUNTED_BEFORE")
    assert rita.decide(long).data["request"]["step"] == 2
    dora = somebody("dora")
    other = world.ask({"text": "Again."})
    assert sue.post("/delegations", {**new, "to": "dora", "giver": "ron"}).status == 201
    assert api("dora").decide(other).status == 200
    assert api("dora").get(f"/requests/{other.pk}").data["reviews"][0]["in_the_name_of"] == "ron"
    assert dora.pk

    # a part of a list, and what a machine found
    for files in (["a", "b"], ["bad", "b"]):
        part = world.ask({"files": files}, flow=KeepAPart)
        shown = rita.get(f"/requests/{part.pk}").data
        assert (shown["part_of"], [one["passed"] for one in shown["checks"]]) == ("files", ["bad" not in files])
    assert rita.decide(part, "narrow", comment="Not that.", keep=[7]).code == "BAD_PART"
    assert rita.decide(part, "narrow", comment="Not that.", keep=[1]).data["request"]["status"] == "superseded"

    # a form
    form = world.ask(flow=OrderParts)
    fill = f"/requests/{form.pk}/answer"
    shown = rita.get(f"/requests/{form.pk}").data
    assert (shown["kind"], shown["filled_in"], [one["verdict"] for one in shown["answers"]]) == ("ask", None, ["answer"])
    assert rita.decide(form).code == "ANSWER_NOT_OFFERED"
    assert nora.post(fill, {"values": {}}, seen=form.digest).status == 404
    assert vera.post(fill, {"values": {}}, seen=form.digest).status == 403
    assert rita.post(fill, {"values": VALUES}).status == 428
    assert rita.post(fill, {"values": VALUES}, seen="sha256:0").status == 412
    wrong = rita.post(fill, {"values": {**VALUES, "count": "many"}}, seen=form.digest)
    assert (wrong.code, [one["pointer"] for one in wrong.data["errors"]]) == ("ANSWER_INVALID", ["#/values/count"])
    assert rita.post(fill, {"values": VALUES}, seen=form.digest, key="form").data["request"]["status"] == "answered"
    assert rita.post(fill, {"values": VALUES}, seen=form.digest, key="form").headers["Idempotency-Replayed"] == "true"
    assert ron.post(fill, {"values": VALUES}, seen=form.digest).status == 409
    assert rita.get(f"/requests/{form.pk}").data["filled_in"]["title"] == "Bolts"

    quick = world.ask(flow=AskYesOrNo)
    rita.post(f"/requests/{quick.pk}/assign", {"to": "rita"})
    assert rita.get(f"/requests/{quick.pk}").data["on_silence"] == {"then": "node", "node": "stopped"}
    assert {row["status"] for row in rita.get("/requests", queue="all").data["requests"]} >= {"pending", "superseded", "revoked"}

    described_statuses = {
        (path, method, int(status)) for (path, method), one in operations().items() for status in one["responses"]
    }
    assert seen.statuses == described_statuses
    assert all_members() - seen.members == set()


def filled(path: str, request: Any) -> str:
    """An address of a path; of a delegation, one that does not exist."""
    return path.replace("{number}", str(request.pk) if path.startswith("/requests") else "1")


@pytest.mark.parametrize("method", ["get", "head", "post", "put", "patch", "delete", "options", "trace"])
def test_methods_that_are_not_described_are_refused(world: World, api: Any, method: str) -> None:
    request, client = world.ask(), api("rita").client
    for path, item in described()["paths"].items():
        allowed = {name for name in item if name in ("get", "post")} | ({"head"} if "get" in item else set())
        response = getattr(client, method)("/approvals" + filled(path, request))
        assert (response.status_code == 405) is (method not in allowed), (method, path)
        if response.status_code == 405:
            assert {name.strip().lower() for name in response.headers["Allow"].split(",")} == allowed


def test_it_answers_only_where_it_is_mounted(world: World) -> None:
    assert Client().get("/approvals/requests").status_code == 404
    assert template_of("/requests/1/nothing") is None
