"""The decision page around the answer: the ladder, who looks at it, in whose name, what was checked, taking back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

import flows
from approvals.api import assign, delegate
from approvals.models import Request, Review
from flows import COMPLETE, FAILED, Activity, Approval, Decision, End, Flow, Gate, Visits
from flows.errors import VerificationFailed
from flows.models import Verification
from flows.services.clock import now
from tests.support import approving
from tests.support.approving import ROLE, World
from tests.support.browsing import ESCAPED, EVIL, actions, client_of, page, permit, said, url_of, words
from tests.support.laddering import MANAGERS, POOL, ask_long, somebody

pytestmark = pytest.mark.req("F5", "F7")


def shown(name: str, request: Request, **query: Any) -> str:
    return page(client_of(name), url_of(request), **query)


# ---------------------------------------------------------------------- the ladder


def test_the_steps_with_who_approved_and_who_is_asked_now(world: World) -> None:
    request = ask_long(world)
    html = shown("rita", request)
    text = words(html)
    assert "Editors (approval reviewers) asked now 0 of 2 approvals" in text
    assert f"pool {POOL} asked later 0 of 1 approval" in text
    assert html.count('aria-current="step"') == 1
    world.decide(request)
    assert "asked now 1 of 2 approvals rita" in words(shown("ron", request))
    world.decide(request, by=world.ron)
    text = words(shown("lena", request))
    assert "Editors (approval reviewers) done 2 of 2 approvals rita ron" in text
    assert f"pool {POOL} asked now 0 of 1 approval" in text
    world.decide(request, by=user("lena"))
    assert "done 1 of 1 approval lena" in words(shown("vera", request))


def test_a_no_ends_the_ladder_where_it_was(world: World) -> None:
    request = ask_long(world)
    world.decide(request)
    world.decide(request, "deny", by=world.ron, comment="No.")
    text = words(shown("vera", request))
    assert "Editors (approval reviewers) ended here 1 of 2 approvals rita" in text
    assert f"pool {POOL} not reached 0 of 1 approval" in text


def test_the_escalation_that_came_and_that_will_come(world: World) -> None:
    request = ask_long(world)
    assert f"{MANAGERS} may answer too, from" in words(shown("rita", request))
    world.clock.move(hours=8, seconds=1)
    world.worker.tick()
    text = words(shown("rita", request))
    assert f"{MANAGERS} may answer too, since" in text
    assert "outlast_approvals.revoke_request may answer too, from" in text
    world.decide(request, "deny", comment="No.")
    text = words(shown("rita", request))
    assert "may answer too, since" in text
    assert "may answer too, from" not in text, "nothing is to come any more"


# ---------------------------------------------------------------------- in whose name


def test_it_says_in_whose_name_before_and_after(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    permit(world.rita, "delegate_own")
    delegate(world.rita, dora, until=now("default") + timedelta(days=1), reason="On leave", by=world.rita)
    assert "You answer in the name of rita, who has delegated to you." in words(shown("dora", request))
    assert "in the name of" not in words(shown("ron", request))
    client = client_of("dora")
    client.post(url_of(request), {"digest": request.digest, "verdict": "approve"})
    text = words(shown("vera", request))
    assert "done 1 of 1 approval dora, in the name of rita" in text
    assert "dora, in the name of rita: approve" in text


def test_whoever_was_asked_themselves_does_not_answer_in_anothers_name(world: World) -> None:
    request = world.ask()
    permit(world.rita, "delegate_own")
    delegate(world.rita, world.ron, until=now("default") + timedelta(days=1), reason="On leave", by=world.rita)
    assert "in the name of" not in words(shown("ron", request))


# ---------------------------------------------------------------------- who looks at it


def test_claim_and_release(world: World) -> None:
    request, client = world.ask(), client_of("rita")
    assert actions(page(client, url_of(request)), request) == {"decide", "claim"}
    assert "Nobody says that they are looking at it." in page(client, url_of(request))
    response = client.post(url_of(request, "claim"), follow=True)
    assert response.redirect_chain == [(url_of(request), 302)]
    assert "rita is marked as looking at it. Others may still answer." in said(response)
    assert "Looked at by rita since" in words(response.content.decode())
    assert actions(response.content.decode(), request) == {"decide", "release"}
    assert actions(shown("ron", request), request) == {"decide", "claim"}, "it locks nobody out"
    assert "Nobody is marked" in said(client.post(url_of(request, "release"), follow=True))
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == [
        "Says that they are looking at it.",
        "Is not looking at it any more.",
    ]


@pytest.mark.parametrize("what", ["claim", "release", "revoke"])
def test_no_get_marks_or_takes_back(world: World, what: str) -> None:
    request, client = world.ask(), client_of("sue")
    for method in ("get", "head", "put", "delete"):
        assert getattr(client, method)(url_of(request, what)).status_code == 405
    assert client_of("rita", enforce_csrf_checks=True).post(url_of(request, what)).status_code == 403
    assert Request.objects.get(pk=request.pk).claimed_label == ""
    assert not LogEntry.objects.exists()


def test_who_may_not_answer_cannot_claim(world: World) -> None:
    request = world.ask()
    html = shown("vera", request)
    assert actions(html, request) == set()
    assert "Nobody says" not in html, "there is nothing to press"
    response = client_of("vera").post(url_of(request, "claim"), follow=True)
    assert "Your account may not answer approval requests." in said(response)
    assert client_of("vera").post(url_of(request, "release")).status_code == 403
    assert Request.objects.get(pk=request.pk).claimed_label == ""


def test_another_is_chosen_among_those_who_may_answer(world: World) -> None:
    request = world.ask()
    permit(world.vera, "assign_request")
    somebody("nick")
    client = client_of("vera")
    assert actions(page(client, url_of(request)), request) == {"assign"}
    html = page(client, url_of(request, "assign"))
    for name, offered in (("rita", True), ("ron", True), ("robin", False), ("otto", False), ("nick", False), ("vera", False)):
        assert (f">{name}</option>" in html) == offered, name
    nick = client.post(url_of(request, "assign"), {"to": user("nick").pk})
    assert "Choose one of the people on the list" in nick.content.decode()
    response = client.post(url_of(request, "assign"), {"to": world.ron.pk}, follow=True)
    assert "ron is marked as looking at it." in said(response)
    assert actions(response.content.decode(), request) == {"assign", "release"}
    assert client.post(url_of(request, "release"), follow=True).redirect_chain == [(url_of(request), 302)]


def test_who_stands_in_can_be_chosen_too(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    permit(world.rita, "delegate_own")
    permit(world.vera, "assign_request")
    delegate(world.rita, dora, until=now("default") + timedelta(days=1), reason="On leave", by=world.rita)
    assert ">dora</option>" in page(client_of("vera"), url_of(request, "assign"))


def test_assigning_needs_its_own_right(world: World) -> None:
    request = world.ask()
    client = client_of("rita")
    assert client.get(url_of(request, "assign")).status_code == 403
    assert client.post(url_of(request, "assign"), {"to": world.ron.pk}).status_code == 403
    assert client_of("rita", enforce_csrf_checks=True).post(url_of(request, "assign")).status_code == 403
    assert Request.objects.get(pk=request.pk).claimed_label == ""


# ---------------------------------------------------------------------- taking back


def test_an_approval_is_taken_back_with_a_reason(world: World) -> None:
    request = world.ask()
    world.decide(request)
    client = client_of("rita")
    assert actions(page(client, url_of(request)), request) == {"revoke"}
    response = client.post(url_of(request, "revoke"), {"reason": " "})
    assert "Say why: the reason is part of the record." in response.content.decode()
    assert world.status(request) == "approved"
    response = client.post(url_of(request, "revoke"), {"reason": f"Wrong file {EVIL}"}, follow=True)
    assert "The approval is taken back." in said(response)
    text = words(response.content.decode())
    assert "rita: took the approval back" in text
    assert ESCAPED in response.content.decode()
    assert (world.status(request), actions(response.content.decode(), request)) == ("revoked", set())


def test_only_who_approved_or_may_take_back_any(world: World) -> None:
    request = world.ask()
    world.decide(request)
    for name in ("ron", "vera"):
        assert actions(shown(name, request), request) == set()
        assert client_of(name).post(url_of(request, "revoke"), {"reason": "No."}).status_code == 403
    permit(world.vera, "revoke_request")
    assert actions(shown("vera", request), request) == {"revoke"}
    client_of("vera").post(url_of(request, "revoke"), {"reason": "No."})
    assert world.status(request) == "revoked"


def test_what_is_used_is_not_taken_back(world: World) -> None:
    request = world.ask()
    world.decide(request)
    world.worker.run()
    assert world.status(request) == "consumed"
    client = client_of("rita")
    assert actions(page(client, url_of(request)), request) == set()
    assert "Too late: the request is approved and used." in said(
        client.post(url_of(request, "revoke"), {"reason": "Late."}, follow=True)
    )
    assert world.status(request) == "consumed"


# ---------------------------------------------------------------------- nothing to press


@pytest.mark.parametrize("happens", ["deny", "expire", "cancel", "use"])
def test_what_is_decided_or_expired_offers_nothing(world: World, happens: str) -> None:
    request = world.ask()
    permit(world.rita, "assign_request", "revoke_request")
    assign(request, to=world.rita, by=world.rita)
    if happens == "deny":
        world.decide(request, "deny", comment="No.")
    elif happens == "expire":
        world.clock.move(hours=25)
    elif happens == "cancel":
        flows.cancel(request.workflow)
    else:
        world.decide(request)
        world.worker.run()
    assert actions(shown("rita", request), request) == set()
    assert "It waits for no answer any more." in page(client_of("rita"), url_of(request, "assign"))
    posted = client_of("rita").post(url_of(request, "assign"), {"to": world.ron.pk})
    assert posted.status_code == 200
    assert Request.objects.get(pk=request.pk).claimed_label == "rita"


# ---------------------------------------------------------------------- evidence


def check(attempt: Any) -> None:
    if attempt.results["propose"]["value"]["text"] != "Hello.":
        raise VerificationFailed("TYPO")


class CheckedNews(Flow):
    """A step looks at the proposal before people do."""

    propose = Decision(approving.propose, choices={"release": "proofread"}, visits=Visits(6, then="stopped"))
    proofread = Activity(check, verifies="propose", on={VerificationFailed: "ask"}, then="ask")
    ask = Approval(candidate="propose", role=ROLE, approved="publish", changes="propose", denied="stopped")
    publish = Activity(approving.publish, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE)
    stopped = End(FAILED)


def test_what_a_step_checked_and_what_was_only_stated(world: World) -> None:
    request = world.ask({"text": "Hello."}, flow=CheckedNews, input={"evidence": {"tests": "all green", "summary": "I am sure."}})
    text = words(shown("rita", request))
    assert "Checked by step “proofread”: passed" in text
    stated = text.index("Stated with the proposal not checked")
    assert text.index("Checked by step") < stated < text.index("all green") < text.index("In the model")
    assert text.index("I am sure.") > text.index("In the model"), "its own words come last"


def test_a_check_that_failed_is_shown_as_such_and_another_candidates_check_is_not(world: World) -> None:
    request = world.ask({"text": "Hello."}, {"text": "Helo."}, flow=CheckedNews)
    world.decide(request, "changes", comment="Shorter.")
    world.worker.run()
    second = world.request_of(request.workflow)
    assert Verification.objects.filter(workflow_id=request.workflow_id).count() == 2
    text = words(shown("rita", second))
    assert "did not pass VERIFICATION_FAILED" in text
    assert ": passed" not in text


def test_where_nothing_was_checked_it_says_so(world: World) -> None:
    assert "No step has checked exactly this candidate." in shown("rita", world.ask())


# ---------------------------------------------------------------------- what changed since


def test_it_compares_with_the_one_that_this_reviewer_answered_or_any_other(world: World) -> None:
    first = world.ask({"text": "one"}, {"text": "two"}, {"text": "three"})
    world.decide(first, "changes", comment="More.")
    world.worker.run()
    second = world.request_of(first.workflow)
    world.decide(second, "changes", by=world.ron, comment="More.")
    world.worker.run()
    third = world.request_of(first.workflow)
    assert "What changed since revision 1, which you answered" in shown("rita", third)
    html = shown("ron", third)
    assert "What changed since revision 2, which you answered" in html
    assert f'href="?since={first.pk}"' in html
    assert "What changed since revision 1, the one asked about before" in shown("ron", third, since=str(first.pk))
    foreign = world.ask({"text": "a secret of another workflow"})
    for bad in (str(foreign.pk), "x", "9" * 30, "-1", "%00"):
        html = shown("ron", third, since=bad)
        assert "What changed since revision 2" in html
        assert "a secret" not in html


def test_who_answered_about_another_candidate_has_not_seen_this_one(world: World) -> None:
    first = world.ask({"text": "one"}, {"text": "two"})
    world.decide(first, by=world.ron, digest="sha256:forged")
    world.decide(first, "changes", comment="More.")
    world.worker.run()
    second = world.request_of(first.workflow)
    assert "the one asked about before" in shown("ron", second)


# ---------------------------------------------------------------------- the record outlives the people


def test_the_record_keeps_the_names_of_users_who_are_gone(world: World) -> None:
    request, other = world.ask(), world.ask()
    assign(other, to=world.rita, by=world.rita)
    world.decide(request)
    world.rita.delete()
    text = words(shown("vera", request))
    assert "done 1 of 1 approval rita" in text
    assert "rita: approve" in text
    assert "Looked at by rita since" in words(shown("ron", other))
    assert Review.objects.get().by_label == "rita"


def user(name: str) -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.get(username=name)
