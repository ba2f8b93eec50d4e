"""What somebody tries who may not, or not so: each changes nothing, and says why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from approvals.models import Request, Review
from flows import COMPLETE, FAILED, Approval, Candidate, Decision, End, Flow
from flows.conf import DEFAULTS
from flows.models import Workflow
from tests.support.approving import ROLE, World
from tests.support.browsing import ESCAPED, EVIL, LIST, Forms, client_of, page, permit, said, url_of

pytestmark = pytest.mark.req("F3", "F7", "E5")


def form_of(client: Client, request: Any) -> dict[str, str]:
    return {"verdict": "approve", "digest": Forms(page(client, url_of(request))).values["digest"]}


def test_a_form_that_is_sent_again_changes_nothing(world: World) -> None:
    request, client = world.ask(), client_of("rita")
    form = form_of(client, request)
    client.post(url_of(request), form)
    world.worker.run()
    for _ in range(2):
        assert "You gave this very answer before." in said(client.post(url_of(request), form, follow=True))
    assert "answered" in said(client_of("ron").post(url_of(request), form, follow=True))
    assert (world.status(request), Review.objects.filter(refused="").count()) == ("consumed", 1)


def test_the_form_of_one_candidate_does_not_answer_the_next(world: World) -> None:
    request, client = world.ask({"text": "one"}, {"text": "two"}), client_of("rita")
    form = form_of(client, request)
    world.decide(request, "changes", by=world.ron, comment="Other.")
    world.worker.run()
    second = world.request_of(request.workflow)
    assert "You answered about candidate" in said(client.post(url_of(second), form, follow=True))
    assert (world.status(second), world.refusals(second)) == ("pending", ["STALE_CANDIDATE"])


@pytest.mark.parametrize("how", ["permission", "group", "active", "staff"])
def test_a_right_that_went_between_page_and_answer(world: World, how: str) -> None:
    request, client = world.ask(), client_of("rita")
    form = form_of(client, request)
    if how == "permission":
        world.rita.user_permissions.remove(*world.rita.user_permissions.filter(codename="answer_request"))
    elif how == "group":
        world.rita.groups.clear()
    else:
        setattr(world.rita, f"is_{how}", False)
        world.rita.save()
    client.post(url_of(request), form)
    assert world.status(request) == "pending"
    assert not Review.objects.filter(refused="").exists()


@pytest.mark.parametrize("name", ["next", "_next", "url", "return", "redirect", "_popup"])
def test_no_address_comes_from_the_browser(world: World, name: str) -> None:
    permit(world.rita, "assign_request")
    client, evil = client_of("rita"), "https://evil.example/"
    first, second = world.ask(), world.ask()
    targets = {
        url_of(first, "claim"): {},
        url_of(first, "assign"): {"to": world.ron.pk},
        url_of(first, "release"): {},
        url_of(first): form_of(client, first),
        url_of(first, "revoke"): {"reason": "Wrong."},
        url_of(second): {**form_of(client, second), "verdict": "deny", "comment": "No."},
    }
    for target, given in targets.items():
        response = client.post(f"{target}?{name}={evil}", {**given, name: evil}, headers={"referer": evil})
        assert response.status_code == 302, target
        assert response.headers["Location"].startswith("/admin/outlast_approvals/request/"), target
        assert "evil" not in response.headers["Location"]


def test_a_candidate_as_large_as_one_may_be_is_shown_whole_and_once(world: World) -> None:
    """Ten megabytes are refused where they are proposed; what may be stored is shown, escaped, and costs a page of its size."""
    most = DEFAULTS["MAX_RESULT_BYTES"]
    line = EVIL.replace("\u202e", "").replace("\u202c", "") + "\n"
    text = line * (most // len(json.dumps(line)) - 200)
    request = world.ask({"text": text}, goal="Large")
    html = page(client_of("rita"), url_of(request))
    assert html.count(ESCAPED) == text.count("<script>")
    assert "<script>alert" not in html
    assert len(html) < 4 * most
    listed = page(client_of("rita"), reverse(LIST))
    assert len(listed) < 100_000, "the list does not read candidates"


def too_much(attempt: Any) -> Candidate:
    return Candidate("release", **{"value": {"text": "Hello."}, "evidence": {}, attempt.input["where"]: {"text": EVIL * 400_000}})


class ProposesTooMuch(Flow):
    """Ten megabytes."""

    propose = Decision(too_much, choices={"release": "ask"})
    ask = Approval(candidate="propose", role=ROLE, approved="done", denied="stopped")
    done = End(COMPLETE)
    stopped = End(FAILED)


@pytest.mark.parametrize("where", ["value", "evidence"])
def test_ten_megabytes_are_asked_of_nobody(world: World, where: str) -> None:
    run = ProposesTooMuch.start({"where": where}, by=world.robin)
    world.worker.run()
    assert not Request.objects.filter(workflow_id=run.id).exists()
    assert Workflow.objects.get(pk=run.id).status != "running"


def test_a_comment_of_ten_megabytes_is_refused(world: World) -> None:
    request, client = world.ask(), client_of("rita")
    response = client.post(url_of(request), {**form_of(client, request), "comment": "x" * 10_000_000})
    assert response.status_code == 400, "Django's own limit; below it, the form's"
    assert (world.status(request), Review.objects.count()) == ("pending", 0)


@pytest.mark.parametrize("number", ["0", "99999999999999999999999999", "-1", "1.5", "x", "%00"])
def test_an_address_that_names_nothing(world: World, number: str) -> None:
    client = client_of("sue")
    for what in ("decide", "claim", "release", "assign", "revoke"):
        assert client.post(f"/admin/outlast_approvals/request/{number}/{what}/").status_code in (302, 404)


def test_who_may_not_look_may_do_nothing_else(world: World) -> None:
    request = world.ask()
    world.vera.user_permissions.clear()
    permit(world.vera, "assign_request", "revoke_request")
    client = client_of("vera")
    for what in ("decide", "claim", "release", "assign", "revoke"):
        assert client.post(url_of(request, what), {"to": world.ron.pk, "reason": "x"}).status_code == 403, what
