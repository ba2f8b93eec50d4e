"""The page of a request that asks for a form: what it shows, what it takes, and how a file that was given is handed out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from approvals.models import Request, Review
from tests.admin.test_decision_page import ESCAPED, EVIL, MARK, client_of, page, said, url
from tests.support.approving import World
from tests.support.filling import AskInTheirWords, OrderParts, file, fill

pytestmark = pytest.mark.req("C6", "F7")

FILLED = {
    "field-title": "Bolts",
    "field-count": "12",
    "field-price": "4.50",
    "field-urgent": "yes",
    "field-size": "l",
    "field-wanted_by": "",
    "field-note": "",
}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def send(client: Client, request: Request, *, follow: bool = True, **more: Any) -> Any:
    changed = {f"field-{name}" if name != "digest" else name: value for name, value in more.items()}
    return client.post(url(request), {"digest": request.digest, **FILLED, **changed}, follow=follow)


def download(request: Request, field: str = "contract") -> str:
    return reverse("admin:outlast_approvals_request_file", args=[request.pk, field])


def test_the_page_shows_what_is_asked_and_a_field_of_every_kind(world: World) -> None:
    request = world.ask(flow=OrderParts, key="order-1", goal="Order parts")
    shown = page(client_of("rita"), request)
    for text in (
        "<h1>Order parts</h1>",
        "order-parts order-1",
        "The store has run out.",
        "approval reviewers",
        request.digest,
        "As it stands on the invoice.",
        "If nobody answers",
        "The workflow stops until a person looks at it",
        'enctype="multipart/form-data"',
        "Send this answer",
    ):
        assert text in shown, text
    types = dict(re.findall(r'<input type="(\w+)" name="field-(\w+)"', shown))
    assert types == {"text": "title", "number": "price", "date": "wanted_by", "file": "contract"}, "of one type the last one"
    assert re.search(r'<textarea name="field-note"', shown)
    assert re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)', shown) == [
        ("", "–"),
        ("yes", "Yes"),
        ("no", "No"),
        ("", "–"),
        ("s", "Small"),
        ("l", "Large"),
    ]
    assert shown.count('aria-required="true"') == 5
    assert shown.count("(may be left empty)") == 3
    assert "Approve this exact candidate" not in shown
    for name in re.findall(r'<label for="([^"]+)"', shown):
        assert f'id="{name}"' in shown


def test_an_answer_is_taken_shown_and_kept_in_the_history(world: World) -> None:
    request = world.ask(flow=OrderParts)
    client = client_of("rita")
    told = send(client, request, wanted_by="2026-12-24", contract=SimpleUploadedFile("a.pdf", b"%PDF", "application/pdf"))
    assert "Your answer was handed to the workflow. It approves nothing." in said(told)
    assert world.status(request) == "answered"
    values = Review.objects.get().values
    assert (values["count"], values["price"], values["urgent"], values["wanted_by"]) == (12, "4.50", True, "2026-12-24")
    assert values["contract"]["content_type"] == "application/pdf"
    assert LogEntry.objects.get(object_id=str(request.pk)).change_message == "Answered what was asked."
    shown = page(client, request)
    for text in ("The answer", "Bolts", "4.50", "Large", "2026-12-24", "a.pdf", values["contract"]["sha256"], download(request)):
        assert text in shown, text
    assert "<form" not in re.sub(r'<form id="logout-form".*?</form>', "", shown, flags=re.DOTALL)
    assert "You have answered this request (answer). That answer stands" in shown


def test_the_inbox_lists_both_kinds_and_the_next_one_follows(world: World) -> None:
    first, second = world.ask(flow=OrderParts, goal="Order parts"), world.ask(goal="Publish the news")
    client = client_of("rita")
    listed = client.get(reverse("admin:outlast_approvals_request_changelist")).content.decode()
    assert "Order parts" in listed
    assert "Publish the news" in listed
    assert send(client, first, follow=False).headers["Location"] == url(second)
    row = client.get(reverse("admin:outlast_flows_workflow_change", args=[first.workflow_id])).content.decode()
    assert reverse("admin:outlast_approvals_request_of_wait", args=[first.wait_id]) in row


def test_what_is_wrong_is_said_beside_the_field_and_what_was_written_stays(world: World) -> None:
    request = world.ask(flow=OrderParts)
    told = send(client_of("rita"), request, title="", count="many", price="0", note=EVIL, size="")
    shown = told.content.decode()
    assert "Your answer was not sent." in shown
    assert 'id="oa-field-count-errors" class="oa-error">Enter a whole number.' in shown
    assert ESCAPED in shown
    assert "<script>alert" not in shown
    again = send(client_of("rita"), request, title="", price="0", size="")
    shown = again.content.decode()
    for field, sentence in (("title", "This is needed."), ("price", "At least 0.01."), ("size", "This is needed.")):
        assert f'id="oa-field-{field}-errors" class="oa-error">{sentence}' in shown
    assert "<title>Error: " in shown
    assert (world.status(request), Review.objects.count()) == ("pending", 0)


@pytest.mark.parametrize(
    "more",
    [
        {"title": "\x00"},
        {"title": "x" * 10_000},
        {"count": "9" * 400},
        {"price": "NaN"},
        {"price": "1e400"},
        {"urgent": "maybe"},
        {"size": "<b>"},
        {"wanted_by": "2026-02-30"},
        {"contract": SimpleUploadedFile("a.pdf", b"x" * 2001)},
        {"contract": SimpleUploadedFile("a.pdf", b"")},
        {"contract": "a.pdf"},
        {"digest": ""},
        {"digest": "x" * 300},
    ],
    ids=lambda more: str(next(iter(more))),
)
def test_hostile_input_is_answered_with_a_page(world: World, more: dict[str, Any]) -> None:
    request = world.ask(flow=OrderParts)
    told = send(client_of("rita"), request, **more)
    assert told.status_code == 200
    if more == {"contract": "a.pdf"}:
        assert world.status(request) == "answered", "a text in place of a file is no file, and none was needed"
    else:
        assert world.status(request) == "pending"


def test_words_that_a_model_may_have_made_are_escaped_and_marked(world: World) -> None:
    shown = page(client_of("rita"), world.ask(EVIL, flow=AskInTheirWords))
    assert "<script>alert" not in shown
    assert "\u202e" not in shown
    assert MARK in shown


def test_only_a_post_with_the_token_answers(world: World) -> None:
    request = world.ask(flow=OrderParts)
    client = client_of("rita", enforce_csrf_checks=True)
    assert client.get(url(request), {"digest": request.digest, **FILLED}).status_code == 200
    assert client.put(url(request)).status_code in (403, 405)
    assert send(client, request).status_code == 403
    assert world.status(request) == "pending"


def test_who_may_not_answer_sees_why_and_no_form(world: World) -> None:
    request = world.ask(flow=OrderParts)
    shown = page(client_of("vera"), request)
    assert "Your account may not answer" in shown
    assert 'name="field-title"' not in shown
    told = send(client_of("vera"), request)
    assert "Your account may not answer" in said(told)
    assert (world.status(request), world.refusals(request)) == ("pending", ["NOT_PERMITTED"])


@pytest.mark.parametrize("name", ["a b.pdf", EVIL, 'x"; filename="y.html', "täst.html", "\u202egpj.exe"])
def test_a_file_is_a_download_of_no_type_that_a_browser_opens(world: World, name: str) -> None:
    request = world.ask(flow=OrderParts)
    assert fill(world, request, files={"contract": file(b"<script>alert(1)</script>", name)})
    got = client_of("vera").get(download(request))
    assert got.status_code == 200
    assert b"".join(got.streaming_content) == b"<script>alert(1)</script>"
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["Content-Disposition"].startswith("attachment; filename")
    assert "\u202e" not in got.headers["Content-Disposition"]
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert "no-store" in got.headers["Cache-Control"]


def test_who_may_not_see_the_request_gets_no_file_of_it(world: World) -> None:
    from django.contrib.auth import get_user_model

    from tests.support.approving import PASSWORD

    request = world.ask(flow=OrderParts)
    assert fill(world, request, files={"contract": file()})
    get_user_model().objects.create_user("stranger", password=PASSWORD, is_staff=True)
    assert client_of("stranger").get(download(request)).status_code == 403
    assert Client().get(download(request)).status_code == 302
    assert client_of("rita").post(download(request)).status_code == 405


def test_what_is_no_file_is_not_found(world: World, folder: Path) -> None:
    request, approval = world.ask(flow=OrderParts), world.ask()
    client = client_of("rita")
    assert client.get(download(request)).status_code == 404, "nobody has answered"
    assert fill(world, request, files={"contract": file()})
    assert client.get(download(request, "title")).status_code == 404
    assert client.get(download(request, "other")).status_code == 404
    assert client.get(download(approval)).status_code == 404
    assert client.get(reverse("admin:outlast_approvals_request_file", args=[10**9, "contract"])).status_code == 404
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()
    assert client.get(download(request)).status_code == 404
