"""The decision page, through HTTP: what it shows, to whom, and that only a POST with the right token decides."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

import flows
from approvals.models import Request, Review
from tests.support.approving import PASSWORD, AskYesOrNo, World

EVIL = "<script>alert(1)</script> pay \u202eevil\u202c now"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt; pay"
MARK = '<span class="oa-hidden" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>'


def client_of(name: str, **options: Any) -> Client:
    client = Client(**options)
    assert client.login(username=name, password=PASSWORD)
    return client


def url(request: Request) -> str:
    return reverse("admin:outlast_approvals_request_decide", args=[request.pk])


def page(client: Client, request: Request, **query: str) -> str:
    response = client.get(url(request), query)
    assert response.status_code == 200
    return response.content.decode()


def answer(client: Client, request: Request, verdict: str = "approve", *, follow: bool = True, **more: str) -> Any:
    return client.post(url(request), {"digest": request.digest, "verdict": verdict, **more}, follow=follow)


def said(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


@pytest.mark.req("F7")
def test_the_page_shows_what_will_happen(world: World) -> None:
    request = world.ask({"text": "Hello.", "to": ["a", "b"]}, key="news-1", goal="Publish the news")
    shown = page(client_of("rita"), request)
    for text in (
        "<h1>Publish the news</h1>",
        "publish-news news-1",
        "release",
        request.digest,
        "proposed by step “propose”",
        "<code>publish</code>",
        "to[1]",
        "goes on at “publish”",
        "Approve this exact candidate",
        "Request changes",
        "Deny",
        "Nothing is approved. The workflow stops until a person looks at it",
        "In the model&#x27;s own words",
        "Looks fine.",
        "robin",
    ):
        assert text.replace("&#x27;", "'") in shown or text in shown, text
    assert shown.index("In the model") > shown.index("The exact candidate"), "a model's own words come last"


@pytest.mark.req("F4", "F7")
def test_approve_then_the_next_request_then_the_inbox(world: World) -> None:
    first, second = world.ask(goal="One"), world.ask(goal="Two")
    client = client_of("rita")
    response = answer(client, first)
    assert response.redirect_chain == [(url(second), 302)]
    assert (
        said(response)
        == "One: Approved: this exact candidate, and nothing else. The workflow goes on and checks everything again first."
    )
    response = answer(client, second, "deny", comment="No.")
    assert response.redirect_chain == [(reverse("admin:outlast_approvals_request_changelist"), 302)]
    assert (world.status(first), world.status(second)) == ("approved", "denied")


@pytest.mark.req("F4", "F7")
def test_request_changes_and_see_them_in_the_next_revision(world: World) -> None:
    request = world.ask({"text": "Helo,\nworld"}, {"text": "Hello,\nworld", "by": "a model"})
    answer(client_of("rita"), request, "changes", comment="A letter is missing.")
    world.worker.run()
    second = world.request_of(request.workflow)
    shown = page(client_of("rita"), second)
    assert "What changed since revision 1, which you answered" in shown
    assert "What changed since revision 1, the one asked about before" in page(client_of("ron"), second)
    assert "rita</bdi> answered “request changes”" in shown
    assert "A letter is missing." in shown
    assert '<tr class="oa-line-gone">' in shown
    assert '<td class="oa-line">Helo,</td>' in shown
    assert '<td class="oa-line">Hello,</td>' in shown
    assert "a model" in shown


@pytest.mark.parametrize("verdict", ["changes", "deny"])
def test_a_no_without_a_reason_is_asked_again_and_not_recorded(world: World, verdict: str) -> None:
    request = world.ask()
    response = answer(client_of("rita"), request, verdict, comment="  ")
    assert (response.status_code, response.redirect_chain) == (200, [])
    assert "Say why: the next step reads your comment" in response.content.decode()
    assert 'aria-invalid="true"' in response.content.decode()
    assert not Review.objects.exists()


@pytest.mark.parametrize("comment", ["a\x00b", "x" * 4001])
def test_a_comment_that_cannot_be_kept_is_explained(world: World, comment: str) -> None:
    request = world.ask()
    response = answer(client_of("rita"), request, comment=comment)
    assert response.status_code == 200
    assert "Your answer was not sent." in response.content.decode()
    assert world.status(request) == "pending"


# ---------------------------------------------------------------------- only a POST with the token decides


@pytest.mark.req("F7")
def test_no_get_decides(world: World) -> None:
    request = world.ask()
    client = client_of("rita")
    page(client, request, verdict="approve", digest=request.digest)
    client.head(url(request), {"verdict": "approve", "digest": request.digest})
    for method in ("put", "patch", "delete", "options"):
        response = getattr(client, method)(url(request), {"verdict": "approve", "digest": request.digest})
        assert response.status_code == 405
        assert response.headers["Allow"] == "GET, HEAD, POST"
    assert world.status(request) == "pending"


@pytest.mark.req("F7")
def test_a_post_without_the_token_is_refused(world: World) -> None:
    request = world.ask()
    client = client_of("rita", enforce_csrf_checks=True)
    assert answer(client, request, follow=False).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page(client, request))
    assert token is not None
    assert answer(client, request, csrfmiddlewaretoken=token[1], follow=False).status_code == 302
    assert world.status(request) == "approved"


def test_nobody_gets_in_without_a_login_or_as_no_staff(world: World) -> None:
    request = world.ask()
    assert "/login/" in answer(Client(), request).redirect_chain[0][0]
    world.ron.is_staff = False
    world.ron.save()
    assert "/login/" in answer(client_of("ron"), request).redirect_chain[0][0]
    assert world.status(request) == "pending"


@pytest.mark.req("F7")
def test_the_page_is_never_stored_and_never_framed(world: World) -> None:
    response = client_of("rita").get(url(world.ask()))
    assert "no-store" in response.headers["Cache-Control"]
    assert response.headers["X-Frame-Options"] == "DENY"


def test_the_admins_own_link_leads_here(world: World) -> None:
    request = world.ask()
    client = client_of("rita")
    change = reverse("admin:outlast_approvals_request_change", args=[request.pk])
    assert client.get(change).headers["Location"] == url(request)
    assert client.post(change, {"verdict": "approve", "digest": request.digest}).status_code == 403
    of_wait = reverse("admin:outlast_approvals_request_of_wait", args=[request.wait_id])
    assert client.get(of_wait).headers["Location"] == url(request)
    assert client.get(reverse("admin:outlast_approvals_request_of_wait", args=[4711000000])).status_code == 404
    assert client.get(reverse("admin:outlast_approvals_request_decide", args=[4711000000])).status_code == 404


# ---------------------------------------------------------------------- refusals are shown


@pytest.mark.req("F3", "F7")
def test_a_stale_digest_changes_nothing_and_the_page_says_so(world: World) -> None:
    request = world.ask()
    response = client_of("rita").post(url(request), {"digest": "sha256:0", "verdict": "approve"}, follow=True)
    assert "You answered about candidate sha256:0" in said(response)
    assert response.redirect_chain == [(url(request), 302)]
    assert (world.status(request), world.refusals(request)) == ("pending", ["STALE_CANDIDATE"])


@pytest.mark.req("F7")
def test_a_reader_sees_the_page_without_the_form(world: World) -> None:
    request = world.ask()
    client = client_of("vera")
    shown = page(client, request)
    assert "Your account may not answer approval requests." in shown
    assert "Approve this exact candidate" not in shown
    assert 'name="digest"' not in shown
    assert "Your account may not answer" in said(answer(client, request))
    assert (world.status(request), world.refusals(request)) == ("pending", ["NOT_PERMITTED"])


def test_the_accountable_user_sees_why_there_is_no_form(world: World) -> None:
    shown = page(client_of("robin"), world.ask())
    assert "You are accountable for this workflow" in shown
    assert 'name="digest"' not in shown


def test_the_workflow_is_linked_for_those_who_may_see_it(world: World) -> None:
    request = world.ask()
    link = f"/admin/outlast_flows/workflow/{request.workflow_id}/change/"
    assert link in page(client_of("vera"), request)
    world.vera.user_permissions.set(world.vera.user_permissions.filter(content_type__app_label="outlast_approvals"))
    shown = page(client_of("vera"), request)
    assert link not in shown
    assert 'cols="None"' not in page(client_of("rita"), request)


def test_who_may_not_view_sees_nothing(world: World) -> None:
    request = world.ask()
    world.vera.user_permissions.clear()
    client = client_of("vera")
    assert client.get(url(request)).status_code == 403
    assert answer(client, request, follow=False).status_code == 403
    assert client.get(reverse("admin:outlast_approvals_request_changelist")).status_code == 403


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        ("cancel", "The workflow is cancelled"),
        ("supersede", "The goal has changed since this was asked"),
        ("answer", "ron answered this request first"),
        ("expire", "The time to answer is over"),
    ],
)
def test_what_happened_meanwhile_is_said_before_and_after(world: World, happens: str, why: str) -> None:
    request = world.ask()
    client = client_of("rita")
    if happens == "cancel":
        flows.cancel(request.workflow)
    elif happens == "supersede":
        flows.supersede(request.workflow, goal="Other news")
    elif happens == "answer":
        world.decide(request, by=world.ron)
    else:
        world.clock.move(hours=25)
    assert why in page(client, request)
    response = answer(client, request, "deny", comment="Too late?")
    assert why in said(response)
    assert "Too late?" in response.content.decode(), "the audit on the page has the refused answer too"
    assert "not taken:" in response.content.decode()


@pytest.mark.req("F3")
def test_a_double_click_is_friendly(world: World) -> None:
    request = world.ask()
    client = client_of("rita")
    answer(client, request)
    response = answer(client, request)
    assert "You gave this very answer before." in said(response)
    assert response.redirect_chain[-1][0] == reverse("admin:outlast_approvals_request_changelist")
    assert Review.objects.count() == 1


def test_only_answers_on_offer_have_a_button(world: World) -> None:
    request = world.ask(flow=AskYesOrNo)
    shown = page(client_of("rita"), request)
    assert 'value="changes"' not in shown
    assert "Nothing is approved. The workflow goes on at its step “stopped”." in shown


# ---------------------------------------------------------------------- text that a model made


class Elements(HTMLParser):
    """All tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.req("F7", "E5")
def test_whatever_a_model_or_a_person_wrote_is_escaped_and_its_hidden_characters_shown(world: World) -> None:
    value = {"text": EVIL, EVIL: EVIL, "summary": EVIL}
    first = world.ask(
        value, {**value, "text": EVIL + "!"}, goal=EVIL, key=EVIL, input={"evidence": {"kind": EVIL, "reason": EVIL}}
    )
    client = client_of("rita")
    answer(client, first, "changes", comment=EVIL)
    world.worker.run()
    for request in (first, world.request_of(first.workflow)):
        shown = page(client, request)
        assert shown.count(ESCAPED) >= 8
        assert shown.count(MARK) >= 8
        assert "\u202e" not in shown
        assert "<script>alert" not in shown
    listed = client.get(reverse("admin:outlast_approvals_request_changelist"), {"queue": "all"}).content.decode()
    assert ESCAPED in listed
    assert MARK in listed
    assert "\u202e" not in listed
    response = answer(client, first)
    assert "\u202e" not in response.content.decode(), "nor in a message"


@pytest.mark.req("F7")
def test_there_is_no_inline_script_style_or_handler(world: World) -> None:
    first = world.ask({"text": "a\nb"}, {"text": "a\nc"})
    client = client_of("rita")
    answer(client, first, "changes", comment="More.")
    world.worker.run()
    second = world.request_of(first.workflow)
    pages = [page(client, second), client.get(reverse("admin:outlast_approvals_request_changelist")).content.decode()]
    names = ("workflow", "intent", "event", "wait", "timer", "worker", "notice")
    pages += [client.get(reverse(f"admin:outlast_flows_{name}_changelist")).content.decode() for name in names]
    pages.append(client.get(reverse("admin:outlast_flows_workflow_change", args=[first.workflow_id])).content.decode())
    for shown in pages:
        for tag, attributes in Elements(shown).tags:
            assert tag != "style"
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (tag, attributes)
            assert tag != "script" or attributes.get("src")


def test_all_is_reachable_by_name_for_a_screen_reader(world: World) -> None:
    elements = Elements(page(client_of("rita"), world.ask())).tags
    ids = {attributes["id"] for _tag, attributes in elements if attributes.get("id")}
    for tag, attributes in elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for target in (attributes.get(name) or "").split():
                assert target in ids, (tag, name, target)
    assert [attributes["for"] for tag, attributes in elements if tag == "label" and attributes.get("for") == "id_comment"]
